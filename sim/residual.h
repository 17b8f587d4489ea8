// Why a run took longer (or less long) than the cost model says: both totals are partitioned into the same causes, and
// the difference of each is a residual. The residuals add up to simulated - predicted exactly; there is no "other".
//
// simulated  Of each section, the timeline of its bottleneck: the stage instance whose own time (busy, and stalled on
//            memory, network, link or banks) is the longest, the least number where several are. Up to its first
//            firing (of each launch): fill. Its busy cycles go to the resource of its kind (loads and stores: memory; receives: link;
//            else compute), its later stalls to their cause. From its engine's last use to the section's end: link as
//            long as a collective is under way (in the last launch), else drain. Time outside sections: launch.
// predicted  cost.h's SectionCost, cause by cause.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/cost/cost.h"
#include "sim/collective_checker.h"
#include "sim/statistics.h"

namespace rdusim {

enum class Cause : std::uint8_t {
  compute,
  fill,
  drain,
  input_starvation,
  back_pressure,
  bank_conflict,
  network_contention,
  memory,
  link,
  barrier_skew,
  launch,
  schedule,
};
inline constexpr std::size_t causes = 12;
std::string_view name_of(Cause cause);

using Partition = std::array<std::int64_t, causes>;
std::int64_t total(const Partition& p);

struct Bottleneck {
  SectionId section;
  std::uint32_t stage = 0;  // instance number
};

struct Residual {
  Partition simulated{};
  Partition predicted{};
  std::vector<Bottleneck> bottlenecks;  // by section; of those in which something fired
  std::int64_t of(Cause c) const {
    return simulated[static_cast<std::size_t>(c)] - predicted[static_cast<std::size_t>(c)];
  }
};

// Requires a run that finished at `cycles`.
Residual explain_difference(const Instances& instances, const Statistics& statistics,
                            const CollectiveChecker& collectives, const Costs& costs, Cycle cycles);

}  // namespace rdusim
