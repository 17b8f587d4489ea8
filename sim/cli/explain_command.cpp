#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/file.h"
#include "compiler/support/json.h"
#include "sim/cli/commands.h"

namespace rdusim::cli {

namespace {

std::string code_of(const CodeInfo& c) {
  return fmt::format("RDU{}", static_cast<int>(c.code));
}

const CodeInfo* find(const std::string& text) {
  std::string_view digits = text;
  if (digits.starts_with("RDU") || digits.starts_with("rdu")) digits.remove_prefix(3);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool numeric = error == std::errc() && end == digits.data() + digits.size();
  for (const CodeInfo& c : all_codes()) {
    if (numeric ? static_cast<int>(c.code) == number : c.name == text) return &c;
  }
  return nullptr;
}

std::string_view stage_of(const CodeInfo& c) {
  switch (static_cast<int>(c.code) / 1000) {
    case 1:
      return "reading the workload";
    case 2:
      return "reading the target";
    case 3:
      return "the rules of a program";
    case 4:
      return "compiling";
    case 5:
      return "the program file and its certificate";
    case 6:
      return "loading and the command line";
    case 7:
      return "running";
    case 8:
      return "traces, reports and history";
    default:
      return "rdusim itself";
  }
}

Json as_json(const CodeInfo& c) {
  return Json()
      .set("code", code_of(c))
      .set("name", c.name)
      .set("found_in", stage_of(c))
      .set("rule", c.rule)
      .set("cure", c.cure);
}

// What it looks like, with a place and numbers of no program in particular.
std::string example(const CodeInfo& c) {
  const int family = static_cast<int>(c.code) / 1000;
  const char* where = family == 1   ? "down.toml:12:1"
                      : family == 2 ? "machine.toml:3:1"
                      : family == 7 ? "cycle 1234, chip3.site(4,7).pmu"
                                    : "prog.bin";
  return fmt::format("  {}: error {} {}: ...\n  help: {}\n", where, code_of(c), c.name, c.cure);
}

}  // namespace

ExitStatus explain(const ExplainRequest& request) {
  if (request.code.empty()) {
    std::string text;
    JsonArray list;
    for (const CodeInfo& c : all_codes()) {
      text += fmt::format("{}  {:<28} {}\n", code_of(c), c.name, c.rule);
      list.push_back(as_json(c));
    }
    return print_result(request.json ? to_text(Json(std::move(list))) : text, ExitStatus::done);
  }
  const CodeInfo* c = find(request.code);
  if (c == nullptr) {
    std::vector<std::string_view> names;
    for (const CodeInfo& known : all_codes()) names.push_back(known.name);
    Diagnostics d;
    Diagnostic& e = d.error(Code::RDU9002, "rdusim explain", "there is no diagnostic '{}'", request.code);
    if (const auto near = nearest(request.code, names); !near.empty()) e.suggest("did you mean '{}'?", near);
    return fail(d);
  }
  if (request.json) return print_result(to_text(as_json(*c)), ExitStatus::done);
  return print_result(fmt::format("{} {}, found in {}\n\nrule: {}\ncure: {}\n\nIt reads\n{}", code_of(*c), c->name,
                                  stage_of(*c), c->rule, c->cure, example(*c)),
                      ExitStatus::done);
}

}  // namespace rdusim::cli
