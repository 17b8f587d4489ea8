// How an operator that is no matmul is cut: pages of one tile of rows and as many columns as suit a stream, its rows
// (and the columns of what is point-wise) shared out over as many sites as it takes to keep up with the memory.
#pragma once

#include <optional>

#include "compiler/ir/program.h"

namespace rdusim {

// A plan for `work`, whose operator has a recipe; nothing where the pin asks for what cannot be. page_k, sites_k and
// k_pages are 1.
std::optional<BlockPlan> row_plan(const OperatorGraph& graph, const Work& work, const SchedulePin& pin,
                                  const Target& target);

}  // namespace rdusim
