// How a shape is written in messages: "32 x 14336"; "()" for no axes at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rdusim {

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return "()";
  constexpr std::size_t most = 8;
  std::string out;
  for (std::size_t i = 0; i < shape.size() && i < most; ++i) {
    if (i != 0) out += " x ";
    out += std::to_string(shape[i]);
  }
  return shape.size() > most ? out + " x ..." : out;
}

}  // namespace rdusim
