#include "compiler/ir/access_pattern.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace rdusim::access_pattern_test {
namespace {

// A 2 x 3 nest over pages of 2 x 4 tiles of a 4 x 12 grid, row of pages after row.
AccessPattern rows() {
  return {{2, 3}, {{2, 0}, {0, 4}}, {{0, 0}}, {2, 4}, {4, 12}};
}

TEST_CASE("the last loop is the fastest, and the first page starts at the instance's first tile") {
  AccessPattern a = rows();
  CHECK(page_at(a, 0, 0) == TileBox{{0, 0}, {2, 4}});
  CHECK(page_at(a, 0, 1) == TileBox{{0, 4}, {2, 4}});
  CHECK(page_at(a, 0, 3) == TileBox{{2, 0}, {2, 4}});
  a.first = {{0, 0}, {1, 2}};
  CHECK(page_at(a, 1, 3) == TileBox{{3, 2}, {1, 4}});
}

TEST_CASE("a page is clipped to the extent, and is empty beyond it") {
  AccessPattern a = rows();
  a.extent_tiles = {3, 10};
  CHECK(page_at(a, 0, 5) == TileBox{{2, 8}, {1, 2}});
  a.extent_tiles = {2, 12};
  CHECK(page_at(a, 0, 3).size[0] == 0);
}

TEST_CASE("a page can be moved up to the last tile of the tensor, and not one further") {
  CHECK(movable({{0, 8}, {2, 4}}, {4, 12}));
  CHECK_FALSE(movable({{0, 8}, {2, 4}}, {4, 11}));
  CHECK_FALSE(movable({{0, 8}, {0, 4}}, {4, 12}));
}

TEST_CASE("where a tensor was sliced after lowering only the pages that still lie in it can be moved") {
  const AccessPattern a = rows();
  CHECK(movable_pages(a, 0, {4, 12}) == 6);
  CHECK(movable_pages(a, 0, {4, 8}) == 4);
  CHECK(movable_pages(a, 0, {2, 8}) == 2);
  CHECK(movable_pages(a, 0, {4, 3}) == 0);
}

TEST_CASE("billions of pages are counted without visiting them") {
  const std::uint64_t n = 1u << 20;
  const AccessPattern a{{n, n}, {{1, 0}, {0, 1}}, {{0, 0}}, {1, 1}, {n, n}};
  CHECK(movable_pages(a, 0, {n, n / 2}) == n * (n / 2));
  const AccessPattern nested{{n, n}, {{n, 0}, {1, 0}}, {{0, 0}}, {1, 1}, {n * n, 1}};
  CHECK(movable_pages(nested, 0, {n * n - 1, 1}) == n * n - 1);
}

TEST_CASE("a nest so irregular that it would take for ever is given up") {
  const std::uint64_t n = 1u << 20;
  const AccessPattern a{{n, n, n}, {{1}, {1}, {1}}, {{0}}, {1}, {3 * n}};
  CHECK_FALSE(movable_pages(a, 0, {n + n / 2}).has_value());
}

TEST_CASE("law: counting pages in closed form equals visiting them") {
  const bool holds = rc::check("closed form = enumeration", [] {
    const auto rank = *rc::gen::inRange<std::size_t>(1, 4);
    const auto loops = *rc::gen::inRange<std::size_t>(0, 4);
    const auto numbers = [](std::size_t count, std::uint64_t from, std::uint64_t to) {
      return *rc::gen::container<std::vector<std::uint64_t>>(count, rc::gen::inRange<std::uint64_t>(from, to));
    };
    AccessPattern a;
    a.loops = numbers(loops, 1, 6);
    for (std::size_t l = 0; l < loops; ++l) a.stride.push_back(numbers(rank, 0, 5));
    a.first = {numbers(rank, 0, 6)};
    a.page_tiles = numbers(rank, 1, 5);
    a.extent_tiles = numbers(rank, 1, 20);
    const std::vector<std::uint64_t> tiles = numbers(rank, 1, 20);
    std::uint64_t count = 0;
    for (std::uint64_t page = 0; page < *pages_per_trip(a); ++page)
      count += movable(page_at(a, 0, page), tiles) ? 1 : 0;
    RC_ASSERT(movable_pages(a, 0, tiles) == std::optional(count));
  });
  CHECK(holds);
}

TEST_CASE("in heads, a matrix is a stack of its columns' equal parts") {
  const std::vector<std::int64_t> matrix = {10, 96}, stack = {3, 10, 96};
  CHECK(in_heads({4, 70}, matrix, 1) == MatrixElement{4, 70});
  CHECK(in_heads({4, 31}, matrix, 3) == MatrixElement{4, 31});
  CHECK(in_heads({4, 70}, matrix, 3) == MatrixElement{24, 6});
  CHECK(in_heads({23, 40}, stack, 3) == MatrixElement{(2 * 3 + 1) * 10 + 3, 8});
}

TEST_CASE("elements of a page are those of the whole operand, clipped to the slice") {
  Tensor t;
  t.shape = {40, 100};
  t.offset = {64, 200};
  t.whole = {128, 400};
  t.tiles = {2, 4};
  CHECK(elements_of(AccessPattern{}, t, {{1, 2}, {1, 2}}, 0, 32) == AxisRange{96, 104});
  CHECK(elements_of(AccessPattern{}, t, {{1, 2}, {1, 2}}, 1, 32) == AxisRange{264, 300});
}

TEST_CASE("axes before the last two are seen in single elements") {
  CHECK(tile_extent(4, 1, 32) == 1);
  CHECK(tile_extent(4, 2, 32) == 32);
  CHECK(tile_extent(2, 0, 32) == 32);
  CHECK(tile_extent(1, 0, 32) == 32);
}

}  // namespace
}  // namespace rdusim::access_pattern_test
