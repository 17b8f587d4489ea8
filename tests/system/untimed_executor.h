// A second reading of what a program says: runs one of pages of a single int32 without time, stage by stage in an order
// of its own, and gives every value and count that the machine should come to. It shares no code with the compiler, its
// checker or the machine beyond the types of a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::test {

struct Executed {
  bool ended = false;                                        // all stages fired as often as they are due
  std::vector<std::uint64_t> firings;                        // by stage
  std::vector<std::uint64_t> reserved, pushed;               // by buffer, with the pages that were there from the start
  std::vector<std::uint64_t> popped;                         // by buffer, by its slowest consumer
  std::map<std::string, std::vector<std::int32_t>> outputs;  // of tensors that are stored, zeros where nothing was
};

// `seed`: which of the stages that can fire does so next. No result depends on it. Requires a program of one section and
// of groups of one site, whose hand-offs are one to one; of loads, stores, receives, and Generic stages that copy, fold
// or go round with integers.
Executed execute(const SpatialProgram& program, std::uint64_t seed = 1);

}  // namespace rdusim::test
