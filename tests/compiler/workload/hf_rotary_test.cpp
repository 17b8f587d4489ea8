// The angles of rotary embedding against the formulas that their makers published.
#include "compiler/workload/hf_rotary.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "compiler/workload/hf_config.h"

namespace rdusim::hf_rotary_test {

namespace {

DecoderConfig of(const std::string& name) {
  const auto config = read_hf_config(RDUSIM_SOURCE_DIR "/examples/" + name);
  REQUIRE(config.ok());
  return *config;
}

}  // namespace

TEST_CASE("pair i of 64 turns by theta to the power of -i / 32 a position") {
  const DecoderConfig c = of("smollm2-135m");
  const auto f = rotary_frequencies(c, false);
  REQUIRE(f.size() == 32);
  CHECK(f[0] == 1);
  for (std::size_t i = 0; i < f.size(); ++i)
    CHECK(f[i] == doctest::Approx(std::exp(-std::log(100000.0) * static_cast<double>(i) / 32)).epsilon(1e-12));
}

TEST_CASE("Llama 3.1: short waves are as they were, long ones eight times as long, those between in between") {
  DecoderConfig c = of("llama-3.1-8b");
  const auto scaled = rotary_frequencies(c, false);
  c.scaling = {};
  const auto plain = rotary_frequencies(c, false);
  std::size_t mixed = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi / plain[i];
    if (wavelength < 8192.0 / 4) {
      CHECK(scaled[i] == plain[i]);
    } else if (wavelength > 8192.0) {
      CHECK(scaled[i] == plain[i] / 8);
    } else {
      ++mixed;
      CHECK(scaled[i] < plain[i]);
      CHECK(scaled[i] > plain[i] / 8);
      CHECK(scaled[i] < scaled[i - 1]);
    }
  }
  CHECK(mixed == 6);
  // Pair 30 has a wavelength of 2,948.3: 8192 / 2948.3 = 2.7786, 0.59286 of the way from 1 to 4.
  CHECK(2 * std::numbers::pi / plain[30] == doctest::Approx(2948.3).epsilon(1e-5));
  CHECK(scaled[30] / plain[30] == doctest::Approx(0.59286 + (1 - 0.59286) / 8).epsilon(1e-5));
}

TEST_CASE("linear scaling slows every pair, and local angles are not scaled") {
  DecoderConfig c = of("smollm2-135m");
  const auto plain = rotary_frequencies(c, false);
  c.scaling = {.kind = RotaryScalingKind::linear, .factor = 4};
  c.rotary_local_theta = 10000;
  const auto slow = rotary_frequencies(c, false);
  const auto local = rotary_frequencies(c, true);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(slow[i] == plain[i] / 4);
  CHECK(local[16] == doctest::Approx(0.01).epsilon(1e-12));
}

// Ends of the ramp and shares of its pairs, worked out by hand from the paper's formulas for 64 columns.
TEST_CASE("yarn: pairs of many turns are as they were, those of few slower by the factor, a ramp between them") {
  DecoderConfig c = of("smollm2-135m");
  c.rotary_theta = 10000;
  const auto plain = rotary_frequencies(c, false);
  c.scaling.kind = RotaryScalingKind::yarn;
  c.scaling.factor = 40;
  c.scaling.original_positions = 4096;
  const auto scaled = rotary_frequencies(c, false);
  for (std::size_t i = 0; i <= 10; ++i) CHECK(scaled[i] == plain[i]);
  CHECK(scaled[11] / plain[11] == doctest::Approx(0.925).epsilon(1e-12));
  CHECK(scaled[15] / plain[15] == doctest::Approx(0.625).epsilon(1e-12));
  CHECK(scaled[22] / plain[22] == doctest::Approx(0.1).epsilon(1e-12));
  for (std::size_t i = 23; i < 32; ++i) CHECK(scaled[i] == doctest::Approx(plain[i] / 40).epsilon(1e-15));
  // Between pairs, as gpt-oss has it: from 8.0928 to 17.398.
  c.rotary_theta = 150000;
  c.scaling = {};
  const auto other = rotary_frequencies(c, false);
  c.scaling.kind = RotaryScalingKind::yarn;
  c.scaling.factor = 32;
  c.scaling.original_positions = 4096;
  c.scaling.whole_pairs = false;
  const auto ramp = rotary_frequencies(c, false);
  CHECK(ramp[8] == other[8]);
  CHECK(ramp[9] / other[9] == doctest::Approx(0.9055510956).epsilon(1e-9));
  CHECK(ramp[16] / other[16] == doctest::Approx(0.1767954617).epsilon(1e-9));
  CHECK(ramp[18] / other[18] == doctest::Approx(1.0 / 32).epsilon(1e-12));
}

