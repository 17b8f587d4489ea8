// Shell completion and the man page: every option of every command, as --help has them, and what shells make of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/system/command.h"

namespace rdusim::test::words_test {
namespace {

// Words of a command, as `rdusim WORDS --help` lists them.
struct Helped {
  std::vector<std::string> options, commands;
};

Helped help_of(std::vector<std::string> words, const Folder& folder) {
  words.push_back("--help");
  std::istringstream text(rdusim_ok(words, folder).out);
  Helped h;
  bool commands = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "Subcommands:") commands = true;
    if (line.starts_with("Example")) break;
    if (!line.starts_with("  ") || line[2] == ' ') continue;
    const std::string word = line.substr(2, line.find(' ', 2) - 2);
    if (commands) h.commands.push_back(word);
    if (word[0] != '-') continue;
    std::istringstream names(word);
    for (std::string name; std::getline(names, name, ',');) h.options.push_back(name);
  }
  return h;
}

// By the words that lead there: "", "compile", "history add".
void gather(const std::string& path, const std::vector<std::string>& words, const Folder& folder,
            std::map<std::string, Helped>& into) {
  const Helped h = into[path] = help_of(words, folder);
  for (const std::string& command : h.commands) {
    std::vector<std::string> below = words;
    below.push_back(command);
    gather(path.empty() ? command : path + " " + command, below, folder, into);
  }
}

const std::map<std::string, Helped>& all_words() {
  static const std::map<std::string, Helped> words = [] {
    const Folder folder;
    std::map<std::string, Helped> all;
    gather("", {}, folder, all);
    return all;
  }();
  return words;
}

// The part of `text` from the line that begins with `head` (and no word after it) to the next line that begins with one
// of `ends`.
std::string part(const std::string& text, const std::string& head, const std::vector<std::string>& ends) {
  std::istringstream lines(text);
  std::string out;
  bool in = false;
  for (std::string line; std::getline(lines, line);) {
    if (in && std::any_of(ends.begin(), ends.end(), [&](const auto& e) { return line.starts_with(e); })) break;
    in = in || (line.starts_with(head) && (line.size() == head.size() || line[head.size()] != ' '));
    if (in) out += line + "\n";
  }
  return out;
}

std::string with_dashes(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '-' ? std::string("\\-") : std::string(1, c);
  return out;
}

TEST_CASE("--help lists the commands and options that are looked for here") {
  const auto& words = all_words();
  REQUIRE(words.size() > 30);
  CHECK(words.at("").commands.size() >= 18);
  for (const auto& [path, h] : words) {
    CAPTURE(path);
    CHECK(std::count(h.options.begin(), h.options.end(), "--help") == 1);
  }
  const auto& compile = words.at("compile").options;
  CHECK(std::count(compile.begin(), compile.end(), "-o") == 1);
  CHECK(std::count(compile.begin(), compile.end(), "--collective") == 1);
  CHECK(words.contains("history add"));
}

TEST_CASE("the man page has every option of every command, and groff sets it without a warning") {
  const Folder folder;
  const std::string page = rdusim_ok({"man"}, folder).out;
  for (const auto& [path, h] : all_words()) {
    CAPTURE(path);
    const std::string section = path.empty() ? page.substr(0, page.find(".SH COMMANDS"))
                                             : part(page, ".SS " + with_dashes("rdusim " + path), {".SS "});
    for (const std::string& option : h.options) {
      CAPTURE(option);
      CHECK(section.find("\\fB" + with_dashes(option) + "\\fR") != std::string::npos);
    }
  }
  folder.write("rdusim.1", page);
  const Outcome set = shell("command -v groff >/dev/null || exit 0; groff -man -ww -z -Tutf8 rdusim.1 2>&1", folder);
  CHECK(set.status == 0);
  CHECK(set.out.empty());
  const Outcome read = shell("command -v groff >/dev/null || exit 0; groff -man -Tutf8 -P-cbou rdusim.1", folder);
  if (!read.out.empty()) {
    CHECK(read.out.find("  rdusim compile ") != std::string::npos);
    CHECK(read.out.find("--max-memory VALUE") != std::string::npos);
    CHECK(read.out.find("verdict == \"pass\"'") != std::string::npos);
  }
}

