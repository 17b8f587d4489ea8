#include <algorithm>
#include <numeric>

#include "compiler/target/target.h"

namespace rdusim {
namespace {

__extension__ using Wide = unsigned __int128;

// num / den as a Fraction, rounded down where it does not fit exactly: a rate that is too low by one part in 2^60 is
// still one that the memory sustains.
Fraction at_most(Wide num, Wide den) {
  constexpr Wide most = ~std::uint64_t{0};
  Wide a = num;
  Wide b = den;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  num /= a;
  den /= a;
  while (num > most || den > most) {
    num /= 2;
    den = den / 2 + den % 2;
  }
  return make_fraction(static_cast<std::uint64_t>(num), static_cast<std::uint64_t>(den));
}

}  // namespace

Fraction MemoryParameters::peak_bytes_per_cycle() const {
  return at_most(Wide{channel_bytes_per_cycle.num} * channels, channel_bytes_per_cycle.den);
}

Bytes MemoryParameters::stripe_bytes() const {
  return std::max(channels, 1u) * std::lcm(std::max<Bytes>(interleave_bytes, 1), std::max<Bytes>(row_bytes, 1));
}

Fraction MemoryParameters::sustainable_bytes_per_cycle() const {
  // A channel that streams moves row_bytes in row_bytes / rate + row_miss_cycles, and rests refresh_cycles of every
  // refresh_interval_cycles.
  const Fraction rate = channel_bytes_per_cycle;
  // A memory without rows, or without refresh, loses nothing to them.
  const Fraction row = row_bytes == 0 ? rate
                                      : at_most(Wide{row_bytes} * rate.num,
                                                Wide{row_bytes} * rate.den + Wide{row_miss_cycles} * rate.num);
  const Fraction awake = refresh_interval_cycles == 0
                             ? Fraction{1, 1}
                             : make_fraction(refresh_interval_cycles - refresh_cycles, refresh_interval_cycles);
  const Fraction channel = at_most(Wide{row.num} * awake.num, Wide{row.den} * awake.den);
  return at_most(Wide{channel.num} * channels, channel.den);
}

}  // namespace rdusim
