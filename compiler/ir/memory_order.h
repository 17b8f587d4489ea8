// Which Loads wait for which Stores: a Load of a tensor that Stores of its section write reads no page before they have
// stored it (program.h, Load).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// Trip t of the loads waits for trip t - lag of the stores, for nothing where t < lag: from then on they work on the
// same tensors, and before that the loads read what comes from elsewhere.
struct MemoryOrder {
  SectionId section;
  TensorId tensor;  // that the stores write in their first trip
  std::uint64_t lag = 0;
  std::vector<StageId> stores, loads;  // rising; neither is empty
};

// By section, tensor, lag; of one section where one is given. Requires references that resolve. Near linear in stages
// times trips.
std::vector<MemoryOrder> memory_orders(const SpatialProgram& program, std::optional<SectionId> section = {});

// A Load and a Store of its section that work on a same tensor in no such order: the load would read what a later trip
// writes, or one that is so many trips away now and otherwise then. memory_orders() leaves them out.
struct MemoryDisorder {
  StageId store, load;
  TensorId tensor;
  std::uint64_t written = 0, read = 0;  // in these trips
};
std::vector<MemoryDisorder> memory_disorders(const SpatialProgram& program);

}  // namespace rdusim