TEST_CASE(
    "longrope: each pair has a factor of its own, another for contexts beyond those of training, and dynamic none") {
  DecoderConfig c = of("smollm2-135m");
  const auto plain = rotary_frequencies(c, false);
  c.scaling.kind = RotaryScalingKind::longrope;
  c.scaling.original_positions = 100;
  for (int i = 0; i < 32; ++i) {
    c.scaling.short_factors.push_back(1 + i / 64.0);
    c.scaling.long_factors.push_back(2 + i);
  }
  const auto within = rotary_frequencies(c, false, 100), beyond = rotary_frequencies(c, false, 101);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(within[i] == plain[i] / (1 + static_cast<double>(i) / 64));
    CHECK(beyond[i] == plain[i] / (2 + static_cast<double>(i)));
  }
  c.scaling = {.kind = RotaryScalingKind::dynamic};
  CHECK(rotary_frequencies(c, false, 8192) == plain);
}

TEST_CASE("what is scaled has its amplitude, and the last position of a step says how long the context is") {
  DecoderConfig c = of("smollm2-135m");
  c.scaling.kind = RotaryScalingKind::longrope;
  c.scaling.original_positions = 8;
  c.scaling.amplitude = 1.25;
  c.scaling.short_factors.assign(32, 1);
  c.scaling.long_factors.assign(32, 4);
  const RotaryTable within = rotary_table(c, false, 7, 1, 1, DType::fp32);
  CHECK(within.cosines[0] == static_cast<double>(static_cast<float>(1.25 * std::cos(7.0))));
  const RotaryTable beyond = rotary_table(c, false, 8, 1, 1, DType::fp32);
  CHECK(beyond.sines[0] == static_cast<double>(static_cast<float>(1.25 * std::sin(2.0))));
  c.rotary_local_theta = 10000;
  const RotaryTable local = rotary_table(c, true, 8, 1, 1, DType::fp32);
  CHECK(local.sines[0] == static_cast<double>(static_cast<float>(std::sin(8.0))));
}

TEST_CASE("a table has a row a position, its numbers those of the dtype") {
  const DecoderConfig c = of("smollm2-135m");
  const RotaryTable t = rotary_table(c, false, 5, 3, 2, DType::fp32);
  REQUIRE(t.cosines.size() == 2 * 3 * 32);
  CHECK(t.cosines[0] == static_cast<double>(static_cast<float>(std::cos(5.0))));
  CHECK(t.sines[32] == static_cast<double>(static_cast<float>(std::sin(6.0))));
  CHECK(t.sines[3 * 32] == t.sines[0]);  // the second sequence begins again
  const RotaryTable narrow = rotary_table(c, false, 1, 1, 1, DType::bf16);
  CHECK(narrow.cosines[0] == 0.5390625);  // cos 1 = 0.5403 to eight bits
  const RotaryTable first = rotary_table(c, false, 0, 1, 1, DType::bf16);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(first.cosines[i] == 1);
    CHECK(first.sines[i] == 0);
  }
}

}  // namespace rdusim::hf_rotary_test
