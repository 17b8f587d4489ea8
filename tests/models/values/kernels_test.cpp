#include "models/values/kernels.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace rdusim::kernels_test {

namespace {

template <class T>
std::vector<T> random_elements(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<T> v(n);
  for (T& x : v) {
    if constexpr (std::is_floating_point_v<T>)
      x = static_cast<T>(static_cast<std::int64_t>(draw() % 2001) - 1000) / T{64};
    else
      x = static_cast<T>(draw());
  }
  return v;
}

template <class T>
const std::byte* bytes(const std::vector<T>& v) {
  return reinterpret_cast<const std::byte*>(v.data());
}
template <class T>
std::byte* bytes(std::vector<T>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

// Element by element, one product at a time, in rising depth.
template <class In, class Acc, class Widen>
std::vector<Acc> plain(const std::vector<In>& a, const std::vector<In>& b, std::vector<Acc> c, std::uint32_t rows,
                       std::uint32_t depth, std::uint32_t cols, Widen widen) {
  for (std::uint32_t i = 0; i < rows; ++i)
    for (std::uint32_t j = 0; j < cols; ++j)
      for (std::uint32_t k = 0; k < depth; ++k) {
        const Acc product = widen(a[i * depth + k]) * widen(b[k * cols + j]);
        c[i * cols + j] = c[i * cols + j] + product;
      }
  return c;
}

struct Shape {
  std::uint32_t rows, depth, cols;
};
const Shape shapes[] = {{1, 1, 1},    {32, 32, 32},  {1, 300, 17},   {7, 129, 33},
                        {100, 5, 16}, {97, 130, 50}, {241, 241, 241}};

// Reference rounding by search: the code whose value is nearest, ties to the even code.
template <class Decode>
std::uint8_t nearest_code(float value, std::uint8_t largest, Decode decode) {
  std::uint8_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (int code = 0; code <= largest; ++code) {
    const double d = std::fabs(double(decode(static_cast<std::uint8_t>(code))) - std::fabs(double(value)));
    if (d < best_distance || (d == best_distance && code % 2 == 0)) {
      best = static_cast<std::uint8_t>(code);
      best_distance = d;
    }
  }
  return static_cast<std::uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

}  // namespace

TEST_CASE("in lanes a matmul adds the sums that a reduction tree makes of products side by side, to the bit") {
  // Values whose products round.
  std::vector<float> a(3 * 22), b(22 * 5), turned(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 1.0f / static_cast<float>(i % 31 + 3);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = 1.0f / static_cast<float>(i % 37 + 5);
  for (std::size_t k = 0; k < 22; ++k)
    for (std::size_t j = 0; j < 5; ++j) turned[j * 22 + k] = b[k * 5 + j];
  auto expected = random_elements<float>(3 * 5, 3);
  auto plain_order = expected, transposed = expected, c = expected;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 5; ++j) {
      float& sum = expected[i * 5 + j];
      const auto x = [&](std::size_t k) { return a[i * 22 + k] * b[k * 5 + j]; };
      for (const std::size_t k : {0u, 8u})
        sum += ((x(k) + x(k + 1)) + (x(k + 2) + x(k + 3))) + ((x(k + 4) + x(k + 5)) + (x(k + 6) + x(k + 7)));
      sum += ((x(16) + x(17)) + (x(18) + x(19))) + (x(20) + x(21));
    }
  matmul_accumulate(DType::fp32, bytes(a), bytes(b), bytes(c), 3, 22, 5, false, 8);
  CHECK(c == expected);
  matmul_accumulate(DType::fp32, bytes(a), bytes(turned), bytes(transposed), 3, 22, 5, true, 8);
  CHECK(transposed == expected);
  matmul_accumulate(DType::fp32, bytes(a), bytes(b), bytes(plain_order), 3, 22, 5);
  CHECK(plain_order != expected);
  const auto small = random_elements<std::int8_t>(22, 4);
  std::vector<std::uint32_t> by_lanes(1, 5), one_by_one(1, 5);
  matmul_accumulate(DType::int8, bytes(small), bytes(small), bytes(by_lanes), 1, 22, 1, false, 4);
  matmul_accumulate(DType::int8, bytes(small), bytes(small), bytes(one_by_one), 1, 22, 1);
  CHECK(by_lanes == one_by_one);
}

TEST_CASE("a matmul sums products one by one in rising depth, to the bit, for every shape") {
  for (const Shape& s : shapes) {
    CAPTURE(s.rows);
    CAPTURE(s.depth);
    CAPTURE(s.cols);
    {
      const auto a = random_elements<float>(s.rows * s.depth, 1), b = random_elements<float>(s.depth * s.cols, 2);
      auto c = random_elements<float>(s.rows * s.cols, 3);
      const auto expected = plain(a, b, c, s.rows, s.depth, s.cols, [](float x) { return x; });
      matmul_accumulate(DType::fp32, bytes(a), bytes(b), bytes(c), s.rows, s.depth, s.cols);
      CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
    }
    {
      const auto a = random_elements<std::int8_t>(s.rows * s.depth, 1),
                 b = random_elements<std::int8_t>(s.depth * s.cols, 2);
      std::vector<std::uint32_t> c(s.rows * s.cols, 5);
      const auto expected = plain(a, b, c, s.rows, s.depth, s.cols,
                                  [](std::int8_t x) { return static_cast<std::uint32_t>(std::int32_t{x}); });
      matmul_accumulate(DType::int8, bytes(a), bytes(b), bytes(c), s.rows, s.depth, s.cols);
      CHECK(c == expected);
    }
    {
      const auto a = random_elements<std::uint64_t>(s.rows * s.depth, 1),
                 b = random_elements<std::uint64_t>(s.depth * s.cols, 2);
      auto c = random_elements<std::uint64_t>(s.rows * s.cols, 3);
      const auto expected = plain(a, b, c, s.rows, s.depth, s.cols, [](std::uint64_t x) { return x; });
      matmul_accumulate(DType::int64, bytes(a), bytes(b), bytes(c), s.rows, s.depth, s.cols);
      CHECK(c == expected);
    }
    {
      const auto a = random_elements<std::uint32_t>(s.rows * s.depth, 1),
                 b = random_elements<std::uint32_t>(s.depth * s.cols, 2);
      auto c = random_elements<std::uint32_t>(s.rows * s.cols, 3);
      const auto expected = plain(a, b, c, s.rows, s.depth, s.cols, [](std::uint32_t x) { return x; });
      matmul_accumulate(DType::int32, bytes(a), bytes(b), bytes(c), s.rows, s.depth, s.cols);
      CHECK(c == expected);
    }
    {
      auto bits = [](std::size_t n, std::uint64_t seed) {
        std::vector<std::uint16_t> v;
        for (const float x : random_elements<float>(n, seed)) v.push_back(bf16_from_fp32(x));
        return v;
      };
      const auto a = bits(s.rows * s.depth, 1), b = bits(s.depth * s.cols, 2);
      std::vector<float> c(s.rows * s.cols, 0.0f);
      const auto expected = plain(a, b, c, s.rows, s.depth, s.cols, fp32_from_bf16);
      matmul_accumulate(DType::bf16, bytes(a), bytes(b), bytes(c), s.rows, s.depth, s.cols);
      CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
    }
    {
      std::vector<std::uint8_t> a(s.rows * s.depth), b(s.depth * s.cols);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(i * 37 % 126);
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint8_t>(128 + i * 11 % 120);
      std::vector<float> c(s.rows * s.cols, 0.0f);
      const auto expected = plain(a, b, c, s.rows, s.depth, s.cols, fp32_from_fp8_e4m3);
      matmul_accumulate(DType::fp8_e4m3, bytes(a), bytes(b), bytes(c), s.rows, s.depth, s.cols);
      CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a sum in two pages has the bits of the sum in one") {
  const auto a = random_elements<float>(5 * 200, 1), b = random_elements<float>(200 * 40, 2);
  std::vector<float> whole(5 * 40, 0.0f), parts(5 * 40, 0.0f);
  matmul_accumulate(DType::fp32, bytes(a), bytes(b), bytes(whole), 5, 200, 40);
  std::vector<float> left, right;
  for (std::size_t i = 0; i < 5; ++i) {
    left.insert(left.end(), a.begin() + std::ptrdiff_t(i * 200), a.begin() + std::ptrdiff_t(i * 200 + 77));
    right.insert(right.end(), a.begin() + std::ptrdiff_t(i * 200 + 77), a.begin() + std::ptrdiff_t(i * 200 + 200));
  }
  matmul_accumulate(DType::fp32, bytes(left), bytes(b), bytes(parts), 5, 77, 40);
  matmul_accumulate(DType::fp32, bytes(right), bytes(b) + 77 * 40 * sizeof(float), bytes(parts), 5, 123, 40);
  CHECK(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)) == 0);
}

TEST_CASE("products and sums are rounded separately, not fused") {
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24; the product's last bit is lost before the sum, a fused one would keep it.
  const std::vector<float> a = {1.0f + 0x1p-12f}, b = a;
  std::vector<float> c = {-1.0f - 0x1p-11f};
  matmul_accumulate(DType::fp32, bytes(a), bytes(b), bytes(c), 1, 1, 1);
  CHECK(c[0] == 0.0f);
}

TEST_CASE("bf16: every value survives the way to fp32 and back, and NaN stays NaN") {
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = fp32_from_bf16(bits);
    const std::uint16_t back = bf16_from_fp32(value);
    if (std::isnan(value))
      CHECK(std::isnan(fp32_from_bf16(back)));
    else
      REQUIRE(back == bits);
  }
}

TEST_CASE("bf16: halfway goes to even, just above goes up, just below goes down, for every pair of neighbours") {
  for (std::uint32_t i = 0; i < 0x7f80; ++i) {
    const std::uint32_t half = (i << 16) + 0x8000;
    REQUIRE(bf16_from_fp32(std::bit_cast<float>(half)) == (i % 2 == 0 ? i : i + 1));
    REQUIRE(bf16_from_fp32(std::bit_cast<float>(half + 1)) == i + 1);
    REQUIRE(bf16_from_fp32(std::bit_cast<float>(half - 1)) == i);
  }
}

TEST_CASE("fp8: every value survives the way to fp32 and back") {
  for (int i = 0; i < 256; ++i) {
    const auto bits = static_cast<std::uint8_t>(i);
    for (const bool saturate : {false, true}) {
      CAPTURE(i);
      if (const float v = fp32_from_fp8_e4m3(bits); std::isnan(v))
        CHECK((fp8_e4m3_from_fp32(v, saturate) & 0x7f) == 0x7f);
      else
        CHECK(fp8_e4m3_from_fp32(v, saturate) == bits);
      if (const float v = fp32_from_fp8_e5m2(bits); std::isnan(v))
        CHECK(std::isnan(fp32_from_fp8_e5m2(fp8_e5m2_from_fp32(v, saturate))));
      else if (std::isinf(v))
        CHECK(fp8_e5m2_from_fp32(v, saturate) == (saturate ? (bits & 0x80) + 0x7b : bits));
      else
        CHECK(fp8_e5m2_from_fp32(v, saturate) == bits);
    }
  }
  CHECK(fp32_from_fp8_e4m3(0x7e) == 448.0f);
  CHECK(fp32_from_fp8_e5m2(0x7b) == 57344.0f);
  CHECK(fp32_from_fp8_e4m3(0x01) == 0x1p-9f);
  CHECK(fp32_from_fp8_e5m2(0x01) == 0x1p-16f);
}

TEST_CASE("fp8: rounding is to the nearest code, ties to even, around every value and every midpoint") {
  const auto around = [](float x, auto&& check) {
    for (const float v : {x, std::nextafterf(x, 0.0f), std::nextafterf(x, 1e9f)}) {
      check(v);
      check(-v);
    }
  };
  for (int code = 0; code < 0x7e; ++code) {
    const float low = fp32_from_fp8_e4m3(static_cast<std::uint8_t>(code)),
                high = fp32_from_fp8_e4m3(static_cast<std::uint8_t>(code + 1));
    for (const float x : {low, (low + high) / 2})
      around(x, [&](float v) { REQUIRE(fp8_e4m3_from_fp32(v, true) == nearest_code(v, 0x7e, fp32_from_fp8_e4m3)); });
  }
  for (int code = 0; code < 0x7b; ++code) {
    const float low = fp32_from_fp8_e5m2(static_cast<std::uint8_t>(code)),
                high = fp32_from_fp8_e5m2(static_cast<std::uint8_t>(code + 1));
    for (const float x : {low, (low + high) / 2})
      around(x, [&](float v) { REQUIRE(fp8_e5m2_from_fp32(v, true) == nearest_code(v, 0x7b, fp32_from_fp8_e5m2)); });
  }
}

TEST_CASE("fp8: beyond the largest value saturation decides") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(fp8_e4m3_from_fp32(464.0f, false) == 0x7e);  // halfway to 480, to even
  CHECK(fp8_e4m3_from_fp32(std::nextafterf(464.0f, 500.0f), false) == 0x7f);
  CHECK(fp8_e4m3_from_fp32(1e30f, true) == 0x7e);
  CHECK(fp8_e4m3_from_fp32(-inf, true) == 0xfe);
  CHECK(fp8_e4m3_from_fp32(-inf, false) == 0xff);
  CHECK(fp8_e5m2_from_fp32(61440.0f, false) == 0x7c);  // halfway to 65536, to even
  CHECK(fp8_e5m2_from_fp32(std::nextafterf(61440.0f, 0.0f), false) == 0x7b);
  CHECK(fp8_e5m2_from_fp32(inf, true) == 0x7b);
  CHECK(fp8_e5m2_from_fp32(inf, false) == 0x7c);
}

