// Conversions to the narrow float formats, exhaustively: every float is decided by its upper 16 bits and by where its
// lower 16 lie (nothing, less than half, half, more than half of a step), so both ends of each of those stretches are
// tried behind every upper half. The right answers come from another implementation, in integer arithmetic on doubles,
// and for bf16 from Eigen's.
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/workload/float_bits.h"
#include "models/values/kernels.h"

namespace rdusim::conversions_test {

namespace {

constexpr std::array<std::uint32_t, 8> lower_halves = {0, 1, 0x1234, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};

// Calls f(float) for every upper half, NaN and infinity included.
template <class F>
void for_each_float(F&& f) {
  for (std::uint32_t upper = 0; upper <= 0xffff; ++upper)
    for (const std::uint32_t lower : lower_halves) f(std::bit_cast<float>(upper << 16 | lower));
}

// Bits of a float that is no NaN in a format: what does not fit becomes `beyond` or, saturating, the largest.
std::uint32_t expected(float value, DType type, std::uint32_t beyond, bool saturate) {
  const FloatFormat format = float_format(type);
  const std::uint32_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (const auto code = round_to_float(value, format)) return *code;
  return sign | (saturate ? format.largest : beyond);
}

// By convert(), whose bulk path is another than that of single elements.
template <class Out>
Out converted(DType type, float value, bool saturate) {
  Out out{};
  convert(DType::fp32, reinterpret_cast<const std::byte*>(&value), type, reinterpret_cast<std::byte*>(&out), 1,
          saturate);
  return out;
}

bool is_nan_e4m3(std::uint8_t code) {
  return (code & 0x7f) == 0x7f;
}
bool is_nan_e5m2(std::uint8_t code) {
  return (code & 0x7f) > 0x7c;
}

}  // namespace

TEST_CASE("bf16 from every kind of fp32 is the nearest, ties to even, with or without saturation, as Eigen has it") {
  std::uint64_t wrong = 0;
  for_each_float([&](float value) {
    const std::uint16_t got = bf16_from_fp32(value);
    const auto eigen = Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(value));
    if (std::isnan(value)) {
      wrong += !std::isnan(fp32_from_bf16(got)) || std::signbit(fp32_from_bf16(got)) != std::signbit(value);
    } else {
      wrong += got != eigen;
      wrong += got != expected(value, DType::bf16, 0x7f80, false);
    }
    for (const bool saturate : {false, true}) wrong += converted<std::uint16_t>(DType::bf16, value, saturate) != got;
  });
  CHECK(wrong == 0);
}

TEST_CASE(
    "fp8 e4m3 from every kind of fp32 is the nearest, ties to even, and beyond the largest as saturation decides") {
  for (const bool saturate : {false, true}) {
    CAPTURE(saturate);
    std::uint64_t wrong = 0;
    for_each_float([&](float value) {
      const std::uint8_t got = fp8_e4m3_from_fp32(value, saturate);
      if (std::isnan(value))
        wrong += !is_nan_e4m3(got) || (got >> 7 != 0) != std::signbit(value);
      else
        wrong += got != expected(value, DType::fp8_e4m3, 0x7f, saturate);
      wrong += converted<std::uint8_t>(DType::fp8_e4m3, value, saturate) != got;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "fp8 e5m2 from every kind of fp32 is the nearest, ties to even, and beyond the largest as saturation decides") {
  for (const bool saturate : {false, true}) {
    CAPTURE(saturate);
    std::uint64_t wrong = 0;
    for_each_float([&](float value) {
      const std::uint8_t got = fp8_e5m2_from_fp32(value, saturate);
      if (std::isnan(value))
        wrong += !is_nan_e5m2(got) || (got >> 7 != 0) != std::signbit(value);
      else
        wrong += got != expected(value, DType::fp8_e5m2, 0x7c, saturate);
      wrong += converted<std::uint8_t>(DType::fp8_e5m2, value, saturate) != got;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("every code of every narrow format has its exact value in fp32, in single and in bulk") {
  for (std::uint32_t code = 0; code <= 0xffff; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float single = fp32_from_bf16(bits);
    float bulk = 0;
    convert(DType::bf16, reinterpret_cast<const std::byte*>(&bits), DType::fp32, reinterpret_cast<std::byte*>(&bulk), 1,
            true);
    REQUIRE(std::bit_cast<std::uint32_t>(single) == code << 16);
    REQUIRE(std::bit_cast<std::uint32_t>(bulk) == code << 16);
  }
  for (const DType type : {DType::fp8_e4m3, DType::fp8_e5m2})
    for (std::uint32_t code = 0; code <= 0xff; ++code) {
      CAPTURE(static_cast<int>(type));
      CAPTURE(code);
      const auto bits = static_cast<std::uint8_t>(code);
      const bool e4m3 = type == DType::fp8_e4m3;
      const float single = e4m3 ? fp32_from_fp8_e4m3(bits) : fp32_from_fp8_e5m2(bits);
      float bulk = 0;
      convert(type, reinterpret_cast<const std::byte*>(&bits), DType::fp32, reinterpret_cast<std::byte*>(&bulk), 1,
              true);
      REQUIRE(std::bit_cast<std::uint32_t>(bulk) == std::bit_cast<std::uint32_t>(single));
      if ((code & 0x7f) <= float_format(type).largest) {
        REQUIRE(static_cast<double>(single) == float_value(code, float_format(type)));
        REQUIRE(std::signbit(single) == (code >> 7 != 0));  // -0 is -0
      } else {
        REQUIRE(std::isnan(single) == (e4m3 ? is_nan_e4m3(bits) : is_nan_e5m2(bits)));
        REQUIRE((std::isnan(single) || std::isinf(single)));
      }
    }
}

TEST_CASE("subnormals are kept, not flushed: as operands, as products, as sums") {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float least = std::numeric_limits<float>::min();  // the least normal
  const auto product = [](float a, float b, float c) {
    matmul_accumulate(DType::fp32, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b),
                      reinterpret_cast<std::byte*>(&c), 1, 1, 1);
    return c;
  };
  CHECK(product(tiny, 1.0f, 0.0f) == tiny);
  CHECK(product(least, 0.5f, 0.0f) == least / 2);
  CHECK(product(least, -0.5f, least) == least / 2);
  CHECK(product(tiny, 1.0f, tiny) == 2 * tiny);
  CHECK(product(tiny, 0.25f, 0.0f) == 0.0f);  // below half of the least
}

TEST_CASE("NaN, infinities and signed zeros pass a matmul as IEEE 754 has it") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto product = [](float a, float b, float c) {
    matmul_accumulate(DType::fp32, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b),
                      reinterpret_cast<std::byte*>(&c), 1, 1, 1);
    return c;
  };
  CHECK(std::isnan(product(nan, 0.0f, 1.0f)));
  CHECK(std::isnan(product(1.0f, 1.0f, nan)));
  CHECK(std::isnan(product(inf, 0.0f, 1.0f)));
  CHECK(std::isnan(product(inf, 1.0f, -inf)));
  CHECK(product(inf, -2.0f, 1.0f) == -inf);
  CHECK(product(3e38f, 3e38f, 0.0f) == inf);
  CHECK(std::signbit(product(-0.0f, 1.0f, -0.0f)));
  CHECK_FALSE(std::signbit(product(-0.0f, 1.0f, 0.0f)));
}

}  // namespace rdusim::conversions_test
