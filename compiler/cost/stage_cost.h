// Costs of single stages (the laws are stated at StageCost).
#pragma once

#include <vector>

#include "compiler/cost/cost.h"
#include "compiler/cost/traffic.h"

namespace rdusim::cost {

// By stage id. Flows are those of the whole program.
std::vector<StageCost> stage_costs(const SpatialProgram& program, const Target& target,
                                   const std::vector<MemoryFlow>& memory, const std::vector<CrossingFlow>& crossings);

// Mesh hops between two sites of a chip, dimension order.
std::uint32_t hops(Position a, Position b);

// From an AGCU to the farthest of a flow's sites, hops.
std::uint32_t hops(const SpatialProgram& program, const Target& target, const MemoryFlow& flow);

// Site to site, over the AGCUs and chip links where the sites are on two chips; without serialisation.
Cycles crossing_latency(const SpatialProgram& program, const Target& target, const CrossingFlow& flow);

}  // namespace rdusim::cost
