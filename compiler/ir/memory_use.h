// What takes room in the memories of a chip: its tensors by what they are for, those of a model's layers together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/diagnostics.h"
#include "compiler/target/target.h"

namespace rdusim {

// Tensors of one chip whose names differ only in numbers between dots.
struct MemoryUse {
  MemorySpace space = MemorySpace::hbm;
  TensorRole role = TensorRole::weight;
  std::string name;  // "model.layers.*.mlp.up_proj.weight": the operand's, or the tensor's where there is none
  std::uint64_t tensors = 0;
  std::uint32_t replicas = 1;  // chips that hold the same elements, this one counted
  Bytes bytes = 0;             // of all of them, alignment not counted; the greatest number on overflow
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

// Of `chip`, by space, then by role, then falling bytes, then by name.
std::vector<MemoryUse> memory_use(const SpatialProgram& program, ChipId chip);

// The memory that a tensor lies in.
const MemoryParameters& memory_of(const Tensor& t, const Target& target);

// Adds the `most` rows that take most of a chip's memory of a space to a refusal.
void note_memory_use(Diagnostic& d, const SpatialProgram& program, ChipId chip, MemorySpace space,
                     std::size_t most = 12);

// A table for each kind of chip: every row of weights and state, the others' sums, totals against the target's
// capacities, and the fullest PMU where the program has a memory plan.
std::string print_memory_use(const SpatialProgram& program, const Target& target);

}  // namespace rdusim
