// Quantities and exact arithmetic on them.
//
// Time is counted in whole cycles of the fabric clock. A rate that does not divide is kept as an exact fraction; whoever
// uses it carries the remainder. Nothing here rounds silently and nothing overflows silently.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdusim {

using Cycle = std::uint64_t;   // a point in time
using Cycles = std::uint64_t;  // a span of time
using Bytes = std::uint64_t;

// A non-negative fraction in lowest terms; den >= 1. Used for clocks (GHz), bandwidths (bytes a cycle) and widths (ns).
struct Fraction {
  std::uint64_t num = 0;
  std::uint64_t den = 1;

  friend bool operator==(const Fraction&, const Fraction&) = default;
  friend std::strong_ordering operator<=>(const Fraction& a, const Fraction& b);
};

// In lowest terms. Requires den != 0.
Fraction make_fraction(std::uint64_t num, std::uint64_t den);

// The exact value of a decimal such as "31.25" or "1.8e3"; nothing for anything else or for what does not fit.
std::optional<Fraction> parse_decimal(std::string_view text);

// The shortest decimal of `value` taken as exact (0.85 is 17/20, not the nearest double). Nothing for negative, infinite
// or NaN.
std::optional<Fraction> exact_fraction(double value);

// a * b and a / b in lowest terms; nothing on overflow or division by zero.
std::optional<Fraction> multiply(const Fraction& a, const Fraction& b);
std::optional<Fraction> divide(const Fraction& a, const Fraction& b);

double to_double(const Fraction& f);
std::string to_string(const Fraction& f);  // "26.0416..." never: "625/24", or "64" where den is 1

// ceil(amount / rate): the cycles that `amount` takes at `rate` a cycle, at most the largest Cycles. Requires
// rate.num != 0.
Cycles ceil_div(std::uint64_t amount, const Fraction& rate);

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Overflow-checked arithmetic on sizes that come from files. Nothing on overflow.
std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b);

// "1,234,567"; bytes as "3.67 MB (3.50 MiB)", so that GB and GiB are never confused.
std::string with_commas(std::uint64_t value);
std::string format_bytes(Bytes bytes);

}  // namespace rdusim
