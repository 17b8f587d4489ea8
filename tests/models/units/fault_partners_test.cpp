#include "models/units/fault_partners.h"

#include <doctest/doctest.h>

#include "tests/models/systemc/hand_built.h"

namespace rdusim::fault_partners_test {
namespace {

using namespace test;

// On each of two chips a load of that chip's part of one operand, into a buffer that goes into a collective, and
// another one of another operand into another.
struct Chips {
  Builder b;
  StageId x[2], w[2];
  BufferId x_pages[2], w_pages[2];

  explicit Chips(const Target& t) : b(t) {
    for (std::uint32_t c = 0; c < 2; ++c) {
      const GroupId g = b.group(c, {{0, 0}, {1, 0}});
      x[c] = load(c, g, 0, x_pages[c]);
      w[c] = load(c, g, 1, w_pages[c]);
    }
    for (std::uint32_t c = 0; c < 2; ++c) {
      join(x[c], x_pages[c], 0);
      join(w[c], w_pages[c], 1);
    }
  }
  StageId load(std::uint32_t chip, GroupId g, std::uint32_t operand, BufferId& pages) {
    const TensorId t = b.tensor("t", {4, 16}, DType::int32, TensorRole::input, chip);
    b.p.tensors[t.value].operand = OperandId{operand};
    pages = b.buffer(g, 2, 64, DType::int32);
    return b.stage("load", Load{t, b.walk(t, 1, 1, 2), {}}, g, {Builder::out(pages)}, 4, move(operand));
  }
  void join(StageId from, BufferId pages, std::uint32_t collective) {
    const BufferId out = b.buffer(b.p.stage(from).group, 2, 64, DType::int32);
    const StageId fold =
        b.stage("fold", Generic{}, b.p.stage(from).group, {Builder::in(pages), Builder::out(out)}, 4, pcu0);
    b.p.stages[fold.value].collective = CollectiveId{collective};
    b.p.edges[b.local(from, pages, {fold}).value].collective = CollectiveId{collective};
    b.p.edges[b.local(fold, out, {}).value].collective = CollectiveId{collective};
  }
};

TEST_CASE("a load's counterpart brings another chip's part of the same operand") {
  Chips c(small_target(2));
  CHECK(other_shard(c.b.p, c.x[0]) == c.x[1]);
  CHECK(other_shard(c.b.p, c.x[1]) == c.x[0]);
  CHECK(other_shard(c.b.p, c.w[0]) == c.w[1]);
}

TEST_CASE("a load of other pages, of other shape, of fewer instances or of the same chip is no counterpart") {
  const Target t = small_target(2);
  Chips firings(t), shape(t), sites(t), chip(t);
  firings.b.p.stages[firings.x[1].value].firings = 8;
  CHECK_FALSE(other_shard(firings.b.p, firings.x[0]));
  const auto tensor = [](Chips& c, StageId s) -> Tensor& {
    return c.b.p.tensors[std::get<Load>(c.b.p.stage(s).kind).tensor.value];
  };
  tensor(shape, shape.x[1]).shape = {4, 15};
  CHECK_FALSE(other_shard(shape.b.p, shape.x[0]));
  sites.b.p.placement->groups[1].sites.pop_back();
  CHECK_FALSE(other_shard(sites.b.p, sites.x[0]));
  tensor(chip, chip.x[1]).chip = ChipId{0u};
  CHECK_FALSE(other_shard(chip.b.p, chip.x[0]));
}

TEST_CASE("what is no load, or has no place, has no counterpart") {
  Chips c(small_target(2));
  for (const Stage& s : c.b.p.stages)
    if (!std::holds_alternative<Load>(s.kind)) CHECK_FALSE(other_shard(c.b.p, s.id));
  c.b.p.placement.reset();
  CHECK_FALSE(other_shard(c.b.p, c.x[0]));
  CHECK_FALSE(other_collective(c.b.p, c.x_pages[0]));
}

TEST_CASE("what goes into one collective changes places with what the same chip gives to another") {
  Chips c(small_target(2));
  for (std::uint32_t chip = 0; chip < 2; ++chip) {
    CHECK(other_collective(c.b.p, c.x_pages[chip]) == c.w_pages[chip]);
    CHECK(other_collective(c.b.p, c.w_pages[chip]) == c.x_pages[chip]);
  }
}

TEST_CASE("of one collective alone, in another section, or behind a fold of its own there is nothing to change with") {
  const Target t = small_target(2);
  Chips alone(t), later(t), inside(t);
  for (Stage& s : alone.b.p.stages)
    if (s.collective) s.collective = CollectiveId{0u};
  for (Edge& e : alone.b.p.edges) e.collective = CollectiveId{0u};
  CHECK_FALSE(other_collective(alone.b.p, alone.x_pages[0]));
  later.b.p.stages[later.w[0].value].section = SectionId{1u};
  CHECK_FALSE(other_collective(later.b.p, later.x_pages[0]));
  // A fold's result stays within its collective: it is nobody's contribution.
  for (const Stage& s : inside.b.p.stages)
    if (s.collective) CHECK_FALSE(other_collective(inside.b.p, s.ports.back().buffer));
}

}  // namespace
}  // namespace rdusim::fault_partners_test
