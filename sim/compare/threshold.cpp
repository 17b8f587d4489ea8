#include "sim/compare/threshold.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "compiler/support/file.h"
#include "compiler/support/pattern.h"
#include "compiler/support/units.h"

namespace rdusim {

namespace {

std::string_view trimmed(std::string_view s) {
  while (s.starts_with(' ')) s.remove_prefix(1);
  while (s.ends_with(' ')) s.remove_suffix(1);
  return s;
}

// Bytes of a unit's word; nothing of another word.
std::optional<double> bytes_of(std::string_view unit) {
  double scale = 1;
  double decimal = 1;
  if (unit == "bytes" || unit == "byte" || unit == "B") return 1;
  for (const char prefix : {'K', 'M', 'G', 'T'}) {
    scale *= 1024;
    decimal *= 1000;
    if (unit == std::string{prefix, 'i', 'B'}) return scale;
    if (unit == std::string{prefix, 'B'}) return decimal;
  }
  return std::nullopt;
}

}  // namespace

Result<Threshold> parse_threshold(std::string_view text) {
  Diagnostics d;
  const auto refuse = [&](const std::string& why) {
    d.error(Code::RDU8030, "--fail-on", "'{}': {}", text, why);
    return d;
  };
  const auto at = text.find_last_of("<>");  // the last: a link's name holds one
  if (at == std::string_view::npos) return refuse("there is neither '>' nor '<'");
  Threshold t;
  t.text = text;
  t.rise = text[at] == '>';
  t.pattern = trimmed(text.substr(0, at));
  if (t.pattern.empty()) return refuse("there is no metric before the sign");
  if (t.pattern == "cycles") t.pattern = "cycles.simulated";
  const std::string_view rest = trimmed(text.substr(at + 1));
  const auto digits = rest.find_first_not_of("0123456789.");
  const std::string_view number = rest.substr(0, digits);
  const std::string_view unit = digits == std::string_view::npos ? std::string_view() : trimmed(rest.substr(digits));
  const auto amount = parse_decimal(number);
  if (!amount) return refuse(fmt::format("'{}' is not an amount", rest));
  t.amount = to_double(*amount);
  if (unit == "%") {
    t.percent = true;
  } else if (const auto scale = bytes_of(unit)) {
    t.unit = "bytes";
    t.amount *= *scale;
  } else if (unit == "cycles" || unit == "pages" || unit == "s" || unit.empty()) {
    t.unit = unit;
  } else {
    return refuse(fmt::format("'{}' is neither % nor one of cycles, pages, s, bytes, KB, KiB, MB, MiB, GB, GiB", unit));
  }
  return t;
}

bool exceeds(const Threshold& t, const Quantity& old, const Quantity& now) {
  // 64 bits of mantissa: whole numbers are compared exactly.
  const auto wide = [](const Quantity& q) { return std::visit([](auto v) { return static_cast<long double>(v); }, q); };
  const long double change = t.rise ? wide(now) - wide(old) : wide(old) - wide(now);
  const long double limit =
      t.percent ? std::fabs(wide(old)) * static_cast<long double>(t.amount) / 100 : static_cast<long double>(t.amount);
  return change > limit;
}

bool is_of(const Threshold& t, std::string_view metric) {
  return matches(t.pattern, metric) || matches(t.pattern, folded_name(metric));
}

Diagnostics check_threshold(const Threshold& t, const std::vector<const Metric*>& metrics) {
  Diagnostics d;
  bool found = false;
  for (const Metric* m : metrics) {
    if (!is_of(t, m->name)) continue;
    found = true;
    if (t.percent || t.unit.empty() || t.unit == m->unit) continue;
    d.error(Code::RDU8032, "--fail-on", "'{}' is in {}, and '{}' in {}", t.text, t.unit, m->name,
            m->unit.empty() ? "no unit" : m->unit);
    return d;
  }
  if (found) return d;
  Diagnostic& e = d.error(Code::RDU8031, "--fail-on", "'{}': no metric is called '{}'", t.text, t.pattern);
  std::vector<std::string> names;
  for (const Metric* m : metrics) names.push_back(folded_name(m->name));
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (const auto near = nearest(t.pattern, views); !near.empty()) e.suggest("did you mean '{}'?", near);
  return d;
}

}  // namespace rdusim
