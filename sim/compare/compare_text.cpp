#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "compiler/support/units.h"
#include "compiler/support/utf8.h"
#include "sim/compare/chip_names.h"
#include "sim/compare/compare.h"

namespace rdusim {

namespace {

constexpr std::size_t rows_of_a_family = 8;

// A line of a table: one metric, of the chip on which it moved most.
struct Row {
  std::string family;  // "stages"
  std::string label;   // "down.all_reduce.fold"
  std::string old, now, difference, percent;
  std::string note;  // "chip8, 16 of 16 chips; link +3,540"
  double size = 0;   // of the change
};

std::string number(const Quantity& q) {
  const std::int64_t* whole = std::get_if<std::int64_t>(&q);
  if (whole == nullptr) return fmt::format("{:.4g}", std::get<double>(q));
  return with_commas(static_cast<std::uint64_t>(*whole));  // metrics are not negative
}

std::string signed_number(double v, bool whole) {
  if (!whole) return fmt::format("{:+.4g}", v);
  return fmt::format("{}{}", v < 0 ? "-" : "+", with_commas(static_cast<std::uint64_t>(std::llround(std::fabs(v)))));
}

bool is_whole(const MetricChange& m) {
  const auto whole = [](const std::optional<Quantity>& q) { return !q || std::holds_alternative<std::int64_t>(*q); };
  return whole(m.old) && whole(m.now);
}

Row row_of(const MetricChange& m) {
  Row r;
  r.family = m.name.substr(0, m.name.find('.'));
  r.label = m.name.size() > r.family.size() ? m.name.substr(r.family.size() + 1) : m.name;
  r.old = m.old ? number(*m.old) : "-";
  r.now = m.now ? number(*m.now) : "-";
  r.difference = signed_number(m.difference(), is_whole(m));
  if (const auto p = m.percent()) r.percent = fmt::format("{:+.1f} %", *p);
  r.size = std::fabs(m.difference());
  if (!m.old) r.note = "new";
  if (!m.now) r.note = "gone";
  return r;
}

// What is shown of the metrics of stages, buffers and so on, where not all are asked for.
bool is_headline(std::string_view name) {
  for (const std::string_view family : {"cycles.", "causes.", "macs.", "collectives.", "host."}) {
    if (name.starts_with(family)) return true;
  }
  const std::string_view key = name.substr(name.rfind('.') + 1);
  if (name.starts_with("stages.")) return key == "cycles";
  if (name.starts_with("links.")) return key == "bytes" || key == "busy_cycles";
  if (name.starts_with("buffers.")) return key == "peak_pages" || key == "depth_pages";
  return true;
}

// The stall of one stage that moved most, as "link +3,540"; of stage "stages.down.fold_c3".
std::string leading_stall(const ReportComparison& c, std::string_view stage) {
  const MetricChange* most = nullptr;
  const std::string prefix = fmt::format("{}.stall.", stage);
  for (const MetricChange& m : c.changes) {
    if (!m.name.starts_with(prefix)) continue;
    if (most == nullptr || std::fabs(m.difference()) > std::fabs(most->difference())) most = &m;
  }
  if (most == nullptr) return "";
  return fmt::format("{} {}", most->name.substr(prefix.size()), signed_number(most->difference(), true));
}

// Chips folded: of each folded name the change that is largest, with how many of its chips moved.
std::vector<Row> folded_rows(const ReportComparison& c) {
  struct Entry {
    const MetricChange* most = nullptr;
    std::size_t moved = 0;
  };
  std::map<std::string, std::size_t> all;
  std::set<std::string_view> names;
  for (const ReportFile* file : {&c.old, &c.now}) {
    for (const Metric& m : file->metrics) {
      if (names.insert(m.name).second) ++all[folded_name(m.name)];
    }
  }
  std::vector<std::string> order;
  std::map<std::string, Entry> entries;
  for (const MetricChange& m : c.changes) {
    if (!is_headline(m.name)) continue;
    const std::string name = folded_name(m.name);
    Entry& e = entries[name];
    if (e.moved++ == 0) order.push_back(name);
    if (e.most == nullptr || std::fabs(m.difference()) > std::fabs(e.most->difference())) e.most = &m;
  }
  std::vector<Row> rows;
  for (const std::string& name : order) {
    const Entry& e = entries[name];
    Row r = row_of(*e.most);
    if (all[name] > 1) {
      r.note += fmt::format("{}{} of {} moved", r.note.empty() ? "" : ", ", e.moved, all[name]);
    }
    if (e.most->name.starts_with("stages.")) {
      const std::string stage = e.most->name.substr(0, e.most->name.rfind('.'));
      if (const std::string stall = leading_stall(c, stage); !stall.empty())
        r.note += fmt::format("{}{}", r.note.empty() ? "" : "; ", stall);
    }
    rows.push_back(std::move(r));
  }
  return rows;
}

std::vector<Row> rows_of(const ReportComparison& c, bool all) {
  if (!all) return folded_rows(c);
  std::vector<Row> rows;
  for (const MetricChange& m : c.changes) rows.push_back(row_of(m));
  return rows;
}

// By family in the order of first appearance, the largest change first; at most `limit` of each, and how many are left.
struct Family {
  std::string name;
  std::vector<Row> rows;
  std::size_t left = 0;
};
std::vector<Family> families_of(std::vector<Row> rows, bool all) {
  std::vector<Family> families;
  for (Row& r : rows) {
    auto at = std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.name == r.family; });
    if (at == families.end()) at = families.insert(at, Family{r.family, {}, 0});
    at->rows.push_back(std::move(r));
  }
  for (Family& f : families) {
    if (all || f.name == "cycles") continue;
    std::stable_sort(f.rows.begin(), f.rows.end(), [](const Row& a, const Row& b) { return a.size > b.size; });
    if (f.rows.size() <= rows_of_a_family) continue;
    f.left = f.rows.size() - rows_of_a_family;
    f.rows.resize(rows_of_a_family);
  }
  return families;
}

