// The cycles that no run of a program can beat (the law is stated at Costs::lower_bound_cycles).
#pragma once

#include <vector>

#include "compiler/cost/traffic.h"
#include "compiler/target/target.h"

namespace rdusim::cost {

Cycles lower_bound(const SpatialProgram& program, const Target& target, const std::vector<MemoryFlow>& memory,
                   const std::vector<CrossingFlow>& crossings);

}  // namespace rdusim::cost
