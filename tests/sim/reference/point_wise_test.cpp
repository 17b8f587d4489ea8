// Element-wise operators and casts, against the C library in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/sim/reference/operators.h"

namespace rdusim::point_wise_test {
using namespace rdusim::test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_ = std::numeric_limits<float>::quiet_NaN();

struct Unary {
  OperatorKind kind;
  std::function<double(double)> truth;
  float low, high;
};
const std::vector<Unary> unary = {
    {OperatorKind::negate, [](double x) { return -x; }, -9, 9},
    {OperatorKind::absolute, [](double x) { return std::fabs(x); }, -9, 9},
    {OperatorKind::relu, [](double x) { return std::max(x, 0.0); }, -9, 9},
    {OperatorKind::exponential, [](double x) { return std::exp(x); }, -80, 80},
    {OperatorKind::square_root, [](double x) { return std::sqrt(x); }, 0, 1000},
    {OperatorKind::reciprocal, [](double x) { return 1 / x; }, 0.01f, 1000},
    {OperatorKind::tanh, [](double x) { return std::tanh(x); }, -9, 9},
    {OperatorKind::erf, [](double x) { return std::erf(x); }, -5, 5},
    {OperatorKind::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -30, 30},
    {OperatorKind::silu, [](double x) { return x / (1 + std::exp(-x)); }, -30, 30},
    {OperatorKind::gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -4, 9},
    {OperatorKind::gelu_tanh,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, -4, 9},
};

double one(OperatorKind kind, float x, DType out = DType::fp32) {
  OneOperator op(kind);
  op.reals({1}, DType::fp32, {x}).run({1}, out);
  return op.result()[0];
}
double two(OperatorKind kind, float a, float b) {
  OneOperator op(kind);
  op.reals({1}, DType::fp32, {a}).reals({1}, DType::fp32, {b}).run({1}, DType::fp32);
  return op.result()[0];
}

template <class T>
std::vector<std::int64_t> integers(OperatorKind kind, DType dtype, std::vector<T> a, std::vector<T> b, DType out,
                                   bool saturate = true) {
  const Shape shape = {static_cast<std::int64_t>(a.size())};
  OneOperator op(kind);
  op.with(shape, dtype, a);
  if (!b.empty()) op.with(shape, dtype, b);
  op.run(shape, out, saturate);
  std::vector<std::int64_t> list;
  for (const double v : op.result()) list.push_back(static_cast<std::int64_t>(v));
  return list;
}

}  // namespace

TEST_CASE("functions of one operand are within their stated bound of the true value, which is tight") {
  for (const Unary& u : unary) {
    OneOperator op(u.kind);
    const auto x = spread(20000, u.low, u.high);
    op.reals({200, 100}, DType::fp32, x).run({200, 100}, DType::fp32);
    const auto got = op.result();
    const auto wide = op.wide();
    CAPTURE(name_of(u.kind));
    double worst = 0, loosest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double truth = u.truth(x[i]);
      CHECK(std::fabs(wide.value[i] - truth) <= 1e-13 * std::fabs(truth) + 1e-13 * std::fabs(x[i]));
      const double error = std::fabs(got[i] - truth);
      if (wide.error[i] > 0) worst = std::max(worst, error / wide.error[i]);
      if (wide.error[i] == 0 && error > 0) worst = HUGE_VAL;
      // gelu's far negative values cancel: there a bound relative to x is what there is.
      loosest = std::max(loosest, wide.error[i] / (std::fabs(truth) + std::fabs(x[i]) + 1e-30));
    }
    CHECK(worst <= 1);
    CHECK(loosest <= 24 * 0x1p-24);
  }
}

