#include "sim/history/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>

#include "compiler/support/pattern.h"

namespace rdusim {

std::string utc_text(std::int64_t seconds) {
  // Beyond year 9999 there is no such text.
  seconds = std::clamp<std::int64_t>(seconds, 0, 253402300799);
  const std::chrono::sys_seconds at{std::chrono::seconds{seconds}};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const auto rest = (at - day).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), rest / 3600,
                     rest / 60 % 60, rest % 60);
}

std::optional<std::int64_t> utc_seconds(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<int> {
    int n = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (r.ec != std::errc() || r.ptr != digits.data() + digits.size() || digits.front() == '-') return std::nullopt;
    return n;
  };
  if (text.size() == 20 && text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' && text[16] == ':' &&
      text[19] == 'Z') {
    const auto year = number(text.substr(0, 4));
    const auto month = number(text.substr(5, 2));
    const auto day = number(text.substr(8, 2));
    const auto hour = number(text.substr(11, 2));
    const auto minute = number(text.substr(14, 2));
    const auto second = number(text.substr(17, 2));
    if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok() || *year < 1970 || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
    return std::chrono::sys_days(date).time_since_epoch().count() * 86400LL + *hour * 3600 + *minute * 60 + *second;
  }
  std::int64_t seconds = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || r.ec != std::errc() || r.ptr != text.data() + text.size() || seconds < 0 ||
      seconds > 253402300799)
    return std::nullopt;
  return seconds;
}

namespace {

Json json_of(const Quantity& q) {
  return std::visit([](auto v) { return Json(v); }, q);
}

struct Exported {
  Series series;
  RecordedRun run;
  std::vector<Metric> metrics;
};

std::string json_line(const Exported& e) {
  const RecordedRun& r = e.run;
  Json j;
  j.set("run", r.id).set("name", e.series.name).set("target", e.series.target).set("chips", e.series.chips);
  j.set("time", utc_text(r.origin.time)).set("commit", r.origin.commit).set("parent", r.origin.parent);
  j.set("branch", r.origin.branch).set("host", r.origin.host).set("version", r.version).set("program", r.program);
  j.set("program_sha256", r.program_sha256).set("target_sha256", r.target_sha256).set("verdict", r.verdict);
  j.set("gate", r.gate == GateMark::passed ? Json("passed") : r.gate == GateMark::failed ? Json("failed") : Json());
  JsonObject metrics;
  for (const Metric& m : e.metrics) metrics.emplace_back(m.name, json_of(m.value));
  return to_text(j.set("metrics", std::move(metrics)), true) + "\n";
}

// A label's value as OpenMetrics writes it.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

// "stages.down.matmul.stall.link" is of family rdusim_stages_stall_link, part "down.matmul".
std::pair<std::string, std::string> family_of(const std::string& metric) {
  const std::size_t first = metric.find('.');
  std::size_t last = metric.rfind('.');
  std::string name = "rdusim_";
  std::string part;
  if (first == std::string::npos) {
    name += metric;
  } else {
    constexpr std::string_view stall = ".stall";
    if (last > stall.size() && metric.compare(last - stall.size(), stall.size(), stall) == 0) last -= stall.size();
    if (last > first) part = metric.substr(first + 1, last - first - 1);
    name += metric.substr(0, first) + metric.substr(std::max(first, last));
  }
  for (char& c : name) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word) c = '_';
  }
  return {name, part};
}

std::string openmetrics(const std::vector<Exported>& newest) {
  std::map<std::string, std::string> families;  // all samples of a family stand together
  for (const Exported& e : newest) {
    const std::string who = fmt::format("program=\"{}\",target=\"{}\",chips=\"{}\"", label(e.series.name),
                                        label(e.series.target), e.series.chips);
    families["rdusim_verdict_pass"] +=
        fmt::format("rdusim_verdict_pass{{{}}} {}\n", who, e.run.verdict == "pass" ? 1 : 0);
    for (const Metric& m : e.metrics) {
      if (!std::isfinite(to_double(m.value))) continue;
      const auto [name, part] = family_of(m.name);
      families[name] += fmt::format("{}{{{}{}}} {}\n", name, who,
                                    part.empty() ? "" : fmt::format(",part=\"{}\"", label(part)), to_string(m.value));
    }
  }
  std::string out;
  for (const auto& [name, lines] : families) out += fmt::format("# TYPE {} gauge\n{}", name, lines);
  return out + "# EOF\n";
}

std::string benchmark(const std::vector<Exported>& newest) {
  JsonArray all;
  for (const Exported& e : newest) {
    for (const Metric& m : e.metrics) {
      if (m.better != Better::lower || !std::isfinite(to_double(m.value))) continue;
      all.push_back(Json()
                        .set("name", fmt::format("{}: {}", to_string(e.series), m.name))
                        .set("unit", m.unit.empty() ? "count" : m.unit)
                        .set("value", json_of(m.value))
                        .set("extra", fmt::format("run {}, verdict {}", e.run.id, e.run.verdict)));
    }
  }
  return to_text(Json(std::move(all)));
}

}  // namespace

Result<std::string> export_history(History& history, ExportForm form, const std::string& pattern) {
  auto all = history.series();
  auto runs = history.runs();
  if (!all) return all.diagnostics();
  if (!runs) return runs.diagnostics();
  Diagnostics d;
  if (runs->empty()) {
    d.error(Code::RDU8041, "the history", "it holds no run yet");
    return d;
  }
  std::map<std::int64_t, Series> by_id;
  for (const Series& s : *all) by_id.emplace(s.id, s);
  std::map<std::int64_t, std::int64_t> newest;  // run by series
  for (const RecordedRun& r : *runs) newest[r.series] = r.id;
  std::vector<Exported> chosen;
  bool found = false;
  for (const RecordedRun& r : *runs) {
    if (form != ExportForm::json_lines && newest[r.series] != r.id) continue;
    auto metrics = history.metrics(r.id);
    if (!metrics) return metrics.diagnostics();
    std::erase_if(*metrics, [&](const Metric& m) { return !matches(pattern, m.name); });
    found = found || !metrics->empty();
    chosen.push_back({by_id[r.series], r, *std::move(metrics)});
  }
  if (!found) {
    d.error(Code::RDU8031, "--metric", "no run has a metric '{}'", pattern);
    return d;
  }
  if (form == ExportForm::openmetrics) return openmetrics(chosen);
  if (form == ExportForm::benchmark) return benchmark(chosen);
  std::string out;
  for (const Exported& e : chosen) out += json_line(e);
  return out;
}

}  // namespace rdusim
