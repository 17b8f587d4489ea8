// A rotary embedding on one chip: a page is half a head of some rows, and each half is turned by a stage of its own.
//
//   NAME.load_x, .load_y (the halves of a head), .load_cos, .load_sin
//     -> NAME.first  (x cos - y sin) -> NAME.store_first
//     -> NAME.second (y cos + x sin) -> NAME.store_second
//
// Sites share out the blocks of rows, or the heads; what all of a block's heads turn by is loaded once.
#pragma once

#include <optional>

#include "compiler/ir/program.h"
#include "compiler/passes/sites.h"

namespace rdusim {

// rounds_m and sites_m count blocks of rows, rounds_n and sites_n heads. Nothing where the pin asks for what cannot be, or
// a site has too few contexts or vector inputs.
std::optional<BlockPlan> rotary_plan(const OperatorGraph& graph, const Work& work, const SchedulePin& pin,
                                     const Target& target);

// Requires a work with a plan, whose operator is a rotary of a matrix, and its operands' tensors.
void place_rotary(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                  SiteAllocator& sites);

}  // namespace rdusim
