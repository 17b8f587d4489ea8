#include "compiler/support/elementary.h"

#include <cmath>
#include <limits>

namespace rdusim {
namespace {

// exp of |x| <= 745 in double, relative error below 1e-15: x = n ln 2 + r with |r| <= ln 2 / 2, and 14 terms of the
// series.
double exp_in_double(double x) {
  constexpr double log2_e = 0x1.71547652b82fep0;
  constexpr double ln2_high = 0x1.62e42fefa38p-1;  // n ln2_high is exact for |n| < 2^11
  constexpr double ln2_low = 0x1.ef35793c7673p-45;
  const double n = std::nearbyint(x * log2_e);
  const double r = (x - n * ln2_high) - n * ln2_low;
  double sum = 1;
  for (int term = 14; term > 0; --term) sum = 1 + sum * r / term;
  return std::ldexp(sum, static_cast<int>(n));
}

// 1 - erf(x) for x >= 2, by the continued fraction of the complementary error function.
double complement(double x) {
  constexpr double inverse_sqrt_pi = 0x1.20dd750429b6dp-1;
  const double v = 1 / (2 * x * x);
  double fraction = 1;
  for (int level = 60; level > 0; --level) fraction = 1 + level * v / fraction;
  return exp_in_double(-x * x) * inverse_sqrt_pi / (x * fraction);
}

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

float exp_fp32(float x) {
  if (std::isnan(x)) return quiet_nan;
  if (x > 89) return std::numeric_limits<float>::infinity();  // exp(88.73) is beyond the greatest float
  if (x < -104) return 0;                                     // exp(-103.98) is below half the least
  return static_cast<float>(exp_in_double(x));
}

float tanh_fp32(float x) {
  if (std::isnan(x)) return quiet_nan;
  const double a = std::fabs(double{x});
  double t = 1;
  if (a < 0x1p-6) {
    const double s = a * a;
    t = a + a * s * (s * (2.0 / 15) - 1.0 / 3);
  } else if (a < 10) {
    t = 1 - 2 / (exp_in_double(2 * a) + 1);
  }
  return std::copysign(static_cast<float>(t), x);
}

float erf_fp32(float x) {
  if (std::isnan(x)) return quiet_nan;
  constexpr double two_over_sqrt_pi = 0x1.20dd750429b6dp0;
  const double a = std::fabs(double{x});
  double e = 1;
  if (a < 2) {
    const double s = a * a;
    double power = a, sum = a;  // a^(2n + 1) / n!, without its sign
    for (int n = 1; n <= 40; ++n) {
      power = power * s / n;
      sum += (n % 2 == 0 ? power : -power) / (2 * n + 1);
    }
    e = two_over_sqrt_pi * sum;
  } else if (a < 5) {
    e = 1 - complement(a);
  }
  return std::copysign(static_cast<float>(e), x);
}

}  // namespace rdusim
