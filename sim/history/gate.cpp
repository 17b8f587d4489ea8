#include "sim/history/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/support/xml.h"
#include "sim/history/timed_law.h"

namespace rdusim {

std::string_view name_of(GateFinding::Kind k) {
  switch (k) {
    case GateFinding::Kind::changed:
      return "changed";
    case GateFinding::Kind::unstable:
      return "unstable";
    case GateFinding::Kind::vanished:
      return "vanished";
    case GateFinding::Kind::not_a_number:
      return "not-a-number";
    case GateFinding::Kind::empty:
      return "empty";
    case GateFinding::Kind::verdict:
      return "verdict";
    case GateFinding::Kind::missing:
      return "missing";
    case GateFinding::Kind::never_accepted:
      return "never-accepted";
    case GateFinding::Kind::slower:
      return "slower";
    case GateFinding::Kind::drifted:
      return "drifted";
  }
  return "";
}

bool GateResult::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const GateRow& r) { return r.findings.empty(); });
}

namespace {

using Kind = GateFinding::Kind;

bool is_number(const Quantity& q) {
  return std::isfinite(to_double(q));
}

std::string change_text(const Quantity& old, const Quantity& now) {
  const double was = to_double(old);
  std::string text = fmt::format("{} -> {}", to_string(old), to_string(now));
  if (was != 0) text += fmt::format(" ({:+.2f} %)", (to_double(now) - was) / was * 100);
  return text;
}

// What stands as accepted of one series, from its acceptances in their order.
struct Baseline {
  std::map<std::string, Metric> metrics;
  std::set<std::int64_t> runs;  // accepted, whole or in part
  std::int64_t last_whole = 0;  // the run accepted whole last
  bool is_retired = false;
};

class Judge {
 public:
  Judge(History& history, std::string commit) : history_(history) { result_.commit = std::move(commit); }

  Result<GateResult> run() {
    auto runs = history_.runs();
    auto all = history_.series();
    auto accepted = history_.acceptances();
    auto kinds = history_.metric_kinds();
    for (const Diagnostics* d :
         {&runs.diagnostics(), &all.diagnostics(), &accepted.diagnostics(), &kinds.diagnostics()}) {
      if (d->has_errors()) return *d;
    }
    if (runs->empty()) return problem(Code::RDU8041, "the history", "it holds no run yet");
    if (result_.commit.empty()) {
      result_.commit = runs->back().origin.commit;
    } else if (std::none_of(runs->begin(), runs->end(),
                            [&](const RecordedRun& r) { return r.origin.commit == result_.commit; })) {
      return problem(Code::RDU8039, "--commit", fmt::format("no run is of commit '{}'", result_.commit));
    }
    for (const RecordedRun& r : *runs) by_series_[r.series].push_back(r);
    for (const Series& s : *all) {
      const Diagnostics d = judge_series(s, *accepted);
      if (d.has_errors()) return d;
    }
    return std::move(result_);
  }

 private:
  static Diagnostics problem(Code code, const std::string& where, const std::string& what) {
    Diagnostics d;
    d.error(code, where, "{}", what);
    return d;
  }

  Result<Baseline> baseline_of(const std::vector<RecordedRun>& runs, const std::vector<Acceptance>& accepted) {
    Baseline b;
    for (const Acceptance& a : accepted) {
      if (std::none_of(runs.begin(), runs.end(), [&](const RecordedRun& r) { return r.id == a.run; })) continue;
      b.is_retired = a.metric == retired;
      if (b.is_retired) continue;
      b.runs.insert(a.run);
      auto metrics = history_.metrics(a.run);
      if (!metrics) return metrics.diagnostics();
      if (a.metric.empty()) b.metrics.clear(), b.last_whole = a.run;
      for (Metric& m : *metrics) {
        if (a.metric.empty() || a.metric == m.name) b.metrics.insert_or_assign(m.name, std::move(m));
      }
    }
    return b;
  }

  Diagnostics judge_series(const Series& s, const std::vector<Acceptance>& accepted) {
    const std::vector<RecordedRun>& runs = by_series_[s.id];
    auto baseline = baseline_of(runs, accepted);
    if (!baseline) return baseline.diagnostics();
    GateRow row;
    row.series = s;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(row.judged),
                 [&](const RecordedRun& r) { return r.origin.commit == result_.commit; });
    const auto find = [&](Kind kind, std::string metric, std::string text) {
      row.findings.push_back({kind, std::move(metric), std::move(text)});
    };
    if (row.judged.empty()) {
      if (baseline->is_retired || baseline->metrics.empty()) return {};
      find(Kind::missing, "", "it was accepted before, and has no run of this commit");
    } else if (baseline->metrics.empty()) {
      find(Kind::never_accepted, "", "nothing of it was ever accepted");
    }
    if (!row.judged.empty()) {
      const Diagnostics d = judge_runs(*baseline, runs, row);
      if (d.has_errors()) return d;
    }
    result_.rows.push_back(std::move(row));
    return {};
  }