TEST_CASE("integers narrow by saturation or by their low bits") {
  const std::vector<std::int32_t> in = {127, 128, -128, -129, 1 << 20};
  std::vector<std::int8_t> out(in.size());
  convert(DType::int32, bytes(in), DType::int8, bytes(out), in.size(), true);
  CHECK(out == std::vector<std::int8_t>{127, 127, -128, -128, 127});
  convert(DType::int32, bytes(in), DType::int8, bytes(out), in.size(), false);
  CHECK(out == std::vector<std::int8_t>{127, -128, -128, 127, 0});
}

TEST_CASE("an integer is rounded once on its way to a narrow float") {
  // 2^24 + 2^16 + 1 lies just above the midpoint of two bf16 values; through fp32 it would become the midpoint itself.
  const std::vector<std::int64_t> in = {(1 << 24) + (1 << 16) + 1, -((1 << 24) + (1 << 16) + 1)};
  std::vector<std::uint16_t> out(2);
  convert(DType::int64, bytes(in), DType::bf16, bytes(out), 2, true);
  CHECK(fp32_from_bf16(out[0]) == 16908288.0f);
  CHECK(fp32_from_bf16(out[1]) == -16908288.0f);
}

TEST_CASE("floats become integers to nearest even, saturating, NaN to 0") {
  const std::vector<float> in = {0.5f, 1.5f, -2.5f, 3e9f, -3e9f, std::nanf(""), std::numeric_limits<float>::infinity()};
  std::vector<std::int32_t> out(in.size());
  convert(DType::fp32, bytes(in), DType::int32, bytes(out), in.size(), true);
  CHECK(out == std::vector<std::int32_t>{0, 2, -2, std::numeric_limits<std::int32_t>::max(),
                                         std::numeric_limits<std::int32_t>::min(), 0,
                                         std::numeric_limits<std::int32_t>::max()});
}

