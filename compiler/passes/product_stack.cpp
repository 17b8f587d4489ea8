#include "compiler/passes/product_stack.h"

#include <algorithm>

#include "compiler/passes/extents.h"

namespace rdusim {
std::uint64_t ProductStack::matrices() const {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : extents) n *= extent;
  return n;
}

std::uint64_t ProductStack::right_matrices() const {
  std::uint64_t n = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) n *= right_moves(d) ? extents[d] : 1;
  return n;
}

bool ProductStack::right_moves(std::size_t axis) const {
  return std::any_of(right[axis].begin(), right[axis].end(), [](std::uint64_t n) { return n != 0; });
}

std::vector<std::uint64_t> ProductStack::blocks(std::uint64_t block, std::uint32_t tile) const {
  std::vector<std::uint64_t> axes = extents;
  axes.push_back(ceil_div(tiles_of(rows, tile), block));
  return axes;
}

ProductStack product_stack(const OperatorGraph& graph, const Operator& op) {
  const auto& a = graph.operand(op.in[0]).shape;
  const auto& b = graph.operand(op.in[1]).shape;
  const std::size_t axes_a = a.size() - 2, axes_b = b.size() - 2;
  ProductStack stack;
  stack.rows = a[axes_a];
  const auto add = [&](std::int64_t extent, std::size_t axis, std::int64_t step_a, std::int64_t step_b) {
    if (extent == 1) return;
    stack.extents.push_back(static_cast<std::uint64_t>(extent));
    stack.left.emplace_back(axes_a, 0)[axis] = static_cast<std::uint64_t>(step_a);
    stack.right.emplace_back(axes_b, 0);
    if (axis < axes_b) stack.right.back()[axis] = static_cast<std::uint64_t>(step_b);
  };
  for (std::size_t d = 0; d < axes_a; ++d) {
    const std::int64_t of_b = axes_b == axes_a ? b[d] : 1;
    add(of_b, d, a[d] / of_b, 1);
    add(a[d] / of_b, d, 1, 0);
  }
  return stack;
}

}  // namespace rdusim
