#include "sim/sweep/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/support/file.h"
#include "compiler/support/split_mix.h"
#include "compiler/support/toml.h"
#include "compiler/support/utf8.h"
#include "sim/sweep/change_toml.h"
#include "sim/sweep/expression.h"

namespace rdusim {

namespace {

std::optional<Cell> scalar(const TomlValue& v) {
  if (const auto* truth = v.as_boolean()) return Cell(*truth);
  if (const auto* whole = v.as_integer()) return Cell(*whole);
  if (const auto* real = v.as_float()) return Cell(*real);
  if (const auto* text = v.as_string()) return Cell(*text);
  return std::nullopt;
}

// An axis of a random plan: some values, or everything between two numbers.
struct Choice {
  std::size_t axis = 0;
  std::vector<Cell> values;
  Cell from, to;  // where `values` is empty

  Cell at(std::uint64_t& random) const {
    if (!values.empty()) return values[draw(random) % values.size()];
    const auto* low = std::get_if<std::int64_t>(&from);
    const auto* high = std::get_if<std::int64_t>(&to);
    if (low != nullptr && high != nullptr) {
      const auto span = static_cast<std::uint64_t>(*high) - static_cast<std::uint64_t>(*low) + 1;
      const std::uint64_t offset = span == 0 ? draw(random) : draw(random) % span;
      return Cell(static_cast<std::int64_t>(static_cast<std::uint64_t>(*low) + offset));
    }
    return Cell(*number_of(from) +
                (*number_of(to) - *number_of(from)) * static_cast<double>(draw(random) >> 11U) * 0x1p-53);
  }
};

class Reader {
 public:
  Reader(const TomlValue& root, std::string path) : root_(root), path_(std::move(path)) {}

  Result<SweepPlan> read() {
    check_keys(root_,
               {"name", "workload", "target", "compile", "run", "grid", "list", "random", "constraints", "metrics"});
    plan_.name = text("name").value_or(std::filesystem::path(path_).stem().string());
    if (const auto workload = text("workload"))
      plan_.workload = beside(*workload);
    else if (root_.find("workload") == nullptr)
      problem(root_, Code::RDU8062, "'workload' is missing: the file or folder that every point compiles");
    if (const auto target = text("target")) plan_.target = target_path(*target);
    options("compile", plan_.compile);
    options("run", plan_.run);
    metrics();
    constraints();
    grid();
    list();
    random();
    columns_of_constraints();
    if (plan_.points.empty() && !problems_.has_errors()) {
      problem(root_, Code::RDU8064,
              plan_.excluded == 0 ? "it has no point: give [grid], [[list]] or [random]"
                                  : "the constraints leave no point");
    }
    if (problems_.has_errors()) return problems_;
    return std::move(plan_);
  }

 private:
  Diagnostic& problem(const TomlValue& at, Code code, const std::string& what) {
    return problems_.error(code, fmt::format("{}:{}:{}", path_, at.line, at.column), "{}", what);
  }

  void check_keys(const TomlValue& table, const std::vector<std::string_view>& known) {
    if (table.as_table() == nullptr) return;
    for (const TomlMember& m : *table.as_table()) {
      if (std::find(known.begin(), known.end(), m.key) != known.end()) continue;
      Diagnostic& e = problems_.error(Code::RDU8061, fmt::format("{}:{}:{}", path_, m.line, m.column),
                                      "'{}' is not a key of a sweep plan here", m.key);
      if (const auto near = nearest(m.key, known); !near.empty()) e.suggest("did you mean '{}'?", near);
    }
  }

  std::optional<std::string> text(const char* key) {
    const TomlValue* v = root_.find(key);
    if (v == nullptr) return std::nullopt;
    const std::string* s = v->as_string();
    if (s != nullptr && is_plain(*s) && !s->empty()) return *s;
    problem(*v, Code::RDU8062, fmt::format("'{}' is a printable text, not {}", key, v->type_name()));
    return std::nullopt;
  }

