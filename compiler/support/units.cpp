#include "compiler/support/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace rdusim {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t max64 = std::numeric_limits<std::uint64_t>::max();

std::optional<Fraction> reduced(Wide num, Wide den) {
  if (den == 0) return std::nullopt;
  Wide a = num;
  Wide b = den;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  num /= a;
  den /= a;
  if (num > max64 || den > max64) return std::nullopt;
  return Fraction{static_cast<std::uint64_t>(num), static_cast<std::uint64_t>(den)};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The decimal exponent, clamped: beyond a few hundred nothing but zero fits a Fraction.
std::optional<int> parse_exponent(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  int value = 0;
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = std::min(value * 10 + (c - '0'), 100000);
  }
  return negative ? -value : value;
}

}  // namespace

std::strong_ordering operator<=>(const Fraction& a, const Fraction& b) {
  return Wide{a.num} * b.den <=> Wide{b.num} * a.den;
}

Fraction make_fraction(std::uint64_t num, std::uint64_t den) {
  const std::uint64_t divisor = std::gcd(num, den);
  return divisor == 0 ? Fraction{} : Fraction{num / divisor, den / divisor};
}

std::optional<Fraction> parse_decimal(std::string_view text) {
  int exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto parsed = parse_exponent(text.substr(e + 1));
    if (!parsed) return std::nullopt;
    exponent = *parsed;
    text = text.substr(0, e);
  }
  std::string_view whole = text;
  std::string_view part;
  if (const auto point = text.find('.'); point != std::string_view::npos) {
    whole = text.substr(0, point);
    part = text.substr(point + 1);
    if (part.empty()) return std::nullopt;
  }
  if (whole.empty() || text.size() > 4096) return std::nullopt;

  std::string digits(whole);
  digits += part;
  for (char c : digits) {
    if (!is_digit(c)) return std::nullopt;
  }
  exponent -= static_cast<int>(part.size());
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) return Fraction{};

  // 10^38 is the largest power of ten that 128 bits hold; with more digits or a larger power nothing fits.
  constexpr int most = 38;
  if (static_cast<int>(digits.size()) > most || exponent > most || exponent < -most) return std::nullopt;
  Wide num = 0;
  for (char c : digits) num = num * 10 + static_cast<unsigned>(c - '0');
  Wide den = 1;
  for (int i = 0; i < -exponent; ++i) den *= 10;
  for (int i = 0; i < exponent; ++i) {
    if (num > max64) return std::nullopt;
    num *= 10;
  }
  return reduced(num, den);
}

std::optional<Fraction> exact_fraction(double value) {
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  if (value == 0) return Fraction{};
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return parse_decimal({text.data(), static_cast<std::size_t>(end.ptr - text.data())});
}

std::optional<Fraction> multiply(const Fraction& a, const Fraction& b) {
  return reduced(Wide{a.num} * b.num, Wide{a.den} * b.den);
}

std::optional<Fraction> divide(const Fraction& a, const Fraction& b) {
  return reduced(Wide{a.num} * b.den, Wide{a.den} * b.num);
}

double to_double(const Fraction& f) {
  return static_cast<double>(f.num) / static_cast<double>(f.den);
}

std::string to_string(const Fraction& f) {
  return f.den == 1 ? fmt::format("{}", f.num) : fmt::format("{}/{}", f.num, f.den);
}

Cycles ceil_div(std::uint64_t amount, const Fraction& rate) {
  const Wide scaled = Wide{amount} * rate.den;
  const Wide cycles = scaled / rate.num + (scaled % rate.num != 0 ? 1 : 0);
  return cycles > max64 ? max64 : static_cast<Cycles>(cycles);
}

std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

std::string with_commas(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string format_bytes(Bytes bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const auto scaled = [bytes](double step, const std::array<std::string_view, 6>& names) {
    double value = static_cast<double>(bytes) / step;
    std::size_t name = 0;
    // 999.995 and above would print as 1000.00.
    while (value >= step - 0.005 && name + 1 < names.size()) {
      value /= step;
      ++name;
    }
    return fmt::format("{:.2f} {}", value, names[name]);
  };
  return fmt::format("{} ({})", scaled(1000, {"kB", "MB", "GB", "TB", "PB", "EB"}),
                     scaled(1024, {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}));
}

}  // namespace rdusim
