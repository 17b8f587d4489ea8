// Operators that are no matmul, one on one chip: for every operand IN a load, for every step of the recipe a Generic
// stage, all on the same sites, which share out the rows (and the columns of what is point-wise):
//
//   NAME.load_IN -> NAME.IN -> NAME.STEP -> NAME.STEP's buffer -> ... -> NAME.store
//
// An operand that several steps take is loaded once, where a site's memory holds two of its rows, and else once a step.
#pragma once

#include "compiler/ir/program.h"
#include "compiler/passes/sites.h"

namespace rdusim {

// Requires a work with a plan, whose operator has a recipe, and its operands' tensors.
void place_rows(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                SiteAllocator& sites);

}  // namespace rdusim
