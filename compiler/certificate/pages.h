// Which elements a Load or Store touches, page by page: the checker's own reading of program.h's AccessPattern.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::certificate {

// A rectangle of elements of a whole operand: a vector is one row; rows count through a stack of matrices.
struct Box {
  std::uint64_t row = 0, col = 0;
  std::uint64_t rows = 0, cols = 0;
  std::uint64_t elements() const { return rows * cols; }
  friend auto operator<=>(const Box&, const Box&) = default;
};
std::string to_string(const Box& box);  // "[0:32, 64:96]"

// A tensor whose place in its whole can be read: one to eight axes, as many everywhere, no more elements than fit, and no
// more runs of rows than are looked at.
// Empty: it can; else what is wrong.
std::string unreadable(const Tensor& tensor);

// A pattern that can be read without a fault: as many axes everywhere as the tensor has; no empty or
// overflowing extent. Empty: readable; else what is wrong.
std::string unreadable(const AccessPattern& pattern, const Tensor& tensor, std::size_t instances,
                       std::uint32_t native_tile);

// The following require a readable pattern.

std::uint64_t pages_of(const AccessPattern& pattern);  // product of the loops; too_many on overflow

// Page `page` of `instance` in elements of the whole operand. Nothing where it can never be moved, or would skip rows
// of a stack of matrices.
std::optional<Box> box_of(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                          std::size_t instance, std::uint64_t page);

// A box of a tensor's whole as one of the stack of heads that AccessPattern::heads makes of it. Nothing where its
// columns are no whole heads, or it lies in several.
std::optional<Box> in_heads(const Box& box, const Tensor& tensor, std::uint64_t heads);

// How many pages of `instance` can be moved. Nothing where some cannot and there are too many to look at one by one.
std::optional<std::uint64_t> movable_pages(const AccessPattern& pattern, const Tensor& tensor, std::size_t instance);

// Elements of a whole operand of a tensor, as boxes, rising: one, or one of each matrix of which it has some rows.
std::vector<Box> slice_of(const Tensor& tensor);
Box whole_of(const Tensor& tensor);

}  // namespace rdusim::certificate