std::string told(const std::optional<std::string>& decision) {
  return decision ? *decision : "-";
}

std::string heading(const ReportComparison& c) {
  std::string text =
      fmt::format("{} on {}, {} chip{}", c.now.program, c.now.target, c.now.chips, c.now.chips == 1 ? "" : "s");
  if (c.name != c.now.program) text = fmt::format("{}: {}", c.name, text);
  if (c.old.program != c.now.program || c.old.target != c.now.target || c.old.chips != c.now.chips) {
    text += fmt::format(" (the older: {} on {}, {} chip{})", c.old.program, c.old.target, c.old.chips,
                        c.old.chips == 1 ? "" : "s");
  }
  return text;
}

// "option target null -> \"slow.toml\"", a line an option.
std::vector<std::string> options_that_differ(const ReportComparison& c) {
  std::vector<std::string> out;
  const auto old = parse_json(c.old.options, c.old.path, Code::RDU8001);
  const auto now = parse_json(c.now.options, c.now.path, Code::RDU8001);
  if (!old || !now || old->as_object() == nullptr || now->as_object() == nullptr) return out;
  const auto value = [](const Json& options, const std::string& name) {
    const Json* v = options.find(name);
    return v == nullptr ? std::string("-") : to_text(*v, true);
  };
  const auto add = [&](const std::string& name) {
    const std::string a = value(*old, name);
    const std::string b = value(*now, name);
    if (a != b && is_plain(name) && is_plain(a) && is_plain(b))
      out.push_back(fmt::format("option {} {} -> {}", name, a, b));
  };
  for (const auto& [name, v] : *old->as_object()) add(name);
  for (const auto& [name, v] : *now->as_object()) {
    if (old->find(name) == nullptr) add(name);
  }
  return out;
}

// What else is not the same, beside figures.
std::vector<std::string> circumstances(const ReportComparison& c) {
  std::vector<std::string> out;
  const auto differs = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b && !a.empty() && !b.empty())
      out.push_back(fmt::format("{} {} -> {}", what, a.substr(0, 12), b.substr(0, 12)));
  };
  differs("rdusim", c.old.version, c.now.version);
  differs("program", c.old.program_sha256, c.now.program_sha256);
  differs("target file", c.old.target_sha256, c.now.target_sha256);
  for (std::string& option : options_that_differ(c)) out.push_back(std::move(option));
  return out;
}

