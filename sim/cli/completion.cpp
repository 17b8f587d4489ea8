#include <fmt/format.h>

#include <functional>

#include "sim/cli/command_tree.h"

namespace rdusim::cli {

namespace {

// Every command with the words that lead to it: "", "compile", "history add".
void each(const TreeCommand& c, const std::string& path,
          const std::function<void(const std::string&, const TreeCommand&)>& call) {
  call(path, c);
  for (const TreeCommand& below : c.commands) each(below, path.empty() ? below.name : path + " " + below.name, call);
}

// Names of options (those that take a value, or all), of commands; with blanks between.
std::string option_names(const TreeCommand& c, bool only_with_value) {
  std::string out;
  for (const TreeOption& o : c.options) {
    if (only_with_value && !o.value) continue;
    for (const std::string& name : o.names) out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

std::string command_names(const TreeCommand& c) {
  std::string out;
  for (const TreeCommand& below : c.commands) out += (out.empty() ? "" : " ") + below.name;
  return out;
}

// Within single quotes of a shell: what a quote would end is left out of and taken up again. fish has its own way.
std::string quoted_text(const std::string& text, const char* quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += quote;
    else if (c == '\\' && std::string_view(quote) == "\\'")
      out += "\\\\";
    else
      out += c;
  }
  return out + "'";
}

std::string bash_script(const TreeCommand& tree) {
  std::string steps, cases;
  each(tree, "", [&](const std::string& path, const TreeCommand& c) {
    for (const TreeCommand& below : c.commands) {
      const std::string next = path.empty() ? below.name : path + " " + below.name;
      steps += fmt::format("      '{} {}') command='{}' ;;\n", path, below.name, next);
    }
    cases += fmt::format("    '{}') commands='{}' options='{}' values='{}' ;;\n", path, command_names(c),
                         option_names(c, false), option_names(c, true));
  });
  return fmt::format(
      "# Completion of rdusim for bash; `rdusim completion bash` writes it. To have it now:\n"
      "#   source <(rdusim completion bash)\n"
      "_rdusim() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local command= commands= options= values= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$command ${{COMP_WORDS[i]}}\" in\n"
      "{}"
      "    esac\n"
      "  done\n"
      "  case \"$command\" in\n"
      "{}"
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if [[ \" $values \" == *\" $before \"* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  elif [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "  elif [[ -n $commands ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _rdusim rdusim\n",
      steps, cases);
}

// What zsh's _arguments takes for special in an option's words.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string zsh_function(const std::string& path, const TreeCommand& c) {
  std::string name = "_rdusim";
  for (const char ch : path.empty() ? path : " " + path) name += ch == ' ' ? '_' : ch;
  std::string out = name + "() {\n  _arguments -s";
  for (const TreeOption& o : c.options) {
    for (const std::string& option : o.names)
      out += " \\\n    " + quoted_text(fmt::format("{}{}[{}]{}", o.repeats ? "*" : "", option, zsh_text(o.help),
                                                   o.value ? ":value:_files" : ""),
                                       "'\\''");
  }
  if (c.commands.empty()) return out + " \\\n    '*:file:_files'\n}\n";
  out += " \\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command) local -a commands=(";
  for (const TreeCommand& below : c.commands)
    out += "\n      " + quoted_text(below.name + ":" + zsh_text(below.summary), "'\\''");
  out += ")\n      _describe command commands ;;\n    argument) case $words[1] in\n";
  for (const TreeCommand& below : c.commands) out += fmt::format("      {}) {}_{} ;;\n", below.name, name, below.name);
  return out + "    esac ;;\n  esac\n}\n";
}

std::string zsh_script(const TreeCommand& tree) {
  std::string functions;
  each(tree, "", [&](const std::string& path, const TreeCommand& c) {
    std::string one = zsh_function(path, c);
    // _arguments leaves the state behind for the caller to look at.
    if (!c.commands.empty()) one.insert(one.find('\n') + 1, "  local state line context\n  typeset -A opt_args\n");
    functions += one;
  });
  return "#compdef rdusim\n# Completion of rdusim for zsh; `rdusim completion zsh` writes it, into a folder of "
         "$fpath.\n" +
         functions + "if [[ $funcstack[1] == _rdusim ]]; then _rdusim \"$@\"; else compdef _rdusim rdusim; fi\n";
}

std::string fish_script(const TreeCommand& tree) {
  std::string out =
      "# Completion of rdusim for fish; `rdusim completion fish` writes it, for "
      "~/.config/fish/completions/rdusim.fish.\n";
  each(tree, "", [&](const std::string& path, const TreeCommand& c) {
    // Of a command: that its words were seen, and of what is below it none yet.
    std::string when;
    for (std::size_t from = 0; from < path.size();) {
      const std::size_t end = std::min(path.find(' ', from), path.size());
      when +=
          fmt::format("{}__fish_seen_subcommand_from {}", when.empty() ? "" : "; and ", path.substr(from, end - from));
      from = end + 1;
    }
    if (path.empty()) when = "__fish_use_subcommand";
    if (!path.empty() && !c.commands.empty()) when += "; and not __fish_seen_subcommand_from " + command_names(c);
    for (const TreeCommand& below : c.commands)
      out += fmt::format("complete -c rdusim -n {} -f -a {} -d {}\n", quoted_text(when, "\\'"), below.name,
                         quoted_text(below.summary, "\\'"));
    for (const TreeOption& o : c.options) {
      if (o.names.empty()) continue;
      std::string names;
      for (const std::string& n : o.names) names += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
      out += fmt::format("complete -c rdusim -n {}{}{} -d {}\n", quoted_text(when, "\\'"), names, o.value ? " -r" : "",
                         quoted_text(o.help, "\\'"));
    }
  });
  return out;
}

}  // namespace

std::string completion_script(const TreeCommand& tree, const std::string& shell) {
  if (shell == "bash") return bash_script(tree);
  if (shell == "zsh") return zsh_script(tree);
  return shell == "fish" ? fish_script(tree) : std::string();
}

}  // namespace rdusim::cli
