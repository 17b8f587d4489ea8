// Arithmetic of the cost model: exact where it fits, and never below the truth where it does not (an estimate of 2^64-1
// cycles is reported as such; it does not wrap around to a small one).
#pragma once

#include <cstdint>
#include <limits>

#include "compiler/support/units.h"

namespace rdusim::cost {

__extension__ typedef unsigned __int128 Wide;

constexpr std::uint64_t clamp(Wide v) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return v > most ? most : static_cast<std::uint64_t>(v);
}
constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return clamp(Wide{a} * b);
}
constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return clamp(Wide{a} + b);
}

// Cycles that `amount` takes at `rate` a cycle, rounded up. 0 where there is nothing to do; a rate of 0 is no limit (a
// target without that unit).
constexpr Cycles time_of(std::uint64_t amount, const Fraction& rate) {
  if (rate.num == 0) return 0;
  const Wide need = Wide{amount} * rate.den;
  return clamp(need / rate.num + (need % rate.num != 0 ? 1 : 0));
}
// The same rounded down: for bounds that must hold.
constexpr Cycles least_time_of(std::uint64_t amount, const Fraction& rate) {
  if (rate.num == 0) return 0;
  return clamp(Wide{amount} * rate.den / rate.num);
}

// amount * part / whole, rounded up; 0 where whole is 0.
constexpr std::uint64_t share_of(std::uint64_t amount, std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return 0;
  const Wide v = Wide{amount} * part;
  return clamp(v / whole + (v % whole != 0 ? 1 : 0));
}

}  // namespace rdusim::cost
