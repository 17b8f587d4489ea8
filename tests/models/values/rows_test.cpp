// Arithmetic over the rows and columns of a page.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "compiler/support/elementary.h"
#include "models/values/kernels.h"

namespace rdusim::rows_test {

namespace {

std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<float> v(n);
  for (float& x : v) x = static_cast<float>(static_cast<std::int64_t>(draw() % 20001) - 10000) / 1000.0f;
  return v;
}
const std::byte* page(const std::vector<float>& v) {
  return reinterpret_cast<const std::byte*>(v.data());
}
std::byte* page(std::vector<float>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

TEST_CASE("a row is joined from its first element on, one by one, and over several pages alike") {
  for (const std::uint32_t rows : {1u, 7u, 8u, 19u}) {
    constexpr std::uint32_t cols = 37;
    const std::vector<float> x = numbers(rows * cols, rows);
    for (const ElementOp op : {ElementOp::add, ElementOp::maximum, ElementOp::minimum}) {
      std::vector<float> expected(rows);
      for (std::uint32_t r = 0; r < rows; ++r) {
        float v = x[r * cols];
        for (std::uint32_t c = 1; c < cols; ++c) {
          const float next = x[r * cols + c];
          v = op == ElementOp::add ? v + next : op == ElementOp::maximum ? std::max(v, next) : std::min(v, next);
        }
        expected[r] = v;
      }
      std::vector<float> held(rows, 1e30f);
      join_rows(op, DType::fp32, page(x), page(held), rows, cols, true);
      CHECK(held == expected);
      // The same row as pages of 10, 20 and 7 columns.
      std::uint32_t at = 0;
      for (const std::uint32_t width : {10u, 20u, 7u}) {
        std::vector<float> part(rows * width);
        for (std::uint32_t r = 0; r < rows; ++r)
          for (std::uint32_t c = 0; c < width; ++c) part[r * width + c] = x[r * cols + at + c];
        join_rows(op, DType::fp32, page(part), page(held), rows, width, at == 0);
        at += width;
      }
      CHECK(held == expected);
    }
  }
}

TEST_CASE("a row, a column or an element serves the whole page") {
  constexpr std::uint32_t rows = 3, cols = 5;
  const std::vector<float> x = numbers(rows * cols, 9);
  const auto check = [&](Spread how, std::uint32_t in_cols) {
    std::vector<float> out(rows * cols);
    spread(how, DType::fp32, page(x), in_cols, page(out), rows, cols);
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t c = 0; c < cols; ++c)
        CHECK(out[r * cols + c] == x[(how.has_rows ? r * in_cols : 0) + (how.has_cols ? c : 0)]);
  };
  check({true, true}, cols);
  check({false, true}, cols);
  check({true, false}, 1);
  check({false, false}, 1);
}

TEST_CASE("elementary operations are those that workloads mean, element by element") {
  const std::vector<float> x = numbers(33, 4);
  std::vector<float> y(x.size());
  const auto check = [&](UnaryOp op, auto f) {
    element_wise(op, DType::fp32, page(x), page(y), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK((y[i] == f(x[i]) || (std::isnan(y[i]) && std::isnan(f(x[i])))));
  };
  check(UnaryOp::negate, [](float v) { return -v; });
  check(UnaryOp::exponential, exp_fp32);
  check(UnaryOp::square_root, [](float v) { return std::sqrt(v); });
  check(UnaryOp::tanh, tanh_fp32);
  check(UnaryOp::erf, erf_fp32);
  std::vector<float> z = numbers(33, 5);
  element_wise(ElementOp::divide, DType::fp32, page(x), page(z), page(y), x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (z[i] != 0) CHECK(y[i] == x[i] / z[i]);
}

TEST_CASE("a transposed operand gives the bits of the one that is not") {
  for (const auto& [rows, depth, cols] : {std::array{1u, 1u, 1u}, {5u, 130u, 17u}, {97u, 33u, 40u}}) {
    const std::vector<float> a = numbers(rows * depth, 1), b = numbers(depth * cols, 2);
    std::vector<float> turned(b.size());
    for (std::uint32_t k = 0; k < depth; ++k)
      for (std::uint32_t n = 0; n < cols; ++n) turned[n * depth + k] = b[k * cols + n];
    std::vector<float> c(rows * cols, 0.5f), d = c;
    matmul_accumulate(DType::fp32, page(a), page(b), page(c), rows, depth, cols);
    matmul_accumulate(DType::fp32, page(a), page(turned), page(d), rows, depth, cols, true);
    CHECK(c == d);
  }
}

}  // namespace

}  // namespace rdusim::rows_test
