#include "compiler/workload/hf_rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/workload/float_bits.h"

namespace rdusim {
namespace {

double llama3(double frequency, const RotaryScaling& s) {
  const auto positions = static_cast<double>(s.original_positions);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > positions / s.low_frequency_factor) return frequency / s.factor;
  if (wavelength < positions / s.high_frequency_factor) return frequency;
  const double near =
      (positions / wavelength - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor);
  return (1 - near) * frequency / s.factor + near * frequency;
}

// The pair, perhaps between two, that turns so often within the positions of training.
double pair_of(double turns, double theta, const DecoderConfig& c) {
  const double wavelength = static_cast<double>(c.scaling.original_positions) / turns;
  return static_cast<double>(c.rotary_columns) * std::log(wavelength / (2 * std::numbers::pi)) / (2 * std::log(theta));
}

// How much of each pair is slower: 0 to 1.
double yarn_share(std::int64_t pair, double theta, const DecoderConfig& c) {
  double first = pair_of(c.scaling.fast_turns, theta, c), last = pair_of(c.scaling.slow_turns, theta, c);
  if (c.scaling.whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(c.rotary_columns - 1));
  if (first == last) last += 0.001;  // the library's: a step
  return std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
}

double rounded(double value, DType dtype) {
  const FloatFormat format = float_format(dtype);
  return float_value(*round_to_float(value, format), format);  // near 1: never beyond
}

}  // namespace

std::vector<double> rotary_frequencies(const DecoderConfig& c, bool local, std::int64_t context) {
  std::vector<double> out;
  const double theta = local ? c.rotary_local_theta : c.rotary_theta;
  for (std::int64_t i = 0; i < c.rotary_columns / 2; ++i) {
    const double share = static_cast<double>(2 * i) / static_cast<double>(c.rotary_columns);
    double frequency = 1 / std::pow(theta, share);
    if (!local && c.scaling.kind == RotaryScalingKind::linear) frequency /= c.scaling.factor;
    if (!local && c.scaling.kind == RotaryScalingKind::llama3) frequency = llama3(frequency, c.scaling);
    if (!local && c.scaling.kind == RotaryScalingKind::yarn) {
      const double slower = yarn_share(i, theta, c);
      frequency = frequency / c.scaling.factor * slower + frequency * (1 - slower);
    }
    if (!local && c.scaling.kind == RotaryScalingKind::longrope) {
      const auto& factors = context > c.scaling.original_positions ? c.scaling.long_factors : c.scaling.short_factors;
      frequency /= factors[static_cast<std::size_t>(i)];
    }
    out.push_back(frequency);
  }
  return out;
}

RotaryTable rotary_table(const DecoderConfig& c, bool local, std::int64_t first, std::int64_t count,
                         std::int64_t repeats, DType dtype) {
  const std::vector<double> frequencies = rotary_frequencies(c, local, first + count);
  const double amplitude = local ? 1 : c.scaling.amplitude;
  RotaryTable out;
  for (std::int64_t r = 0; r < repeats; ++r) {
    for (std::int64_t p = first; p < first + count; ++p) {
      for (const double f : frequencies) {
        const double angle = static_cast<double>(p) * f;
        out.cosines.push_back(rounded(amplitude * std::cos(angle), dtype));
        out.sines.push_back(rounded(amplitude * std::sin(angle), dtype));
      }
    }
  }
  return out;
}

}  // namespace rdusim
