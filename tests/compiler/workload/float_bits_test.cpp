#include "compiler/workload/float_bits.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rdusim::float_bits_test {

namespace {

constexpr FloatFormat bf16 = float_format(DType::bf16);
constexpr FloatFormat e4m3 = float_format(DType::fp8_e4m3);
constexpr FloatFormat e5m2 = float_format(DType::fp8_e5m2);
constexpr FloatFormat fp32 = float_format(DType::fp32);

// The nearest finite code, by trying them all; ties to the even one.
std::uint32_t nearest_code(double value, FloatFormat f) {
  std::uint32_t best = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (std::uint32_t code = 0; code <= f.largest; ++code) {
    const double d = std::fabs(std::fabs(value) - float_value(code, f));
    if (d < distance || (d == distance && code % 2 == 0)) {
      best = code;
      distance = d;
    }
  }
  return best | (std::signbit(value) ? f.sign_bit() : 0);
}

}  // namespace

TEST_CASE("the formats have their published values") {
  CHECK(float_value(0x7E, e4m3) == 448);
  CHECK(float_value(0x08, e4m3) == std::ldexp(1.0, -6));  // smallest normal
  CHECK(float_value(0x01, e4m3) == std::ldexp(1.0, -9));  // smallest subnormal
  CHECK(float_value(0x7B, e5m2) == 57344);
  CHECK(float_value(0x04, e5m2) == std::ldexp(1.0, -14));
  CHECK(float_value(0x01, e5m2) == std::ldexp(1.0, -16));
  CHECK(float_value(0x3F80, bf16) == 1);
  CHECK(float_value(0xC040, bf16) == -3);
  CHECK(float_value(0x7F7F, bf16) == std::ldexp(255.0, 120));
  CHECK(float_value(0x7F7FFFFF, fp32) == double{std::numeric_limits<float>::max()});
  CHECK(float_value(0x00000001, fp32) == double{std::numeric_limits<float>::denorm_min()});
}

TEST_CASE("every finite code rounds to itself") {
  for (const FloatFormat f : {e4m3, e5m2, bf16}) {
    for (std::uint32_t code = 0; code <= f.largest; ++code) {
      REQUIRE(round_to_float(float_value(code, f), f) == code);
      REQUIRE(round_to_float(-float_value(code, f), f) == (code | f.sign_bit()));
    }
  }
}

TEST_CASE("between two codes a value goes to the nearer one, and from the middle to the even one") {
  for (const FloatFormat f : {e4m3, e5m2, bf16}) {
    for (std::uint32_t code = 0; code < f.largest; ++code) {
      const double low = float_value(code, f);
      const double high = float_value(code + 1, f);
      const double middle = (low + high) / 2;
      REQUIRE(round_to_float(middle, f) == (code % 2 == 0 ? code : code + 1));
      REQUIRE(round_to_float(std::nextafter(middle, 0), f) == code);
      REQUIRE(round_to_float(std::nextafter(middle, high), f) == code + 1);
    }
  }
}

TEST_CASE("beyond the largest value there is none, from the middle to the next one on") {
  CHECK(round_to_float(464, e4m3) == 0x7EU);  // the middle to what would be 480: ties to 448, whose code is even
  CHECK(round_to_float(std::nextafter(464, 480), e4m3) == std::nullopt);
  CHECK(round_to_float(61440, e5m2) == std::nullopt);
  CHECK(round_to_float(std::nextafter(61440, 0), e5m2) == 0x7BU);
  CHECK(round_to_float(std::numeric_limits<double>::infinity(), bf16) == std::nullopt);
  CHECK(round_to_float(std::numeric_limits<double>::quiet_NaN(), fp32) == std::nullopt);
  CHECK(round_to_float(1e300, fp32) == std::nullopt);
  CHECK(round_to_float(1e-300, fp32) == 0U);
  CHECK(round_to_float(-std::numeric_limits<double>::denorm_min(), fp32) == 0x80000000U);
}

TEST_CASE("rounding to fp32 is the hardware's") {
  CHECK(rc::check("fp32", [](std::uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    // Spread over the exponents of fp32, which few random doubles hit.
    const double near = std::ldexp(std::bit_cast<double>((bits & 0x800FFFFFFFFFFFFFU) | 0x3FF0000000000000U),
                                   static_cast<int>(bits >> 52U & 0x1FFU) - 256 + 100);
    for (const double v : {value, near}) {
      const auto f = static_cast<float>(v);
      if (std::isfinite(f)) {
        RC_ASSERT(round_to_float(v, fp32) == std::bit_cast<std::uint32_t>(f));
      } else {
        RC_ASSERT(round_to_float(v, fp32) == std::nullopt);
      }
    }
  }));
}

TEST_CASE("rounding to fp8 is what trying all codes finds") {
  CHECK(rc::check("fp8", [](std::uint32_t mantissa, bool negative) {
    const int exponent = *rc::gen::inRange(-20, 16);
    const double v = std::ldexp(1 + mantissa / 4294967296.0, exponent) * (negative ? -1 : 1);
    for (const FloatFormat f : {e4m3, e5m2}) {
      if (const auto code = round_to_float(v, f)) RC_ASSERT(*code == nearest_code(v, f));
    }
  }));
}

}  // namespace rdusim::float_bits_test