TEST_CASE("special values follow from the formulas") {
  CHECK(one(OperatorKind::relu, -3) == 0);
  CHECK(!std::signbit(one(OperatorKind::relu, -0.0f)));
  CHECK(std::isnan(one(OperatorKind::relu, nan_)));
  CHECK(std::signbit(one(OperatorKind::negate, 0.0f)));
  CHECK(!std::signbit(one(OperatorKind::absolute, -0.0f)));
  CHECK(one(OperatorKind::absolute, -inf) == inf);
  CHECK(one(OperatorKind::exponential, -inf) == 0);
  CHECK(one(OperatorKind::exponential, inf) == inf);
  CHECK(one(OperatorKind::reciprocal, -0.0f) == -inf);
  CHECK(std::isnan(one(OperatorKind::square_root, -1)));
  CHECK(std::signbit(one(OperatorKind::square_root, -0.0f)));
  CHECK(one(OperatorKind::sigmoid, -inf) == 0);
  CHECK(one(OperatorKind::sigmoid, inf) == 1);
  CHECK(std::isnan(one(OperatorKind::silu, -inf)));  // -inf / inf
  CHECK(std::signbit(one(OperatorKind::tanh, -0.0f)));
  CHECK(std::signbit(one(OperatorKind::erf, -0.0f)));
  CHECK(std::isnan(one(OperatorKind::gelu, nan_)));

  CHECK(std::isnan(two(OperatorKind::maximum, 1, nan_)));
  CHECK(std::isnan(two(OperatorKind::minimum, nan_, 1)));
  CHECK(!std::signbit(two(OperatorKind::maximum, -0.0f, 0.0f)));
  CHECK(!std::signbit(two(OperatorKind::maximum, 0.0f, -0.0f)));
  CHECK(std::signbit(two(OperatorKind::minimum, -0.0f, 0.0f)));
  CHECK(std::signbit(two(OperatorKind::minimum, 0.0f, -0.0f)));
  CHECK(std::isnan(two(OperatorKind::subtract, inf, inf)));
  CHECK(std::isnan(two(OperatorKind::divide, 0, 0)));
  CHECK(two(OperatorKind::divide, -1, 0) == -inf);
  CHECK(!std::signbit(two(OperatorKind::add, -0.0f, 0.0f)));
}

TEST_CASE("two operands are repeated along extents of one") {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{4, 5}, {4, 5}}, {{4, 5}, {5}}, {{4, 5}, {4, 1}},          {{1, 5}, {4, 1}},   {{3, 1, 5}, {2, 1}},
      {{1}, {3, 2, 5}}, {{1, 1}, {1}}, {{2, 3, 1, 5}, {3, 4, 1}}, {{7, 2000}, {7, 1}}};
  for (const auto& [left, right] : shapes) {
    const std::size_t rank = std::max(left.size(), right.size());
    Shape out(rank, 1);
    for (const Shape& s : {left, right})
      for (std::size_t i = 1; i <= s.size(); ++i) out[rank - i] = std::max(out[rank - i], s[s.size() - i]);
    const auto a = spread(count_of(left), -8, 8, 3), b = spread(count_of(right), -8, 8, 4);
    const auto at = [&](const Shape& s, const std::vector<float>& v, std::size_t flat) {
      std::size_t place = 0, step = 1;
      for (std::size_t i = 1; i <= rank; ++i) {
        const std::size_t index = flat % static_cast<std::size_t>(out[rank - i]);
        flat /= static_cast<std::size_t>(out[rank - i]);
        if (i > s.size()) continue;
        if (s[s.size() - i] != 1) place += index * step;
        step *= static_cast<std::size_t>(s[s.size() - i]);
      }
      return v[place];
    };
    for (const OperatorKind kind : {OperatorKind::add, OperatorKind::subtract, OperatorKind::multiply,
                                    OperatorKind::divide, OperatorKind::maximum, OperatorKind::minimum}) {
      OneOperator op(kind);
      op.reals(left, DType::fp32, a).reals(right, DType::fp32, b).run(out, DType::fp32);
      const auto got = op.result();
      REQUIRE(got.size() == count_of(out));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const float x = at(left, a, i), y = at(right, b, i);
        const float want = kind == OperatorKind::add        ? x + y
                           : kind == OperatorKind::subtract ? x - y
                           : kind == OperatorKind::multiply ? x * y
                           : kind == OperatorKind::divide   ? x / y
                           : kind == OperatorKind::maximum  ? std::max(x, y)
                                                            : std::min(x, y);
        wrong += got[i] != want;
      }
      CAPTURE(name_of(kind));
      CHECK(wrong == 0);
      CHECK(op.wide().value.size() == got.size());
    }
  }
}