std::string pair_text(const ReportComparison& c, bool all, bool colour) {
  const char* bad = colour ? "\x1b[31m" : "";
  const char* off = colour ? "\x1b[0m" : "";
  std::string out = heading(c) + "\n";
  const auto line = [&](std::string_view label, const std::string& text) {
    out += fmt::format("  {:<12} {}\n", label, text);
  };
  line("verdict",
       c.old.verdict == c.now.verdict ? c.now.verdict : fmt::format("{} -> {}", c.old.verdict, c.now.verdict));
  for (const std::string& text : circumstances(c)) line("differs", text);
  std::size_t shown = 0;
  for (const DecisionChange& d : c.decisions) {
    if (!all && shown == 2 * rows_of_a_family) {
      line("", fmt::format("and {} more (--all)", c.decisions.size() - shown));
      break;
    }
    line(shown++ == 0 ? "decisions" : "", fmt::format("{}: {} -> {}", d.name, told(d.old), told(d.now)));
  }
  for (const Family& f : families_of(rows_of(c, all), all)) {
    bool first = true;
    for (const Row& r : f.rows) {
      line(first ? f.name : "", fmt::format("{:<38} {:>14} -> {:>14} {:>13} {:>9}{}{}", r.label, r.old, r.now,
                                            r.difference, r.percent, r.note.empty() ? "" : "  ", r.note));
      first = false;
    }
    if (f.left != 0) line("", fmt::format("and {} more (--all)", f.left));
  }
  if (std::none_of(c.changes.begin(), c.changes.end(),
                   [](const MetricChange& m) { return m.exactness == Exactness::exact; })) {
    line("same", fmt::format("all {} exact metrics", c.same));
  }
  for (const Regression& r : c.regressions) {
    if (&r - c.regressions.data() == static_cast<std::ptrdiff_t>(rows_of_a_family) && !all) {
      line("", fmt::format("and {} more (--all)", c.regressions.size() - rows_of_a_family));
      break;
    }
    line("regression", fmt::format("{}{}{}", bad, r.text, off));
  }
  return out;
}

// Nothing that Markdown or HTML would read as its own.
std::string markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_{}[]()#+!|~@").find(c) != std::string_view::npos && c != '(' && c != ')') out += '\\';
      out += c;
    }
  }
  return out;
}

std::size_t count_regressions(const SetComparison& set) {
  std::size_t n = set.vanished.size();
  for (const ReportComparison& c : set.pairs) n += c.regressions.size();
  return n;
}

std::string conclusion(const SetComparison& set) {
  const std::size_t n = count_regressions(set);
  return n == 0 ? "no regression" : fmt::format("{} regression{}", n, n == 1 ? "" : "s");
}

}  // namespace

std::string comparison_text(const SetComparison& set, bool all, bool colour) {
  std::string out;
  std::size_t alike = 0;
  for (const ReportComparison& c : set.pairs) {
    const bool quiet = set.pairs.size() > 1 && c.regressions.empty() && c.decisions.empty() &&
                       c.old.verdict == c.now.verdict &&
                       std::none_of(c.changes.begin(), c.changes.end(),
                                    [](const MetricChange& m) { return m.exactness == Exactness::exact; });
    if (quiet && !all)
      ++alike;
    else
      out += pair_text(c, all, colour);
  }
  if (alike != 0) out += fmt::format("{} of {} programs: all exact metrics are the same\n", alike, set.pairs.size());
  for (const std::string& name : set.vanished)
    out += fmt::format("{}: only among the older reports: regression\n", name);
  for (const std::string& name : set.appeared) out += fmt::format("{}: only among the newer reports\n", name);
  return out + conclusion(set) + "\n";
}

