// What the firings of stages take at the very least, from the target's laws alone: the times of a bound that no run can
// beat (compiler/ir/circle_bound.h).
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/throughput.h"
#include "compiler/target/target.h"

namespace rdusim::cost {

// By stage id; of stages outside the clusters nothing is said. Of a one-to-one cluster what instance 0 does, of another
// the least that any instance does.
//
//   matmul   keeps its PCU for the tiles of its smallest pages (whole tiles, models/units/pcu.h), or the PMU's read port
//            for their bytes; its pages are seen the array's fill and drain later, and a read and a write of the PMU.
//            Of operands that no Load brings, a page is one element.
//   generic  keeps its PCU for a cycle; its pages are seen the SIMD pipeline and two accesses of the PMU later.
//   load     keeps its engine for its smallest page at the slowest of AGCU, mesh link and PMU write port; the page is
//            seen no sooner than memory and AGCU let it pass.
//   store    keeps its engine for a cycle.
//   recv     a page has left after a cycle, and is seen the latency of its links later, the shortest way of its edge.
std::vector<StageTiming> least_times(const SpatialProgram& program, std::span<const Cluster> clusters,
                                     const Target& target);

}  // namespace rdusim::cost
