#include "compiler/support/dtype.h"

namespace rdusim {

std::string_view name_of(DType t) {
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
  return "?";
}

std::optional<DType> dtype_named(std::string_view name) {
  for (DType t : all_dtypes) {
    if (name_of(t) == name) return t;
  }
  return std::nullopt;
}

}  // namespace rdusim
