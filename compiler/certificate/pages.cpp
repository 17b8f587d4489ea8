#include "compiler/certificate/pages.h"

#include <algorithm>
#include <array>
#include <span>

#include "compiler/certificate/finding.h"
#include "compiler/support/units.h"

namespace rdusim::certificate {

namespace {

constexpr std::size_t most_axes = 8;
constexpr std::uint64_t most_looked_at = std::uint64_t{1} << 20;

// Elements along an axis that the pattern counts as one.
std::uint64_t step_along(const AccessPattern& a, std::size_t rank, std::size_t axis, std::uint32_t native_tile) {
  if (!a.grain.empty()) return a.grain[axis];
  return rank > 2 && axis + 2 < rank ? 1 : native_tile;
}

// How many of them an axis of the tensor has; the last may be ragged.
std::uint64_t steps_along(const AccessPattern& a, const Tensor& t, std::size_t axis) {
  if (a.grain.empty()) return t.tiles[axis];
  return ceil_div(static_cast<std::uint64_t>(t.shape[axis]), a.grain[axis]);
}

// Steps [begin, end) of an axis after clipping to the pattern's own extent; nothing where the page cannot be moved.
struct Span {
  std::uint64_t begin = 0, end = 0;
};
std::optional<Span> span_at(const AccessPattern& a, const Tensor& t, std::size_t axis, std::uint64_t start) {
  if (start >= a.extent_tiles[axis]) return std::nullopt;
  const std::uint64_t end = std::min(sum(start, a.page_tiles[axis]), a.extent_tiles[axis]);
  if (end > steps_along(a, t, axis)) return std::nullopt;
  return Span{start, end};
}

template <class F>
bool each_axis(const AccessPattern& a, std::size_t instance, std::uint64_t page, F&& f) {
  std::array<std::uint64_t, most_axes> start{};
  const std::size_t rank = a.page_tiles.size();
  for (std::size_t d = 0; d < rank; ++d) start[d] = a.first[instance][d];
  for (std::size_t l = a.loops.size(); l-- > 0;) {
    const std::uint64_t i = page % a.loops[l];
    page /= a.loops[l];
    if (i != 0)
      for (std::size_t d = 0; d < rank; ++d) start[d] += i * a.stride[l][d];
  }
  for (std::size_t d = 0; d < rank; ++d)
    if (!f(d, start[d])) return false;
  return true;
}

// Whether elements [begin, begin + size) of an array of extents `whole` are rows without a gap: where an axis is not
// taken whole, the axes before it have one place each. The last axis, of columns, does not matter.
bool without_gap(std::span<const std::uint64_t> size, const std::vector<std::int64_t>& whole) {
  bool narrowed = false;  // some axis further in is not whole
  for (std::size_t d = size.size() - 1; d-- > 0;) {
    if (narrowed && size[d] != 1) return false;
    narrowed = narrowed || size[d] != static_cast<std::uint64_t>(whole[d]);
  }
  return true;
}

Box box(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> size,
        const std::vector<std::int64_t>& whole) {
  Box b{0, begin.back(), 1, size.back()};
  for (std::size_t d = 0; d + 1 < size.size(); ++d) {
    b.row = b.row * static_cast<std::uint64_t>(whole[d]) + begin[d];
    b.rows *= size[d];
  }
  return b;
}

std::vector<std::uint64_t> unsigned_of(const std::vector<std::int64_t>& numbers) {
  std::vector<std::uint64_t> out;
  for (const std::int64_t n : numbers) out.push_back(static_cast<std::uint64_t>(n));
  return out;
}

// The axes before the innermost of rows that a slice does not take whole.
std::size_t outer_axes(const Tensor& t) {
  std::size_t d = t.shape.size() - 1;
  while (d > 0 && t.shape[d - 1] == t.whole[d - 1]) --d;
  return d > 0 ? d - 1 : 0;
}
// In how many places of its whole a slice has rows without a gap.
std::uint64_t runs_of(const Tensor& t) {
  if (without_gap(unsigned_of(t.shape), t.whole)) return 1;
  std::uint64_t runs = 1;
  for (std::size_t d = 0; d < outer_axes(t); ++d) runs = product(runs, static_cast<std::uint64_t>(t.shape[d]));
  return runs;
}
constexpr std::uint64_t most_runs = std::uint64_t{1} << 16;

}  // namespace

std::string to_string(const Box& b) {
  return fmt::format("[{}:{}, {}:{}]", b.row, b.row + b.rows, b.col, b.col + b.cols);
}

std::string unreadable(const Tensor& t) {
  const std::size_t rank = t.shape.size();
  if (rank == 0 || rank > most_axes)
    return fmt::format("tensor '{}' has {} axes; one to {} are checked", t.name, rank, most_axes);
  if (t.tiles.size() != rank || t.whole.size() != rank || t.offset.size() != rank)
    return fmt::format("tensor '{}' does not say the same number of axes everywhere", t.name);
  std::uint64_t elements = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    if (t.shape[d] <= 0 || t.offset[d] < 0 || t.whole[d] < t.shape[d] || t.offset[d] > t.whole[d] - t.shape[d])
      return fmt::format("tensor '{}' is no part of its whole", t.name);
    elements = product(elements, static_cast<std::uint64_t>(t.whole[d]));
  }
  if (elements > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return fmt::format("tensor '{}' is too large", t.name);
  if (runs_of(t) > most_runs)
    return fmt::format("tensor '{}' has rows in more than {} places of its whole", t.name, most_runs);
  return {};
}

std::string unreadable(const AccessPattern& a, const Tensor& t, std::size_t instances, std::uint32_t native_tile) {
  if (std::string wrong = unreadable(t); !wrong.empty()) return wrong;
  const std::size_t rank = t.shape.size();
  if (a.page_tiles.size() != rank || a.extent_tiles.size() != rank || a.stride.size() != a.loops.size() ||
      a.first.size() < instances)
    return fmt::format("an access pattern of tensor '{}' does not fit its {} axes or its {} instances", t.name, rank,
                       instances);
  if (!a.grain.empty() && (a.grain.size() != rank || std::count(a.grain.begin(), a.grain.end(), 0u) != 0))
    return fmt::format("an access pattern of tensor '{}' has no grain along an axis", t.name);
  for (std::size_t i = 0; i < instances; ++i)
    if (a.first[i].size() != rank) return fmt::format("an access pattern of tensor '{}' lacks an axis", t.name);
  for (std::size_t l = 0; l < a.loops.size(); ++l)
    if (a.stride[l].size() != rank || a.loops[l] == 0)
      return fmt::format("a loop of an access pattern of tensor '{}' is malformed", t.name);
  for (std::size_t d = 0; d < rank; ++d) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < instances; ++i) last = std::max(last, a.first[i][d]);
    for (std::size_t l = 0; l < a.loops.size(); ++l) last = sum(last, product(a.loops[l] - 1, a.stride[l][d]));
    if (a.page_tiles[d] == 0 ||
        product(sum(last, a.page_tiles[d]), a.grain.empty() ? std::max(native_tile, 1u) : a.grain[d]) == too_many)
      return fmt::format("a page of tensor '{}' leaves the range of numbers", t.name);
  }
  return {};
}

