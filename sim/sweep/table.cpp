#include "sim/sweep/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

SweepTable table_of(const SweepPlan& plan, const std::vector<PointOutcome>& outcomes) {
  SweepTable t;
  t.columns = {"point"};
  t.columns.insert(t.columns.end(), plan.axes.begin(), plan.axes.end());
  t.columns.insert(t.columns.end(), {"verdict", "error"});
  for (const std::string& m : plan.metrics) t.columns.push_back(m == "cycles.simulated" ? "cycles" : m);
  for (const PointOutcome& o : outcomes) {
    std::vector<Cell> row = {Cell(static_cast<std::int64_t>(o.point))};
    const SweepPoint& p = plan.points[o.point];
    row.insert(row.end(), p.values.begin(), p.values.end());
    row.push_back(o.verdict);
    row.push_back(o.error.empty() ? Cell() : Cell(o.error));
    row.insert(row.end(), o.metrics.begin(), o.metrics.end());
    row.resize(t.columns.size());
    t.rows.push_back(std::move(row));
  }
  std::sort(t.rows.begin(), t.rows.end(),
            [](const auto& a, const auto& b) { return std::get<std::int64_t>(a[0]) < std::get<std::int64_t>(b[0]); });
  return t;
}

namespace {

std::size_t index_of(const SweepTable& t, std::string_view name) {
  return static_cast<std::size_t>(std::find(t.columns.begin(), t.columns.end(), name) - t.columns.begin());
}

}  // namespace

Result<SweepTable> where(SweepTable table, std::string_view condition) {
  const auto e = Expression::parse(condition, "--where");
  if (!e) return e.diagnostics();
  const Diagnostics unknown = check_columns(e->columns(), table.columns, "--where");
  if (unknown.has_errors()) return unknown;
  std::vector<std::size_t> at;
  for (const std::string& name : e->columns()) at.push_back(index_of(table, name));
  std::erase_if(table.rows, [&](const std::vector<Cell>& row) {
    std::vector<Cell> values;
    for (const std::size_t i : at) values.push_back(row[i]);
    return !e->holds(values);
  });
  return table;
}

Result<SweepTable> pareto(SweepTable table, std::string_view columns) {
  std::vector<std::string> names;
  std::vector<double> sign;
  for (std::size_t from = 0; from <= columns.size();) {
    const std::size_t comma = std::min(columns.find(',', from), columns.size());
    std::string_view name = columns.substr(from, comma - from);
    sign.push_back(name.starts_with('-') ? -1 : 1);
    if (name.starts_with('-')) name.remove_prefix(1);
    names.emplace_back(name);
    from = comma + 1;
  }
  const Diagnostics unknown = check_columns(names, table.columns, "--pareto");
  if (unknown.has_errors()) return unknown;
  const std::size_t verdict = index_of(table, "verdict");
  struct Candidate {
    std::size_t row;
    std::vector<double> cost;
  };
  std::vector<Candidate> candidates;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    Candidate c{r, {}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto v = number_of(table.rows[r][index_of(table, names[i])]);
      if (v) c.cost.push_back(sign[i] * *v);
    }
    if (c.cost.size() == names.size() && table.rows[r][verdict] == Cell(std::string("pass")))
      candidates.push_back(std::move(c));
  }
  // Rising by cost: whoever beats a row stands before it, and one that is beaten is beaten by one that stays.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  std::vector<Candidate> kept;
  for (Candidate& c : candidates) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const Candidate& k) {
      bool no_worse = true;
      for (std::size_t i = 0; i < c.cost.size(); ++i) no_worse = no_worse && k.cost[i] <= c.cost[i];
      return no_worse && k.cost != c.cost;
    });
    if (!beaten) kept.push_back(std::move(c));
  }
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) { return a.row < b.row; });
  std::vector<std::vector<Cell>> rows;
  for (const Candidate& k : kept) rows.push_back(std::move(table.rows[k.row]));
  table.rows = std::move(rows);
  return table;
}

namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string to_csv(const SweepTable& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) out += (i == 0 ? "" : ",") + csv_field(table.columns[i]);
  out += "\r\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : ",") + csv_field(to_string(row[i]));
    out += "\r\n";
  }
  return out;
}

std::string to_json_lines(const SweepTable& table) {
  std::string out;
  for (const auto& row : table.rows) {
    JsonObject object;
    for (std::size_t i = 0; i < row.size(); ++i) object.emplace_back(table.columns[i], to_json(row[i]));
    out += to_text(Json(std::move(object)), true) + "\n";
  }
  return out;
}

}  // namespace rdusim
