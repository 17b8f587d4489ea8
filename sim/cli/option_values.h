// Values of options that CLI11 does not read as wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/operands.h"

namespace rdusim::cli {

// Nothing for what is no number below 2^64, which CLI11 takes for 2^64 - 1.
std::optional<std::uint64_t> parse_count(std::string_view text);

// "name=file".
std::optional<Assignment> assignment(const std::string& text);

}  // namespace rdusim::cli