std::uint64_t pages_of(const AccessPattern& a) {
  std::uint64_t n = 1;
  for (const std::uint64_t l : a.loops) n = product(n, l);
  return n;
}

std::optional<Box> box_of(const AccessPattern& a, const Tensor& t, std::uint32_t native_tile, std::size_t instance,
                          std::uint64_t page) {
  const std::size_t rank = t.shape.size();
  std::array<std::uint64_t, most_axes> begins{}, sizes{};
  const std::span begin(begins.data(), rank), size(sizes.data(), rank);
  const bool movable = each_axis(a, instance, page, [&](std::size_t d, std::uint64_t start) {
    const auto span = span_at(a, t, d, start);
    if (!span) return false;
    const std::uint64_t tile = step_along(a, rank, d, native_tile);
    const auto extent = static_cast<std::uint64_t>(t.shape[d]);
    const std::uint64_t from = std::min(span->begin * tile, extent);
    begin[d] = static_cast<std::uint64_t>(t.offset[d]) + from;
    size[d] = std::min(span->end * tile, extent) - from;
    return true;
  });
  if (!movable || !without_gap(size, t.whole)) return std::nullopt;
  return box(begin, size, t.whole);
}

std::optional<Box> in_heads(const Box& b, const Tensor& t, std::uint64_t heads) {
  if (heads == 1) return b;
  const std::size_t rank = t.whole.size();
  if (rank < 2 || heads == 0) return std::nullopt;
  const auto columns = static_cast<std::uint64_t>(t.whole[rank - 1]),
             rows = static_cast<std::uint64_t>(t.whole[rank - 2]);
  if (columns % heads != 0 || rows == 0 || b.cols == 0 || b.rows == 0) return std::nullopt;
  const std::uint64_t width = columns / heads, head = b.col / width, matrix = b.row / rows;
  if ((b.col + b.cols - 1) / width != head || (b.row + b.rows - 1) / rows != matrix) return std::nullopt;
  return Box{(matrix * heads + head) * rows + b.row % rows, b.col % width, b.rows, b.cols};
}

std::optional<std::uint64_t> movable_pages(const AccessPattern& a, const Tensor& t, std::size_t instance) {
  const std::uint64_t pages = pages_of(a);
  // Starts only grow along the loops: where the last page can be moved, all can.
  const auto movable = [&](std::uint64_t page) {
    return each_axis(a, instance, page,
                     [&](std::size_t d, std::uint64_t start) { return span_at(a, t, d, start).has_value(); });
  };
  if (pages == 0 || pages == too_many) return pages == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
  if (movable(pages - 1)) return pages;
  if (pages > most_looked_at) return std::nullopt;
  std::uint64_t n = 0;
  for (std::uint64_t f = 0; f < pages; ++f) n += movable(f) ? 1 : 0;
  return n;
}

std::vector<Box> slice_of(const Tensor& t) {
  // Axes before the first that is not taken whole, counted from the inside, have a place each.
  std::vector<std::uint64_t> begin = unsigned_of(t.offset), size = unsigned_of(t.shape);
  const std::vector<std::uint64_t> extent = size;
  const std::size_t outer = runs_of(t) == 1 ? 0 : outer_axes(t);
  std::fill_n(size.begin(), outer, 1);
  std::vector<Box> boxes;
  for (std::uint64_t n = runs_of(t); n > 0; --n) {
    boxes.push_back(box(begin, size, t.whole));
    for (std::size_t d = outer; d-- > 0;) {
      if (++begin[d] < static_cast<std::uint64_t>(t.offset[d]) + extent[d]) break;
      begin[d] = static_cast<std::uint64_t>(t.offset[d]);
    }
  }
  return boxes;
}
Box whole_of(const Tensor& t) {
  return box(std::vector<std::uint64_t>(t.whole.size(), 0), unsigned_of(t.whole), t.whole);
}

}  // namespace rdusim::certificate
