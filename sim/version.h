// The version of rdusim, as reports and `--version` state it; the project's version in CMakeLists.txt.
#pragma once

#include <string_view>

namespace rdusim {

inline constexpr std::string_view version = "0.1.0";

}  // namespace rdusim