  Diagnostics judge_runs(const Baseline& baseline, const std::vector<RecordedRun>& runs, GateRow& row) {
    const RecordedRun& last = row.judged.back();
    if (last.verdict != "pass")
      row.findings.push_back({Kind::verdict, "", fmt::format("the verdict is {}", last.verdict)});
    auto metrics = history_.metrics(last.id);
    if (!metrics) return metrics.diagnostics();
    if (metrics->empty()) {
      row.findings.push_back({Kind::empty, "", fmt::format("run {} has no metrics", last.id)});
      return {};
    }
    std::map<std::string_view, const Metric*> now;
    for (const Metric& m : *metrics) now.emplace(m.name, &m);
    for (const Metric& m : *metrics) {
      if (!is_number(m.value)) row.findings.push_back({Kind::not_a_number, m.name, "it is no number"});
    }
    for (const auto& [name, was] : baseline.metrics) {
      row.metrics.push_back(name);
      const auto at = now.find(name);
      if (at == now.end()) {
        row.findings.push_back({Kind::vanished, name, fmt::format("it was {} and is gone", to_string(was.value))});
      } else if (!is_number(at->second->value)) {
        continue;
      } else if (was.exactness == Exactness::timed) {
        const Diagnostics d = judge_timed(baseline, runs, was, row);
        if (d.has_errors()) return d;
      } else if (at->second->value != was.value) {
        row.findings.push_back({Kind::changed, name, change_text(was.value, at->second->value)});
      }
    }
    for (const RecordedRun& other : row.judged) {
      if (other.id == last.id) continue;
      auto before = history_.metrics(other.id);
      if (!before) return before.diagnostics();
      for (const Metric& m : *before) {
        const auto at = now.find(m.name);
        if (m.exactness == Exactness::timed || at == now.end() || at->second->value == m.value) continue;
        row.findings.push_back({Kind::unstable, m.name,
                                fmt::format("runs {} and {} of one commit disagree: {}", other.id, last.id,
                                            change_text(m.value, at->second->value))});
      }
    }
    return {};
  }

  Diagnostics judge_timed(const Baseline& baseline, const std::vector<RecordedRun>& runs, const Metric& m,
                          GateRow& row) {
    const RecordedRun& last = row.judged.back();
    auto samples = history_.samples(row.series.id, m.name);
    if (!samples) return samples.diagnostics();
    std::map<std::int64_t, double> value;
    for (const Sample& s : *samples) {
      if (is_number(s.value)) value.emplace(s.run, to_double(s.value));
    }
    std::vector<double> before;
    std::vector<double> since;
    std::vector<double> current;
    bool anchored = baseline.last_whole == 0;
    for (const RecordedRun& r : runs) {
      anchored = anchored || r.id == baseline.last_whole;
      const auto at = value.find(r.id);
      if (at == value.end() || r.origin.host != last.origin.host) continue;
      const bool judged = r.origin.commit == result_.commit;
      const bool counts = r.gate == GateMark::passed || baseline.runs.contains(r.id);
      if (judged)
        current.push_back(at->second);
      else if (counts)
        before.push_back(at->second);
      if (anchored && (judged || counts)) since.push_back(at->second);
    }
    if (before.size() < level_least) ++row.unjudged;
    const auto text = [](const char* what, const TimedFinding& f, std::size_t of) {
      return fmt::format("{} {:.6g}, beyond {:.6g} (median of {} runs: {:.6g})", what, f.now, f.limit, of, f.reference);
    };
    if (const auto f = worse_than_before(before, median(current), m.better)) {
      row.findings.push_back({Kind::slower, m.name, text("it is", *f, std::min(before.size(), level_runs))});
    } else if (const auto step = drifted(since, m.better)) {
      row.findings.push_back(
          {Kind::drifted, m.name, text("since it was accepted it has drifted to", *step, anchor_runs)});
    }
    return {};
  }

  History& history_;
  GateResult result_;
  std::map<std::int64_t, std::vector<RecordedRun>> by_series_;
};

}  // namespace

