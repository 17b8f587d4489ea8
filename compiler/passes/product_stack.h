// The stack of matrices that a matmul goes through: which matrix of its right operand serves which of its left.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// Axes of a loop over all matrices of the left operand, outermost first. Matrices of two dimensions have none.
struct ProductStack {
  std::vector<std::uint64_t> extents;
  // By axis: what one step along it is along each leading axis of the left operand and of the result, and of the right
  // operand, which stays where it serves several.
  std::vector<std::vector<std::uint64_t>> left, right;
  std::int64_t rows = 1;  // of a matrix of the left operand

  std::uint64_t matrices() const;            // of the left operand
  std::uint64_t right_matrices() const;      // of the right operand
  bool right_moves(std::size_t axis) const;  // a step along the axis is another matrix of the right operand
  // The extents, and blocks of `block` tiles of rows behind them: what is dealt out to sites.
  std::vector<std::uint64_t> blocks(std::uint64_t block, std::uint32_t tile) const;
};

// Requires a matmul whose stacks agree (operator_graph.h).
ProductStack product_stack(const OperatorGraph& graph, const Operator& op);

}  // namespace rdusim
