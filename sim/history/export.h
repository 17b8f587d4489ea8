// A history in the forms that other tools read.
#pragma once

#include <string>

#include "sim/history/store.h"

namespace rdusim {

enum class ExportForm : std::uint8_t {
  json_lines,   // every run, a line each, with its metrics
  openmetrics,  // the newest run of each series, as OpenMetrics 1.0 text (openmetrics.io)
  benchmark,    // the same as github-action-benchmark's customSmallerIsBetter: [{name, unit, value, extra}]
};

// `pattern`: of the metrics ('*' is anything). Errors: RDU8031 no metric is of the pattern, RDU8041 no run, those of
// the store.
Result<std::string> export_history(History& history, ExportForm form, const std::string& pattern);

// "2026-11-29T19:45:00Z", and back: also a whole number of seconds since 1970; nothing for anything else.
std::string utc_text(std::int64_t seconds);
std::optional<std::int64_t> utc_seconds(std::string_view text);

}  // namespace rdusim