Result<GateResult> judge(History& history, const std::string& commit) {
  return Judge(history, commit).run();
}

std::vector<std::pair<std::int64_t, GateMark>> marks_of(const GateResult& result) {
  std::vector<std::pair<std::int64_t, GateMark>> marks;
  for (const GateRow& row : result.rows) {
    for (const RecordedRun& r : row.judged)
      marks.emplace_back(r.id, row.findings.empty() ? GateMark::passed : GateMark::failed);
  }
  return marks;
}

std::string gate_text(const GateResult& result, bool colour) {
  constexpr std::size_t most = 20;
  const char* bad = colour ? "\x1b[31m" : "";
  const char* good = colour ? "\x1b[32m" : "";
  const char* off = colour ? "\x1b[0m" : "";
  std::string out;
  std::size_t failed = 0;
  std::size_t metrics = 0;
  std::size_t unjudged = 0;
  for (const GateRow& row : result.rows) {
    metrics += row.metrics.size();
    unjudged += row.unjudged;
    if (row.findings.empty()) continue;
    ++failed;
    out += fmt::format("{}failed{}  {}\n", bad, off, to_string(row.series));
    for (std::size_t i = 0; i < row.findings.size() && i < most; ++i) {
      const GateFinding& f = row.findings[i];
      out += fmt::format("        {:<14} {}{}{}\n", name_of(f.kind), f.metric, f.metric.empty() ? "" : ": ", f.text);
    }
    if (row.findings.size() > most) out += fmt::format("        and {} more (--json)\n", row.findings.size() - most);
  }
  out += fmt::format(
      "{}{}{}  {} of {} programs, {} metrics{}{}{}\n", result.passed() ? good : bad,
      result.passed() ? "passed" : "failed", off, result.rows.size() - failed, result.rows.size(), metrics,
      unjudged == 0 ? ""
                    : fmt::format(", {} timed ones not judged: fewer than {} runs of this host", unjudged, level_least),
      result.commit.empty() ? "" : ", commit ", result.commit);
  if (!result.passed())
    out += "what is right is accepted by: rdusim history accept --db FILE --reason 'why it changed'\n";
  return out;
}

Json gate_json(const GateResult& result) {
  Json j;
  j.set("schema", "rdusim.gate/1").set("commit", result.commit).set("passed", result.passed());
  JsonArray rows;
  for (const GateRow& row : result.rows) {
    JsonArray findings;
    for (const GateFinding& f : row.findings)
      findings.push_back(Json()
                             .set("kind", name_of(f.kind))
                             .set("metric", f.metric.empty() ? Json() : Json(f.metric))
                             .set("text", f.text));
    rows.push_back(Json()
                       .set("name", row.series.name)
                       .set("target", row.series.target)
                       .set("chips", row.series.chips)
                       .set("run", row.judged.empty() ? Json() : Json(row.judged.back().id))
                       .set("metrics", row.metrics.size())
                       .set("unjudged", row.unjudged)
                       .set("findings", std::move(findings)));
  }
  j.set("programs", std::move(rows));
  return j;
}

std::string gate_junit(const GateResult& result) {
  std::string suites;
  std::size_t tests = 0;
  std::size_t failures = 0;
  for (const GateRow& row : result.rows) {
    std::map<std::string, std::string> failed;  // by metric
    for (const GateFinding& f : row.findings) {
      std::string& text = failed[f.metric];
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name_of(f.kind), f.text);
    }
    std::vector<std::string> cases = row.metrics;
    for (const auto& [metric, text] : failed) {
      if (std::find(cases.begin(), cases.end(), metric) == cases.end()) cases.push_back(metric);
    }
    if (cases.empty()) cases.emplace_back();
    const std::string name = to_string(row.series);
    suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n", xml_text(name), cases.size(),
                          failed.size());
    for (const std::string& metric : cases) {
      const std::string called = metric.empty() ? "run" : metric;
      const auto at = failed.find(metric);
      if (at == failed.end())
        suites += fmt::format("    <testcase classname=\"{}\" name=\"{}\"/>\n", xml_text(name), xml_text(called));
      else
        suites += fmt::format("    <testcase classname=\"{}\" name=\"{}\"><failure message=\"{}\"/></testcase>\n",
                              xml_text(name), xml_text(called), xml_text(at->second));
    }
    suites += "  </testsuite>\n";
    tests += cases.size();
    failures += failed.size();
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rdusim\" tests=\"{}\" "
      "failures=\"{}\">\n{}</testsuites>\n",
      tests, failures, suites);
}

}  // namespace rdusim
