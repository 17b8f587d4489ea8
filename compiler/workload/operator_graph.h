// What the user asks for: tensors and the operators that join them. No tiles, no sites, no chips.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/ids.h"
#include "compiler/support/result.h"
#include "compiler/workload/fill.h"

namespace rdusim {

enum class TensorRole : std::uint8_t {
  input,
  weight,
  output,
  intermediate,
  state,  // persists between runs and is updated in place (a KV cache)
};

// Row-major; the last extent is the fastest.
struct Operand {
  OperandId id;
  std::string name;
  TensorRole role = TensorRole::intermediate;
  std::vector<std::int64_t> shape;  // of outputs and intermediates: worked out from the operators
  DType dtype = DType::fp32;
  Fill fill;                        // ZeroFill for outputs and intermediates
  std::string where;                // position in the workload file, for messages; not part of equality

  friend bool operator==(const Operand& a, const Operand& b) {
    return a.id == b.id && a.name == b.name && a.role == b.role && a.shape == b.shape && a.dtype == b.dtype &&
           a.fill == b.fill;
  }
};

enum class OperatorKind : std::uint8_t {
  matmul,  // out(m x n) = in0(m x k) in1(k x n); in0 and in1 of one dtype; accumulated in accumulator_of(dtype)
};

struct Operator {
  OperatorId id;
  std::string name;  // given, or "matmul0"
  OperatorKind kind = OperatorKind::matmul;
  std::vector<OperandId> in;
  OperandId out;
  std::string where;  // as above

  friend bool operator==(const Operator& a, const Operator& b) {
    return a.id == b.id && a.name == b.name && a.kind == b.kind && a.in == b.in && a.out == b.out;
  }
};

// [schedule.OP]: what the user pins of what the compiler would choose. Absent: the compiler's choice.
struct SchedulePin {
  OperatorId op;
  std::optional<std::uint32_t> sites;       // at most so many a chip
  std::optional<std::uint32_t> unroll_m;    // sites along each loop
  std::optional<std::uint32_t> unroll_n;
  std::optional<std::uint32_t> unroll_k;
  std::optional<std::uint32_t> block_m;     // tiles of an output block
  std::optional<std::uint32_t> block_n;
  std::optional<std::uint32_t> page_k;      // tiles of the contraction a page
  std::optional<std::uint32_t> depth;       // pages of the operands' buffers
  friend bool operator==(const SchedulePin&, const SchedulePin&) = default;
};

struct OperatorGraph {
  std::string name;
  std::vector<Operand> operands;   // ids by position in the workload file
  std::vector<Operator> operators;  // in an order in which operands are written before they are read
  std::vector<SchedulePin> pins;
  friend bool operator==(const OperatorGraph&, const OperatorGraph&) = default;

  const Operand& operand(OperandId id) const { return operands[id.value]; }
};

std::string_view name_of(TensorRole role);
std::string_view name_of(OperatorKind kind);

// Elements of a shape; nothing where it overflows int64 or an extent is below 1.
std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& shape);

}  // namespace rdusim
