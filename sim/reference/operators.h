// The operators beyond matmul, each worked out twice: to the bit, and in double with an error bound.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compiler/workload/operator_graph.h"
#include "sim/reference/reference.h"

namespace rdusim::reference {

// An operator that keeps its rules (check_graph), and the bytes of its operands, as many as their shapes ask for.
struct Problem {
  const OperatorGraph& graph;
  const Operator& op;
  bool saturate = true;
  const OperandBytes& operands;

  const Operand& in(std::size_t i) const { return graph.operand(op.in[i]); }
  const Operand& out() const { return graph.operand(op.out); }
  std::span<const std::byte> bytes(std::size_t i) const { return operands[op.in[i].value]; }
  std::size_t elements() const;  // of the result
};

std::vector<std::byte> point_wise(const Problem& p);
WideMatrix point_wise_wide(const Problem& p);

std::vector<std::byte> row_wise(const Problem& p);
WideMatrix row_wise_wide(const Problem& p);

std::vector<std::byte> rotary(const Problem& p);
WideMatrix rotary_wide(const Problem& p);

// `tree`: of the products with values; null: one leaf.
std::vector<std::byte> attention(const Problem& p, const SummationTree* tree);
WideMatrix attention_wide(const Problem& p);

// Errors: RDU1035, an index beyond the table.
Result<std::vector<std::byte>> move(const Problem& p);

// RDU3032: trees that do not add [0, k) once, a tree a chunk.
void check_trees(std::int64_t k, const std::vector<SummationTree>& trees, Diagnostics& out);

// A result of the operand's own elements, exact.
WideMatrix exactly(DType dtype, std::span<const std::byte> bytes);

}  // namespace rdusim::reference
