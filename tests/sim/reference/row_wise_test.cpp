// Softmax, norms and reductions, against plain loops in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/sim/reference/operators.h"

namespace rdusim::row_wise_test {
using namespace rdusim::test;

namespace {

using Row = std::vector<double>;

Row softmax(const Row& x) {
  const double m = *std::max_element(x.begin(), x.end());
  Row out = x;
  double sum = 0;
  for (double& v : out) sum += v = std::exp(v - m);
  for (double& v : out) v /= sum;
  return out;
}
Row norm(const Row& x, const Row& w, const Row* b, double epsilon) {
  double mean = 0, square = 0;
  const auto n = static_cast<double>(x.size());
  if (b != nullptr)
    for (const double v : x) mean += v / n;
  for (const double v : x) square += (v - mean) * (v - mean) / n;
  Row out = x;
  for (std::size_t j = 0; j < x.size(); ++j)
    out[j] = (x[j] - mean) / std::sqrt(square + epsilon) * w[j] + (b != nullptr ? (*b)[j] : 0);
  return out;
}

// Every element: the wide value is the truth, the result within the bound, and the bound below `loosest` u times what
// the elements are made of.
void check(OneOperator& op, const std::vector<double>& truth, double scale, double loosest) {
  const auto got = op.result();
  const auto wide = op.wide();
  REQUIRE(got.size() == truth.size());
  REQUIRE(wide.value.size() == truth.size());
  double off = 0, worst = 0, bound = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    off = std::max(off, std::fabs(wide.value[i] - truth[i]) / scale);
    if (got[i] != wide.value[i]) worst = std::max(worst, std::fabs(got[i] - wide.value[i]) / wide.error[i]);
    bound = std::max(bound, wide.error[i] / scale);
  }
  CHECK(off <= 1e-12);
  CHECK(worst <= 1);
  CHECK(bound <= loosest * 0x1p-24);
}

double one_row(OperatorKind kind, std::vector<float> x, std::size_t element = 0, OperatorAttributes a = {}) {
  const Shape shape = {static_cast<std::int64_t>(x.size())};
  const bool reduces = kind >= OperatorKind::reduce_sum && kind <= OperatorKind::reduce_min;
  OneOperator op(kind, std::move(a));
  op.reals(shape, DType::fp32, x);
  if (kind == OperatorKind::rms_norm) op.reals(shape, DType::fp32, std::vector<float>(x.size(), 1));
  op.run(reduces ? Shape{1} : shape, DType::fp32);
  return op.result()[element];
}

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_ = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("softmax, norms and reductions are within their bound of plain loops") {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{5, 1}, Shape{3, 100}, Shape{2, 3, 257}}) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      const auto n = static_cast<std::size_t>(shape.back());
      const auto x = spread(count_of(shape), -4, 4, 7), w = spread(n, 0.5f, 2, 8), b = spread(n, -1, 1, 9);
      OperatorAttributes epsilon;
      epsilon.epsilon = 1e-5;
      Shape reduced = shape;
      reduced.back() = 1;
      const Shape weight = {static_cast<std::int64_t>(n)};
      const auto run = [&](OperatorKind kind, const Shape& out, double scale, double loosest,
                           const std::function<Row(const Row&, const Row&, const Row&)>& truth) {
        const bool rms = kind == OperatorKind::rms_norm, layer = kind == OperatorKind::layer_norm;
        OneOperator op(kind, rms || layer ? epsilon : OperatorAttributes{});
        op.reals(shape, dtype, x);
        if (rms || layer) op.reals(weight, dtype, w);
        if (layer) op.reals(weight, dtype, b);
        op.run(out, DType::fp32);
        const Row all = op.operand(0), ws = rms || layer ? op.operand(1) : Row{}, bs = layer ? op.operand(2) : Row{};
        Row expected;
        for (std::size_t r = 0; r < all.size() / n; ++r) {
          const Row row(all.begin() + static_cast<std::ptrdiff_t>(r * n),
                        all.begin() + static_cast<std::ptrdiff_t>((r + 1) * n));
          const Row t = truth(row, ws, bs);
          expected.insert(expected.end(), t.begin(), t.end());
        }
        CAPTURE(name_of(kind));
        CAPTURE(n);
        check(op, expected, scale, loosest);
      };
      const auto terms = static_cast<double>(n);
      run(OperatorKind::softmax, shape, 1, 2 * terms + 40,
          [](const Row& r, const Row&, const Row&) { return softmax(r); });
      // Of one element the mean is the element, and cancels: the bound is relative to what was subtracted.
      run(OperatorKind::rms_norm, shape, 10, terms + 20,
          [](const Row& r, const Row& ws, const Row&) { return norm(r, ws, nullptr, 1e-5); });
      if (n > 1)
        run(OperatorKind::layer_norm, shape, 10, 100 * terms,
            [](const Row& r, const Row& ws, const Row& bs) { return norm(r, ws, &bs, 1e-5); });
      run(OperatorKind::reduce_sum, reduced, 4 * terms, terms, [](const Row& r, const Row&, const Row&) {
        double s = 0;
        for (const double v : r) s += v;
        return Row{s};
      });
      run(OperatorKind::reduce_mean, reduced, 4, terms + 3, [&](const Row& r, const Row&, const Row&) {
        double s = 0;
        for (const double v : r) s += v;
        return Row{s / terms};
      });
      run(OperatorKind::reduce_max, reduced, 1, 0,
          [](const Row& r, const Row&, const Row&) { return Row{*std::max_element(r.begin(), r.end())}; });
      run(OperatorKind::reduce_min, reduced, 1, 0,
          [](const Row& r, const Row&, const Row&) { return Row{*std::min_element(r.begin(), r.end())}; });
    }
  }
}