std::string comparison_markdown(const SetComparison& set) {
  std::string out = fmt::format("### rdusim compare: {}\n\n", conclusion(set));
  out += "| program | verdict | cycles before | cycles after | change | |\n|---|---|---:|---:|---:|---|\n";
  for (const ReportComparison& c : set.pairs) {
    const auto cycles = [](const ReportFile& f) {
      for (const Metric& m : f.metrics) {
        if (m.name == "cycles.simulated") return m.value;
      }
      return Quantity{};
    };
    MetricChange m{"cycles.simulated", "cycles", Exactness::exact, Better::lower, cycles(c.old), cycles(c.now)};
    const auto percent = m.percent();
    out += fmt::format(
        "| {} | {} | {} | {} | {} | {} |\n", markdown(c.name),
        c.old.verdict == c.now.verdict ? c.now.verdict : fmt::format("{} → **{}**", c.old.verdict, c.now.verdict),
        number(*m.old), number(*m.now),
        m.difference() == 0 ? "0"
                            : fmt::format("{}{}", signed_number(m.difference(), is_whole(m)),
                                          percent ? fmt::format(" ({:+.1f} %)", *percent) : ""),
        c.regressions.empty() ? "" : "**regression**");
  }
  for (const std::string& name : set.vanished)
    out += fmt::format("| {} | gone | | | | **regression** |\n", markdown(name));
  for (const std::string& name : set.appeared) out += fmt::format("| {} | new | | | | |\n", markdown(name));
  for (const ReportComparison& c : set.pairs) {
    const auto families = families_of(rows_of(c, false), false);
    if (c.decisions.empty() && c.regressions.empty() && families.empty()) continue;
    out += fmt::format("\n<details><summary>{}</summary>\n\n", markdown(c.name));
    for (const Regression& r : c.regressions) out += fmt::format("- regression: {}\n", markdown(r.text));
    for (const DecisionChange& d : c.decisions)
      out += fmt::format("- decision {}: {} → {}\n", markdown(d.name), markdown(told(d.old)), markdown(told(d.now)));
    out += "\n| metric | before | after | change | | |\n|---|---:|---:|---:|---:|---|\n";
    for (const Family& f : families) {
      for (const Row& r : f.rows)
        out += fmt::format("| {} {} | {} | {} | {} | {} | {} |\n", f.name, markdown(r.label), r.old, r.now,
                           r.difference, r.percent, markdown(r.note));
      if (f.left != 0) out += fmt::format("| {} | | | and {} more | | |\n", f.name, f.left);
    }
    out += "\n</details>\n";
  }
  return out;
}

namespace {

Json json_of(const std::optional<Quantity>& q) {
  if (!q) return {};
  return std::visit([](auto v) { return Json(v); }, *q);
}
Json json_of(const std::optional<std::string>& s) {
  return s ? Json(*s) : Json();
}

Json identity(const ReportFile& f) {
  return Json()
      .set("file", f.path)
      .set("program", f.program)
      .set("program_sha256", f.program_sha256)
      .set("chips", f.chips)
      .set("target", f.target)
      .set("target_sha256", f.target_sha256)
      .set("verdict", f.verdict);
}

}  // namespace

Json comparison_json(const SetComparison& set) {
  Json j;
  j.set("schema", "rdusim.compare/1").set("regressed", set.regressed());
  JsonArray pairs;
  for (const ReportComparison& c : set.pairs) {
    JsonArray metrics;
    for (const MetricChange& m : c.changes) {
      const auto percent = m.percent();
      metrics.push_back(Json()
                            .set("name", m.name)
                            .set("unit", m.unit)
                            .set("kind", m.exactness == Exactness::exact ? "exact" : "timed")
                            .set("old", json_of(m.old))
                            .set("new", json_of(m.now))
                            .set("percent", percent ? Json(*percent) : Json()));
    }
    JsonArray decisions;
    for (const DecisionChange& d : c.decisions)
      decisions.push_back(Json().set("name", d.name).set("old", json_of(d.old)).set("new", json_of(d.now)));
    JsonArray regressions;
    for (const Regression& r : c.regressions) {
      regressions.push_back(Json()
                                .set("metric", r.metric.empty() ? Json() : Json(r.metric))
                                .set("threshold", r.threshold.empty() ? Json() : Json(r.threshold))
                                .set("text", r.text));
    }
    pairs.push_back(Json()
                        .set("name", c.name)
                        .set("old", identity(c.old))
                        .set("new", identity(c.now))
                        .set("metrics", std::move(metrics))
                        .set("same", c.same)
                        .set("decisions", std::move(decisions))
                        .set("regressions", std::move(regressions)));
  }
  j.set("pairs", std::move(pairs));
  JsonArray vanished;
  for (const std::string& name : set.vanished) vanished.emplace_back(name);
  JsonArray appeared;
  for (const std::string& name : set.appeared) appeared.emplace_back(name);
  j.set("vanished", std::move(vanished)).set("appeared", std::move(appeared));
  return j;
}

}  // namespace rdusim