  std::string beside(const std::string& file) const {
    return (std::filesystem::path(path_).parent_path() / file).string();
  }
  // A shipped target by its name, or a file beside the plan.
  std::string target_path(const std::string& name) const {
    const bool file = name.find('/') != std::string::npos || name.ends_with(".toml");
    return file ? beside(name) : name;
  }

  const TomlTable* table(const TomlValue& v, const std::string& what) {
    if (v.as_table() == nullptr) problem(v, Code::RDU8062, fmt::format("{} is a table, not {}", what, v.type_name()));
    return v.as_table();
  }

  void options(const char* key, std::vector<std::pair<std::string, Cell>>& into) {
    const TomlValue* v = root_.find(key);
    if (v == nullptr || table(*v, fmt::format("[{}]", key)) == nullptr) return;
    for (const TomlMember& m : *v->as_table()) {
      const auto cell = scalar(m.value);
      if (!cell || !is_option(m.key))
        problem(m.value, Code::RDU8062, fmt::format("'{}' is no option with one value", m.key));
      else
        into.emplace_back(m.key, *cell);
    }
  }

  static bool is_option(std::string_view name) {
    return !name.empty() && name.front() != '-' &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string_view::npos;
  }

  void metrics() {
    plan_.metrics = {"cycles.simulated",  "cycles.predicted", "cycles.lower_bound",     "tokens_per_s",
                     "links.busy_cycles", "links.bytes",      "memories.hbm.peak_bytes"};
    const TomlValue* v = root_.find("metrics");
    if (v == nullptr) return;
    plan_.metrics.clear();
    if (v->as_array() != nullptr) {
      for (const TomlValue& m : *v->as_array()) {
        if (m.as_string() != nullptr && is_plain(*m.as_string())) plan_.metrics.push_back(*m.as_string());
      }
    }
    if (v->as_array() == nullptr || plan_.metrics.size() != v->as_array()->size())
      problem(*v, Code::RDU8062, "'metrics' is a list of names of metrics");
  }

  void constraints() {
    const TomlValue* v = root_.find("constraints");
    if (v == nullptr) return;
    if (v->as_array() == nullptr) {
      problem(*v, Code::RDU8062, fmt::format("'constraints' is a list of conditions, not {}", v->type_name()));
      return;
    }
    for (const TomlValue& c : *v->as_array()) {
      const std::string where = fmt::format("{}:{}:{}", path_, c.line, c.column);
      if (c.as_string() == nullptr) {
        problem(c, Code::RDU8062, fmt::format("a condition is a text, not {}", c.type_name()));
        continue;
      }
      auto e = Expression::parse(*c.as_string(), where);
      problems_.append(e.diagnostics());
      if (e) constraints_.emplace_back(*std::move(e), where);
    }
  }

  void columns_of_constraints() {
    for (const auto& [expression, where] : constraints_)
      problems_.append(check_columns(expression.columns(), plan_.axes, where));
  }

  std::optional<std::size_t> axis(const TomlMember& m) {
    const auto known = std::find(plan_.axes.begin(), plan_.axes.end(), m.key);
    if (known != plan_.axes.end()) return static_cast<std::size_t>(known - plan_.axes.begin());
    std::string_view name = m.key;
    bool sound = is_option(name);
    for (const std::string_view prefix : {"target.", "workload."}) {
      if (name.starts_with(prefix)) sound = parse_path(name.substr(prefix.size())).has_value() && is_plain(name);
    }
    if (name.starts_with("run.")) sound = is_option(name.substr(4));
    if (!sound) {
      problems_
          .error(Code::RDU8061, fmt::format("{}:{}:{}", path_, m.line, m.column), "'{}' is nothing that a sweep sets",
                 m.key)
          .suggest("an axis is an option of compile, run.OPTION, target.KEY or workload.KEY");
      return std::nullopt;
    }
    plan_.axes.push_back(m.key);
    return plan_.axes.size() - 1;
  }