TEST_CASE("a row is summed from its first element, in rising column") {
  // (2^24 + 1) + 1 loses both; from the other end they would count.
  CHECK(one_row(OperatorKind::reduce_sum, {16777216, 1, 1}) == 16777216);
  CHECK(one_row(OperatorKind::reduce_sum, {1, 1, 16777216}) == 16777218);
  CHECK(std::signbit(one_row(OperatorKind::reduce_sum, {-0.0f, -0.0f})));  // from zero it would be +0
  CHECK(one_row(OperatorKind::reduce_mean, {1, 2, 4}) == double(7.0f * (1.0f / 3)));
}

TEST_CASE("integer rows are reduced exactly, wrapping around") {
  OneOperator sum(OperatorKind::reduce_sum);
  sum.with({2, 3}, DType::int8, std::vector<std::int8_t>{127, 127, 127, -128, -128, 5}).run({2, 1}, DType::int32);
  CHECK(sum.result() == Row{381, -251});
  OneOperator narrow(OperatorKind::reduce_sum);
  narrow.with({1, 3}, DType::int8, std::vector<std::int8_t>{127, 127, 127}).run({1, 1}, DType::int8);
  CHECK(narrow.result() == Row{127});
  OneOperator wraps(OperatorKind::reduce_sum);
  wraps.with({2}, DType::int32, std::vector<std::int32_t>{2147483647, 1}).run({1}, DType::int32);
  CHECK(wraps.result() == Row{-2147483648.0});
  CHECK(wraps.wide().integer == std::vector<std::int64_t>{2147483648});
  for (const auto& [kind, expected] : {std::pair{OperatorKind::reduce_max, 5.0}, {OperatorKind::reduce_min, -7.0}}) {
    OneOperator op(kind);
    op.with({1, 4}, DType::int64, std::vector<std::int64_t>{-7, 5, 0, 5}).run({1, 1}, DType::int64);
    CHECK(op.result() == Row{expected});
  }
}

TEST_CASE("infinities and NaN of a row") {
  CHECK(std::isnan(one_row(OperatorKind::softmax, {1, nan_, 2})));
  CHECK(std::isnan(one_row(OperatorKind::softmax, {1, inf, 2})));  // inf - inf
  CHECK(one_row(OperatorKind::softmax, {1, -inf, 1}, 1) == 0);
  CHECK(one_row(OperatorKind::softmax, {1, -inf, 1}, 2) == 0.5);
  CHECK(one_row(OperatorKind::softmax, {-3e38f, 3e38f}, 0) == 0);
  CHECK(std::isnan(one_row(OperatorKind::softmax, {-inf, -inf})));
  CHECK(std::isnan(one_row(OperatorKind::reduce_max, {1, nan_, 2})));
  CHECK(std::isnan(one_row(OperatorKind::reduce_min, {nan_, 1, 2})));
  CHECK(!std::signbit(one_row(OperatorKind::reduce_max, {-0.0f, 0.0f})));
  CHECK(std::signbit(one_row(OperatorKind::reduce_min, {0.0f, -0.0f})));
  CHECK(std::isnan(one_row(OperatorKind::reduce_sum, {inf, -inf})));
  OperatorAttributes e;
  e.epsilon = 1e-6;
  CHECK(one_row(OperatorKind::rms_norm, {0, 0}, 0, e) == 0);
  CHECK(one_row(OperatorKind::rms_norm, {1e30f, 1e30f}, 0, e) == 0);  // the square overflows, as stated
}

TEST_CASE("where fp32 overflows on the way the bound says nothing") {
  OperatorAttributes e;
  e.epsilon = 1e-6;
  OneOperator op(OperatorKind::rms_norm, e);
  op.reals({2}, DType::fp32, {1e30f, 1e30f}).reals({2}, DType::fp32, {1, 1}).run({2}, DType::fp32);
  const auto wide = op.wide();
  CHECK(!std::isfinite(wide.error[0]));
  CHECK(wide.value[0] == doctest::Approx(1));
}

}  // namespace rdusim::row_wise_test