TEST_CASE("integers are worked out in their accumulator, wrap around there, and saturate on the way out") {
  using I8 = std::vector<std::int8_t>;
  using I32 = std::vector<std::int32_t>;
  using I64 = std::vector<std::int64_t>;
  const I64 sums = {254, -256, 0};
  CHECK(integers(OperatorKind::add, DType::int8, I8{127, -128, 5}, I8{127, -128, -5}, DType::int32) == sums);
  CHECK(integers(OperatorKind::add, DType::int8, I8{127, -128, 5}, I8{127, -128, -5}, DType::int8) ==
        I64{127, -128, 0});
  CHECK(integers(OperatorKind::add, DType::int8, I8{127, -128, 5}, I8{127, -128, -5}, DType::int8, false) ==
        I64{-2, 0, 0});
  CHECK(integers(OperatorKind::multiply, DType::int32, I32{1 << 30, -7}, I32{4, 6}, DType::int32) == I64{0, -42});
  CHECK(integers(OperatorKind::negate, DType::int32, I32{std::numeric_limits<std::int32_t>::min(), 7}, {},
                 DType::int32) == I64{std::numeric_limits<std::int32_t>::min(), -7});
  CHECK(integers(OperatorKind::absolute, DType::int8, I8{-128, -3, 3}, {}, DType::int32) == I64{128, 3, 3});
  CHECK(integers(OperatorKind::relu, DType::int64, I64{-5, 0, 5}, {}, DType::int64) == I64{0, 0, 5});
  CHECK(integers(OperatorKind::maximum, DType::int8, I8{-1, 3}, I8{1, -3}, DType::int8) == I64{1, 3});
  CHECK(integers(OperatorKind::minimum, DType::int64, I64{-1, 3}, I64{1, -3}, DType::int64) == I64{-1, -3});
  OneOperator op(OperatorKind::multiply);
  op.with({1}, DType::int32, I32{1 << 30}).with({1}, DType::int32, I32{4}).run({1}, DType::int32);
  CHECK(op.wide().integer == I64{std::int64_t{1} << 32});
}

TEST_CASE("a cast converts once") {
  using I32 = std::vector<std::int32_t>;
  using I64 = std::vector<std::int64_t>;
  const auto from_int = [](auto values, DType from, DType to) {
    OneOperator op(OperatorKind::cast);
    const Shape shape = {static_cast<std::int64_t>(values.size())};
    op.with(shape, from, values).run(shape, to);
    return op.result();
  };
  // 2^24 + 2^16 + 1 lies above the middle of two bf16 numbers, and as fp32 would lie on it.
  CHECK(from_int(I32{0x1010001, 0x1010000}, DType::int32, DType::bf16) == std::vector<double>{0x1.02p24, 0x1p24});
  CHECK(from_int(I64{(std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1, -(std::int64_t{1} << 60)}, DType::int64,
                 DType::bf16) == std::vector<double>{0x1.02p60, -0x1p60});
  CHECK(from_int(I64{std::numeric_limits<std::int64_t>::min()}, DType::int64, DType::fp32)[0] == -0x1p63);
  CHECK(from_int(I32{500, -3}, DType::int32, DType::int8) == std::vector<double>{127, -3});
  CHECK(one(OperatorKind::cast, 2.5f, DType::int8) == 2);
  CHECK(one(OperatorKind::cast, 3.5f, DType::int8) == 4);
  CHECK(one(OperatorKind::cast, 1e9f, DType::int8) == 127);
  CHECK(one(OperatorKind::cast, -1e30f, DType::int64) == -0x1p63);
  CHECK(one(OperatorKind::cast, nan_, DType::int32) == 0);
  CHECK(one(OperatorKind::cast, 1000, DType::fp8_e4m3) == 448);
  CHECK(std::isnan(one(OperatorKind::cast, nan_, DType::bf16)));
  CHECK(std::signbit(one(OperatorKind::cast, -0.0f, DType::fp8_e5m2)));
}

TEST_CASE("a result is rounded to its dtype once, from the arithmetic's type") {
  OneOperator op(OperatorKind::add);
  op.reals({2}, DType::bf16, {1, 256}).reals({2}, DType::bf16, {0x1p-8f, 1.5f}).run({2}, DType::bf16);
  CHECK(op.result() == std::vector<double>{1, 258});  // 1 + 2^-8: halfway, to even
}

}  // namespace rdusim::point_wise_test
