#include "models/units/sum_order.h"

#include <doctest/doctest.h>

namespace rdusim::sum_order_test {
namespace {

// Port `i` is taken in phase i of `phases`, and added to what is held in all but the first.
Stage fold(std::uint32_t phases) {
  Stage s;
  Generic g;
  g.iterators = {IteratorKind::parallel};
  for (std::uint32_t i = 0; i < phases; ++i) {
    Port p;
    p.buffer = BufferId{i};
    p.need = p.pop = {};
    for (std::uint32_t f = 0; f < phases; ++f) p.need.push_back({1, f == i ? 1u : 0u});
    p.pop = p.need;
    s.ports.push_back(p);
    if (i == 0)
      g.bodies.push_back({1, Expr{{ExprOp::operand, 0, 0}}});
    else
      g.bodies.push_back({1, Expr{{ExprOp::accumulator, 0, 0}, {ExprOp::operand, i, 0}, {ExprOp::add, 0, 0}}});
  }
  s.kind = g;
  return s;
}

std::uint32_t taken(const Stage& s, std::uint64_t phase) {
  for (const ExprNode& n : at_phase(std::get<Generic>(s.kind).bodies, phase))
    if (n.op == ExprOp::operand) return n.index;
  return 99;
}

TEST_CASE("a sum that goes on from phase to phase is turned round: operands, and when they are needed and popped") {
  const auto turned = turned_round(fold(4));
  REQUIRE(turned);
  for (std::uint32_t f = 0; f < 4; ++f) {
    CHECK(taken(*turned, f) == 3 - f);
    for (std::uint32_t port = 0; port < 4; ++port) {
      CHECK(at_phase(turned->ports[port].need, f) == (port == 3 - f ? 1u : 0u));
      CHECK(at_phase(turned->ports[port].pop, f) == (port == 3 - f ? 1u : 0u));
    }
  }
  const auto back = turned_round(*turned);
  REQUIRE(back);
  for (std::uint32_t f = 0; f < 4; ++f) CHECK(taken(*back, f) == f);
}

TEST_CASE("a sum of two, of which the order says nothing, is left as it is") {
  CHECK_FALSE(turned_round(fold(1)));
  CHECK_FALSE(turned_round(fold(2)));
}

TEST_CASE("phases that hand pages on are no sum") {
  Stage s = fold(3);
  std::get<Generic>(s.kind).bodies[2].value = {{ExprOp::operand, 2, 0}};
  CHECK_FALSE(turned_round(s));
}

}  // namespace
}  // namespace rdusim::sum_order_test
