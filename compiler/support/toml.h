// toml++ (3.3), included in the one way that stands up to hostile files. A heavy header: for the one .cpp of each
// reader, never for a header. All readers must include it this way, or the linker may keep another one's copy of its
// functions.
//
//   exceptions  off: parse() gives a result
//   assertions  off, in every build: toml++ asserts (and with some compilers assumes) what a malformed file breaks,
//   such as
//               "[[[", before it reports that very fault
//   nesting     of arrays and inline tables is limited by toml++ to 256; that of dotted keys is not, and the tables
//   that they
//               make are destroyed by recursion, which overruns the stack: ask deep_toml_key() before parsing
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG  // else TOML_ASSERT_ASSUME becomes an assumption
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rdusim {

// 1-based; columns count code points, as toml++ does.
struct TomlPosition {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

// Where a key nests more than 256 tables; nothing where none does. Told by the dots that follow each other without any
// of , = [ ] { } # or a new line between them: in a string as well, and no string that rdusim takes has so many.
inline std::optional<TomlPosition> deep_toml_key(std::string_view text) {
  constexpr std::size_t most_dots = 256;
  std::size_t dots = 0;
  TomlPosition at;
  for (const char c : text) {
    if (c == '.') {
      if (++dots > most_dots) return at;
    } else if (std::string_view(",=[]{}#\n").find(c) != std::string_view::npos) {
      dots = 0;
    }
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++at.column;
    }
  }
  return std::nullopt;
}

}  // namespace rdusim
