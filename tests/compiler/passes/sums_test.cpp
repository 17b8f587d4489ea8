#include "compiler/passes/sums.h"

#include <doctest/doctest.h>

namespace rdusim::sums_test {

namespace {

Sum leaf(std::size_t chip, std::int64_t begin, std::int64_t end) {
  SummationNode n;
  n.chip = ChipId(chip);
  n.k_begin = begin;
  n.k_end = end;
  return {n};
}

}  // namespace

TEST_CASE("parts are added from left to right") {
  const Sum sum = left_deep({leaf(0, 0, 4), leaf(1, 4, 8), leaf(2, 8, 12)});
  REQUIRE(sum.size() == 5);
  CHECK(!sum[4].leaf);
  CHECK(sum[sum[4].right].chip == ChipId(2));
  const SummationNode& first = sum[sum[4].left];
  CHECK(!first.leaf);
  CHECK(sum[first.left].chip == ChipId(0));
  CHECK(sum[first.right].chip == ChipId(1));
  CHECK(left_deep({leaf(3, 0, 1)}) == leaf(3, 0, 1));
}

TEST_CASE("a chip's part of a sum comes out as it went in") {
  const std::vector<Sum> parts = {left_deep({leaf(0, 0, 2), leaf(0, 2, 4)}), leaf(1, 4, 8),
                                  left_deep({leaf(2, 8, 9), leaf(2, 9, 10), leaf(2, 10, 12)})};
  const Sum sum = left_deep(parts);
  for (std::size_t c = 0; c < 3; ++c) CHECK(part_of(sum, ChipId(c)) == parts[c]);
  CHECK(part_of(sum, ChipId(3)).empty());
}

TEST_CASE("a chip whose addends are mixed with another's has no part of its own") {
  const Sum sum = left_deep({leaf(0, 0, 2), leaf(1, 2, 4), leaf(0, 4, 6)});
  CHECK(part_of(sum, ChipId(0)).empty());
  CHECK(part_of(sum, ChipId(1)) == leaf(1, 2, 4));
}

TEST_CASE("moving a sum moves every leaf, and no addition") {
  const Sum sum = left_deep({leaf(0, 0, 2), leaf(0, 2, 4)});
  CHECK(moved_to(sum, ChipId(5), 100) == left_deep({leaf(5, 100, 102), leaf(5, 102, 104)}));
}

}  // namespace rdusim::sums_test
