#include "sim/trace_hot.h"

#include <algorithm>
#include <numeric>

#include "sim/listeners.h"
#include "sim/report_rows.h"
#include "sim/trace_outcome.h"
#include "traces/machine_state.h"

namespace rdusim {

namespace {

// For how long transfers waited for links, and for how long buffers had no room.
class Waits final : public EventSink {
 public:
  explicit Waits(const Roster& roster)
      : roster_(roster), state_(roster), links_(roster.links.size()), buffers_(roster.buffer_instances()) {}

  void on(const LinkUsed& e) override { links_[e.link.value] += e.begin - std::min(e.begin, e.at); }
  void on(const PageReserved& e) override { follow(e); }
  void on(const PagePushed& e) override { follow(e); }
  void on(const PagePopped& e) override { follow(e); }
  void finish(Cycle at) {
    for (Full& f : buffers_)
      if (f.since) f.cycles += at - std::min(at, *f.since);
  }

  Cycles of(LinkId l) const { return links_[l.value]; }
  // Of the instance that was full for longest.
  Cycles full(BufferId b) const {
    Cycles most = 0;
    for (std::uint32_t i = 0; i < roster_.instances(b); ++i)
      most = std::max(most, buffers_[roster_.of(BufferAt{b, i})].cycles);
    return most;
  }

 private:
  struct Full {
    std::optional<Cycle> since;
    Cycles cycles = 0;
  };
  void follow(const auto& e) {
    state_.on(e);
    const std::uint32_t n = roster_.of(e.buffer);
    Full& f = buffers_[n];
    const bool full = state_.buffer(n).claimed() >= roster_.buffers[e.buffer.buffer.value].depth;
    if (full == f.since.has_value()) return;
    if (f.since) f.cycles += e.at - *f.since;
    f.since = full ? std::optional(e.at) : std::nullopt;
  }

  const Roster& roster_;
  MachineState state_;
  std::vector<Cycles> links_;  // by link
  std::vector<Full> buffers_;  // by buffer instance
};

// Of the listeners of a run (listeners.h), those who count what units do; and of what they waited for.
struct Counters final : EventSink {
  Counters(const LoadedProgram& loaded, const Roster& roster)
      : waits(roster),
        instances(loaded.program),
        violations(stop, true),
        handshakes(instances, violations),
        statistics(instances, loaded.target, nullptr) {}

#define RDU_TELL(Event)              \
  void on(const Event& e) override { \
    tell(handshakes, e);             \
    tell(statistics, e);             \
    tell(waits, e);                  \
  }
  RDU_EVENTS(RDU_TELL)
#undef RDU_TELL

  std::atomic<bool> stop{false};
  Waits waits;
  Instances instances;
  Violations violations;
  HandshakeChecker handshakes;
  Statistics statistics;
};

}  // namespace

Result<Inspected> hottest(EventLogReader& log, std::size_t most) {
  const auto traced = traced_program(log);
  if (!traced) return traced.diagnostics();
  const LoadedProgram& loaded = traced->loaded;
  Counters counters(loaded, log.roster());
  const auto end = log.read(counters);
  if (!end) return end.diagnostics();
  if (Diagnostics d = refuse_partial(log, *end); d.has_errors()) return d;
  Report r;
  r.cycles = end->end ? end->end->cycles : end->last;
  counters.waits.finish(r.cycles);
  add_unit_rows(loaded, {counters.instances, counters.statistics, counters.handshakes}, Costs(), r);
  const auto stalled = [](const StageRow& s) { return std::accumulate(s.stall.begin(), s.stall.end(), Cycles{0}); };

  std::vector<const StageRow*> stages;
  for (const StageRow& s : r.stages) stages.push_back(&s);
  std::stable_sort(stages.begin(), stages.end(),
                   [&](const StageRow* a, const StageRow* b) { return stalled(*a) > stalled(*b); });
  JsonArray stage_rows;
  for (std::size_t i = 0; i < stages.size() && i < most; ++i) {
    const StageRow& s = *stages[i];
    Json row;
    row.set("stage", s.name).set("site", s.site).set("cycles", s.cycles).set("busy", s.busy);
    row.set("stalled", stalled(s)).set("idle", s.idle);
    for (std::size_t c = 0; c < stall_causes; ++c)
      row.set(std::string(name_of(static_cast<StallCause>(c))), s.stall[c]);
    stage_rows.push_back(std::move(row));
  }

  Json by_cause;
  for (std::size_t c = 0; c < stall_causes; ++c) {
    Cycles sum = 0;
    for (const StageRow& s : r.stages) sum += s.stall[c];
    by_cause.set(std::string(name_of(static_cast<StallCause>(c))), sum);
  }

  // Of a row, what was waited for it.
  using Waited = std::pair<Cycles, std::size_t>;
  std::vector<Waited> links;
  for (const LinkId l : loaded.program.links)
    if (l.value < loaded.target.links.size()) links.emplace_back(counters.waits.of(l), links.size());
  std::stable_sort(links.begin(), links.end(), [&](const Waited& a, const Waited& b) {
    return a.first != b.first ? a.first > b.first : r.links[a.second].busy > r.links[b.second].busy;
  });
  links.resize(std::min(most, links.size()));
  JsonArray link_rows;
  for (const auto& [waited, i] : links)
    link_rows.push_back(Json()
                            .set("link", r.links[i].name)
                            .set("waited_for", waited)
                            .set("busy_cycles", r.links[i].busy)
                            .set("utilisation", r.links[i].utilisation)
                            .set("bytes", r.links[i].bytes));

  std::vector<Waited> buffers;
  for (std::size_t b = 0; b < r.buffers.size(); ++b) buffers.emplace_back(counters.waits.full(BufferId(b)), b);
  const auto fullness = [](const BufferRow& b) {
    return b.depth == 0 ? 0.0 : static_cast<double>(b.peak) / static_cast<double>(b.depth);
  };
  std::stable_sort(buffers.begin(), buffers.end(), [&](const Waited& a, const Waited& b) {
    if (a.first != b.first) return a.first > b.first;
    const BufferRow &x = r.buffers[a.second], &y = r.buffers[b.second];
    return fullness(x) != fullness(y) ? fullness(x) > fullness(y) : x.pushed > y.pushed;
  });
  buffers.resize(std::min(most, buffers.size()));
  JsonArray buffer_rows;
  for (const auto& [full, i] : buffers)
    buffer_rows.push_back(Json()
                              .set("buffer", r.buffers[i].name)
                              .set("full_cycles", full)
                              .set("peak_pages", r.buffers[i].peak)
                              .set("depth_pages", r.buffers[i].depth)
                              .set("pages", r.buffers[i].pushed));

  Json j;
  j.set("cycles", r.cycles).set("stalled_by_cause", std::move(by_cause));
  j.set("stages", std::move(stage_rows)).set("links", std::move(link_rows)).set("buffers", std::move(buffer_rows));
  return Inspected{std::move(j), end->notes};
}

}  // namespace rdusim
