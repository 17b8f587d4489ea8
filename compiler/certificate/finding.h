// The outcome of one obligation, and exact arithmetic for finding it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "compiler/ir/certificate.h"

namespace rdusim::certificate {

struct Finding {
  ProofStatus status = ProofStatus::proved;
  std::string reason;
};

template <class... Args>
Finding refuted(fmt::format_string<Args...> format, Args&&... args) {
  return {ProofStatus::refuted, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Finding unchecked(fmt::format_string<Args...> format, Args&&... args) {
  return {ProofStatus::unchecked, fmt::format(format, std::forward<Args>(args)...)};
}

// A count that left 64 bits stays at the greatest number, which no honest count reaches.
inline constexpr std::uint64_t too_many = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? too_many : r;
}
constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? too_many : r;
}

// Whole cycles that `amount` takes at least, at `rate` a cycle. Requires rate.num != 0.
constexpr std::uint64_t least_cycles(std::uint64_t amount, std::uint64_t num, std::uint64_t den) {
  __extension__ using Wide = unsigned __int128;
  const Wide v = Wide{amount} * den / num;
  return v > too_many ? too_many : static_cast<std::uint64_t>(v);
}

}  // namespace rdusim::certificate
