// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): the same numbers
// on every computer. Its state is a counter, so that any output can be had by itself.
#pragma once

#include <cstdint>

namespace rdusim {

// Output number p, counted from 0, of the generator started at `seed`.
constexpr std::uint64_t split_mix_64(std::uint64_t seed, std::uint64_t p) {
  std::uint64_t z = seed + (p + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// The next output of the generator in state `state`, which moves on.
constexpr std::uint64_t draw(std::uint64_t& state) {
  const std::uint64_t output = split_mix_64(state, 0);
  state += 0x9E3779B97F4A7C15U;
  return output;
}

// The same, uniform in [0, n) but for a bias below n / 2^64. Requires n >= 1.
constexpr std::uint32_t draw_below(std::uint64_t& state, std::uint32_t n) {
  // The high half of the 96-bit product.
  const std::uint64_t z = draw(state);
  return static_cast<std::uint32_t>(((z >> 32U) * n + ((z & 0xFFFFFFFFU) * n >> 32U)) >> 32U);
}

}  // namespace rdusim
