#include "sim/dashboard/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "sim/history/gate.h"
#include "sim/history/timed_law.h"
#include "sim/page/html_page.h"

namespace rdusim {

namespace {

constexpr std::string_view page_script =
#include "dashboard_js.inc"
    ;
constexpr std::string_view page_style =
#include "dashboard_css.inc"
    ;

// All of a history, as the page reads it.
class Data {
 public:
  explicit Data(History& history) : history_(history) {}

  // The members of the data object, but for sweeps, as text between the braces.
  Result<std::string> text() {
    auto series = history_.series();
    auto runs = history_.runs();
    auto kinds = history_.metric_kinds();
    auto accepted = history_.acceptances();
    auto samples = history_.all_samples();
    for (const Diagnostics* d : {&series.diagnostics(), &runs.diagnostics(), &kinds.diagnostics(),
                                 &accepted.diagnostics(), &samples.diagnostics()}) {
      if (d->has_errors()) return *d;
    }
    series_ = *std::move(series), runs_ = *std::move(runs), kinds_ = *std::move(kinds);
    accepted_ = *std::move(accepted);
    for (std::size_t i = 0; i < series_.size(); ++i) series_at_.emplace(series_[i].id, i);
    by_series_.resize(series_.size());
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      run_at_.emplace(runs_[i].id, i);
      const auto s = series_at_.find(runs_[i].series);
      if (s != series_at_.end()) by_series_[s->second].push_back(i);
    }
    Json head;
    const Diagnostics wrong = describe(head);
    if (wrong.has_errors()) return wrong;
    place(*samples);
    std::string all = to_text(head, true);
    all.erase(all.begin());
    all.pop_back();
    all += ",\"limits\":" + to_text(limits(), true);
    all += ",\"values\":[";
    for (std::size_t s = 0; s < series_.size(); ++s) {
      if (s != 0) all += ',';
      put_values(s, all);
    }
    return all + "]";
  }

  std::size_t runs() const { return runs_.size(); }

 private:
  Diagnostics describe(Json& head) {
    JsonArray series;
    for (const Series& s : series_)
      series.push_back(Json().set("name", s.name).set("target", s.target).set("chips", s.chips));
    JsonArray metrics;
    for (const MetricKind& k : kinds_) {
      metrics.push_back(Json()
                            .set("name", k.name)
                            .set("unit", k.unit)
                            .set("timed", k.exactness == Exactness::timed ? 1 : 0)
                            .set("better", static_cast<int>(k.better)));
    }
    JsonArray runs;
    std::map<std::vector<std::pair<std::string, std::string>>, std::size_t> decided;  // sets of decisions
    std::vector<const std::vector<std::pair<std::string, std::string>>*> sets;
    for (const RecordedRun& r : runs_) {
      auto decisions = history_.decisions(r.id);
      if (!decisions) return decisions.diagnostics();
      const auto [at, fresh] = decided.try_emplace(*std::move(decisions), decided.size());
      if (fresh) sets.push_back(&at->first);
      const auto s = series_at_.find(r.series);
      runs.push_back(Json()
                         .set("id", r.id)
                         .set("series", static_cast<std::uint64_t>(s == series_at_.end() ? 0 : s->second))
                         .set("time", r.origin.time)
                         .set("commit", r.origin.commit)
                         .set("parent", r.origin.parent)
                         .set("branch", r.origin.branch)
                         .set("host", r.origin.host)
                         .set("verdict", r.verdict)
                         .set("gate", static_cast<int>(r.gate))
                         .set("decisions", static_cast<std::uint64_t>(at->second)));
    }
    JsonArray decisions;
    for (const auto* set : sets) {
      JsonArray pairs;
      for (const auto& [name, value] : *set) pairs.push_back(JsonArray{Json(name), Json(value)});
      decisions.push_back(std::move(pairs));
    }
    JsonArray accepted;
    for (const Acceptance& a : accepted_) {
      const auto run = run_at_.find(a.run);
      if (run == run_at_.end()) continue;
      accepted.push_back(Json()
                             .set("run", static_cast<std::uint64_t>(run->second))
                             .set("metric", a.metric)
                             .set("reason", a.reason)
                             .set("author", a.author)
                             .set("time", a.time));
    }
    head.set("schema", "rdusim.dashboard/1").set("series", std::move(series)).set("metrics", std::move(metrics));
    head.set("runs", std::move(runs)).set("decisions", std::move(decisions)).set("accepted", std::move(accepted));
    return {};
  }

