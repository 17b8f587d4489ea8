#include "models/systemc/division.h"

#include <algorithm>
#include <numeric>

namespace rdusim {

std::vector<std::uint64_t> work_of(const SpatialProgram& program) {
  std::vector<std::uint64_t> work(program.header.plan.chips);
  for (const Stage& s : program.stages) {
    const std::uint64_t firings = s.firings * program.sections[s.section.value].trips;
    for (const Site& site : program.sites_of(s).sites)
      if (site.chip.value < work.size()) work[site.chip.value] += firings;
  }
  return work;
}

std::vector<Block> divide(const std::vector<std::uint64_t>& work, std::uint32_t processes, double listening) {
  const auto chips = static_cast<std::uint32_t>(work.size());
  const double all = static_cast<double>(std::accumulate(work.begin(), work.end(), std::uint64_t{0}));
  const auto with_work = [&](std::uint32_t from) {
    return std::count_if(work.begin() + from, work.end(), [](std::uint64_t w) { return w != 0; });
  };
  std::vector<Block> blocks(processes);
  std::uint32_t at = 0;
  // Process 0 takes chips as long as it is not the busiest by the half of one.
  double left = all;
  const double share = all * (1 + listening) / processes - all * listening;
  double mine = 0;
  while (at < chips && with_work(at + 1) + 0 >= static_cast<std::ptrdiff_t>(processes) - 1 &&
         mine + static_cast<double>(work[at]) / 2 <= share) {
    mine += static_cast<double>(work[at]);
    left -= static_cast<double>(work[at]);
    ++at;
  }
  blocks[0] = {0, at};
  for (std::uint32_t rank = 1; rank < processes; ++rank) {
    const std::uint32_t behind = processes - rank - 1;  // each needs a chip with work
    const double part = left / (behind + 1);
    const std::uint32_t begin = at;
    double taken = 0;
    while (at < chips) {
      const bool needs = taken == 0;
      const bool can = behind == 0 || with_work(at + 1) >= static_cast<std::ptrdiff_t>(behind);
      if (!needs && (!can || (behind != 0 && taken + static_cast<double>(work[at]) / 2 > part))) break;
      taken += static_cast<double>(work[at]);
      ++at;
    }
    left -= taken;
    blocks[rank] = {begin, at};
  }
  return blocks;
}

}  // namespace rdusim
