// Extents in elements and in native tiles, and what pages of them weigh.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/units.h"

namespace rdusim {

// Native tiles along an axis of `elements` elements.
inline std::uint64_t tiles_of(std::int64_t elements, std::uint32_t tile) {
  return ceil_div(static_cast<std::uint64_t>(elements), std::uint64_t{tile});
}

// The extents of `shape` in tiles: the last two axes by the native tile, the ones before by 1.
inline std::vector<std::uint64_t> tile_grid(const std::vector<std::int64_t>& shape, std::uint32_t tile) {
  std::vector<std::uint64_t> grid;
  for (std::size_t d = 0; d < shape.size(); ++d)
    grid.push_back(tiles_of(shape[d], d + 2 >= shape.size() ? tile : 1));
  return grid;
}

// Elements along an axis of `extent` elements that a page of `tiles` tiles holds at most.
inline std::uint64_t page_extent(std::uint64_t tiles, std::int64_t extent, std::uint32_t tile) {
  return std::min(tiles * tile, static_cast<std::uint64_t>(extent));
}

// The most bytes of a page of rows x cols tiles of a tensor of m x n elements.
inline Bytes page_bytes(std::uint64_t rows, std::uint64_t cols, std::int64_t m, std::int64_t n, DType type,
                        std::uint32_t tile) {
  return page_extent(rows, m, tile) * page_extent(cols, n, tile) * bytes_of(type);
}

}  // namespace rdusim