  // The values of an axis: one, or a list of them.
  std::vector<Cell> values(const TomlMember& m) {
    std::vector<Cell> cells;
    const TomlArray one = {m.value};
    const TomlArray* all = m.value.as_array() != nullptr ? m.value.as_array() : &one;
    for (const TomlValue& v : *all) {
      const auto cell = scalar(v);
      if (!cell || (std::holds_alternative<std::string>(*cell) && !is_plain(std::get<std::string>(*cell)))) {
        problem(v, Code::RDU8062,
                fmt::format("'{}' takes texts, numbers, true and false, not {}", m.key, v.type_name()));
        return {};
      }
      cells.push_back(m.key == "target" && std::holds_alternative<std::string>(*cell)
                          ? Cell(target_path(std::get<std::string>(*cell)))
                          : *cell);
    }
    if (cells.empty()) problem(m.value, Code::RDU8062, fmt::format("'{}' has no value", m.key));
    return cells;
  }

  // Adds a point unless it is there, or a constraint is against it. False where the limit is reached.
  bool add(SweepPoint point) {
    point.values.resize(plan_.axes.size());
    for (const auto& [expression, where] : constraints_) {
      std::vector<Cell> cells;
      for (const std::string& name : expression.columns()) {
        const auto at = std::find(plan_.axes.begin(), plan_.axes.end(), name);
        cells.push_back(at == plan_.axes.end() ? Cell()
                                               : point.values[static_cast<std::size_t>(at - plan_.axes.begin())]);
      }
      if (expression.holds(cells)) continue;
      ++plan_.excluded;
      return true;
    }
    std::string key;
    for (std::size_t a = 0; a < plan_.axes.size(); ++a) {
      if (point.values[a].index() != 0)
        key += fmt::format("{}={}:{}\n", a, point.values[a].index(), to_string(point.values[a]));
    }
    if (!seen_.insert(std::move(key)).second) return true;
    plan_.points.push_back(std::move(point));
    return plan_.points.size() <= plan_points_limit;
  }

  void too_many(const TomlValue& at) {
    problem(at, Code::RDU8064, fmt::format("it has more than {} points", plan_points_limit));
    plan_.points.clear();
  }

  void grid() {
    const TomlValue* v = root_.find("grid");
    if (v == nullptr || table(*v, "[grid]") == nullptr) return;
    std::vector<std::pair<std::size_t, std::vector<Cell>>> axes;
    std::size_t points = 1;
    for (const TomlMember& m : *v->as_table()) {
      const auto at = axis(m);
      auto cells = values(m);
      if (!at || cells.empty()) continue;
      points = points > plan_points_limit ? points : points * cells.size();
      axes.emplace_back(*at, std::move(cells));
    }
    if (problems_.has_errors() || axes.empty()) return;
    // A constraint may leave few of many; ten times the limit are looked at.
    if (points > 10 * plan_points_limit) return too_many(*v);
    for (std::size_t n = 0; n < points; ++n) {
      SweepPoint p;
      p.values.resize(plan_.axes.size());
      std::size_t rest = n;
      for (std::size_t a = axes.size(); a-- > 0;) {
        p.values[axes[a].first] = axes[a].second[rest % axes[a].second.size()];
        rest /= axes[a].second.size();
      }
      if (!add(std::move(p))) return too_many(*v);
    }
  }

  void list() {
    const TomlValue* v = root_.find("list");
    if (v == nullptr) return;
    if (v->as_array() == nullptr) {
      problem(*v, Code::RDU8062, fmt::format("[[list]] is a list of points, not {}", v->type_name()));
      return;
    }
    for (const TomlValue& entry : *v->as_array()) {
      if (table(entry, "a point of [[list]]") == nullptr) continue;
      SweepPoint p;
      for (const TomlMember& m : *entry.as_table()) {
        const auto at = axis(m);
        const auto cells = values(m);
        if (!at || cells.empty()) continue;
        if (cells.size() > 1) problem(m.value, Code::RDU8062, "a point of [[list]] has one value a key");
        p.values.resize(plan_.axes.size());
        p.values[*at] = cells.front();
      }
      if (!problems_.has_errors() && !add(std::move(p))) return too_many(*v);
    }
  }

