// Rows of a table by index, on one chip. Every site takes as many indices, consecutive ones, as one page, and reads a row
// (or a part of one) a firing:
//
//   NAME.load_indices -> NAME.indices -> NAME.load_rows -> NAME.rows -> NAME.store
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/program.h"
#include "compiler/passes/sites.h"

namespace rdusim {

// Why a gather is not lowered; empty: it is.
std::string gather_fault(const OperatorGraph& graph, const Operator& op);

// sites_m sites, rounds_m indices each. Nothing where the pin asks for what cannot be.
std::optional<BlockPlan> gather_plan(const OperatorGraph& graph, const Work& work, const SchedulePin& pin,
                                     const Target& target);

// Requires a work with a plan, whose operator is a gather without fault, and its operands' tensors.
void place_gather(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                  SiteAllocator& sites);

}  // namespace rdusim
