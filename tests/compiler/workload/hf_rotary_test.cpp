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
