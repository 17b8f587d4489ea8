// What a user lets a metric change by: METRIC>AMOUNT (it may not rise by more) or METRIC<AMOUNT (it may not fall by
// more).
//
//   cycles>0%                     simulated cycles may not rise at all
//   stages.*.stall.link>5%        no stage may wait for links more than 5 % longer
//   links.*.bytes>64KiB           no link may carry 65,536 bytes more
//   tokens_per_s<2%               the rate may not fall by more than 2 %
//
// METRIC is a name or a pattern with '*', of one chip's metric or of the folded one; "cycles" is short for
// cycles.simulated. An AMOUNT without % is in the metric's unit ("cycles", "bytes" with KB, KiB, ..., "pages", "s"),
// which may be left out. Percent are of the older value; from zero any rise is more than any percentage.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/result.h"
#include "sim/compare/read_report.h"

namespace rdusim {

struct Threshold {
  std::string text;     // as it was written
  std::string pattern;  // of the metric
  bool rise = true;     // else fall
  bool percent = false;
  double amount = 0;  // >= 0; in percent or in the metric's unit
  std::string unit;   // "" where none was written
};

// Errors: RDU8030.
Result<Threshold> parse_threshold(std::string_view text);

// Whether the change of a metric goes beyond the threshold. Requires that it is of that metric.
bool exceeds(const Threshold& t, const Quantity& old, const Quantity& now);

// Errors: RDU8031 where no metric has such a name, RDU8032 where the threshold's unit is not that of a metric.
Diagnostics check_threshold(const Threshold& t, const std::vector<const Metric*>& metrics);

// Whether the threshold is of that metric.
bool is_of(const Threshold& t, std::string_view metric);

}  // namespace rdusim
