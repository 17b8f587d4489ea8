#include "compiler/support/dtype.h"

namespace rdusim {

std::string_view name_of(DType t) {
  const std::string_view name = spelled(t);
  return name.empty() ? "?" : name;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (DType t : all_dtypes) {
    if (name_of(t) == name) return t;
  }
  return std::nullopt;
}

}  // namespace rdusim
