// The dashboard: one HTML page that holds a history and what shows it, and asks nothing of any network.
//
// The page's script and style are page/dashboard.js and page/dashboard.css, built into rdusim; charts are drawn by
// Apache ECharts (its SVG renderer), whose file the target `dashboard_assets` fetches from npm and which is written
// into the page. Without it the page has its tables and sparklines, and says what is missing. A content-security policy
// allows the page's own two scripts by their hashes and nothing else: no request, no inline handler.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/history/store.h"

namespace rdusim {

inline constexpr std::uint64_t echarts_bytes_limit = std::uint64_t{16} << 20;

// A sweep's table.jsonl.
struct SweepFile {
  std::string name;
  std::vector<std::string> columns;
  std::vector<JsonArray> rows;  // a value a column
};

// `path`: the folder of a sweep, or its table.jsonl. Errors: RDU8001 where it is no such table, RDU1001, RDU1024.
Result<SweepFile> read_sweep(const std::string& path);

// The chart library, from `path`; of a file that would end the script that it is put into. Errors: RDU8042, RDU1001.
Result<std::string> read_echarts(const std::string& path);

// `echarts`: the library's text; absent: tables only. Errors: RDU8041 an empty history and no sweep, those of the
// store.
Result<std::string> dashboard_html(History& history, const std::vector<SweepFile>& sweeps,
                                   const std::optional<std::string>& echarts);

}  // namespace rdusim
