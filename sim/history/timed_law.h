// When a timed metric (wall time, hand-offs a second, memory) has become worse, although no two runs agree.
//
// level  A run is held against the median of the runs of the same host that were accepted or passed before, the last 20
//        of them, once there are 5. It is worse where it lies beyond
//            median +- max(3 * 1.4826 * MAD, 10 % of the median)
//        on the bad side; MAD is the median distance from the median, and 1.4826 MAD estimates the standard deviation
//        of what is normally distributed (Rousseeuw and Croux, JASA 88, 1993), without minding a few outliers.
// step   Runs that pass move the median, and so a drift of a little a run would never be seen. So the median of the
// last 5
//        runs is held against that of the first 10 since the last acceptance by a person (the anchor), once there are
//        15: it has drifted where it lies beyond
//            anchor +- max(2 * 1.4826 * MAD of the anchor, 5 % of the anchor).
#pragma once

#include <optional>
#include <vector>

#include "sim/compare/read_report.h"

namespace rdusim {

inline constexpr std::size_t level_runs = 20, level_least = 5;
inline constexpr std::size_t anchor_runs = 10, recent_runs = 5;

double median(std::vector<double> values);  // requires some
// Median distance from the median; requires some.
double median_distance(const std::vector<double>& values);

struct TimedFinding {
  double reference = 0;  // the median
  double limit = 0;
  double now = 0;  // the run, or the median of the recent ones
};

// `before`: accepted or passed values, oldest first. Nothing where there are too few or nothing is wrong.
std::optional<TimedFinding> worse_than_before(const std::vector<double>& before, double now, Better better);
// `since`: values since the last acceptance, oldest first, the newest included.
std::optional<TimedFinding> drifted(const std::vector<double>& since, Better better);

// The limit that worse_than_before holds a value to; nothing where there are too few.
std::optional<TimedFinding> level_of(const std::vector<double>& before, Better better);

}  // namespace rdusim
