#include "compiler/passes/recipe.h"

#include <doctest/doctest.h>

namespace rdusim::recipe_test {

namespace {

OperatorGraph row_graph(OperatorKind kind, std::size_t operands) {
  OperatorGraph g;
  for (std::size_t i = 0; i <= operands; ++i) {
    Operand o;
    o.id = OperandId(i);
    o.name = "t" + std::to_string(i);
    o.shape = i == 0 || i == operands ? std::vector<std::int64_t>{70, 300} : std::vector<std::int64_t>{300};
    g.operands.push_back(o);
  }
  Operator op;
  op.kind = kind;
  for (std::size_t i = 0; i < operands; ++i) op.in.push_back(OperandId(i));
  op.out = OperandId(operands);
  op.attributes.epsilon = 1e-5;
  g.operators.push_back(op);
  return g;
}

}  // namespace

TEST_CASE(
    "every point-wise and row-wise operator has a recipe that takes what is there, and the last step is the result") {
  for (auto kind = OperatorKind::add; kind <= OperatorKind::reduce_min;
       kind = static_cast<OperatorKind>(static_cast<int>(kind) + 1)) {
    CAPTURE(name_of(kind));
    const std::size_t operands = kind == OperatorKind::layer_norm                               ? 3
                                 : is_binary_point_wise(kind) || kind == OperatorKind::rms_norm ? 2
                                                                                                : 1;
    const OperatorGraph g = row_graph(kind, operands);
    const std::vector<Step> steps = recipe_of(g, g.operators[0]);
    REQUIRE_FALSE(steps.empty());
    std::vector<bool> operand_used(operands, false), step_used(steps.size(), false);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      std::size_t depth = 0;
      for (const ExprNode& node : steps[s].body) {
        if (node.op == ExprOp::operand) {
          REQUIRE(node.index < steps[s].in.size());
        }
        REQUIRE(depth >= arity(node.op));
        depth = depth + 1 - arity(node.op);
      }
      CHECK(depth == 1);
      if (steps[s].join) CHECK(steps[s].is_column);
      for (const Step::Source in : steps[s].in) {
        if (in.is_step) REQUIRE(in.index < s);
        (in.is_step ? step_used : operand_used)[in.index] = true;
      }
    }
    step_used.back() = true;
    for (const bool used : operand_used) CHECK(used);
    for (const bool used : step_used) CHECK(used);
    CHECK(steps.back().name == name_of(kind));
    const bool to_column = kind >= OperatorKind::reduce_sum;
    CHECK(steps.back().is_column == to_column);
  }
}

TEST_CASE("what contracts, moves or attends has no recipe") {
  for (const OperatorKind kind : {OperatorKind::matmul, OperatorKind::attention, OperatorKind::gather}) {
    const OperatorGraph g = row_graph(kind, 2);
    CHECK(recipe_of(g, g.operators[0]).empty());
  }
}

TEST_CASE("a softmax takes its maximum, its sum and its quotient in this order") {
  const OperatorGraph g = row_graph(OperatorKind::softmax, 1);
  const std::vector<Step> steps = recipe_of(g, g.operators[0]);
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].join == ExprOp::maximum);
  CHECK(steps[1].join == ExprOp::add);
  CHECK(steps[1].in == std::vector<Step::Source>{{false, 0}, {true, 0}});
  CHECK_FALSE(steps[2].join);
}

}  // namespace rdusim::recipe_test
