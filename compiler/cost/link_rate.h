// What a link between chips carries of what is given to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "compiler/support/units.h"
#include "compiler/target/target.h"

namespace rdusim::cost {

// Bytes a cycle that come whole, on average: of each transfer the share error_rate is sent again, and of that again. Where
// that is no fraction of 64 bits, as if none were.
inline Fraction carried_rate(const ChipLinkParameters& link) {
  const std::uint64_t whole = link.error_rate.den - std::min(link.error_rate.num, link.error_rate.den);
  if (link.error_rate.num == 0 || whole == 0) return link.bytes_per_cycle;
  const std::uint64_t a = std::gcd(link.bytes_per_cycle.num, link.error_rate.den);
  const std::uint64_t b = std::gcd(whole, link.bytes_per_cycle.den);
  Fraction rate;
  if (__builtin_mul_overflow(link.bytes_per_cycle.num / a, whole / b, &rate.num) ||
      __builtin_mul_overflow(link.bytes_per_cycle.den / b, link.error_rate.den / a, &rate.den))
    return link.bytes_per_cycle;
  return rate;
}

}  // namespace rdusim::cost