  // values_[series][metric]: by run of the series, NaN where there is none; empty where no run has the metric.
  void place(const std::vector<History::AnySample>& samples) {
    std::vector<std::pair<std::size_t, std::size_t>> place_of(runs_.size());  // series, place in it
    for (std::size_t s = 0; s < by_series_.size(); ++s) {
      for (std::size_t i = 0; i < by_series_[s].size(); ++i) place_of[by_series_[s][i]] = {s, i};
    }
    values_.assign(series_.size(), std::vector<std::vector<double>>(kinds_.size()));
    for (const History::AnySample& sample : samples) {
      const auto run = run_at_.find(sample.run);
      if (run == run_at_.end()) continue;
      const auto [s, i] = place_of[run->second];
      std::vector<double>& values = values_[s][sample.metric];
      if (values.empty()) values.assign(by_series_[s].size(), std::nan(""));
      if (i < values.size()) values[i] = to_double(sample.value);
    }
  }

  static void put_number(double v, std::string& out) {
    if (!std::isfinite(v))
      out += "null";
    else if (std::nearbyint(v) == v && std::fabs(v) < 1e15)
      fmt::format_to(std::back_inserter(out), "{}", static_cast<std::int64_t>(v));
    else
      fmt::format_to(std::back_inserter(out), "{}", v);
  }

  // One number where a metric never moved, else one a run.
  void put_values(std::size_t series, std::string& out) const {
    out += '{';
    bool first = true;
    for (std::size_t m = 0; m < kinds_.size(); ++m) {
      const std::vector<double>& values = values_[series][m];
      if (values.empty()) continue;
      fmt::format_to(std::back_inserter(out), "{}\"{}\":", first ? "" : ",", m);
      first = false;
      const bool still = std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
      if (still) {
        put_number(values.front(), out);
        continue;
      }
      out += '[';
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i != 0) out += ',';
        put_number(values[i], out);
      }
      out += ']';
    }
    out += '}';
  }

  // What timed_law.h would hold the next run on the host of the last one to: [median, limit, host].
  Json limits() const {
    std::set<std::int64_t> counted;
    for (const Acceptance& a : accepted_) {
      if (a.metric != retired) counted.insert(a.run);
    }
    JsonArray all;
    for (std::size_t s = 0; s < series_.size(); ++s) {
      JsonObject of_series;
      const auto& runs = by_series_[s];
      for (std::size_t m = 0; m < kinds_.size() && !runs.empty(); ++m) {
        if (kinds_[m].exactness != Exactness::timed || values_[s][m].empty()) continue;
        const std::string& host = runs_[runs.back()].origin.host;
        std::vector<double> before;
        for (std::size_t i = 0; i < runs.size(); ++i) {
          const RecordedRun& r = runs_[runs[i]];
          const bool counts = r.gate == GateMark::passed || counted.contains(r.id);
          if (counts && r.origin.host == host && std::isfinite(values_[s][m][i])) before.push_back(values_[s][m][i]);
        }
        if (const auto f = level_of(before, kinds_[m].better))
          of_series.emplace_back(std::to_string(m), JsonArray{Json(f->reference), Json(f->limit), Json(host)});
      }
      all.push_back(std::move(of_series));
    }
    return all;
  }

  History& history_;
  std::vector<Series> series_;
  std::vector<RecordedRun> runs_;
  std::vector<MetricKind> kinds_;
  std::vector<Acceptance> accepted_;
  std::map<std::int64_t, std::size_t> series_at_, run_at_;
  std::vector<std::vector<std::size_t>> by_series_;
  std::vector<std::vector<std::vector<double>>> values_;
};

Json json_of(const std::vector<SweepFile>& sweeps) {
  JsonArray all;
  for (const SweepFile& s : sweeps) {
    JsonArray columns;
    for (const std::string& c : s.columns) columns.emplace_back(c);
    JsonArray rows;
    for (const JsonArray& r : s.rows) rows.emplace_back(r);
    all.push_back(Json().set("name", s.name).set("columns", std::move(columns)).set("rows", std::move(rows)));
  }
  return all;
}

Json json_of(const std::vector<AccuracyRow>& accuracy) {
  JsonArray all;
  for (const AccuracyRow& r : accuracy) {
    all.push_back(Json()
                      .set("what", r.what)
                      .set("reference", r.reference)
                      .set("value", r.value ? Json(*r.value) : Json())
                      .set("bound", r.bound));
  }
  return all;
}

}  // namespace

Result<std::string> dashboard_html(History& history, const DashboardTables& tables,
                                   const std::optional<std::string>& echarts) {
  Data data(history);
  const auto text = data.text();
  if (!text) return text.diagnostics();
  if (data.runs() == 0 && tables.sweeps.empty()) {
    Diagnostics d;
    d.error(Code::RDU8041, "the history", "it holds no run yet");
    return d;
  }
  HtmlPage page;
  page.title = "rdusim";
  page.style = page_style;
  page.script = page_script;
  page.header =
      "<nav id=\"nav\"></nav><input id=\"search\" type=\"search\" placeholder=\"search programs and metrics\" "
      "aria-label=\"search\">";
  page.data = "{" + *text + ",\"sweeps\":" + to_text(json_of(tables.sweeps), true) +
              ",\"accuracy\":" + to_text(json_of(tables.accuracy), true) + "}";
  return html_page(page, echarts);
}

}  // namespace rdusim
