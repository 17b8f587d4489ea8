#include "compiler/support/elementary.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/support/split_mix.h"

namespace rdusim::elementary_test {

namespace {

// Units in the last place between two floats of one sign.
std::int64_t ulps(float a, float b) {
  return std::abs(std::int64_t{std::bit_cast<std::int32_t>(a)} - std::int64_t{std::bit_cast<std::int32_t>(b)});
}

// The worst distance from the C library's double, rounded, over every bf16 and 300,000 other floats.
template <class F, class G>
std::int64_t worst(F ours, G library) {
  std::int64_t most = 0;
  const auto look = [&](std::uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    const float mine = ours(x), theirs = static_cast<float>(library(double{x}));
    if (std::isnan(theirs)) {
      CHECK(std::bit_cast<std::uint32_t>(mine) == 0x7FC00000u);
      return;
    }
    if (std::signbit(mine) != std::signbit(theirs)) {
      FAIL_CHECK("the sign of f(" << x << ")");
      return;
    }
    most = std::max(most, ulps(mine, theirs));
  };
  for (std::uint32_t high = 0; high < 1u << 16; ++high) look(high << 16);
  for (std::uint64_t i = 0; i < 300000; ++i) look(static_cast<std::uint32_t>(split_mix_64(7, i)));
  return most;
}

}  // namespace

TEST_CASE("exp, tanh and erf are within a unit in the last place of the C library's") {
  CHECK(worst(exp_fp32, [](double x) { return std::exp(x); }) <= 1);
  CHECK(worst(tanh_fp32, [](double x) { return std::tanh(x); }) <= 1);
  CHECK(worst(erf_fp32, [](double x) { return std::erf(x); }) <= 1);
}

TEST_CASE("elementary functions at the ends of their range") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(exp_fp32(-infinity) == 0);
  CHECK_FALSE(std::signbit(exp_fp32(-infinity)));
  CHECK(exp_fp32(infinity) == infinity);
  CHECK(exp_fp32(0) == 1);
  CHECK(exp_fp32(-103.9f) == std::numeric_limits<float>::denorm_min());
  CHECK(tanh_fp32(infinity) == 1);
  CHECK(tanh_fp32(-infinity) == -1);
  CHECK(std::signbit(tanh_fp32(-0.0f)));
  CHECK(erf_fp32(infinity) == 1);
  CHECK(erf_fp32(-infinity) == -1);
  CHECK(std::signbit(erf_fp32(-0.0f)));
}

// Pinned: these bits are part of what a program means.
TEST_CASE("elementary functions give the same bits everywhere") {
  CHECK(std::bit_cast<std::uint32_t>(exp_fp32(1.0f)) == 0x402DF854u);
  CHECK(std::bit_cast<std::uint32_t>(exp_fp32(-0.7f)) == 0x3EFE406Eu);
  CHECK(std::bit_cast<std::uint32_t>(tanh_fp32(0.5f)) == 0x3EEC9A9Fu);
  CHECK(std::bit_cast<std::uint32_t>(erf_fp32(0.5f)) == 0x3F053F7Bu);
  CHECK(std::bit_cast<std::uint32_t>(erf_fp32(2.5f)) == 0x3F7FE554u);
}

}  // namespace rdusim::elementary_test
