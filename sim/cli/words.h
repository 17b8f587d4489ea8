// The words of a command as data: options, where each goes, an example. So that they can stand beside their command,
// and only one source (command_line.cpp) includes CLI11.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/support/diagnostics.h"

namespace rdusim::cli {

struct OptionWords {
  std::string names;  // "--db", "-o,--output"; without dashes: by position
  std::string help;
  // Text, a flag, texts (the option may be repeated), a number.
  std::variant<std::string*, bool*, std::vector<std::string>*, std::optional<std::uint32_t>*> to;
  bool required = false;
};

struct CommandWords {
  std::string name, summary, example;
  std::vector<OptionWords> options;
  std::vector<CommandWords> commands = {};  // of which one must be chosen, where there are any
  std::string* chosen = nullptr;            // becomes the name of the chosen one of `commands`
};

// The words given do not make sense: RDU6005.
inline Diagnostics usage(const std::string& message) {
  return failure(Code::RDU6005, "rdusim", "{}", message);
}

}  // namespace rdusim::cli
