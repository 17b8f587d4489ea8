// A run as one HTML page: its chips, sites and links over time, its stages on a roofline, the critical path, the
// causes.
//
// Made of an event log it has all of that; of a report, what a report knows: no time, of every stage its slowest
// instance, no critical path. A log that does not hold every event has no table of causes and no roofline, and the page
// says so. The data of the page (page/view.js reads it):
//
//   schema    "rdusim.view/1"
//   notes     what is missing, as sentences
//   report    as report.md, without host, decisions, proved and buffers; null
//   machine   chips, width and height of a chip's mesh in sites
//   cycles    of the run
//   time      null, or: width and number of bins (lives.h); symbols; sites ([chip, x, y, x, y, ...] of each group);
//             stages (name, kind, unit, group, and the life of every instance); lives ([row, firings, busy, stall by
//             cause, ...]); links ([from, to, name, bytes, busy, row]); memories ([chip, name, bytes, busy, row])
//   path      null, or the answer of `rdusim trace critical-path`
#pragma once

#include <optional>
#include <string>

#include "compiler/support/json.h"
#include "compiler/support/result.h"

namespace rdusim {

// `path`: a report or an event log; the log is read several times. Errors: RDU8001 neither of them; RDU1001, RDU8011-
// RDU8013.
Result<Json> view_data(const std::string& path);

std::string view_html(const Json& data, const std::optional<std::string>& echarts);

}  // namespace rdusim
