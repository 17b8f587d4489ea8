// What the element types can hold: float formats of up to 32 bits, rounding a double to one and back; integer ranges.
//
//   bf16      1 + 8 + 7,  largest 2^127 (2 - 2^-7); fp32 cut short
//   fp8_e4m3  1 + 4 + 3,  largest 448; no infinity; NaN is S.1111.111     (OCP 8-bit Floating Point Specification 1.0)
//   fp8_e5m2  1 + 5 + 2,  largest 57344; infinity and NaN as in IEEE 754  (the same)
//   fp32      1 + 8 + 23, IEEE 754 binary32
//
// Rounding is to nearest, ties to even, subnormals included, in integer arithmetic: it does not ask the host's rounding
// mode.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "compiler/support/dtype.h"

namespace rdusim {

struct FloatFormat {
  int exponent_bits = 0;
  int fraction_bits = 0;
  std::uint32_t largest = 0;  // the code of the largest finite value

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t sign_bit() const { return std::uint32_t{1} << (exponent_bits + fraction_bits); }
};

// Requires a float dtype.
constexpr FloatFormat float_format(DType t) {
  switch (t) {
    case DType::fp8_e4m3:
      return {4, 3, 0x7E};
    case DType::fp8_e5m2:
      return {5, 2, 0x7B};
    case DType::bf16:
      return {8, 7, 0x7F7F};
    default:
      return {8, 23, 0x7F7FFFFF};
  }
}

// The code of the value nearest to `value`; nothing where that is beyond the largest finite one, or `value` is not
// finite.
constexpr std::optional<std::uint32_t> round_to_float(double value, FloatFormat format) {
  constexpr int double_fraction_bits = 52;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = bits >> 63U != 0 ? format.sign_bit() : 0;
  const int exponent_field = static_cast<int>(bits >> double_fraction_bits & 0x7FFU);
  if (exponent_field == 0x7FF) return std::nullopt;
  if (exponent_field == 0) return sign;  // zero, or far below half of the smallest subnormal of any of the formats
  const std::uint64_t significand =
      (bits & ((std::uint64_t{1} << double_fraction_bits) - 1)) | std::uint64_t{1} << double_fraction_bits;
  const int smallest = 1 - format.bias();
  int exponent = exponent_field - 1023;
  int drop = double_fraction_bits - format.fraction_bits;
  if (exponent < smallest) {
    drop += smallest - exponent;
    exponent = smallest;
  }
  if (drop > double_fraction_bits + 1) return sign;  // below half of the smallest subnormal
  std::uint64_t kept = significand >> drop;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
  // The implicit bit of a normal value adds one to the exponent field, a carry out of the fraction adds another.
  const std::int64_t code = (static_cast<std::int64_t>(exponent + format.bias() - 1) << format.fraction_bits) +
                            static_cast<std::int64_t>(kept);
  if (code > static_cast<std::int64_t>(format.largest)) return std::nullopt;
  return sign | static_cast<std::uint32_t>(code);
}

// The exact value of a code that stands for a finite value.
inline double float_value(std::uint32_t code, FloatFormat format) {
  const std::uint32_t magnitude = code & (format.sign_bit() - 1);
  const auto fraction = static_cast<double>(magnitude & ((std::uint32_t{1} << format.fraction_bits) - 1));
  const int field = static_cast<int>(magnitude >> format.fraction_bits);
  const double significand = field == 0 ? fraction : fraction + std::ldexp(1.0, format.fraction_bits);
  const int exponent = (field == 0 ? 1 : field) - format.bias() - format.fraction_bits;
  const double value = std::ldexp(significand, exponent);
  return (code & format.sign_bit()) != 0 ? -value : value;
}

// The least and the greatest value of an integer dtype.
struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  constexpr bool holds(std::int64_t v) const { return low <= v && v <= high; }
};

// Requires an integer dtype.
constexpr IntegerRange integer_range(DType t) {
  switch (t) {
    case DType::int8:
      return {-128, 127};
    case DType::int32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    default:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
}

}  // namespace rdusim
