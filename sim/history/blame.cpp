#include "sim/history/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/support/file.h"
#include "sim/history/timed_law.h"

namespace rdusim {

namespace {

constexpr std::size_t side = 3;  // runs at least before and after a step

struct Point {
  const RecordedRun* run = nullptr;
  Quantity value;
};

Move move_of(const Point& before, const Point& after, Quantity old, Quantity now) {
  Move m{*before.run, *after.run, old, now, std::nullopt, ""};
  const std::string& commit = after.run->origin.commit;
  if (!commit.empty() && after.run->origin.parent == before.run->origin.commit) m.culprit = commit;
  return m;
}

std::vector<Move> exact_moves(const std::vector<Point>& points) {
  std::vector<Move> moves;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].value == points[i - 1].value) continue;
    moves.push_back(move_of(points[i - 1], points[i], points[i - 1].value, points[i].value));
  }
  return moves;
}

// Of one host.
std::optional<Move> timed_move(const std::vector<Point>& points) {
  std::vector<double> values;
  for (const Point& p : points) values.push_back(to_double(p.value));
  std::size_t cut = 0;
  double least = std::numeric_limits<double>::infinity();
  double old = 0;
  double now = 0;
  for (std::size_t i = side; i + side <= values.size(); ++i) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(i);
    const double a = median({values.begin(), at});
    const double b = median({at, values.end()});
    double off = 0;
    for (std::size_t j = 0; j < values.size(); ++j) off += std::fabs(values[j] - (j < i ? a : b));
    if (off < least) least = off, cut = i, old = a, now = b;
  }
  const double farthest = std::fabs(now - old);
  if (cut == 0 || farthest <= 0.05 * std::fabs(old)) return std::nullopt;
  std::vector<double> residue;
  for (std::size_t i = 0; i < values.size(); ++i) residue.push_back(values[i] - (i < cut ? old : now));
  if (farthest <= 3 * 1.4826 * median_distance(residue)) return std::nullopt;
  return move_of(points[cut - 1], points[cut], old, now);
}

std::string short_commit(const std::string& commit) {
  return commit.empty() ? "an unknown commit" : commit.substr(0, 12);
}

}  // namespace

Result<std::vector<Blame>> blame(History& history, const std::string& metric, const std::string& program) {
  auto kinds = history.metric_kinds();
  auto all = history.series();
  auto accepted = history.acceptances();
  for (const Diagnostics* d : {&kinds.diagnostics(), &all.diagnostics(), &accepted.diagnostics()}) {
    if (d->has_errors()) return *d;
  }
  const std::string name = metric == "cycles" ? "cycles.simulated" : metric;
  const auto kind = std::find_if(kinds->begin(), kinds->end(), [&](const MetricKind& k) { return k.name == name; });
  Diagnostics d;
  if (kind == kinds->end()) {
    Diagnostic& e = d.error(Code::RDU8031, "blame", "no run has a metric '{}'", name);
    std::vector<std::string_view> names;
    for (const MetricKind& k : *kinds) names.push_back(k.name);
    if (const auto near = nearest(name, names); !near.empty()) e.suggest("did you mean '{}'?", near);
    return d;
  }
  if (!program.empty() && std::none_of(all->begin(), all->end(), [&](const Series& s) { return s.name == program; })) {
    d.error(Code::RDU8039, "--program", "there are no runs of '{}'", program);
    return d;
  }
  std::vector<Blame> list;
  for (const Series& s : *all) {
    if (!program.empty() && s.name != program) continue;
    auto samples = history.samples(s.id, name);
    auto runs = history.runs(s.id);
    if (!samples) return samples.diagnostics();
    if (!runs) return runs.diagnostics();
    if (samples->empty()) continue;
    std::map<std::int64_t, const RecordedRun*> by_id;
    for (const RecordedRun& r : *runs) by_id.emplace(r.id, &r);
    Blame b{s, name, kind->exactness, {}};
    std::map<std::string, std::vector<Point>> by_host;  // one group where hosts do not matter
    for (const Sample& sample : *samples) {
      if (!std::isfinite(to_double(sample.value))) continue;
      const RecordedRun* r = by_id.at(sample.run);
      by_host[kind->exactness == Exactness::timed ? r->origin.host : ""].push_back({r, sample.value});
    }
    for (const auto& [host, points] : by_host) {
      if (kind->exactness == Exactness::exact) {
        b.moves = exact_moves(points);
      } else if (auto m = timed_move(points)) {
        b.moves.push_back(*std::move(m));
      }
    }
    for (Move& m : b.moves) {
      for (const Acceptance& a : *accepted) {
        if (a.run == m.after.id && (a.metric.empty() || a.metric == name)) m.accepted = a.reason;
      }
    }
    list.push_back(std::move(b));
  }
  return list;
}

std::string blame_text(const std::vector<Blame>& list) {
  std::string out;
  for (const Blame& b : list) {
    out += fmt::format("{}: {}\n", to_string(b.series), b.metric);
    if (b.moves.empty()) out += "  it never moved\n";
    for (const Move& m : b.moves) {
      const std::string where = m.culprit ? short_commit(*m.culprit)
                                          : fmt::format("between {} and {}", short_commit(m.before.origin.commit),
                                                        short_commit(m.after.origin.commit));
      const double old = to_double(m.old);
      out += fmt::format("  {}  {} -> {}{}  run {}{}{}{}\n", where, to_string(m.old), to_string(m.now),
                         old == 0 ? "" : fmt::format(" ({:+.2f} %)", (to_double(m.now) - old) / old * 100), m.after.id,
                         b.exactness == Exactness::timed ? " on " + m.after.origin.host : "",
                         m.accepted.empty() ? "" : ", accepted: ", m.accepted);
    }
  }
  return out;
}

Json blame_json(const std::vector<Blame>& list) {
  const auto value = [](const Quantity& q) { return std::visit([](auto v) { return Json(v); }, q); };
  JsonArray rows;
  for (const Blame& b : list) {
    JsonArray moves;
    for (const Move& m : b.moves) {
      moves.push_back(Json()
                          .set("culprit", m.culprit ? Json(*m.culprit) : Json())
                          .set("after_commit", m.before.origin.commit)
                          .set("at_commit", m.after.origin.commit)
                          .set("run", m.after.id)
                          .set("host", m.after.origin.host)
                          .set("old", value(m.old))
                          .set("new", value(m.now))
                          .set("accepted", m.accepted.empty() ? Json() : Json(m.accepted)));
    }
    rows.push_back(Json()
                       .set("name", b.series.name)
                       .set("target", b.series.target)
                       .set("chips", b.series.chips)
                       .set("metric", b.metric)
                       .set("kind", b.exactness == Exactness::exact ? "exact" : "timed")
                       .set("moves", std::move(moves)));
  }
  return Json().set("schema", "rdusim.blame/1").set("programs", std::move(rows));
}

}  // namespace rdusim
