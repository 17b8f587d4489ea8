// What can be written on the command line, as data: worked out from the definitions that read it, so that shell
// completion and the man page cannot say anything else.
#pragma once

#include <string>
#include <vector>

namespace rdusim::cli {

struct TreeOption {
  std::vector<std::string> names;  // "-o", "--output"; empty of one by position
  std::string place;               // by position: its name
  std::string help, standard;      // the default, where it is shown
  bool value = false;              // takes one
  bool required = false;
  bool repeats = false;
};

struct TreeCommand {
  std::string name, summary, footer;  // the footer of its help: "Example:\n  ..."
  std::vector<TreeOption> options;    // in the order of the help
  std::vector<TreeCommand> commands;
};

// The whole of it; its name is "rdusim".
TreeCommand command_tree();

// A script that the shell is to read, which completes commands, options and files. `shell`: bash, zsh or fish; nothing
// for another.
inline constexpr const char* completion_shells = "bash, zsh, fish";
std::string completion_script(const TreeCommand& tree, const std::string& shell);

// rdusim(1), in the man macros.
std::string man_page(const TreeCommand& tree);

}  // namespace rdusim::cli
