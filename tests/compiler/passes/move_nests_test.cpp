// The loop nests of moves, walked page by page: every element of a result comes once, from the element that it should.
#include "compiler/passes/move_nests.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/access_pattern.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::move_nests_test {
using namespace rdusim::test;

namespace {

using Shape = std::vector<std::int64_t>;

OperatorGraph move_of(OperatorKind kind, const std::vector<Shape>& in, Shape out, OperatorAttributes attributes) {
  OperatorGraph g;
  g.name = "move";
  std::vector<OperandId> operands;
  for (std::size_t i = 0; i < in.size(); ++i)
    operands.push_back(operand(g, "x" + std::to_string(i), TensorRole::input, in[i], DType::bf16).id);
  const OperandId result = operand(g, "y", TensorRole::output, std::move(out), DType::bf16).id;
  matmul(g, "move", operands[0], operands[0], result);
  g.operators[0].kind = kind;
  g.operators[0].in = operands;
  g.operators[0].attributes = std::move(attributes);
  return g;
}

std::uint64_t elements(const Shape& shape) {
  return static_cast<std::uint64_t>(*element_count(shape));
}

Tensor whole(const Shape& shape, std::uint32_t tile) {
  Tensor t;
  t.shape = t.whole = shape;
  t.offset.assign(shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d)
    t.tiles.push_back((static_cast<std::uint64_t>(shape[d]) + tile_extent(shape.size(), d, tile) - 1) /
                      tile_extent(shape.size(), d, tile));
  return t;
}

// The flat elements of a page, row-major.
std::vector<std::uint64_t> page_of(const AccessPattern& pattern, const Tensor& t, std::uint32_t tile,
                                   std::size_t instance, std::uint64_t page) {
  const TileBox box = page_at(pattern, instance, page);
  REQUIRE(movable(box, pattern, t));
  std::vector<std::uint64_t> flat = {0};
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    const AxisRange range = elements_of(pattern, t, box, d, tile);
    std::vector<std::uint64_t> next;
    for (const std::uint64_t f : flat)
      for (std::int64_t i = range.begin; i < range.end; ++i)
        next.push_back(f * static_cast<std::uint64_t>(t.shape[d]) + static_cast<std::uint64_t>(i));
    flat = std::move(next);
  }
  return flat;
}

// By element of the result: (operand, element) that it comes from; nothing where a page is none of both, or an element
// comes twice.
using Sources = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
Sources walked(const OperatorGraph& g, std::uint32_t tile, std::uint64_t sites) {
  const Operator& op = g.operators[0];
  constexpr std::pair<std::uint32_t, std::uint64_t> none{~0u, 0};
  Sources sources(elements(g.operand(op.out).shape), none);
  std::string why;
  for (const MoveNest& nest : nests_of(g, op, g.operand(op.out).shape.back(), sites, why)) {
    const Tensor from = whole(g.operand(nest.from.operand).shape, tile), to = whole(g.operand(op.out).shape, tile);
    const AccessPattern taken = pattern_of(nest, nest.from, from, tile), given = pattern_of(nest, nest.to, to, tile);
    REQUIRE(taken.first.size() == nest.sites);
    REQUIRE(nest.sites <= sites);
    for (std::size_t i = 0; i < nest.sites; ++i)
      for (std::uint64_t page = 0; page < *pages_per_trip(taken); ++page) {
        const auto a = page_of(taken, from, tile, i, page), b = page_of(given, to, tile, i, page);
        if (a.size() != b.size() || a.size() > nest.page_elements) return {};
        for (std::size_t e = 0; e < a.size(); ++e) {
          if (sources[b[e]] != none) return {};
          sources[b[e]] = {nest.from.operand.value, a[e]};
        }
      }
  }
  return sources;
}

}  // namespace

