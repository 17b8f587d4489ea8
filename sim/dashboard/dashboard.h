// The dashboard: one HTML page that holds a history and what shows it, and asks nothing of any network.
//
// The page's script and style are page/dashboard.js and page/dashboard.css, built into rdusim; what every page has stands
// in sim/page/html_page.h.
#pragma once

#include <optional>
#include <string>

#include "sim/dashboard/tables.h"
#include "sim/history/store.h"

namespace rdusim {

// `echarts`: the library's text; absent: tables only. Errors: RDU8041 an empty history and no sweep, those of the
// store.
Result<std::string> dashboard_html(History& history, const DashboardTables& tables,
                                   const std::optional<std::string>& echarts);

}  // namespace rdusim
