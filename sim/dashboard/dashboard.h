// The dashboard: one HTML page that holds a history and what shows it, and asks nothing of any network.
//
// The page's script and style are page/dashboard.js and page/dashboard.css, built into rdusim; what every page has stands
// in sim/page/html_page.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/history/store.h"

namespace rdusim {

// A sweep's table.jsonl.
struct SweepFile {
  std::string name;
  std::vector<std::string> columns;
  std::vector<JsonArray> rows;  // a value a column
};

// `path`: the folder of a sweep, or its table.jsonl. Errors: RDU8001 where it is no such table, RDU1001, RDU1024.
Result<SweepFile> read_sweep(const std::string& path);

// `echarts`: the library's text; absent: tables only. Errors: RDU8041 an empty history and no sweep, those of the
// store.
Result<std::string> dashboard_html(History& history, const std::vector<SweepFile>& sweeps,
                                   const std::optional<std::string>& echarts);

}  // namespace rdusim
