// Which Loads wait for which Stores: a Load of a tensor that Stores of its section write starts when all of them have
// completed all their firings (program.h, Load).
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

struct MemoryOrder {
  SectionId section;
  TensorId tensor;
  std::vector<StageId> stores, loads;  // rising; neither is empty
};

// By section, then tensor. Requires references that resolve. Near linear.
std::vector<MemoryOrder> memory_orders(const SpatialProgram& program);

}  // namespace rdusim
