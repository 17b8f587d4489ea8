#include "sim/history/timed_law.h"

#include <algorithm>
#include <cmath>

namespace rdusim {

namespace {

constexpr double deviation_of_mad = 1.4826;

TimedFinding level(const std::vector<double>& reference, double deviations, double share, Better better) {
  TimedFinding f;
  f.reference = median(reference);
  const double room =
      std::max(deviations * deviation_of_mad * median_distance(reference), share * std::fabs(f.reference));
  f.limit = better == Better::higher ? f.reference - room : f.reference + room;
  return f;
}

bool beyond(const TimedFinding& f, Better better) {
  return better == Better::higher ? f.now < f.limit : f.now > f.limit;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double median_distance(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (double v : values) distances.push_back(std::fabs(v - middle));
  return median(distances);
}

std::optional<TimedFinding> level_of(const std::vector<double>& before, Better better) {
  if (before.size() < level_least || better == Better::neither) return std::nullopt;
  const std::size_t from = before.size() > level_runs ? before.size() - level_runs : 0;
  return level({before.begin() + static_cast<std::ptrdiff_t>(from), before.end()}, 3, 0.10, better);
}

std::optional<TimedFinding> worse_than_before(const std::vector<double>& before, double now, Better better) {
  auto f = level_of(before, better);
  if (!f) return f;
  f->now = now;
  if (!beyond(*f, better)) return std::nullopt;
  return f;
}

std::optional<TimedFinding> drifted(const std::vector<double>& since, Better better) {
  if (since.size() < anchor_runs + recent_runs || better == Better::neither) return std::nullopt;
  TimedFinding f = level({since.begin(), since.begin() + anchor_runs}, 2, 0.05, better);
  f.now = median({since.end() - recent_runs, since.end()});
  if (!beyond(f, better)) return std::nullopt;
  return f;
}

}  // namespace rdusim
