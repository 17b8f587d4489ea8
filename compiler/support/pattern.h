// Names that a user picks out by a pattern: '*' stands for any characters, everything else for itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace rdusim {

constexpr bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::pair<std::size_t, std::size_t>> star;  // behind the last one, and where its run ends so far
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = {++p, t};
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star) {
      p = star->first;  // the last star takes one character more
      t = ++star->second;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace rdusim
