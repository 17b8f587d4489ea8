// One HTML page that holds its data and what shows it, and asks nothing of any network: the dashboard, and the view of
// a run.
//
// A page is its data (JSON in a script element), its own script and style, and before these what all pages share
// (assets/page.js, assets/page.css). All are built into rdusim (embed.cmake). Charts are drawn by Apache ECharts (its
// SVG renderer), whose file the target `dashboard_assets` fetches from npm and which is written into the page; without
// it the page has its tables, and says what is missing. A content-security policy allows the page's scripts by their
// hashes and nothing else: no request, no inline handler.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/result.h"

namespace rdusim {

inline constexpr std::uint64_t echarts_bytes_limit = std::uint64_t{16} << 20;

// The chart library, from `path`; of a file that would end the script that it is put into. Errors: RDU8042, RDU1001.
Result<std::string> read_echarts(const std::string& path);

struct HtmlPage {
  std::string_view title;   // of the window, as HTML
  std::string_view style;   // its own
  std::string_view script;  // its own; calls page.start()
  std::string_view header;  // HTML, between the name and the switch of light and dark
  std::string data;         // JSON
};

// `echarts`: the library's text; absent: tables only.
std::string html_page(const HtmlPage& page, const std::optional<std::string>& echarts);

}  // namespace rdusim
