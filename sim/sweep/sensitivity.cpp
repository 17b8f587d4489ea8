#include "sim/sweep/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/support/units.h"
#include "compiler/target/target.h"
#include "sim/sweep/run_sweep.h"

namespace rdusim {

namespace {

// A key that is a whole number takes no other; one that is not takes whole ones too.
Cell cell_of(double value) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::abs(value) < exact) return Cell(static_cast<std::int64_t>(value));
  return Cell(value);
}

// The metric of a report that is looked at.
std::string read_for(const std::string& metric) {
  return metric == simulated_time ? "cycles.simulated" : metric;
}

class Planner {
 public:
  Planner(const SweepPlan& plan, const std::string& metric, const std::vector<std::string>& only)
      : given_(plan), only_(only), begins_(only.size(), false) {
    out_.plan = plan;
    out_.plan.points.clear();
    std::vector<std::string>& metrics = out_.plan.metrics;
    if (std::find(metrics.begin(), metrics.end(), read_for(metric)) == metrics.end())
      metrics.push_back(read_for(metric));
    for (std::size_t a = 0; a < plan.axes.size(); ++a) axes_.emplace(plan.axes[a], a);
  }

  Result<SensitivityPlan> make() {
    for (std::size_t p = 0; p < given_.points.size(); ++p) {
      const auto text = target_of(given_, p);
      if (!text) return text.diagnostics();
      const auto target = read_target(text->text, text->name);
      if (!target) return target.diagnostics();
      add(given_.points[p], *target);
      if (out_.plan.points.size() <= plan_points_limit) continue;
      return failure(Code::RDU8064, given_.name, "with the numbers that are moved it has more than {} points",
                     plan_points_limit);
    }
    for (std::size_t i = 0; i < only_.size(); ++i)
      if (!begins_[i]) return failure(Code::RDU8063, "--numbers", "'{}' begins no number that is assumed", only_[i]);
    for (SweepPoint& p : out_.plan.points) p.values.resize(out_.plan.axes.size());
    return std::move(out_);
  }

 private:
  void add(const SweepPoint& point, const Target& target) {
    SensitivityBase base;
    base.point = out_.plan.points.size();
    base.clock_ghz = to_double(target.clock_ghz);
    out_.plan.points.push_back(point);
    for (const Provenance& n : target.numbers) {
      if (n.published || !n.range || !wanted(n.key)) continue;
      base.numbers.push_back(
          {n.key, n.value, n.source, end(base.point, n, n.range->first), end(base.point, n, n.range->second)});
    }
    out_.bases.push_back(std::move(base));
  }

  RangeEnd end(std::size_t base, const Provenance& n, double value) {
    RangeEnd e{cell_of(value), base};
    if (std::strtod(n.value.c_str(), nullptr) == value) return e;
    const std::size_t axis = axis_of("target." + n.key);
    SweepPoint moved = out_.plan.points[base];
    moved.values.resize(out_.plan.axes.size());
    moved.values[axis] = e.value;
    e.point = out_.plan.points.size();
    out_.plan.points.push_back(std::move(moved));
    return e;
  }

  std::size_t axis_of(const std::string& name) {
    const auto [at, fresh] = axes_.emplace(name, out_.plan.axes.size());
    if (fresh) out_.plan.axes.push_back(name);
    return at->second;
  }

  bool wanted(const std::string& key) {
    bool any = only_.empty();
    for (std::size_t i = 0; i < only_.size(); ++i) {
      if (!key.starts_with(only_[i])) continue;
      begins_[i] = true;
      any = true;
    }
    return any;
  }

  const SweepPlan& given_;
  const std::vector<std::string>& only_;
  std::vector<bool> begins_;  // by `only_`: some number
  SensitivityPlan out_;
  std::map<std::string, std::size_t> axes_;
};

EndOutcome outcome_of(const PointOutcome& o, std::size_t metric, Cell value) {
  EndOutcome e{std::move(value), o.verdict, o.error, std::nullopt, std::nullopt};
  if (o.verdict == "pass") e.metric = number_of(o.metrics[metric]);
  return e;
}

void set_change(EndOutcome& e, const EndOutcome& base) {
  if (e.metric && base.metric && *base.metric != 0) e.change = *e.metric / *base.metric - 1;
}

std::optional<double> effect_of(const SensitivityRow& row, const EndOutcome& base) {
  if (!base.metric || (!row.least.metric && !row.most.metric)) return std::nullopt;
  double least = *base.metric, most = *base.metric;
  for (const EndOutcome* e : {&row.least, &row.most}) {
    if (!e->metric) continue;
    least = std::min(least, *e->metric);
    most = std::max(most, *e->metric);
  }
  return most - least;
}

std::string name_of(const SensitivityPlan& plan, std::size_t point) {
  std::string name;
  const SweepPoint& p = plan.plan.points[point];
  for (std::size_t a = 0; a < p.values.size(); ++a) {
    if (p.values[a].index() != 0)
      name += fmt::format("{}{} = {}", name.empty() ? "" : ", ", plan.plan.axes[a], to_string(p.values[a]));
  }
  return name;
}

}  // namespace

Result<SensitivityPlan> sensitivity_plan(const SweepPlan& plan, const std::string& metric,
                                         const std::vector<std::string>& only) {
  return Planner(plan, metric, only).make();
}

