#include "sim/cli/option_values.h"

#include <charconv>

#include "compiler/support/units.h"
#include "sim/cli/command_line.h"

namespace rdusim::cli {

std::optional<Bytes> parse_size(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789.");
  std::string_view number = text.substr(0, digits);
  std::string_view unit = digits == std::string_view::npos ? std::string_view() : text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  std::string lower;
  for (char c : unit) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::uint64_t scale = 0;
  constexpr std::string_view prefixes = "kmgt";
  if (lower.empty() || lower == "b") {
    scale = 1;
  } else if (const auto p = prefixes.find(lower.front()); p != std::string_view::npos) {
    const std::string_view rest = std::string_view(lower).substr(1);
    if (rest == "b" || rest == "ib") {
      scale = 1;
      for (std::size_t i = 0; i <= p; ++i) scale *= rest == "b" ? 1000 : 1024;
    }
  }
  const auto value = parse_decimal(number);
  if (scale == 0 || !value) return std::nullopt;
  const auto bytes = multiply(*value, Fraction{scale, 1});
  if (!bytes) return std::nullopt;
  return bytes->num / bytes->den;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return n;
}

std::optional<Assignment> assignment(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) return std::nullopt;
  return Assignment{text.substr(0, at), text.substr(at + 1)};
}

}  // namespace rdusim::cli
