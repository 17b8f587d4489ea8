// Which element of an operand each element of a move's result is, block by block.
#include "compiler/certificate/moves.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace rdusim::moves_test {
using namespace rdusim::certificate;

namespace {

using Shape = std::vector<std::int64_t>;

struct Case {
  OperatorGraph graph;

  Case(OperatorKind kind, const std::vector<Shape>& in, Shape out, OperatorAttributes attributes) {
    Operator op;
    op.kind = kind;
    for (const Shape& shape : in) op.in.push_back(add(shape));
    op.out = add(std::move(out));
    op.attributes = std::move(attributes);
    graph.operators.push_back(op);
  }
  OperandId add(Shape shape) {
    Operand o;
    o.id = OperandId(graph.operands.size());
    o.shape = std::move(shape);
    graph.operands.push_back(o);
    return o.id;
  }
  Whole whole(std::size_t operand) const {
    const Shape& shape = graph.operands[operand].shape;
    return {shape.begin(), shape.end()};
  }
  // Whether block `stored` of the result is block `taken` of operand `from`.
  bool moves(std::size_t from, const Box& taken, const Box& stored) const {
    const Whole a = whole(from), b = whole(graph.operators[0].out.value);
    return not_moved(graph, graph.operators[0], OperandId(from), {&taken, &a, 0, taken.elements()},
                     {&stored, &b, 0, stored.elements()})
        .empty();
  }
};

OperatorAttributes slice(Shape begin, Shape end) {
  OperatorAttributes a;
  a.begin = std::move(begin);
  a.end = std::move(end);
  return a;
}
OperatorAttributes axes(Shape order) {
  OperatorAttributes a;
  a.axes = std::move(order);
  return a;
}

}  // namespace

TEST_CASE("a slice is what lies so much further on") {
  const Case c(OperatorKind::slice, {{8, 10}}, {4, 5}, slice({2, 3}, {6, 8}));
  CHECK(c.moves(0, {2, 3, 4, 5}, {0, 0, 4, 5}));
  CHECK(c.moves(0, {3, 5, 1, 2}, {1, 2, 1, 2}));
  CHECK_FALSE(c.moves(0, {2, 4, 4, 5}, {0, 0, 4, 5}));
  CHECK_FALSE(c.moves(0, {3, 3, 4, 5}, {0, 0, 4, 5}));
  CHECK_FALSE(c.moves(0, {2, 3, 5, 4}, {0, 0, 4, 5}));  // as many, cut otherwise
  CHECK_FALSE(c.moves(0, {2, 3, 2, 5}, {0, 0, 4, 5}));
}

TEST_CASE("a concat takes each part from its own operand") {
  const Case c(OperatorKind::concat, {{4, 3}, {4, 5}}, {4, 8}, axes({1}));
  CHECK(c.moves(0, {1, 0, 3, 3}, {1, 0, 3, 3}));
  CHECK(c.moves(1, {0, 0, 4, 5}, {0, 3, 4, 5}));
  CHECK_FALSE(c.moves(0, {0, 0, 4, 3}, {0, 3, 4, 3}));
  CHECK_FALSE(c.moves(1, {0, 0, 4, 5}, {0, 2, 4, 5}));
  CHECK_FALSE(c.moves(1, {0, 1, 1, 4}, {0, 3, 1, 4}));
}

TEST_CASE("a reshape keeps the order of elements, whatever the block's shape") {
  const Case c(OperatorKind::reshape, {{6, 4}}, {2, 12}, {});
  CHECK(c.moves(0, {0, 0, 3, 4}, {0, 0, 1, 12}));
  CHECK(c.moves(0, {4, 0, 1, 4}, {1, 4, 1, 4}));
  CHECK_FALSE(c.moves(0, {3, 0, 1, 4}, {1, 4, 1, 4}));
  CHECK_FALSE(c.moves(0, {0, 0, 4, 3}, {0, 0, 1, 12}));
}

TEST_CASE("a transpose turns a column into a row, and moves matrices of a stack as they are") {
  const Case c(OperatorKind::transpose, {{6, 4}}, {4, 6}, axes({1, 0}));
  CHECK(c.moves(0, {1, 2, 5, 1}, {2, 1, 1, 5}));
  CHECK_FALSE(c.moves(0, {1, 2, 5, 1}, {1, 1, 1, 5}));
  CHECK_FALSE(c.moves(0, {0, 0, 2, 2}, {0, 0, 2, 2}));  // not turned round
  const Case stack(OperatorKind::transpose, {{2, 3, 4, 5}}, {3, 2, 4, 5}, axes({1, 0, 2, 3}));
  CHECK(stack.moves(0, {4 * 4, 0, 4, 5}, {3 * 4, 0, 4, 5}));  // (1, 1)
  CHECK(stack.moves(0, {1 * 4, 0, 4, 5}, {2 * 4, 0, 4, 5}));  // (0, 1) -> (1, 0)
  CHECK_FALSE(stack.moves(0, {1 * 4, 0, 4, 5}, {1 * 4, 0, 4, 5}));
}

TEST_CASE("an append replaces its rows, and leaves all others to the state") {
  OperatorAttributes a;
  a.begin = {5};
  Case c(OperatorKind::append, {{2, 8, 3}, {2, 2, 3}}, {2, 8, 3}, a);
  CHECK(c.moves(1, {0, 0, 2, 3}, {5, 0, 2, 3}));
  CHECK(c.moves(1, {2, 0, 2, 3}, {8 + 5, 0, 2, 3}));
  CHECK_FALSE(c.moves(1, {0, 0, 2, 3}, {4, 0, 2, 3}));
  CHECK_FALSE(c.moves(0, {5, 0, 2, 3}, {5, 0, 2, 3}));
  CHECK(holders(c.graph)[2] == OperandId{0u});
  SpatialProgram p;
  p.operators = c.graph;
  Tensor state;
  state.operand = OperandId{0u};
  state.role = TensorRole::state;
  state.shape = state.whole = {2, 8, 3};
  state.offset = {0, 0, 0};
  CHECK(AppendedRows(p).kept(state) == std::vector<Box>{{0, 0, 5, 3}, {7, 0, 1, 3}, {8, 0, 5, 3}, {15, 0, 1, 3}});
}

TEST_CASE("attributes that no workload can have are refused, not followed") {
  CHECK_FALSE(Case(OperatorKind::transpose, {{6, 4}}, {4, 6}, axes({1, 7})).moves(0, {0, 0, 1, 1}, {0, 0, 1, 1}));
  CHECK_FALSE(Case(OperatorKind::slice, {{6, 4}}, {4, 4}, slice({-1, 0}, {3, 4})).moves(0, {0, 0, 1, 1}, {0, 0, 1, 1}));
  CHECK_FALSE(Case(OperatorKind::concat, {{6, 4}, {4}}, {8, 4}, axes({0})).moves(0, {0, 0, 1, 1}, {0, 0, 1, 1}));
}

}  // namespace rdusim::moves_test
