// A value worked out in double, and how far fp32 arithmetic may lie from it: running error analysis.
//
// Invariant: whoever does the same steps in fp32, each rounded on its own, is within `error` of `value`, unless it
// overflowed; then `error` is infinite or NaN, which says nothing. Laws (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., sections 2.2, 3.1 and 3.3), with u = 2^-24:
//
//   a + b, a - b   e_a + e_b, and u (|r| + that) for the rounding
//   a b            |a| e_b + |b| e_a + e_a e_b, and the rounding
//   a / b          (e_a + |a / b| e_b) / (|b| - e_b), and the rounding
//   sqrt a         e_a / sqrt a, or sqrt(a + e_a) where a is smaller than e_a, and the rounding
//   exp a          exp(a) (exp(e_a) - 1), and 2 u for the function (elementary.h: 1 unit in the last place)
//   tanh a         e_a times the greatest slope within e_a of a, which is at most 4 exp(-2 |a|)
//   erf a          the same, at most 2 / sqrt(pi) exp(-a a); both: and 2 u
//   a sum of n     the sum of errors, and gamma(n - 1) = (n - 1) u / (1 - (n - 1) u) times the sum of |x| + e: in any order
//   a dot product  gamma(n) times the sum of |a b|: in any order
//   max, min       the greater of both
//
// A rounding in the subnormal range adds at most 2^-149. What double itself rounds, 2^-53, is 2^29 times less than any
// of this and is covered by counting a rounding as 1.001 u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "compiler/support/elementary.h"

namespace rdusim::reference {

constexpr double unit_roundoff = 0x1p-24 * 1.001;

// n u / (1 - n u); infinite where that says nothing.
inline double gamma(double n) {
  const double nu = n * unit_roundoff;
  return nu < 1 ? nu / (1 - nu) : std::numeric_limits<double>::infinity();
}

// Of a sum of n products whose magnitudes add up to `magnitude`, in any order.
inline double dot_product_error(std::size_t n, double magnitude) {
  const auto terms = static_cast<double>(n);
  return gamma(terms) * magnitude + terms * 0x1p-149;
}

struct Bounded {
  double value = 0;
  double error = 0;
};

// `value` as `roundings` roundings leave it, after an error that was there.
inline Bounded rounded_to(double value, double error, int roundings = 1) {
  constexpr double greatest = 0x1.fffffep127;
  if (!(std::fabs(value) + error < greatest) && std::isfinite(value))
    return {value, std::numeric_limits<double>::infinity()};
  return {value, error + roundings * unit_roundoff * (std::fabs(value) + error) + 0x1p-149};
}

inline Bounded operator-(Bounded a) {
  return {-a.value, a.error};
}
inline Bounded operator+(Bounded a, Bounded b) {
  return rounded_to(a.value + b.value, a.error + b.error);
}
inline Bounded operator-(Bounded a, Bounded b) {
  return rounded_to(a.value - b.value, a.error + b.error);
}
inline Bounded operator*(Bounded a, Bounded b) {
  return rounded_to(a.value * b.value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
}
inline Bounded operator/(Bounded a, Bounded b) {
  const double r = a.value / b.value;
  const double least = std::fabs(b.value) - b.error;
  if (b.error == 0) return rounded_to(r, a.error == 0 ? 0 : a.error / std::fabs(b.value));
  if (!(least > 0)) return {r, std::numeric_limits<double>::infinity()};
  return rounded_to(r, (a.error + std::fabs(r) * b.error) / least);
}

// ---- what formulas are written with: the same for float, which gives the bits, and for Bounded

template <class T>
T constant(double c);
template <>
inline float constant<float>(double c) {
  return static_cast<float>(c);
}
template <>
inline Bounded constant<Bounded>(double c) {
  return static_cast<double>(static_cast<float>(c)) == c ? Bounded{c, 0} : rounded_to(c, 0);
}

inline float exp_of(float x) {
  return exp_fp32(x);
}
inline float tanh_of(float x) {
  return tanh_fp32(x);
}
inline float erf_of(float x) {
  return erf_fp32(x);
}
inline float sqrt_of(float x) {
  return std::sqrt(x);
}
inline float abs_of(float x) {
  return std::fabs(x);
}
// A NaN on either side gives NaN, and +0 is greater than -0.
inline float max_of(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline float min_of(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

inline Bounded exp_of(Bounded x) {
  const double r = std::exp(x.value);
  return rounded_to(r, x.error == 0 ? 0 : r * std::expm1(x.error), 2);
}
inline Bounded tanh_of(Bounded x) {
  const double nearest = std::max(std::fabs(x.value) - x.error, 0.0);
  return rounded_to(std::tanh(x.value), x.error * std::min(1.0, 4 * std::exp(-2 * nearest)), 2);
}
inline Bounded erf_of(Bounded x) {
  const double nearest = std::max(std::fabs(x.value) - x.error, 0.0);
  return rounded_to(std::erf(x.value), 1.1284 * x.error * std::exp(-nearest * nearest), 2);
}
inline Bounded sqrt_of(Bounded x) {
  const double r = std::sqrt(x.value);
  if (x.error == 0) return rounded_to(r, 0);
  return rounded_to(r, x.value > x.error ? x.error / r : std::sqrt(x.value + x.error));
}
inline Bounded abs_of(Bounded x) {
  return {std::fabs(x.value), x.error};
}
inline Bounded max_of(Bounded a, Bounded b) {
  if (std::isnan(a.value) || std::isnan(b.value)) return {std::nan(""), 0};
  return {std::max(a.value, b.value), std::max(a.error, b.error)};
}
inline Bounded min_of(Bounded a, Bounded b) {
  if (std::isnan(a.value) || std::isnan(b.value)) return {std::nan(""), 0};
  return {std::min(a.value, b.value), std::max(a.error, b.error)};
}

// The first element and then the others, one by one. Requires one at least.
inline float sum_of(std::span<const float> x) {
  float sum = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
  return sum;
}
inline Bounded sum_of(std::span<const Bounded> x) {
  double sum = 0, error = 0, magnitude = 0;
  for (const Bounded& each : x) {
    sum += each.value;
    error += each.error;
    magnitude += std::fabs(each.value) + each.error;
  }
  if (!(magnitude < 0x1.fffffep127) && std::isfinite(sum)) return {sum, std::numeric_limits<double>::infinity()};
  return {sum, x.size() == 1 ? error : error + gamma(static_cast<double>(x.size() - 1)) * magnitude};
}

}  // namespace rdusim::reference
