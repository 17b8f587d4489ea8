// The analytical cost model: what the compiler expects, from the target's numbers alone. Kept apart from the simulator
// and never tuned to it; models/ never includes this.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// One stage, the slowest instance, over one run of its section (all trips).
struct StageCost {
  Cycles busy_cycles = 0;                  // its engine, or what it keeps busy
  Cycles initiation_interval_cycles = 0;   // steady distance of two firings
  Cycles latency_cycles = 0;               // start of a firing to its pages being visible
  Cycles total_cycles = 0;                 // firings * interval + latency
};

struct CollectiveCost {
  Cycles cycles = 0;        // alpha-beta estimate on the topology
  Bytes bytes_per_chip = 0;  // sent by the busiest chip
};

// The predicted total of a section, split into the causes of machine.md that apply to a prediction. Adds up.
struct SectionCost {
  Cycles launch = 0;
  Cycles fill = 0;       // until the bottleneck runs
  Cycles compute = 0;    // bottleneck: PCU
  Cycles memory = 0;     // bottleneck: HBM
  Cycles link = 0;       // collectives not hidden behind the others
  Cycles network = 0;    // bottleneck: on-chip
  Cycles drain = 0;      // after the bottleneck
  Cycles total() const { return launch + fill + compute + memory + link + network + drain; }
};

struct Costs {
  std::vector<StageCost> stages;            // by stage id
  std::vector<CollectiveCost> collectives;  // by collective id
  std::vector<SectionCost> sections;        // by section id
  Cycles predicted_cycles = 0;              // sum over sections
  Cycles lower_bound_cycles = 0;            // roofline: no run can be faster
};

// Requires a placed program.
Costs estimate(const SpatialProgram& program, const Target& target);

// Alpha-beta estimate of a collective of `bytes` (a member's whole contribution, spread over `lanes` independent
// instances) over `members` on the target's topology. One member: 0.
CollectiveCost estimate_collective(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes, std::uint64_t lanes,
                                   const std::vector<ChipId>& members, const Target& target);

}  // namespace rdusim