Result<std::vector<Sensitivity>> sensitivities(const SensitivityPlan& plan, const std::vector<PointOutcome>& outcomes,
                                               const std::string& metric) {
  const auto& names = plan.plan.metrics;
  const auto column = static_cast<std::size_t>(std::find(names.begin(), names.end(), read_for(metric)) - names.begin());
  std::map<std::size_t, const PointOutcome*> by_point;
  for (const PointOutcome& o : outcomes) by_point[o.point] = &o;
  const auto at = [&](std::size_t point, Cell value, double clock_ghz) {
    EndOutcome e = outcome_of(*by_point.at(point), column, std::move(value));
    if (metric == simulated_time && e.metric) *e.metric /= 1000 * clock_ghz;
    return e;
  };
  std::vector<Sensitivity> tables;
  for (const SensitivityBase& b : plan.bases) {
    Sensitivity s{name_of(plan, b.point), metric, at(b.point, {}, b.clock_ghz), {}};
    if (s.base.verdict == "pass" && !s.base.metric)
      return failure(Code::RDU8066, "--metric", "the report of a run has no number '{}'", metric);
    for (const MovedNumber& n : b.numbers) {
      const auto end = [&](const RangeEnd& e) {
        return at(e.point, e.value, n.key == "machine.clock_ghz" ? *number_of(e.value) : b.clock_ghz);
      };
      SensitivityRow row{n.key, n.value, n.source, end(n.least), end(n.most), {}};
      set_change(row.least, s.base);
      set_change(row.most, s.base);
      row.effect = effect_of(row, s.base);
      s.rows.push_back(std::move(row));
    }
    std::stable_sort(s.rows.begin(), s.rows.end(), [](const SensitivityRow& x, const SensitivityRow& y) {
      return x.effect.value_or(-1) > y.effect.value_or(-1);
    });
    tables.push_back(std::move(s));
  }
  return tables;
}

namespace {

std::string figure(double value) {
  if (std::trunc(value) == value && std::abs(value) < 1e15) {
    const std::string digits = with_commas(static_cast<std::uint64_t>(std::abs(value)));
    return value < 0 ? "-" + digits : digits;
  }
  return fmt::format("{:.6g}", value);
}

std::string failure_text(const EndOutcome& e) {
  return e.error.empty() ? e.verdict : e.verdict + " " + e.error;
}

std::string metric_text(const EndOutcome& e) {
  if (!e.metric) return failure_text(e);
  return e.change.value_or(0) != 0 ? fmt::format("{} ({:+.2f} %)", figure(*e.metric), 100 * *e.change)
                                   : figure(*e.metric);
}

bool fails(const SensitivityRow& row) {
  return !row.least.metric || !row.most.metric;
}

using Line = std::vector<std::string>;

// Columns as wide as they must be; the second and the figures to the right.
std::string aligned(const std::vector<Line>& lines) {
  std::vector<std::size_t> width;
  for (const Line& line : lines) {
    width.resize(std::max(width.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  }
  std::string out;
  for (const Line& line : lines) {
    std::string text = " ";
    for (std::size_t i = 0; i < line.size(); ++i)
      text += i == 0 ? fmt::format(" {:<{}}", line[i], width[i]) : fmt::format("  {:>{}}", line[i], width[i]);
    out += text + "\n";
  }
  return out;
}

std::string table_text(const Sensitivity& s, const std::string& plan) {
  std::string out = fmt::format("{} of {}{}: {} as the target has it\n", s.metric, plan,
                                s.name.empty() ? "" : ", " + s.name, metric_text(s.base));
  if (!s.base.metric) return out;
  std::vector<Line> lines = {{"number", "assumed", "least", s.metric, "most", s.metric, "effect"}};
  std::size_t still = 0;
  std::string names;
  for (const SensitivityRow& r : s.rows) {
    if (r.effect == 0.0 && !fails(r)) {
      names += (still++ == 0 ? "" : ", ") + r.key;
      continue;
    }
    lines.push_back({r.key, r.value, to_string(r.least.value), metric_text(r.least), to_string(r.most.value),
                     metric_text(r.most), r.effect ? figure(*r.effect) : "-"});
  }
  if (lines.size() > 1) out += "\n" + aligned(lines);
  if (still != 0) out += fmt::format("\n  {} move nothing: {}\n", still, names);
  if (s.rows.empty()) out += "  its target assumes no number that has a range\n";
  return out;
}

Json end_json(const EndOutcome& e) {
  return Json()
      .set("value", to_json(e.value))
      .set("verdict", e.verdict)
      .set("error", e.error.empty() ? Json() : Json(e.error))
      .set("metric", e.metric ? Json(*e.metric) : Json())
      .set("change", e.change ? Json(*e.change) : Json());
}

Json table_json(const Sensitivity& s) {
  JsonArray numbers;
  for (const SensitivityRow& r : s.rows) {
    numbers.push_back(Json()
                          .set("key", r.key)
                          .set("assumed", r.value)
                          .set("source", r.source)
                          .set("least", end_json(r.least))
                          .set("most", end_json(r.most))
                          .set("effect", r.effect ? Json(*r.effect) : Json()));
  }
  return Json()
      .set("point", s.name)
      .set("verdict", s.base.verdict)
      .set("error", s.base.error.empty() ? Json() : Json(s.base.error))
      .set("base", s.base.metric ? Json(*s.base.metric) : Json())
      .set("numbers", std::move(numbers));
}

}  // namespace

std::string to_text(const std::vector<Sensitivity>& tables, const std::string& plan) {
  std::string out;
  for (const Sensitivity& s : tables) out += (out.empty() ? "" : "\n") + table_text(s, plan);
  return out;
}

Json to_json(const std::vector<Sensitivity>& tables, const std::string& plan) {
  JsonArray points;
  for (const Sensitivity& s : tables) points.push_back(table_json(s));
  return Json()
      .set("schema", "rdusim.sensitivity/1")
      .set("plan", plan)
      .set("metric", tables.empty() ? Json() : Json(tables.front().metric))
      .set("points", std::move(points));
}

}  // namespace rdusim
