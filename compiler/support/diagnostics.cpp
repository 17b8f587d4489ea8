#include "compiler/support/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/support/utf8.h"

namespace rdusim {
namespace {

constexpr std::array code_list = {
#define RDU_CODE(number, identifier, name, rule, cure) CodeInfo{Code::identifier, name, rule, cure},
#include "compiler/support/codes.def"
#undef RDU_CODE
};

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (point->value == '\n') {
      out += "\\n";
    } else if (point->value == '\t') {
      out += "\\t";
    } else if (is_hostile(point->value)) {
      out += point->value < 0x80 ? fmt::format("\\x{:02x}", point->value) : fmt::format("\\u{:04x}", point->value);
    } else {
      out += text.substr(0, point->length);
    }
    text.remove_prefix(point->length);
  }
  return out;
}

void put_line(std::string& out, std::string_view where, std::string_view what, std::string_view message) {
  if (!where.empty()) out += escaped(where) + ": ";
  out += what;
  out += ": ";
  out += escaped(message);
  out += '\n';
}

std::string text_of(const Diagnostic& d, bool with_cure) {
  std::string out;
  const CodeInfo& code = info(d.code);
  put_line(out, d.where,
           fmt::format("{} RDU{} {}", d.severity == Severity::error ? "error" : "warning",
                       static_cast<unsigned>(d.code), code.name),
           d.message);
  for (const Note& n : d.notes) put_line(out, n.where, "note", n.message);
  for (const std::string& h : d.help) put_line(out, "", "help", h);
  if (d.help.empty() && with_cure) put_line(out, "", "help", code.cure);
  return out;
}

}  // namespace

const std::vector<CodeInfo>& all_codes() {
  static const std::vector<CodeInfo> sorted = [] {
    std::vector<CodeInfo> list(code_list.begin(), code_list.end());
    std::sort(list.begin(), list.end(), [](const CodeInfo& a, const CodeInfo& b) { return a.code < b.code; });
    return list;
  }();
  return sorted;
}

const CodeInfo& info(Code code) {
  const auto& list = all_codes();
  const auto found =
      std::lower_bound(list.begin(), list.end(), code, [](const CodeInfo& a, Code c) { return a.code < c; });
  static const CodeInfo unknown{Code::RDU9001, "internal-fault", "a diagnostic has a code that exists", "report it"};
  return found != list.end() && found->code == code ? *found : unknown;
}

std::string to_text(const Diagnostic& d) {
  return text_of(d, true);
}

Diagnostic& Diagnostics::add(Diagnostic d) {
  ++total_;
  if (d.severity == Severity::error) ++errors_;
  if (list_.size() == limit && d.severity == Severity::error) {
    // An error is never hidden behind warnings: the last warning makes room.
    const auto warning = std::find_if(list_.rbegin(), list_.rend(),
                                      [](const Diagnostic& other) { return other.severity == Severity::warning; });
    if (warning != list_.rend()) list_.erase(std::next(warning).base());
  }
  if (list_.size() < limit) return list_.emplace_back(std::move(d));
  overflow_ = std::move(d);
  return overflow_;
}

void Diagnostics::append(const Diagnostics& other) {
  const std::size_t hidden = other.total_ - other.list_.size();
  const auto listed_errors = static_cast<std::size_t>(std::count_if(
      other.list_.begin(), other.list_.end(), [](const Diagnostic& d) { return d.severity == Severity::error; }));
  const std::size_t hidden_errors = other.errors_ - listed_errors;
  for (const Diagnostic& d : std::vector<Diagnostic>(other.list_)) add(d);
  total_ += hidden;
  errors_ += hidden_errors;
}

bool Diagnostics::contains(Code code) const {
  return std::any_of(list_.begin(), list_.end(), [code](const Diagnostic& d) { return d.code == code; });
}

std::string Diagnostics::to_text() const {
  std::string out;
  std::vector<Code> cured;
  for (const Diagnostic& d : list_) {
    const bool first = std::find(cured.begin(), cured.end(), d.code) == cured.end();
    if (first) cured.push_back(d.code);
    out += text_of(d, first);
  }
  if (total_ > list_.size()) {
    out += fmt::format("note: {} more not shown; the first {} are\n", total_ - list_.size(), list_.size());
  }
  return out;
}

}  // namespace rdusim
