// Names of the parts of a program carry their chip: "down.matmul_c3". Chips do the same on their own slices, so that
// people read of "down.matmul" and of the chip beside it.
#pragma once

#include <string_view>

namespace rdusim {

// "down.matmul" of "down.matmul_c3"; a name without a chip is left as it is.
constexpr std::string_view without_chip(std::string_view name) {
  const auto at = name.rfind("_c");
  const bool numbered = at != std::string_view::npos && at + 2 < name.size() &&
                        name.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return numbered ? name.substr(0, at) : name;
}

// "reduce.recv" of "reduce.recv_c7_c3", which receives from chip 7 on chip 3.
constexpr std::string_view without_chips(std::string_view name) {
  for (;;) {
    const std::string_view shorter = without_chip(name);
    if (shorter.size() == name.size()) return name;
    name = shorter;
  }
}

}  // namespace rdusim
