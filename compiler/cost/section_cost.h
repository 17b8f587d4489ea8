// What a section takes as a whole: the pace of its busiest resource, and what comes before and after.
#pragma once

#include <vector>

#include "compiler/cost/cost.h"
#include "compiler/cost/traffic.h"

namespace rdusim::cost {

SectionCost section_cost(const SpatialProgram& program, const Target& target, SectionId section,
                         const std::vector<StageCost>& stages, const std::vector<MemoryFlow>& memory,
                         const std::vector<CrossingFlow>& crossings, const std::vector<CollectiveCost>& collectives);

}  // namespace rdusim::cost
