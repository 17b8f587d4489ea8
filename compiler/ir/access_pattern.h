// The pages of a tensor that a Load or Store touches, worked out from its AccessPattern (program.h states the law).
//
// Every function requires a pattern whose lists agree in length and whose last tile does not overflow: the verifier's
// RDU3003 holds a program to that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// A rectangle of tiles, or of steps of the pattern's grain: along axis d, [begin[d], begin[d] + size[d]).
struct TileBox {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint64_t> size;
  friend bool operator==(const TileBox&, const TileBox&) = default;
  friend auto operator<=>(const TileBox&, const TileBox&) = default;
};

// Elements of one axis: [begin, end).
struct AxisRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const AxisRange&, const AxisRange&) = default;
  friend auto operator<=>(const AxisRange&, const AxisRange&) = default;
};

// Elements along `axis` that one tile spans: the native tile on the last two axes, 1 on those before.
std::uint64_t tile_extent(std::size_t rank, std::size_t axis, std::uint32_t native_tile);

// Elements along `axis` that the pattern counts as one: its grain, or a tile.
inline std::uint64_t step_of(const AccessPattern& pattern, std::size_t rank, std::size_t axis,
                             std::uint32_t native_tile) {
  return pattern.grain.empty() ? tile_extent(rank, axis, native_tile) : pattern.grain[axis];
}

// The extents of `tensor` in steps of the pattern.
std::vector<std::uint64_t> steps_in(const AccessPattern& pattern, const Tensor& tensor);

// The product of the loops: pages of one instance in a trip. Nothing on overflow.
std::optional<std::uint64_t> pages_per_trip(const AccessPattern& pattern);

// Page `page` of a trip, clipped to extent_tiles; of size 0 along an axis where it starts beyond. Requires page <
// pages_per_trip.
TileBox page_at(const AccessPattern& pattern, std::size_t instance, std::uint64_t page);

// Whether a page can be moved at all: it is not empty and lies wholly in a tensor of `tiles`, or steps.
bool movable(const TileBox& page, const std::vector<std::uint64_t>& tiles);
bool movable(const TileBox& page, const AccessPattern& pattern, const Tensor& tensor);

// How many of an instance's pages in a trip can be moved. Needs no enumeration: a page can be moved where its start
// stays below a limit on each axis, so whole sub-nests count at once. Nothing where a nest is so irregular that it
// would take more than ten million steps.
std::optional<std::uint64_t> movable_pages(const AccessPattern& pattern, std::size_t instance,
                                           const std::vector<std::uint64_t>& tiles);

// An element of a stack of matrices: rows are counted through the stack.
struct MatrixElement {
  std::uint64_t row = 0;
  std::uint64_t col = 0;
  friend bool operator==(const MatrixElement&, const MatrixElement&) = default;
};

// Where an element of a tensor of extents `whole` is in the stack that `heads` makes of it (AccessPattern::heads).
MatrixElement in_heads(MatrixElement at, const std::vector<std::int64_t>& whole, std::uint64_t heads);

// The elements of the whole operand that `page` of `tensor` spans along `axis`, clipped to the tensor. Requires a
// movable page of the pattern.
AxisRange elements_of(const AccessPattern& pattern, const Tensor& tensor, const TileBox& page, std::size_t axis,
                      std::uint32_t native_tile);

}  // namespace rdusim