TEST_CASE("a slice in whole tiles is counted in tiles, and any other in the largest step that fits") {
  OperatorAttributes a;
  a.begin = {32, 64};
  a.end = {96, 128};
  const OperatorGraph tiles = move_of(OperatorKind::slice, {{128, 256}}, {64, 64}, a);
  std::string why;
  const auto nest = nests_of(tiles, tiles.operators[0], tiles.operand(tiles.operators[0].out).shape.back(), 2, why);
  REQUIRE(nest.size() == 1);
  CHECK(pattern_of(nest[0], nest[0].from, whole({128, 256}, 32), 32).grain.empty());
  a.begin = {30, 64};
  a.end = {94, 128};
  const OperatorGraph rows = move_of(OperatorKind::slice, {{128, 256}}, {64, 64}, a);
  const auto odd = nests_of(rows, rows.operators[0], rows.operand(rows.operators[0].out).shape.back(), 2, why);
  const AccessPattern pattern = pattern_of(odd[0], odd[0].from, whole({128, 256}, 32), 32);
  CHECK(pattern.grain == std::vector<std::uint64_t>{2, 64});
  CHECK(pattern.first.front() == std::vector<std::uint64_t>{15, 1});
}

TEST_CASE("what would move element by element is refused beyond a million pages, with a reason") {
  OperatorAttributes a;
  a.axes = {2, 1, 0};
  std::string why;
  const OperatorGraph small = move_of(OperatorKind::transpose, {{3, 5, 7}}, {7, 5, 3}, a);
  CHECK(nests_of(small, small.operators[0], small.operand(small.operators[0].out).shape.back(), 4, why).size() == 1);
  const OperatorGraph large = move_of(OperatorKind::transpose, {{300, 200, 100}}, {100, 200, 300}, a);
  CHECK(nests_of(large, large.operators[0], large.operand(large.operators[0].out).shape.back(), 4, why).empty());
  CHECK(why.find("1048576") != std::string::npos);
}

TEST_CASE("every element of a reshape and of a transpose comes once, from where it should") {
  const bool holds = rc::check("moves", [] {
    const auto rank = *rc::gen::inRange<std::size_t>(1, 5);
    const auto extent = rc::gen::inRange<std::int64_t>(1, 9);
    const Shape shape = *rc::gen::container<Shape>(rank, extent);
    const auto sites = *rc::gen::inRange<std::uint64_t>(1, 6);
    // Another shape of as many elements: factors of the first one's extents dealt out anew.
    Shape other(*rc::gen::inRange<std::size_t>(1, 4), 1);
    for (std::int64_t n : shape)
      for (std::int64_t f = 2; n > 1;)
        if (n % f == 0) {
          other[*rc::gen::inRange<std::size_t>(0, other.size())] *= f;
          n /= f;
        } else {
          ++f;
        }
    const auto reshaped = walked(move_of(OperatorKind::reshape, {shape}, other, {}), 4, sites);
    RC_ASSERT(reshaped.size() == elements(shape));
    for (std::uint64_t e = 0; e < reshaped.size(); ++e)
      RC_ASSERT((reshaped[e] == std::pair<std::uint32_t, std::uint64_t>{0, e}));

    Shape axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    for (std::size_t i = rank; i > 1; --i) std::swap(axes[i - 1], axes[*rc::gen::inRange<std::size_t>(0, i)]);
    OperatorAttributes order;
    order.axes = axes;
    Shape turned;
    for (const std::int64_t axis : axes) turned.push_back(shape[static_cast<std::size_t>(axis)]);
    const auto transposed = walked(move_of(OperatorKind::transpose, {shape}, turned, order), 4, sites);
    RC_ASSERT(transposed.size() == elements(shape));
    for (std::uint64_t e = 0; e < transposed.size(); ++e) {
      std::vector<std::uint64_t> at(rank);
      std::uint64_t rest = e;
      for (std::size_t d = rank; d-- > 0;) {
        at[static_cast<std::size_t>(axes[d])] = rest % static_cast<std::uint64_t>(turned[d]);
        rest /= static_cast<std::uint64_t>(turned[d]);
      }
      std::uint64_t due = 0;
      for (std::size_t d = 0; d < rank; ++d) due = due * static_cast<std::uint64_t>(shape[d]) + at[d];
      RC_ASSERT((transposed[e] == std::pair<std::uint32_t, std::uint64_t>{0, due}));
    }
  });
  CHECK(holds);
}

}  // namespace rdusim::move_nests_test