  std::optional<std::int64_t> whole(const TomlValue& in, const char* key, std::int64_t least) {
    const TomlValue* v = in.find(key);
    if (v != nullptr && v->as_integer() != nullptr && *v->as_integer() >= least) return *v->as_integer();
    problem(v != nullptr ? *v : in, Code::RDU8062,
            fmt::format("[random] needs '{}', a whole number from {}", key, least));
    return std::nullopt;
  }

  std::optional<Choice> choice(const TomlMember& m) {
    const auto at = axis(m);
    if (!at) return std::nullopt;
    Choice c;
    c.axis = *at;
    if (m.value.as_table() == nullptr) {
      c.values = values(m);
      return c.values.empty() ? std::nullopt : std::optional(c);
    }
    check_keys(m.value, {"from", "to"});
    const TomlValue* from = m.value.find("from");
    const TomlValue* to = m.value.find("to");
    c.from = from != nullptr ? scalar(*from).value_or(Cell()) : Cell();
    c.to = to != nullptr ? scalar(*to).value_or(Cell()) : Cell();
    const auto low = number_of(c.from);
    const auto high = number_of(c.to);
    if (low && high && *low <= *high && *high - *low < 1e300) return c;
    problem(m.value, Code::RDU8062,
            fmt::format("'{}' lies between two numbers, 'from' and 'to', the lower first", m.key));
    return std::nullopt;
  }

  void random() {
    const TomlValue* v = root_.find("random");
    if (v == nullptr || table(*v, "[random]") == nullptr) return;
    check_keys(*v, {"points", "seed", "axes"});
    const auto count = whole(*v, "points", 1);
    const auto seed = whole(*v, "seed", 0);
    const TomlValue* axes = v->find("axes");
    if (axes == nullptr || axes->as_table() == nullptr || axes->as_table()->empty()) {
      problem(*v, Code::RDU8062, "[random] needs [random.axes], a table of axes");
      return;
    }
    std::vector<Choice> choices;
    for (const TomlMember& m : *axes->as_table()) {
      if (auto c = choice(m)) choices.push_back(*std::move(c));
    }
    if (problems_.has_errors()) return;
    if (static_cast<std::uint64_t>(*count) > plan_points_limit) return too_many(*v);
    auto random = static_cast<std::uint64_t>(*seed);
    const std::size_t wanted = plan_.points.size() + static_cast<std::size_t>(*count);
    const std::size_t tries = 1000 + 100 * static_cast<std::size_t>(*count);
    for (std::size_t n = 0; n < tries && plan_.points.size() < wanted; ++n) {
      SweepPoint p;
      p.values.resize(plan_.axes.size());
      for (const Choice& c : choices) p.values[c.axis] = c.at(random);
      if (!add(std::move(p))) return too_many(*v);
    }
    if (plan_.points.size() < wanted) {
      problem(*v, Code::RDU8064,
              fmt::format("only {} of {} different points were found in {} draws",
                          plan_.points.size() + static_cast<std::size_t>(*count) - wanted, *count, tries));
    }
  }

  const TomlValue& root_;
  std::string path_;
  SweepPlan plan_;
  std::vector<std::pair<Expression, std::string>> constraints_;
  std::set<std::string> seen_;
  Diagnostics problems_;
};

}  // namespace

Result<SweepPlan> parse_plan(const std::string& text, const std::string& path) {
  if (!is_utf8(text)) {
    Diagnostics d;
    d.error(Code::RDU8060, path, "it is not UTF-8");
    return d;
  }
  const auto root = parse_toml(text, path, Code::RDU8060);
  if (!root) return root.diagnostics();
  auto plan = Reader(*root, path).read();
  if (plan) {
    // Points of an earlier part lack the axes of a later one.
    for (SweepPoint& p : plan->points) p.values.resize(plan->axes.size());
  }
  return plan;
}

Result<SweepPlan> read_plan(const std::string& path) {
  const auto text = read_file(path, plan_bytes_limit);
  if (!text) return text.diagnostics();
  return parse_plan(*text, path);
}

}  // namespace rdusim
