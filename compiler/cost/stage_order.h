// The stages of a section, producers before consumers.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::cost {

// Of the stages that may come next, the least id; a Load comes after the Stores that it waits for; an edge whose buffer starts with initial pages does not order. Where
// stages lie on a cycle (a ring's folds do: each phase of one waits for a phase of the next), the least id of those
// left comes first, so that there always is an order.
std::vector<StageId> stage_order(const SpatialProgram& program, SectionId section);

}  // namespace rdusim::cost
