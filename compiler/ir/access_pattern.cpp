#include "compiler/ir/access_pattern.h"

#include <algorithm>

#include "compiler/support/units.h"

namespace rdusim {
namespace {

// Counts the iterations of loops [loop, end) whose offset stays within `room` on every axis. Offsets only grow with
// each index, so an outer index whose whole sub-nest fits counts at once, and the first that fits nowhere ends the
// loop.
class Counter {
 public:
  explicit Counter(const AccessPattern& pattern) : pattern_(pattern) {
    const std::size_t loops = pattern.loops.size();
    const std::size_t rank = pattern.page_tiles.size();
    reach_.assign(loops + 1, std::vector<std::uint64_t>(rank, 0));
    inner_.assign(loops + 1, 1);
    for (std::size_t l = loops; l-- > 0;) {
      inner_[l] = inner_[l + 1] * pattern.loops[l];
      for (std::size_t d = 0; d < rank; ++d)
        reach_[l][d] = reach_[l + 1][d] + (pattern.loops[l] - 1) * pattern.stride[l][d];
    }
  }

  std::optional<std::uint64_t> count(const std::vector<std::uint64_t>& room) { return count_from(0, room); }

 private:
  static constexpr std::uint64_t most_steps = 10'000'000;

  // Largest i < trip with i * stride[d] + reach[d] <= room[d] for all d, plus one; 0 where none.
  static std::uint64_t fitting(std::uint64_t trip, const std::vector<std::uint64_t>& stride,
                               const std::vector<std::uint64_t>& reach, const std::vector<std::uint64_t>& room) {
    std::uint64_t n = trip;
    for (std::size_t d = 0; d < room.size(); ++d) {
      if (reach[d] > room[d]) return 0;
      if (stride[d] != 0) n = std::min(n, (room[d] - reach[d]) / stride[d] + 1);
    }
    return n;
  }

  std::optional<std::uint64_t> count_from(std::size_t loop, const std::vector<std::uint64_t>& room) {
    if (++steps_ > most_steps) return std::nullopt;
    if (loop == pattern_.loops.size()) return 1;
    const std::vector<std::uint64_t>& stride = pattern_.stride[loop];
    const std::uint64_t whole = fitting(pattern_.loops[loop], stride, reach_[loop + 1], room);
    const std::vector<std::uint64_t> none(room.size(), 0);
    const std::uint64_t some = fitting(pattern_.loops[loop], stride, none, room);
    std::uint64_t total = whole * inner_[loop + 1];
    for (std::uint64_t i = whole; i < some; ++i) {
      std::vector<std::uint64_t> left = room;
      for (std::size_t d = 0; d < left.size(); ++d) left[d] -= i * stride[d];
      const auto part = count_from(loop + 1, left);
      if (!part) return std::nullopt;
      total += *part;
    }
    return total;
  }

  const AccessPattern& pattern_;
  std::vector<std::vector<std::uint64_t>> reach_;  // [loop][axis]: greatest offset of loops [loop, end)
  std::vector<std::uint64_t> inner_;               // [loop]: iterations of loops [loop, end)
  std::uint64_t steps_ = 0;
};

}  // namespace

std::uint64_t tile_extent(std::size_t rank, std::size_t axis, std::uint32_t native_tile) {
  return rank > 2 && axis + 2 < rank ? 1 : native_tile;
}

std::optional<std::uint64_t> pages_per_trip(const AccessPattern& pattern) {
  std::uint64_t n = 1;
  for (std::uint64_t trip : pattern.loops)
    if (__builtin_mul_overflow(n, trip, &n)) return std::nullopt;
  return n;
}

TileBox page_at(const AccessPattern& pattern, std::size_t instance, std::uint64_t page) {
  TileBox box;
  box.begin = pattern.first[instance];
  for (std::size_t l = pattern.loops.size(); l-- > 0;) {
    const std::uint64_t i = page % pattern.loops[l];
    page /= pattern.loops[l];
    for (std::size_t d = 0; d < box.begin.size(); ++d) box.begin[d] += i * pattern.stride[l][d];
  }
  box.size.resize(box.begin.size());
  for (std::size_t d = 0; d < box.size.size(); ++d) {
    const std::uint64_t extent = pattern.extent_tiles[d];
    box.size[d] = box.begin[d] < extent ? std::min(pattern.page_tiles[d], extent - box.begin[d]) : 0;
  }
  return box;
}

std::vector<std::uint64_t> steps_in(const AccessPattern& pattern, const Tensor& tensor) {
  if (pattern.grain.empty()) return tensor.tiles;
  std::vector<std::uint64_t> steps;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    steps.push_back(ceil_div(static_cast<std::uint64_t>(tensor.shape[d]), pattern.grain[d]));
  return steps;
}

bool movable(const TileBox& page, const std::vector<std::uint64_t>& tiles) {
  for (std::size_t d = 0; d < tiles.size(); ++d)
    if (page.size[d] == 0 || page.begin[d] >= tiles[d] || page.size[d] > tiles[d] - page.begin[d]) return false;
  return true;
}

bool movable(const TileBox& page, const AccessPattern& pattern, const Tensor& tensor) {
  return pattern.grain.empty() ? movable(page, tensor.tiles) : movable(page, steps_in(pattern, tensor));
}

std::optional<std::uint64_t> movable_pages(const AccessPattern& pattern, std::size_t instance,
                                           const std::vector<std::uint64_t>& tiles) {
  std::vector<std::uint64_t> room(tiles.size());
  for (std::size_t d = 0; d < tiles.size(); ++d) {
    // Where the tensor is smaller than lowering saw it, a page must end within it; a page that was clipped ends beyond.
    std::uint64_t starts = pattern.extent_tiles[d];
    if (tiles[d] < pattern.extent_tiles[d])
      starts = pattern.page_tiles[d] <= tiles[d] ? tiles[d] - pattern.page_tiles[d] + 1 : 0;
    if (pattern.page_tiles[d] == 0 || pattern.first[instance][d] >= starts) return 0;
    room[d] = starts - 1 - pattern.first[instance][d];
  }
  if (!pages_per_trip(pattern)) return std::nullopt;
  for (std::uint64_t trip : pattern.loops)
    if (trip == 0) return 0;
  return Counter(pattern).count(room);
}

MatrixElement in_heads(MatrixElement at, const std::vector<std::int64_t>& whole, std::uint64_t heads) {
  if (heads < 2 || whole.size() < 2) return at;
  const auto rows = std::max<std::uint64_t>(static_cast<std::uint64_t>(whole[whole.size() - 2]), 1);
  const auto width = std::max<std::uint64_t>(static_cast<std::uint64_t>(whole.back()) / heads, 1);
  return {(at.row / rows * heads + at.col / width) * rows + at.row % rows, at.col % width};
}

AxisRange elements_of(const AccessPattern& pattern, const Tensor& tensor, const TileBox& page, std::size_t axis,
                      std::uint32_t native_tile) {
  const auto tile = static_cast<std::int64_t>(step_of(pattern, tensor.shape.size(), axis, native_tile));
  const std::int64_t begin = static_cast<std::int64_t>(page.begin[axis]) * tile;
  const std::int64_t end = static_cast<std::int64_t>(page.begin[axis] + page.size[axis]) * tile;
  return {tensor.offset[axis] + begin, tensor.offset[axis] + std::min(end, tensor.shape[axis])};
}

}  // namespace rdusim
