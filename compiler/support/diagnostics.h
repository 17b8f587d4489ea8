// What is said when something is wrong: a stable code, a place, one line with the limit and the actual value, notes, help.
//
//   examples/down.toml:12:1: error RDU4102 axis-not-divisible: the contraction axis of 'down' is 14336 long; ...
//   examples/down.toml:12:1: note: ...
//   help: 1, 2, 4, 7, 8, 14 or 16 chips divide it into whole tiles of 32; ...
//
// Codes are listed once, in codes.def. The first digit follows the path: 1 workload, 2 target, 3 program rules, 4 passes,
// 5 file and certificate, 6 load, 7 run, 8 traces and history, 9 the tool. A code is never reused.
//
// Nothing here prints, throws or ends the process.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rdusim {

enum class Code : std::uint16_t {
#define RDU_CODE(number, identifier, name, rule, cure) identifier = number,
#include "compiler/support/codes.def"
#undef RDU_CODE
};

struct CodeInfo {
  Code code;
  std::string_view name;  // "axis-not-divisible"
  std::string_view rule;  // one sentence
  std::string_view cure;  // what to do, for `rdusim explain`
};

const CodeInfo& info(Code code);
const std::vector<CodeInfo>& all_codes();  // in order of number

struct Note {
  std::string where;
  std::string message;
  friend bool operator==(const Note&, const Note&) = default;
};

enum class Severity : std::uint8_t { error, warning };

struct Diagnostic {
  Code code;
  Severity severity = Severity::error;
  std::string where;
  std::string message;
  std::vector<Note> notes;
  std::vector<std::string> help;

  template <class... Args>
  Diagnostic& note(std::string place, fmt::format_string<Args...> format, Args&&... args) {
    notes.push_back({std::move(place), fmt::format(format, std::forward<Args>(args)...)});
    return *this;
  }
  template <class... Args>
  Diagnostic& suggest(fmt::format_string<Args...> format, Args&&... args) {
    help.push_back(fmt::format(format, std::forward<Args>(args)...));
    return *this;
  }
};

// The text of one diagnostic, as above; ends with a newline. Where it has no help, the code's cure stands there. Control
// characters, characters that reorder text, and bytes that are not UTF-8 are escaped.
std::string to_text(const Diagnostic& d);

// Gathers all faults found, up to a limit that the text states. Keeps the order in which they were reported; a warning
// makes room for an error. In its text, a code's cure stands once.
class Diagnostics {
 public:
  static constexpr std::size_t limit = 50;  // what to_text prints; the count goes on

  template <class... Args>
  Diagnostic& error(Code code, std::string where, fmt::format_string<Args...> format, Args&&... args) {
    return add({code, Severity::error, std::move(where), fmt::format(format, std::forward<Args>(args)...), {}, {}});
  }
  template <class... Args>
  Diagnostic& warning(Code code, std::string where, fmt::format_string<Args...> format, Args&&... args) {
    return add({code, Severity::warning, std::move(where), fmt::format(format, std::forward<Args>(args)...), {}, {}});
  }
  Diagnostic& add(Diagnostic d);
  void append(const Diagnostics& other);

  bool has_errors() const { return errors_ != 0; }
  bool empty() const { return total_ == 0; }
  std::size_t error_count() const { return errors_; }
  bool contains(Code code) const;
  const std::vector<Diagnostic>& list() const { return list_; }

  std::string to_text() const;

 private:
  std::vector<Diagnostic> list_;  // the first `limit` of them
  Diagnostic overflow_{};         // where further ones are written to and forgotten
  std::size_t total_ = 0;
  std::size_t errors_ = 0;
};

// One fault alone, as what a function gives instead of its result.
template <class... Args>
Diagnostics failure(Code code, std::string where, fmt::format_string<Args...> format, Args&&... args) {
  Diagnostics out;
  out.error(code, std::move(where), format, std::forward<Args>(args)...);
  return out;
}

}  // namespace rdusim
