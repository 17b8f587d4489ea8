// Which Loads wait for which Stores: a Load of a tensor that Stores of its section write starts when all of them have
// completed all their firings (program.h, Load).
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

struct MemoryOrder {
  SectionId section;
  TensorId tensor;
  std::vector<StageId> stores, loads;  // rising; neither is empty
};

// By section, then tensor; of one section where one is given. Requires references that resolve. Near linear.
std::vector<MemoryOrder> memory_orders(const SpatialProgram& program, std::optional<SectionId> section = {});

}  // namespace rdusim
