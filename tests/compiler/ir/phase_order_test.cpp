#include "compiler/ir/phase_order.h"

#include <doctest/doctest.h>

#include "compiler/ir/least_depths.h"
#include "compiler/ir/untimed_run.h"
#include "tests/compiler/ir/rate_programs.h"

namespace rdusim::phase_order_test {
namespace {

// A cycle of `phases` firings in which `on` of them, from `first` on, are 1 and the others 0.
Cyclic<std::uint32_t> during(std::uint32_t first, std::uint32_t on, std::uint32_t phases) {
  Cyclic<std::uint32_t> c;
  if (first != 0) c.push_back({first, 0});
  c.push_back({on, 1});
  if (first + on != phases) c.push_back({phases - first - on, 0});
  return c;
}

Port at(Port port, Cyclic<std::uint32_t> rate) {
  (port.direction == Direction::input ? port.need : port.reserve) = rate;
  (port.direction == Direction::input ? port.pop : port.push) = std::move(rate);
  return port;
}

// 'left' and 'right' hand each other `pages` pages. Each has `depth` pages of room for the other's; `left_gives_first`
// and `right_gives_first`: before it takes any.
struct Swap {
  sample::Builder b{{}};
  StageId left, right;

  Swap(std::uint32_t pages, std::uint64_t depth, bool left_gives_first, bool right_gives_first) {
    b.p.stages.clear();
    b.p.edges.clear();
    b.p.buffers.clear();
    b.p.memory->buffers.clear();
    const BufferId there = b.add_buffer("there", BufferKind::fifo, DType::int8, 4, 0);
    const BufferId back = b.add_buffer("back", BufferKind::fifo, DType::int8, 4, 0);
    b.p.buffers[there.value].depth_pages = b.p.buffers[back.value].depth_pages = depth;
    left = side("left", 0, back, there, pages, left_gives_first);
    right = side("right", 1, there, back, pages, right_gives_first);
    b.add_edge(left, there, {right});
    b.add_edge(right, back, {left});
  }

  StageId side(const char* name, std::uint32_t context, BufferId in, BufferId out, std::uint32_t pages,
               bool gives_first) {
    Generic g = sample::Builder::sum(1);
    const Expr one{{ExprOp::constant, 0, 1}}, taken{{ExprOp::operand, 0, 0}};
    g.bodies = gives_first ? Cyclic<Expr>{{pages, one}, {pages, taken}} : Cyclic<Expr>{{pages, taken}, {pages, one}};
    return b.add_stage(name, g, 0, {StageRole::compute, context}, std::uint64_t{2} * pages,
                       {at(b.input(in), during(gives_first ? pages : 0, pages, 2 * pages)),
                        at(b.output(out), during(gives_first ? 0 : pages, pages, 2 * pages))});
  }
  bool ends() const { return run_untimed(b.p, b.p.header.native_tile).stuck == 0; }
};

TEST_CASE("two that take before they give wait for ever, at any depth, and one of them in the other order cures it") {
  Swap s(4, 2, false, false);
  CHECK_FALSE(s.ends());
  for (const std::uint64_t d : least_depths(s.b.p)) CHECK(d == 0);  // no depth of any
  const auto x = find_exchange(s.b.p, {s.right, s.left});
  REQUIRE(x);
  CHECK(*x == PhaseExchange{s.right, 0, 4, 4, 4});
  CHECK(exchange_text(s.b.p, *x) ==
        "let 'right' push into 'back' (phases 4 to 7) before it takes from 'there' (phases 0 to 3)");
  const SpatialProgram cured = with_exchange(s.b.p, *x);
  CHECK(run_untimed(cured, cured.header.native_tile).stuck == 0);
  CHECK(cured.stage(s.right) == Swap(4, 2, false, true).b.p.stage(s.right));
  CHECK(cured.stage(s.left) == s.b.p.stage(s.left));
  // Whoever is asked first is changed.
  CHECK(find_exchange(s.b.p, {s.left, s.right})->stage == s.left);
  CHECK_FALSE(find_exchange(s.b.p, {}));
}

TEST_CASE("two that give more than there is room for before they take need more room, or another order") {
  Swap s(8, 4, true, true);
  CHECK_FALSE(s.ends());
  CHECK(least_depths(s.b.p)[sample::buffer(s.b.p, "there").id.value] == 8);
  CHECK(find_exchange(s.b.p, {s.left}) == PhaseExchange{s.left, 0, 8, 8, 8});
}

TEST_CASE("exchanging twice gives the program back") {
  const Swap s(3, 1, true, false);
  const PhaseExchange x{s.left, 0, 3, 3, 3};
  CHECK(with_exchange(with_exchange(s.b.p, x), x) == s.b.p);
}

TEST_CASE("phases that share a port keep their order, for another would give its pages to others") {
  const SpatialProgram p = sample::crossed(1);
  REQUIRE(run_untimed(p, p.header.native_tile).stuck != 0);
  std::vector<StageId> all;
  for (const Stage& s : p.stages) all.push_back(s.id);
  CHECK_FALSE(find_exchange(p, all));
}

TEST_CASE("a body that reads what the firing before it left keeps its order") {
  Swap s(4, 2, false, false);
  for (Stage& stage : s.b.p.stages)
    std::get<Generic>(stage.kind).bodies.back().value = {
        {ExprOp::accumulator, 0, 0}, {ExprOp::constant, 0, 1}, {ExprOp::add, 0, 0}};
  CHECK_FALSE(find_exchange(s.b.p, {s.left, s.right}));
}

}  // namespace
}  // namespace rdusim::phase_order_test
