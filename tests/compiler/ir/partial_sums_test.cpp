#include "compiler/ir/partial_sums.h"

#include <doctest/doctest.h>

namespace rdusim::partial_sums_test {
namespace {

SumLeaf part(std::uint32_t chip, std::int64_t begin, std::int64_t end) {
  return {SumLeaf::Kind::partial, OperatorId{0u}, ChipId{chip}, begin, end, {}};
}

TEST_CASE("two sums have one id just if they add the same leaves in the same order") {
  SumTable t;
  const SumId a = t.leaf(part(0, 0, 8)), b = t.leaf(part(1, 8, 16)), c = t.leaf(part(2, 16, 24));
  CHECK(t.leaf(part(1, 8, 16)) == b);
  CHECK(t.add(a, b) == t.add(a, b));
  CHECK(t.add(a, b) != t.add(b, a));
  CHECK(t.add(t.add(a, b), c) != t.add(a, t.add(b, c)));
  CHECK(t.leaves(t.add(t.add(a, b), c)) == std::vector{part(0, 0, 8), part(1, 8, 16), part(2, 16, 24)});
  CHECK(t.text(t.add(a, t.add(b, c))) == "(c0[0,8) + (c1[8,16) + c2[16,24)))");
}

TEST_CASE("a summation tree has the id of the sum that it asks for") {
  SumTable t;
  SummationTree tree;
  tree.nodes.resize(3);
  tree.nodes[0] = {true, ChipId{1u}, 8, 16, 0, 0};
  tree.nodes[1] = {true, ChipId{0u}, 0, 8, 0, 0};
  tree.nodes[2] = {false, {}, 0, 0, 1, 0};
  const SumId a = t.leaf(part(0, 0, 8)), b = t.leaf(part(1, 8, 16));
  CHECK(t.of_tree(tree) == t.add(a, b));
}

TEST_CASE("what a sum lacks and what it holds twice is found, by range and chip") {
  const auto found = gaps({part(0, 0, 8), part(1, 16, 32), part(2, 24, 40)}, OperatorId{0u}, 48);
  REQUIRE(found.size() == 3);
  CHECK(found[0].k_begin == 8);
  CHECK(found[0].k_end == 16);
  CHECK(found[0].times == 0);
  CHECK(found[1].k_begin == 24);
  CHECK(found[1].k_end == 32);
  CHECK(found[1].times == 2);
  CHECK(found[1].chips == std::vector{ChipId{1u}, ChipId{2u}});
  CHECK(found[2].k_begin == 40);
  CHECK(found[2].k_end == 48);
}

TEST_CASE("a sum of adjacent ranges in any order is complete, and another operator's parts do not count") {
  CHECK(gaps({part(1, 8, 16), part(0, 0, 8)}, OperatorId{0u}, 16).empty());
  CHECK(gaps({part(0, 0, 16)}, OperatorId{1u}, 16).size() == 1);
}

}  // namespace
}  // namespace rdusim::partial_sums_test
