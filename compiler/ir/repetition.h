// The repetition vector: how often each stage of a cluster fires for every buffer to be as it was.
//
// Where a stage pushes p pages in a cycle of its rates and its consumer pops c, their firings are as c is to p. Around
// a circle of hand-offs (whichever way they lead) these proportions must agree; where they do not, no numbers of
// firings balance, and the circle says why. (E. A. Lee and D. G. Messerschmitt, "Static scheduling of synchronous data
// flow programs for digital signal processing", IEEE Trans. Computers, 1987; cyclo-static rates by their sums over a
// cycle.)
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/clusters.h"
#include "compiler/ir/program.h"

namespace rdusim {

struct Repetition {
  // By Cluster::stages: the least whole numbers of firings of an instance that balance and are whole cycles of its
  // rates. Empty where there are none, or where they do not fit 64 bits.
  std::vector<std::uint64_t> firings;
  // A circle of stages and the buffers that join each to the next, the last to the first; two stages that disagree over
  // one buffer alone are a circle of that buffer. Empty where the rates agree.
  std::vector<StageId> circle;
  std::vector<BufferId> buffers;
  bool too_large = false;  // firings do not fit
};

// Requires a program that keeps the rules on structure, ports and rates. Instances of a stage that do not fire alike
// (pages that cannot be moved) are taken as if they did.
Repetition repetition_of(const SpatialProgram& program, const Cluster& cluster);

}  // namespace rdusim