TEST_CASE("element-wise operations: integers wrap around, NaN wins, +0 is above -0") {
  const std::vector<std::int32_t> a = {std::numeric_limits<std::int32_t>::max(), -5}, b = {1, 7};
  std::vector<std::int32_t> out(2);
  element_wise(ElementOp::add, DType::int32, bytes(a), bytes(b), bytes(out), 2);
  CHECK(out == std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), 2});
  element_wise(ElementOp::maximum, DType::int32, bytes(a), bytes(b), bytes(out), 2);
  CHECK(out == std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max(), 7});
  const std::vector<float> x = {std::nanf(""), -0.0f, 0.0f}, y = {1.0f, 0.0f, -0.0f};
  std::vector<float> z(3);
  element_wise(ElementOp::maximum, DType::fp32, bytes(x), bytes(y), bytes(z), 3);
  CHECK(std::isnan(z[0]));
  CHECK(!std::signbit(z[1]));
  CHECK(!std::signbit(z[2]));
  element_wise(ElementOp::minimum, DType::fp32, bytes(y), bytes(x), bytes(z), 3);
  CHECK(std::isnan(z[0]));
  CHECK(std::signbit(z[1]));
  CHECK(std::signbit(z[2]));
}

TEST_CASE("a mask leaves what stands by a number that is not below 0, and minus infinity elsewhere") {
  const std::vector<float> x = {1, 2, 3, 4, std::nanf("")}, by = {0, -0.0f, -1, std::nanf(""), 1};
  std::vector<float> z(5);
  element_wise(ElementOp::mask, DType::fp32, bytes(x), bytes(by), bytes(z), 5);
  const float below = -std::numeric_limits<float>::infinity();
  CHECK(std::vector<float>(z.begin(), z.begin() + 4) == std::vector<float>{1, 2, below, below});
  CHECK(std::isnan(z[4]));
}

}  // namespace rdusim::kernels_test
