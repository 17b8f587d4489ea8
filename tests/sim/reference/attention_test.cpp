// Attention and rotary embeddings, against three plain loops in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/sim/reference/operators.h"

namespace rdusim::attention_test {
using namespace rdusim::test;

namespace {

struct Case {
  std::int64_t stacks, queries, keys;
  std::uint32_t heads, kv_heads;
  std::int64_t width;
  bool causal;
  std::int64_t window;
  DType dtype;
};

OperatorAttributes attributes_of(const Case& c) {
  OperatorAttributes a;
  a.heads = c.heads;
  a.kv_heads = c.kv_heads;
  a.causal = c.causal;
  a.window = c.window;
  a.scale = 1 / std::sqrt(static_cast<double>(c.width));
  return a;
}

std::vector<double> naive(const Case& c, const std::vector<double>& q, const std::vector<double>& k,
                          const std::vector<double>& v) {
  const std::int64_t q_columns = c.heads * c.width, kv_columns = c.kv_heads * c.width;
  std::vector<double> out(q.size(), 0);
  for (std::int64_t s = 0; s < c.stacks; ++s)
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t i = 0; i < c.queries; ++i) {
        const std::int64_t g = h * c.kv_heads / c.heads;
        const std::int64_t at = (s * c.queries + i) * q_columns + h * c.width;
        double sum = 0;
        std::vector<double> p(static_cast<std::size_t>(c.keys), 0);
        for (std::int64_t j = 0; j < c.keys; ++j) {
          const std::int64_t place = i + c.keys - c.queries;
          if (c.causal && j > place) continue;
          if (c.window != 0 && j <= place - c.window) continue;
          double t = 0;
          for (std::int64_t d = 0; d < c.width; ++d)
            t += q[at + d] * k[(s * c.keys + j) * kv_columns + g * c.width + d];
          sum += p[j] = std::exp(t / std::sqrt(static_cast<double>(c.width)));
        }
        for (std::int64_t j = 0; j < c.keys; ++j)
          for (std::int64_t d = 0; d < c.width; ++d)
            out[at + d] += p[j] / sum * v[(s * c.keys + j) * kv_columns + g * c.width + d];
      }
  return out;
}

OneOperator attention(const Case& c, std::uint32_t seed = 1) {
  Shape q = {c.queries, c.heads * c.width}, k = {c.keys, c.kv_heads * c.width};
  if (c.stacks != 1) q.insert(q.begin(), c.stacks), k.insert(k.begin(), c.stacks);
  OneOperator op(OperatorKind::attention, attributes_of(c));
  op.reals(q, c.dtype, spread(count_of(q), -2, 2, seed));
  op.reals(k, c.dtype, spread(count_of(k), -2, 2, seed + 1));
  op.reals(k, c.dtype, spread(count_of(k), -1, 1, seed + 2));
  op.run(q, DType::fp32);
  return op;
}

}  // namespace

TEST_CASE("attention agrees with three loops: causal, windows, grouped queries, stacks, a cache") {
  const std::vector<Case> cases = {
      {1, 1, 1, 1, 1, 2, false, 0, DType::fp32},    {1, 5, 5, 1, 1, 4, false, 0, DType::fp32},
      {1, 5, 5, 2, 2, 4, true, 0, DType::fp32},     {1, 7, 19, 6, 3, 8, true, 0, DType::fp32},
      {1, 7, 19, 6, 1, 8, true, 5, DType::fp32},    {1, 7, 19, 6, 6, 8, false, 5, DType::fp32},
      {3, 4, 9, 4, 2, 6, true, 3, DType::fp32},     {1, 1, 300, 8, 2, 16, true, 0, DType::bf16},
      {2, 33, 65, 4, 4, 16, true, 17, DType::bf16}, {1, 6, 6, 2, 1, 8, true, 100, DType::fp32},
      {1, 9, 9, 2, 2, 8, true, 1, DType::fp8_e4m3},
  };
  for (const Case& c : cases) {
    OneOperator op = attention(c);
    const auto truth = naive(c, op.operand(0), op.operand(1), op.operand(2));
    const auto got = op.result();
    const auto wide = op.wide();
    CAPTURE(c.queries);
    CAPTURE(c.keys);
    CAPTURE(c.window);
    REQUIRE(got.size() == truth.size());
    double off = 0, worst = 0, loosest = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      off = std::max(off, std::fabs(wide.value[i] - truth[i]));
      worst = std::max(worst, std::fabs(got[i] - wide.value[i]) / wide.error[i]);
      loosest = std::max(loosest, wide.error[i]);
    }
    CHECK(off <= 1e-12);
    CHECK(worst <= 1);
    // fp32: some hundred roundings of values of about 1; else the conversion of the probabilities outweighs them.
    CHECK(loosest <= (c.dtype == DType::fp32 ? 1e-3 : c.dtype == DType::bf16 ? 2e-2 : 0.2));
  }
}

