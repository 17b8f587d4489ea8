#include "compiler/workload/hf_rotary.h"

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

double rounded(double value, DType dtype) {
  const FloatFormat format = float_format(dtype);
  return float_value(*round_to_float(value, format), format);  // at most 1: never beyond
}

}  // namespace

std::vector<double> rotary_frequencies(const DecoderConfig& c, bool local) {
  std::vector<double> out;
  const double theta = local ? c.rotary_local_theta : c.rotary_theta;
  for (std::int64_t i = 0; i < c.rotary_columns / 2; ++i) {
    const double share = static_cast<double>(2 * i) / static_cast<double>(c.rotary_columns);
    double frequency = 1 / std::pow(theta, share);
    if (!local && c.scaling.kind == RotaryScalingKind::linear) frequency /= c.scaling.factor;
    if (!local && c.scaling.kind == RotaryScalingKind::llama3) frequency = llama3(frequency, c.scaling);
    out.push_back(frequency);
  }
  return out;
}

RotaryTable rotary_table(const DecoderConfig& c, bool local, std::int64_t first, std::int64_t count,
                         std::int64_t repeats, DType dtype) {
  const std::vector<double> frequencies = rotary_frequencies(c, local);
  RotaryTable out;
  for (std::int64_t r = 0; r < repeats; ++r) {
    for (std::int64_t p = first; p < first + count; ++p) {
      for (const double f : frequencies) {
        const double angle = static_cast<double>(p) * f;
        out.cosines.push_back(rounded(std::cos(angle), dtype));
        out.sines.push_back(rounded(std::sin(angle), dtype));
      }
    }
  }
  return out;
}

}  // namespace rdusim
