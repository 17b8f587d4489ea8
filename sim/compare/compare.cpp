#include "sim/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace rdusim {

double MetricChange::difference() const {
  return (now ? to_double(*now) : 0) - (old ? to_double(*old) : 0);
}

std::optional<double> MetricChange::percent() const {
  if (!old || !now || to_double(*old) == 0) return std::nullopt;
  return difference() / to_double(*old) * 100;
}

namespace {

std::map<std::string_view, const Metric*> by_name(const ReportFile& file) {
  std::map<std::string_view, const Metric*> index;
  for (const Metric& m : file.metrics) index.emplace(m.name, &m);
  return index;
}

void compare_metrics(ReportComparison& c) {
  const auto old = by_name(c.old);
  const auto now = by_name(c.now);
  const auto change = [&](const Metric& m) -> MetricChange& {
    return c.changes.emplace_back(MetricChange{m.name, m.unit, m.exactness, m.better, std::nullopt, std::nullopt});
  };
  for (const Metric& m : c.old.metrics) {
    const auto at = now.find(m.name);
    if (at != now.end() && at->second->value == m.value) {
      c.same += m.exactness == Exactness::exact ? 1 : 0;
      continue;
    }
    MetricChange& moved = change(m);
    moved.old = m.value;
    if (at != now.end()) moved.now = at->second->value;
  }
  for (const Metric& m : c.now.metrics) {
    if (!old.contains(m.name)) change(m).now = m.value;
  }
}

void compare_decisions(ReportComparison& c) {
  const std::map<std::string_view, std::string_view> now(c.now.decisions.begin(), c.now.decisions.end());
  const std::map<std::string_view, std::string_view> old(c.old.decisions.begin(), c.old.decisions.end());
  // A report of before there were decisions says nothing of them.
  if (now.empty() || old.empty()) return;
  for (const auto& [name, value] : c.old.decisions) {
    const auto at = now.find(name);
    if (at == now.end())
      c.decisions.push_back({name, value, std::nullopt});
    else if (at->second != value)
      c.decisions.push_back({name, value, std::string(at->second)});
  }
  for (const auto& [name, value] : c.now.decisions) {
    if (!old.contains(name)) c.decisions.push_back({name, std::nullopt, value});
  }
}

void judge_metric(const MetricChange& m, const std::vector<Threshold>& thresholds, ReportComparison& c) {
  for (const Threshold& t : thresholds) {
    if (!is_of(t, m.name)) continue;
    if (!m.now) {
      c.regressions.push_back({m.name, t.text, fmt::format("{} was {} and is gone", m.name, to_string(*m.old))});
    } else if (m.old && exceeds(t, *m.old, *m.now)) {
      c.regressions.push_back({m.name, t.text,
                               fmt::format("{} {} from {} to {} ({})", m.name, t.rise ? "rose" : "fell",
                                           to_string(*m.old), to_string(*m.now), t.text)});
    } else {
      continue;
    }
    return;
  }
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<const Metric*> metrics_of(const SetComparison& set) {
  std::vector<const Metric*> all;
  for (const ReportComparison& c : set.pairs) {
    for (const ReportFile* file : {&c.old, &c.now}) {
      for (const Metric& m : file->metrics) all.push_back(&m);
    }
  }
  return all;
}

Diagnostics nothing_to_compare(const std::string& old, const std::string& now, const std::string& why) {
  Diagnostics d;
  d.error(Code::RDU8033, fmt::format("{} and {}", old, now), "{}", why);
  return d;
}

}  // namespace

ReportComparison compare_reports(ReportFile old, ReportFile now, const std::vector<Threshold>& thresholds) {
  ReportComparison c;
  c.name = now.program;
  c.old = std::move(old);
  c.now = std::move(now);
  compare_metrics(c);
  compare_decisions(c);
  if (c.old.verdict == "pass" && c.now.verdict != "pass")
    c.regressions.push_back({"", "", fmt::format("the verdict was pass and is {}", c.now.verdict)});
  for (const MetricChange& m : c.changes) judge_metric(m, thresholds, c);
  return c;
}

bool SetComparison::regressed() const {
  return !vanished.empty() ||
         std::any_of(pairs.begin(), pairs.end(), [](const ReportComparison& c) { return !c.regressions.empty(); });
}

Result<SetComparison> compare_paths(const std::string& old, const std::string& now,
                                    const std::vector<Threshold>& thresholds) {
  SetComparison set;
  Diagnostics problems;
  const auto pair = [&](const std::string& a, const std::string& b, const std::string& name) {
    auto before = read_report(a);
    auto after = read_report(b);
    problems.append(before.diagnostics());
    problems.append(after.diagnostics());
    if (!before || !after) return;
    set.pairs.push_back(compare_reports(*std::move(before), *std::move(after), thresholds));
    if (!name.empty()) set.pairs.back().name = name;
  };
  if (is_folder(old) != is_folder(now))
    return nothing_to_compare(old, now, "one is a folder of reports and the other is not");
  if (!is_folder(old)) {
    pair(old, now, "");
  } else {
    const auto before = report_names(old);
    const auto after = report_names(now);
    if (!before) return before.diagnostics();
    if (!after) return after.diagnostics();
    for (const std::string& name : *before) {
      if (std::binary_search(after->begin(), after->end(), name))
        pair(old + "/" + name, now + "/" + name, name.substr(0, name.size() - 5));
      else
        set.vanished.push_back(name);
    }
    std::set_difference(after->begin(), after->end(), before->begin(), before->end(), std::back_inserter(set.appeared));
    if (set.pairs.empty() && !problems.has_errors())
      return nothing_to_compare(old, now, "no .json file stands in both folders under one name");
  }
  if (problems.has_errors()) return problems;
  const auto all = metrics_of(set);
  for (const Threshold& t : thresholds) problems.append(check_threshold(t, all));
  if (problems.has_errors()) return problems;
  return set;
}

}  // namespace rdusim
