// Two logs side by side.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/inspect.h"
#include "traces/inspect_common.h"

namespace rdusim {

namespace {

constexpr std::uint64_t chunk_events = 1024;

struct StageTotals {
  std::uint64_t firings = 0;
  Cycles busy = 0, stall = 0;
  Cycle last = 0;
  friend bool operator==(const StageTotals&, const StageTotals&) = default;
};

// A log in brief: a sum for every so many events, and totals of stages by name.
struct Brief {
  std::vector<std::uint64_t> sums;
  std::uint64_t events = 0;
  std::map<std::string, StageTotals> stages;
  Cycle cycles = 0;
  Diagnostics notes;
};

template <class E>
std::uint64_t sum_of(const E& e, const Roster& r) {
  std::uint64_t h = 0xcbf29ce484222325U;
  const auto mix = [&h](std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15U;
    h ^= h >> 29U;
  };
  mix(static_cast<std::uint64_t>(kind_of_event<E>));
  mix(e.at);
  mix(subject(e, r));
  each_field(e, [&](const auto& v) { mix(static_cast<std::uint64_t>(v)); });
  return h;
}

Result<Brief> brief_of(EventLogReader& log) {
  const Roster& r = log.roster();
  Brief b;
  Each each([&](const auto& e) {
    using E = std::remove_cvref_t<decltype(e)>;
    if (b.events++ % chunk_events == 0) b.sums.push_back(0);
    b.sums.back() = b.sums.back() * 0x100000001b3U + sum_of(e, r);
    if constexpr (std::is_same_v<E, FiringStarted>) {
      StageTotals& s = b.stages[r.stages[e.stage.stage.value].name];
      ++s.firings;
      s.busy += e.busy;
      s.stall += e.stall;
    }
    if constexpr (std::is_same_v<E, FiringCompleted>) b.stages[r.stages[e.stage.stage.value].name].last = e.at;
  });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  b.cycles = end->end ? end->end->cycles : end->last;
  b.notes = end->notes;
  return b;
}

// The events of one chunk, spelt.
Result<std::vector<std::pair<std::uint64_t, std::string>>> chunk_of(EventLogReader& log, std::uint64_t chunk) {
  const Roster& r = log.roster();
  std::vector<std::pair<std::uint64_t, std::string>> list;
  std::uint64_t n = 0;
  std::string room;
  Each each([&](const auto& e) {
    if (n++ / chunk_events != chunk) return;
    using E = std::remove_cvref_t<decltype(e)>;
    std::string text = fmt::format("cycle {}, {}: {}", e.at, text_of(subject_of<E>(), subject(e, r), r, room),
                                   name_of(kind_of_event<E>));
    text += fields_text(e, r, " ");
    list.emplace_back(sum_of(e, r), std::move(text));
  });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  return list;
}

}  // namespace

Result<Inspected> inspect_difference(EventLogReader& a, EventLogReader& b, EventLogReader& a_again,
                                     EventLogReader& b_again) {
  auto first = brief_of(a);
  if (!first) return first.diagnostics();
  auto second = brief_of(b);
  if (!second) return second.diagnostics();
  Inspected out;
  out.answer.set("programs", a.roster().program_sha256 == b.roster().program_sha256
                                 ? Json("the same")
                                 : Json(fmt::format("differ: '{}' on {} and '{}' on {}", a.roster().program,
                                                    a.roster().target, b.roster().program, b.roster().target)));
  out.notes = first->notes;
  out.notes.append(second->notes);
  const auto differ = std::mismatch(first->sums.begin(), first->sums.end(), second->sums.begin(), second->sums.end());
  const bool equal = first->sums == second->sums && first->events == second->events;
  out.answer.set("equal", equal);
  out.answer.set("events", Json().set("first", first->events).set("second", second->events));
  out.answer.set("cycles", Json().set("first", first->cycles).set("second", second->cycles));
  Json divergence;
  if (!equal) {
    const auto chunk = static_cast<std::uint64_t>(differ.first - first->sums.begin());
    const auto x = chunk_of(a_again, chunk);
    if (!x) return x.diagnostics();
    const auto y = chunk_of(b_again, chunk);
    if (!y) return y.diagnostics();
    std::size_t i = 0;
    while (i < x->size() && i < y->size() && (*x)[i] == (*y)[i]) ++i;
    divergence.set("event", chunk * chunk_events + i);
    divergence.set("first", i < x->size() ? Json((*x)[i].second) : Json("the log ends"));
    divergence.set("second", i < y->size() ? Json((*y)[i].second) : Json("the log ends"));
  }
  out.answer.set("divergence", std::move(divergence));
  JsonArray stages;
  std::map<std::string, std::pair<StageTotals, StageTotals>> both;
  for (const auto& [name, t] : first->stages) both[name].first = t;
  for (const auto& [name, t] : second->stages) both[name].second = t;
  for (const auto& [name, t] : both) {
    const auto& [x, y] = t;
    if (x == y) continue;
    const auto by = [](std::uint64_t was, std::uint64_t is) {
      return Json(static_cast<std::int64_t>(is) - static_cast<std::int64_t>(was));
    };
    stages.push_back(Json()
                         .set("stage", name)
                         .set("firings", by(x.firings, y.firings))
                         .set("busy", by(x.busy, y.busy))
                         .set("stall", by(x.stall, y.stall))
                         .set("last_completion", by(x.last, y.last)));
  }
  out.answer.set("stages", std::move(stages));
  return out;
}

}  // namespace rdusim