TEST_CASE("the scripts of all shells have every option of every command") {
  const Folder folder;
  const std::string bash = rdusim_ok({"completion", "bash"}, folder).out;
  const std::string zsh = rdusim_ok({"completion", "zsh"}, folder).out;
  const std::string fish = rdusim_ok({"completion", "fish"}, folder).out;
  for (const auto& [path, h] : all_words()) {
    CAPTURE(path);
    const std::string in_bash = part(bash, "    '" + path + "') commands=", {"    '", "  esac"}) + " ";
    std::string function = "_rdusim";
    for (const char c : path.empty() ? path : " " + path) function += c == ' ' ? '_' : c;
    const std::string in_zsh = part(zsh, function + "() {", {"}"});
    for (const std::string& option : h.options) {
      CAPTURE(option);
      CHECK((in_bash.find(" " + option + " ") != std::string::npos ||
             in_bash.find("'" + option + " ") != std::string::npos ||
             in_bash.find(" " + option + "'") != std::string::npos));
      CHECK((in_zsh.find("'" + option + "[") != std::string::npos ||
             in_zsh.find("'*" + option + "[") != std::string::npos));
      const std::string flag =
          option.starts_with("--") ? " -l " + option.substr(2) + " " : " -s " + option.substr(1) + " ";
      std::istringstream lines(fish);
      bool found = false;
      const std::string last = path.substr(path.rfind(' ') + 1);
      for (std::string line; std::getline(lines, line);)
        found = found || (line.find(flag) != std::string::npos &&
                          line.find(path.empty() ? "__fish_use_subcommand" : "_from " + last) != std::string::npos);
      CHECK(found);
    }
  }
  for (const auto& [name, script] : {std::pair{"bash", bash}, {"zsh", zsh}, {"fish", fish}}) {
    CAPTURE(name);
    folder.write(name, script);
    const std::string read = std::string(name) + " -n ./" + name;
    const Outcome o = shell("command -v " + std::string(name) + " >/dev/null || exit 0; " + read + " 2>&1", folder);
    CHECK(o.status == 0);
    CHECK(o.out.empty());
  }
}

TEST_CASE("bash completes commands, options of the command that is written, and files") {
  const Folder folder;
  folder.write("model.toml", "");
  const auto completed = [&](const std::string& words) {
    return shell("source <($rdusim completion bash); COMP_WORDS=(" + words +
                     "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rdusim; echo \"${COMPREPLY[*]}\"",
                 folder)
        .out;
  };
  CHECK(completed("rdusim comp") == "compile compare completion\n");
  CHECK(completed("rdusim compile --col") == "--collective\n");
  CHECK(completed("rdusim run --col") == "--collect-violations\n");
  CHECK(completed("rdusim compile mo") == "model.toml\n");
  CHECK(completed("rdusim compile --target mo") == "model.toml\n");
  CHECK(completed("rdusim history ga") == "gate\n");
  CHECK(completed("rdusim history gate --ju") == "--junit\n");
  CHECK(completed("rdusim sweep plan.toml --sens") == "--sensitivity\n");
}

TEST_CASE("fish completes the same, where it is there") {
  const Folder folder;
  const auto completed = [&](const std::string& words) {
    return shell(
               "command -v fish >/dev/null || { echo none; exit; }; $rdusim completion fish > words.fish; "
               "HOME=$PWD XDG_CONFIG_HOME=$PWD fish -c 'source words.fish; complete -C \"" +
                   words + "\"' | cut -f1 | tr '\\n' ' '",
               folder)
        .out;
  };
  if (completed("rdusim comp") == "none\n") return;
  CHECK(completed("rdusim comp") == "compare compile completion ");
  CHECK(completed("rdusim compile --col") == "--collective ");
  CHECK(completed("rdusim run --col") == "--collect-violations ");
  CHECK(completed("rdusim history ga") == "gate ");
  CHECK(completed("rdusim history gate --ju") == "--junit ");
}

TEST_CASE("a shell that is not known is named, with those that are") {
  const Folder folder;
  const Outcome o = rdusim({"completion", "tcsh"}, folder);
  CHECK(o.status == 2);
  CHECK(errors_of(o) == "RDU6005");
  CHECK(o.err.find("bash, zsh, fish") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::words_test
