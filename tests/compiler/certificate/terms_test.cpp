// Formulas of whole values: equal just where the same is worked out in the same steps.
#include "compiler/certificate/terms.h"

#include <doctest/doctest.h>

namespace rdusim::terms_test {
using namespace rdusim::certificate;

namespace {

// y = kind(x, ...) with `inputs` operands of `dtype`, 8 columns.
SpatialProgram graph_of(OperatorKind kind, std::size_t inputs, DType dtype, DType out) {
  SpatialProgram p;
  OperatorGraph g;
  for (std::size_t i = 0; i <= inputs; ++i) {
    Operand o;
    o.id = OperandId{i};
    o.shape = {4, 8};
    o.dtype = i == inputs ? out : dtype;
    g.operands.push_back(o);
  }
  Operator op;
  op.kind = kind;
  for (std::size_t i = 0; i < inputs; ++i) op.in.push_back(OperandId{i});
  op.out = OperandId{inputs};
  g.operators.push_back(op);
  p.operators = g;
  return p;
}

constexpr DType f = DType::fp32;

TEST_CASE("a softmax is known by its formula, whatever the order of a sum's two ends") {
  Terms t(graph_of(OperatorKind::softmax, 1, f, f));
  const TermId x = t.operand(OperandId{0u});
  const TermId e = t.apply(ExprOp::exponential, f, t.apply(ExprOp::subtract, f, x, t.join(ExprOp::maximum, f, x)));
  const TermId y = t.given(f, f, t.apply(ExprOp::divide, f, e, t.join(ExprOp::add, f, e)), {});
  CHECK(t.is(y, OperandId{1u}));
  CHECK(y == t.operand(OperandId{1u}));
  CHECK_FALSE(t.is(e, OperandId{1u}));
  CHECK_FALSE(t.is(t.apply(ExprOp::divide, f, t.join(ExprOp::add, f, e), e), OperandId{1u}));
  CHECK_FALSE(t.is(x, OperandId{1u}));
}

TEST_CASE("a result is rounded to its type, once and at the end") {
  Terms t(graph_of(OperatorKind::add, 2, DType::bf16, DType::bf16));
  const TermId a = t.operand(OperandId{0u}), b = t.operand(OperandId{1u});
  CHECK(t.converted(DType::bf16, f, a) == a);
  const TermId sum = t.apply(ExprOp::add, f, b, a);
  CHECK_FALSE(t.is(sum, OperandId{2u}));
  CHECK(t.is(t.given(f, DType::bf16, sum, {}), OperandId{2u}));
}

TEST_CASE("the halves of each head are turned by formulas of their own") {
  SpatialProgram p = graph_of(OperatorKind::rotary, 3, f, DType::bf16);  // two heads of four columns
  p.operators->operators[0].attributes.heads = 2;
  Terms t(p);
  const TermId x = t.operand(OperandId{0u}), cos = t.operand(OperandId{1u}), sin = t.operand(OperandId{2u});
  const auto turned = [&](ExprOp op, std::int64_t other, std::int64_t angles) {
    const TermId left = t.apply(ExprOp::multiply, f, x, t.shifted(cos, angles));
    const TermId right = t.apply(ExprOp::multiply, f, t.shifted(x, other), t.shifted(sin, angles));
    return t.given(f, DType::bf16, t.apply(op, f, left, right), {});
  };
  const OperandId out{3u};
  CHECK(t.is(turned(ExprOp::subtract, 2, 0), out, 0, 2));
  CHECK(t.is(turned(ExprOp::add, -2, -2), out, 2, 4));
  CHECK(t.is(turned(ExprOp::subtract, 2, -4), out, 4, 6));
  CHECK(t.is(turned(ExprOp::subtract, 2, -4), out, 5, 6));
  CHECK_FALSE(t.is(turned(ExprOp::subtract, 2, 0), out, 4, 6));   // the angles of another column
  CHECK_FALSE(t.is(turned(ExprOp::subtract, -2, 0), out, 0, 2));  // the half of another head
  CHECK_FALSE(t.is(turned(ExprOp::add, 2, 0), out, 0, 2));
  CHECK_FALSE(t.is(turned(ExprOp::subtract, 2, 0), out, 0, 4));  // two halves
  CHECK_FALSE(t.is(x, out, 0, 2));
}

TEST_CASE("a gather is the rows of its table by its indices, and of no other") {
  Terms t(graph_of(OperatorKind::gather, 2, f, f));
  const TermId table = t.operand(OperandId{0u}), indices = t.operand(OperandId{1u});
  CHECK(t.is(t.given(f, f, t.gather(table, indices), {}), OperandId{2u}));
  CHECK_FALSE(t.is(t.gather(indices, table), OperandId{2u}));
  CHECK(t.gather(table, no_term) == no_term);
}

TEST_CASE("what nobody knows makes nothing known") {
  Terms t(graph_of(OperatorKind::add, 2, f, f));
  const TermId a = t.operand(OperandId{0u});
  CHECK(t.apply(ExprOp::add, f, a, no_term) == no_term);
  CHECK(t.join(ExprOp::add, f, no_term) == no_term);
  CHECK(t.converted(f, DType::bf16, no_term) == no_term);
  CHECK_FALSE(t.is(no_term, OperandId{2u}));
}

TEST_CASE("a cast that loses nothing does not rename its operand") {
  Terms t(graph_of(OperatorKind::cast, 1, DType::bf16, f));
  const TermId x = t.operand(OperandId{0u});
  CHECK(t.converted(DType::bf16, f, x) == x);
  CHECK(t.is(x, OperandId{1u}));
  CHECK(t.is(x, OperandId{0u}));
}

TEST_CASE("a product knows its sides and whether the right one is transposed") {
  SpatialProgram p = graph_of(OperatorKind::matmul, 2, f, f);
  Terms t(p);
  const TermId a = t.operand(OperandId{0u}), b = t.operand(OperandId{1u});
  CHECK(t.given(f, f, t.product(f, a, b, false), {}) == t.operand(OperandId{2u}));
  CHECK_FALSE(t.is(t.product(f, a, b, true), OperandId{2u}));
  CHECK_FALSE(t.is(t.product(f, b, a, false), OperandId{2u}));
}

TEST_CASE("an attention is known by its formula: heads side by side, weights in the values' type, a mask if any") {
  SpatialProgram p = graph_of(OperatorKind::attention, 3, DType::bf16, DType::bf16);
  OperatorAttributes& a = p.operators->operators[0].attributes;
  a.heads = 2;
  a.kv_heads = 1;
  a.scale = 0.5;
  const auto stored = [&](Terms& t, bool masked, std::uint64_t heads) {
    const TermId q = t.by_head(t.operand(OperandId{0u}), heads), k = t.operand(OperandId{1u}),
                 v = t.operand(OperandId{2u});
    TermId s = t.apply(ExprOp::multiply, f, t.product(f, q, k, true), t.constant(f, 0.5));
    if (masked) {
      const TermId last = t.apply(ExprOp::add, f, t.place(ExprOp::row, f), t.constant(f, 0));
      s = t.apply(ExprOp::mask, f, s, t.apply(ExprOp::subtract, f, last, t.place(ExprOp::column, f)));
    }
    const TermId e = t.apply(ExprOp::exponential, f, t.apply(ExprOp::subtract, f, s, t.join(ExprOp::maximum, f, s)));
    const TermId w = t.converted(f, DType::bf16, t.apply(ExprOp::divide, f, e, t.join(ExprOp::add, f, e)));
    return t.side_by_side(t.converted(f, DType::bf16, t.product(f, w, v, false)), heads);
  };
  Terms whole(p);
  CHECK(whole.is(stored(whole, false, 2), OperandId{3u}));
  CHECK_FALSE(whole.is(stored(whole, true, 2), OperandId{3u}));
  CHECK_FALSE(whole.is(stored(whole, false, 1), OperandId{3u}));
  a.causal = true;
  Terms causal(p);
  CHECK(causal.is(stored(causal, true, 2), OperandId{3u}));
  CHECK_FALSE(causal.is(stored(causal, false, 2), OperandId{3u}));
  CHECK(causal.side_by_side(causal.by_head(1, 4), 4) == 1);
}

}  // namespace

}  // namespace rdusim::terms_test
