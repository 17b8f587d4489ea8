// The bytes that a run works on: every tensor's slice in its chip's memory, and whole operands for the reference.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/systemc/machine.h"
#include "sim/reference/reference.h"

namespace rdusim {

// An operand and where its elements come from.
struct OperandSource {
  Operand operand;     // of the operator graph; of an assembled program without one, as its slices describe it
  std::string folder;  // what its file fill is relative to
};

using Assignment = std::pair<std::string, std::string>;  // "w" = "w.npy"

// Operands by id. `set` replaces fills of inputs, weights and states with .npy or safetensors files ("file" or
// "file:tensor", by default the tensor named as the operand), relative to the working folder. Errors: RDU6003 no such
// operand, RDU1001, RDU1017-RDU1020.
Result<std::vector<OperandSource>> operand_sources(const SpatialProgram& program, const std::string& folder,
                                                   const std::vector<Assignment>& set);

// Every tensor's bytes, by tensor id: inputs, weights and states filled, the rest zero. Inputs and weights that come from
// a file are views of it, the same for all their slices.
// Errors: RDU6002 external operands without --set, RDU1001, RDU1025, RDU4105.
Result<TensorImages> fill_images(const SpatialProgram& program, const std::vector<OperandSource>& sources);

// Whole operands, by operand id; what operators write is empty, and what comes from a file is a view of it. Errors as
// above.
Result<OperandBytes> fill_whole(const std::vector<OperandSource>& sources);

// A whole operand from its slices (of replicas the first); nothing where the slices do not cover it.
std::optional<ElementBytes> gather(const SpatialProgram& program, OperandId operand, const TensorImages& images);
// A tensor's own elements, of a view too.
std::vector<std::byte> slice_of(const Tensor& tensor, const ElementBytes& image);

struct MemoryEstimate {
  Bytes images = 0;     // tensors of all chips, but for inputs and weights in files
  Bytes reference = 0;  // whole operands and results, likewise
  Bytes machine = 0;    // pages in buffers, the state of every unit, and what checkers keep
  Bytes total() const { return images + reference + machine; }
};
// Before anything is allocated.
MemoryEstimate estimate_memory(const SpatialProgram& program, const std::vector<OperandSource>& sources, bool values,
                               bool check);

// The bytes of an .npy file, version 1.0. bf16 and fp8 are written as unsigned integers of their width, which read back
// as they are.
std::string to_npy(DType dtype, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes);

}  // namespace rdusim
