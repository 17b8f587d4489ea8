// The shipped machines (models/targets/*.toml, through embed.cmake), and how a target is found.
#include <algorithm>
#include <array>

#include "compiler/support/file.h"
#include "compiler/target/target.h"

namespace rdusim {
namespace {

struct ShippedTarget {
  std::string_view name;
  std::string_view text;
};

constexpr ShippedTarget shipped[] = {
#include "shipped_targets.inc"
};

constexpr std::uint64_t max_target_bytes = std::uint64_t{1} << 20;

bool names_a_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".toml") || text == "-";
}

}  // namespace

std::vector<std::string_view> shipped_targets() {
  std::vector<std::string_view> names;
  for (const ShippedTarget& t : shipped) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<Target> find_target(const std::string& name_or_file) {
  for (const ShippedTarget& t : shipped) {
    if (t.name == name_or_file) return read_target(std::string(t.text), "target " + name_or_file);
  }
  if (names_a_file(name_or_file)) {
    auto text = read_file(name_or_file, max_target_bytes);
    if (!text) return text.diagnostics();
    return read_target(*text, name_or_file);
  }
  Diagnostics out;
  const auto names = shipped_targets();
  std::string list;
  for (std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  auto& error = out.error(Code::RDU2001, "target '" + name_or_file + "'", "no machine of this name is shipped");
  if (const auto near = nearest(name_or_file, names); !near.empty()) error.suggest("did you mean '{}'?", near);
  error.suggest("shipped are: {}; a file is given as a path with '/' or as NAME.toml", list);
  return out;
}

}  // namespace rdusim
