// Operators that only move elements, one on one chip. For each nest i of move_nests.h, on sites of its own:
//
//   NAME.load_i -> NAME.part_i -> NAME.store_i
#pragma once

#include <optional>

#include "compiler/ir/program.h"
#include "compiler/passes/sites.h"

namespace rdusim {

// A plan for a move: only how many sites its nests take, as sites_m. Nothing where the pin asks for what cannot be, or a
// chip has fewer.
std::optional<BlockPlan> move_plan(const OperatorGraph& graph, const Work& work, const SchedulePin& pin,
                                   const Target& target);

// Requires a work with a plan, whose operator is a move that has nests, and its operands' tensors.
void place_moves(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                 SiteAllocator& sites);

}  // namespace rdusim
