#include "sim/trace_hot.h"

#include <algorithm>
#include <numeric>

#include "sim/listeners.h"
#include "sim/report_rows.h"
#include "sim/trace_outcome.h"

namespace rdusim {

namespace {

// Of the listeners of a run (listeners.h), those who count what units do.
struct Counters final : EventSink {
  explicit Counters(const LoadedProgram& loaded)
      : instances(loaded.program),
        violations(stop, true),
        handshakes(instances, violations),
        statistics(instances, loaded.target, nullptr) {}

#define RDU_TELL(Event)              \
  void on(const Event& e) override { \
    tell(handshakes, e);             \
    tell(statistics, e);             \
  }
  RDU_EVENTS(RDU_TELL)
#undef RDU_TELL

  std::atomic<bool> stop{false};
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
  Counters counters(loaded);
  const auto end = log.read(counters);
  if (!end) return end.diagnostics();
  if (Diagnostics d = refuse_partial(*end); d.has_errors()) return d;
  Report r;
  r.cycles = end->end ? end->end->cycles : end->last;
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

  std::vector<const LinkRow*> links;
  for (const LinkRow& l : r.links) links.push_back(&l);
  std::stable_sort(links.begin(), links.end(), [](const LinkRow* a, const LinkRow* b) { return a->busy > b->busy; });
  JsonArray link_rows;
  for (std::size_t i = 0; i < links.size() && i < most; ++i)
    link_rows.push_back(Json()
                            .set("link", links[i]->name)
                            .set("busy_cycles", links[i]->busy)
                            .set("utilisation", links[i]->utilisation)
                            .set("bytes", links[i]->bytes));

  std::vector<const BufferRow*> buffers;
  for (const BufferRow& b : r.buffers) buffers.push_back(&b);
  const auto fullness = [](const BufferRow& b) {
    return b.depth == 0 ? 0.0 : static_cast<double>(b.peak) / static_cast<double>(b.depth);
  };
  std::stable_sort(buffers.begin(), buffers.end(), [&](const BufferRow* a, const BufferRow* b) {
    return fullness(*a) != fullness(*b) ? fullness(*a) > fullness(*b) : a->pushed > b->pushed;
  });
  JsonArray buffer_rows;
  for (std::size_t i = 0; i < buffers.size() && i < most; ++i)
    buffer_rows.push_back(Json()
                              .set("buffer", buffers[i]->name)
                              .set("peak_pages", buffers[i]->peak)
                              .set("depth_pages", buffers[i]->depth)
                              .set("pages", buffers[i]->pushed));

  Json j;
  j.set("cycles", r.cycles).set("stalled_by_cause", std::move(by_cause));
  j.set("stages", std::move(stage_rows)).set("links", std::move(link_rows)).set("buffers", std::move(buffer_rows));
  return Inspected{std::move(j), end->notes};
}

}  // namespace rdusim
