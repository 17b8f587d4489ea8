// Element types of tensors, and what a sum of their products is kept in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rdusim {

enum class DType : std::uint8_t { int8, int32, int64, fp8_e4m3, fp8_e5m2, bf16, fp32 };

inline constexpr std::array<DType, 7> all_dtypes = {DType::int8,     DType::int32, DType::int64, DType::fp8_e4m3,
                                                    DType::fp8_e5m2, DType::bf16,  DType::fp32};

constexpr std::uint32_t bytes_of(DType t) {
  switch (t) {
    case DType::int8:
    case DType::fp8_e4m3:
    case DType::fp8_e5m2: return 1;
    case DType::bf16: return 2;
    case DType::int32:
    case DType::fp32: return 4;
    case DType::int64: return 8;
  }
  return 0;
}

constexpr bool is_integer(DType t) { return t == DType::int8 || t == DType::int32 || t == DType::int64; }

// The type that a sum of products of `t` is kept in: int8 -> int32; int32 and int64 -> themselves, two's complement
// wrap-around (so the order of an integer sum never matters); every float -> fp32.
constexpr DType accumulator_of(DType t) {
  switch (t) {
    case DType::int8:
    case DType::int32: return DType::int32;
    case DType::int64: return DType::int64;
    default: return DType::fp32;
  }
}

// "int8", "fp8_e4m3", ...; empty for what is no enumerator.
constexpr std::string_view spelled(DType t) {
  switch (t) {
    case DType::int8:
      return "int8";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::fp8_e4m3:
      return "fp8_e4m3";
    case DType::fp8_e5m2:
      return "fp8_e5m2";
    case DType::bf16:
      return "bf16";
    case DType::fp32:
      return "fp32";
  }
  return {};
}
std::string_view name_of(DType t);  // the same, but "?" for what is no enumerator
std::optional<DType> dtype_named(std::string_view name);

}  // namespace rdusim
