// UTF-8, decoded strictly: no overlong form, no surrogate, nothing beyond U+10FFFF.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rdusim {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // in bytes, 1 to 4
};

// The code point at the front of `text`; nothing where the bytes are malformed or there are none.
constexpr std::optional<CodePoint> first_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::uint32_t lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return std::nullopt;
  std::uint32_t value = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint32_t next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return std::nullopt;
    value = value << 6U | (next & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return std::nullopt;
  return CodePoint{value, length};
}

// What moves the cursor, changes colours, or reorders what is read: it must not come from a file into a terminal.
constexpr bool is_hostile(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x200E || c == 0x200F || c == 0x2028 || c == 0x2029;
}

// UTF-8 without a hostile character: what a name may be made of.
constexpr bool is_plain(std::string_view text) {
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point || is_hostile(point->value)) return false;
    text.remove_prefix(point->length);
  }
  return true;
}

}  // namespace rdusim
