// Blocks of stacks of matrices: which block a body over rows and columns makes, and which matrices a product joins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/certificate/pages.h"

namespace rdusim::certificate {

// Extents that blocks are cut from: the last two are rows and columns, a vector is one row. A Box counts rows through
// the stack. Empty: none.
using Whole = std::vector<std::uint64_t>;
Whole whole_shape(const Tensor& tensor, std::uint64_t heads = 1);  // of the stack that heads make of it

// The greatest of each extent, aligned at the last.
Whole spread_over(Whole whole, const Whole& other);

// A block that a body takes; has_rows, has_cols: what its map says that it has of the result.
struct TakenBlock {
  Box box;
  const Whole* whole = nullptr;
  bool has_rows = true, has_cols = true;
};

// The block of `taken.whole` that belongs to block `made` of `whole`; nothing where `made` lies in several matrices of
// a stack and those of the two do not correspond one to one. taken.box is not looked at.
std::optional<Box> due_for(const Box& made, const Whole& whole, const TakenBlock& taken);

// The block of `whole` that is made of `taken`; or why they do not belong together.
std::string block_of(const std::vector<TakenBlock>& taken, const Whole& whole, Box& made);

// Why a product does not join the matrices of these two blocks: matrix i of the left goes with matrix i / (lefts /
// rights) of the right. Empty: it does.
std::string wrong_matrices(const Box& left, const Whole& whole_left, const Box& right, const Whole& whole_right);

}  // namespace rdusim::certificate