TEST_CASE("with a window of one a query sees its own place only, to the bit") {
  const Case c{1, 9, 9, 2, 2, 8, true, 1, DType::fp32};
  OneOperator op = attention(c);
  CHECK(op.result() == op.operand(2));
}

TEST_CASE("what a causal query does not see does not reach it, be it NaN") {
  const Case c{1, 4, 6, 2, 1, 4, true, 0, DType::fp32};
  OneOperator op = attention(c);
  const auto before = op.bytes()[3];
  const float nan_ = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t d = 0; d < 4; ++d) {  // the last key and value
    std::memcpy(op.bytes()[1].data() + (5 * 4 + d) * 4, &nan_, 4);
    std::memcpy(op.bytes()[2].data() + (5 * 4 + d) * 4, &nan_, 4);
  }
  REQUIRE(evaluate(op.graph(), {}, true, op.bytes()).ok());
  const auto after = op.result();
  OneOperator same = attention(c);
  const auto expected = same.result();
  for (std::size_t i = 0; i < after.size(); ++i) CHECK((i < 3 * 8 ? after[i] == expected[i] : std::isnan(after[i])));
  CHECK(before == same.bytes()[3]);
}

TEST_CASE("probabilities are converted to the values' dtype before they are used") {
  // Three equal keys: p = 1/3, in bf16 0.333984375.
  OperatorAttributes a;
  a.heads = a.kv_heads = 1;
  OneOperator op(OperatorKind::attention, a);
  op.reals({1, 1}, DType::bf16, {1}).reals({3, 1}, DType::bf16, {1, 1, 1}).reals({3, 1}, DType::bf16, {1, 0, 0});
  op.run({1, 1}, DType::fp32);
  CHECK(op.result()[0] == 0.333984375);
  CHECK(std::fabs(op.wide().value[0] - 1.0 / 3) < 1e-15);
  CHECK(op.wide().error[0] >= 0.333984375 - 1.0 / 3);
}

TEST_CASE("a rotary embedding turns the two halves of each head") {
  OperatorAttributes a;
  a.heads = 3;
  for (const Shape& shape : {Shape{5, 24}, Shape{2, 5, 24}}) {
    OneOperator op(OperatorKind::rotary, a);
    std::vector<float> cos(5 * 4), sin(5 * 4);
    for (std::size_t i = 0; i < cos.size(); ++i) {
      cos[i] = static_cast<float>(std::cos(0.7 * static_cast<double>(i)));
      sin[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
    }
    op.reals(shape, DType::fp32, spread(count_of(shape), -2, 2)).reals({5, 4}, DType::fp32, cos);
    op.reals({5, 4}, DType::fp32, sin).run(shape, DType::fp32);
    const auto x = op.operand(0), got = op.result();
    const auto wide = op.wide();
    for (std::size_t r = 0; r < x.size() / 24; ++r)
      for (std::size_t h = 0; h < 3; ++h)
        for (std::size_t j = 0; j < 4; ++j) {
          const std::size_t at = r * 24 + h * 8 + j;
          const double c = cos[r % 5 * 4 + j], s = sin[r % 5 * 4 + j];
          const double left = x[at] * c - x[at + 4] * s, right = x[at + 4] * c + x[at] * s;
          CHECK(wide.value[at] == doctest::Approx(left).epsilon(1e-14));
          CHECK(wide.value[at + 4] == doctest::Approx(right).epsilon(1e-14));
          CHECK(std::fabs(got[at] - left) <= wide.error[at]);
          CHECK(std::fabs(got[at + 4] - right) <= wide.error[at + 4]);
          CHECK(wide.error[at] <= 12 * 0x1p-24);
        }
  }
}

}  // namespace rdusim::attention_test
