#include "traces/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "compiler/ir/print.h"
#include "traces/inspect_common.h"

namespace rdusim {

std::string_view name_of(PathPiece piece) {
  static constexpr std::array<std::string_view, path_pieces> names = {
      "launch",       "compute",      "load",           "store",          "landing",        "sending",
      "crossing",     "signal",       "waiting_input",  "waiting_room",   "waiting_memory", "waiting_network",
      "waiting_link", "waiting_bank", "waiting_engine", "waiting_credit", "drain"};
  return names[static_cast<std::size_t>(piece)];
}

namespace {

// A piece is about a stage instance, a channel, or a section.
struct About {
  PathPiece piece{};
  EventSubject subject = EventSubject::section;
  std::uint32_t unit = 0;
  friend bool operator==(const About&, const About&) = default;
};

// Nodes that are referred to; each refers to its predecessor.
class Chain {
 public:
  using Ref = std::uint32_t;  // 0: the start of time

  Chain() { nodes_.push_back({}); }

  Cycle at(Ref n) const { return nodes_[n].at; }
  // `about`: what passed between `before` and `at`. The caller holds it.
  Ref make(Cycle at, Ref before, const About& about) {
    Ref n;
    if (free_.empty()) {
      n = static_cast<Ref>(nodes_.size());
      nodes_.push_back({});
    } else {
      n = free_.back();
      free_.pop_back();
    }
    nodes_[n] = {std::max(at, nodes_[before].at), before, 1, about};
    ++nodes_[before].refs;
    squeeze(n);
    return n;
  }
  Ref hold(Ref n) {
    ++nodes_[n].refs;
    return n;
  }
  void drop(Ref n) {
    // The root is never freed.
    while (n != 0 && --nodes_[n].refs == 0) {
      const Ref before = nodes_[n].before;
      free_.push_back(n);
      n = before;
    }
  }
  void replace(Ref& held, Ref n) {
    const Ref old = held;
    held = n;
    drop(old);
  }
  Ref before(Ref n) const { return nodes_[n].before; }
  const About& about(Ref n) const { return nodes_[n].about; }

 private:
  struct Node {
    Cycle at = 0;
    Ref before = 0;
    std::uint32_t refs = 0;
    About about;
  };
  // Of n's predecessors, those that only the chain itself refers to and that are about the same are joined.
  void squeeze(Ref n) {
    const Ref p = nodes_[n].before;
    if (p == 0) return;
    const Ref q = nodes_[p].before;
    if (q == 0 || nodes_[q].refs != 1 || !(nodes_[q].about == nodes_[p].about)) return;
    nodes_[p].before = nodes_[q].before;
    free_.push_back(q);
  }

  std::vector<Node> nodes_;
  std::vector<Ref> free_;
};

using Ref = Chain::Ref;

class PathFold {
 public:
  explicit PathFold(const Roster& r)
      : r_(r),
        engine_(r.engines()),
        open_(r.stage_instances()),
        started_(r.stage_instances()),
        pushed_(r.buffer_instances()),
        popped_(r.buffer_instances()),
        returning_(r.channels()),
        in_flight_(r.channels()),
        credit_(r.channels()),
        sending_(r.senders()),
        left_(r.senders()),
        signal_(r.senders()),
        receivers_(r.stage_instances()),
        stored_(r.tensors.size()) {
    for (std::uint32_t n = 0; n < r.channels(); ++n) receivers_[r.of(r.to_of(r.channel_at(n)))].push_back(n);
  }

  template <class E>
  void operator()(const E& e) {
    if constexpr (std::is_same_v<E, SectionStarted>) section_started(e);
    if constexpr (std::is_same_v<E, SectionEnded>) section_ended(e);
    if constexpr (std::is_same_v<E, FiringStarted>) firing_started(e);
    if constexpr (std::is_same_v<E, FiringCompleted>) firing_completed(e);
    if constexpr (std::is_same_v<E, PagePushed>) page_pushed(e);
    if constexpr (std::is_same_v<E, PagePopped>) page_popped(e);
    if constexpr (std::is_same_v<E, CreditTaken>) {
      send(e.channel.edge, e.channel.from, e.at, credit_[r_.of(e.channel)]);
      in_flight_[r_.of(e.channel)].push_back(chain_.hold(sending_[r_.sender(e.channel.edge, e.channel.from)]));
    }
    if constexpr (std::is_same_v<E, ReadyConsumed>) send(e.edge, e.from, e.at, signal_[r_.sender(e.edge, e.from)]);
    if constexpr (std::is_same_v<E, BarrierLeft>)
      if (e.member == 0 && e.generation % 2 == 0) send(e.edge, e.from, e.at, signal_[r_.sender(e.edge, e.from)]);
    if constexpr (std::is_same_v<E, PageLanded>) {
      auto& queue = in_flight_[r_.of(e.channel)];
      if (!queue.empty()) {
        chain_.drop(queue.front());
        queue.pop_front();
      }
    }
    if constexpr (std::is_same_v<E, CreditReturned>) {
      const auto landing = r_.landing(e.channel);
      const Ref why = landing ? popped_[r_.of(*landing)] : section_;
      returning_[r_.of(e.channel)].push_back(chain_.hold(why));
    }
    if constexpr (std::is_same_v<E, CreditArrived>) {
      const std::uint32_t n = r_.of(e.channel);
      auto& queue = returning_[n];
      const Ref why = queue.empty() ? section_ : queue.front();
      chain_.replace(credit_[n], chain_.make(e.at, why, {PathPiece::signal, EventSubject::channel, n}));
      if (queue.empty()) return;
      chain_.drop(queue.front());
      queue.pop_front();
    }
    if constexpr (std::is_same_v<E, ReadyRaised>) {
      const std::uint32_t n = r_.of(e.channel);
      const auto landing = r_.landing(e.channel);
      const Ref why = landing ? popped_[r_.of(*landing)] : section_;
      chain_.replace(signal_[r_.sender(e.channel.edge, e.channel.from)],
                     chain_.make(e.at, latest({why, section_}), {PathPiece::signal, EventSubject::channel, n}));
    }
  }

  CriticalPath finish(Cycle cycles) {
    CriticalPath path;
    path.cycles = cycles;
    Ref n = latest({last_, section_});
    std::string room;
    if (last_ != 0) path.last = text_of(chain_.about(last_).subject, chain_.about(last_).unit, r_, room);
    Cycle to = cycles;
    const auto step = [&](Cycle from, const About& about) {
      if (from >= to) return;
      std::string unit(text_of(about.subject, about.unit, r_, room));
      if (!path.steps.empty() && path.steps.back().piece == about.piece && path.steps.back().unit == unit)
        path.steps.back().from = from;
      else
        path.steps.push_back({from, to, about.piece, std::move(unit)});
      to = from;
    };
    step(chain_.at(n), {PathPiece::drain, EventSubject::section,
                        chain_.about(n).subject == EventSubject::section ? chain_.about(n).unit : 0});
    while (n != 0) {
      step(chain_.at(chain_.before(n)), chain_.about(n));
      n = chain_.before(n);
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

 private:
  struct Engine {
    Ref start = 0;
    Cycle free_at = 0;
    std::uint32_t stage = 0;  // of the last firing
  };

  Ref latest(std::initializer_list<Ref> list) const {
    return *std::max_element(list.begin(), list.end(), [&](Ref a, Ref b) { return chain_.at(a) < chain_.at(b); });
  }

  PathPiece work_of(StageId s) const {
    const std::string& kind = r_.stages[s.value].kind;
    if (kind == "load") return PathPiece::load;
    if (kind == "store") return PathPiece::store;
    if (kind == "receive") return PathPiece::landing;
    return PathPiece::compute;
  }
  static PathPiece wait_of(StallCause c) {
    switch (c) {
      case StallCause::input_starvation:
        return PathPiece::waiting_input;
      case StallCause::back_pressure:
        return PathPiece::waiting_room;
      case StallCause::memory:
        return PathPiece::waiting_memory;
      case StallCause::network_contention:
        return PathPiece::waiting_network;
      case StallCause::link:
        return PathPiece::waiting_link;
      case StallCause::bank_conflict:
        return PathPiece::waiting_bank;
      case StallCause::engine:
        return PathPiece::waiting_engine;
    }
    return PathPiece::waiting_input;
  }

  void section_started(const SectionStarted& e) {
    chain_.replace(section_, chain_.make(e.at, section_, {PathPiece::launch, EventSubject::section, e.section.value}));
    chain_.replace(last_, chain_.hold(section_));
  }
  void section_ended(const SectionEnded& e) {
    chain_.replace(section_, chain_.make(e.at, latest({last_, section_}),
                                         {PathPiece::drain, EventSubject::section, e.section.value}));
  }

  // The latest of what a firing needed; of several in one cycle, the one that the event names.
  void firing_started(const FiringStarted& e) {
    const std::uint32_t n = r_.of(e.stage);
    const RosterStage& stage = r_.stages[e.stage.stage.value];
    Engine& engine = engine_[r_.engine_of(n)];
    Ref best = chain_.hold(section_);
    About gap{wait_of(e.cause), EventSubject::stage, n};
    const auto offer = [&](Ref ref, bool named) {
      if (ref == 0 || chain_.at(ref) > e.at) return;
      if (chain_.at(ref) < chain_.at(best) || (chain_.at(ref) == chain_.at(best) && !named)) return;
      chain_.replace(best, chain_.hold(ref));
    };
    const bool input = e.cause == StallCause::input_starvation || e.cause == StallCause::link ||
                       e.cause == StallCause::network_contention;
    const bool room = e.cause == StallCause::back_pressure || e.cause == StallCause::memory;
    if (engine.start != 0) {
      const Ref freed = chain_.make(engine.free_at, engine.start,
                                    {work_of(r_.stage_at(engine.stage).stage), EventSubject::stage, engine.stage});
      offer(freed, e.stall == 0 || e.cause == StallCause::engine);
      chain_.drop(freed);
    }
    // The first of a load's firings on a tensor may have waited until that was stored.
    if (input && stage.kind == "load" && !stage.tensors.empty() && e.firing < stage.firings &&
        e.firing % stage.firings_a_tensor() == 0)
      offer(stored_[stage.tensor_of(e.firing)], true);
    if (e.stall != 0 || engine.start == 0) {
      for (const std::uint32_t b : stage.inputs)
        if (e.stage.instance < r_.instances(BufferId{b}))
          offer(pushed_[r_.of(BufferAt{BufferId{b}, e.stage.instance})], input);
      for (const std::uint32_t b : stage.outputs)
        if (e.stage.instance < r_.instances(BufferId{b}))
          offer(popped_[r_.of(BufferAt{BufferId{b}, e.stage.instance})], room);
    }
    if (const auto& channels = receivers_[n]; !channels.empty()) {
      // It takes its senders' pages in turn.
      const std::uint32_t c = channels[e.firing % channels.size()];
      const ChannelAt& at = r_.channel_at(c);
      const Ref sent = in_flight_[c].empty() ? sending_[r_.sender(at.edge, at.from)] : in_flight_[c].front();
      // The page was on its way: whatever else was there before, this came last.
      if (sent != 0 && (e.stall != 0 || chain_.at(best) < chain_.at(sent))) {
        chain_.replace(best, chain_.hold(sent));
        gap = {PathPiece::crossing, EventSubject::channel, c};
      }
    }
    const Ref start = chain_.make(e.at, best, gap);
    chain_.drop(best);
    chain_.replace(engine.start, chain_.hold(start));
    engine.free_at = e.at + e.busy;
    engine.stage = n;
    chain_.replace(started_[n], chain_.hold(start));
    open_[n].push_back(start);
  }

  void firing_completed(const FiringCompleted& e) {
    const std::uint32_t n = r_.of(e.stage);
    if (open_[n].empty()) return;
    const Ref done = chain_.make(e.at, open_[n].front(), {work_of(e.stage.stage), EventSubject::stage, n});
    chain_.drop(open_[n].front());
    open_[n].pop_front();
    const RosterStage& stage = r_.stages[e.stage.stage.value];
    if (stage.kind == "store" && !stage.tensors.empty() && e.firing < stage.firings) {
      Ref& stored = stored_[stage.tensor_of(e.firing)];
      if (chain_.at(done) >= chain_.at(stored)) chain_.replace(stored, chain_.hold(done));
    }
    if (chain_.at(done) >= chain_.at(last_))
      chain_.replace(last_, done);
    else
      chain_.drop(done);
  }

  void page_pushed(const PagePushed& e) {
    const std::uint32_t n = r_.of(e.buffer);
    const RosterBuffer& b = r_.buffers[e.buffer.buffer.value];
    Ref why = section_;
    About about{PathPiece::compute, EventSubject::buffer, n};
    if (b.producer && e.buffer.instance < r_.instances(StageId{*b.producer})) {
      const std::uint32_t by = r_.of(StageAt{StageId{*b.producer}, e.buffer.instance});
      about = {work_of(StageId{*b.producer}), EventSubject::stage, by};
      if (!open_[by].empty()) why = open_[by].front();
    }
    chain_.replace(pushed_[n], chain_.make(e.at, why, about));
  }

  void page_popped(const PagePopped& e) {
    const std::uint32_t n = r_.of(e.buffer);
    const RosterBuffer& b = r_.buffers[e.buffer.buffer.value];
    if (e.consumer < b.stages.size()) {
      const StageAt by{StageId{b.stages[e.consumer]}, e.buffer.instance};
      if (by.instance >= r_.instances(by.stage)) return;
      const std::uint32_t s = r_.of(by);
      chain_.replace(popped_[n], chain_.make(e.at, started_[s], {work_of(by.stage), EventSubject::stage, s}));
      return;
    }
    const EdgeId edge{b.crossings[e.consumer - b.stages.size()]};
    if (e.buffer.instance >= r_.edges[edge.value].targets.size()) return;
    const std::uint32_t s = r_.sender(edge, e.buffer.instance);
    chain_.replace(left_[s], chain_.make(e.at, sending_[s], {PathPiece::sending, EventSubject::sender, s}));
    chain_.replace(popped_[n], chain_.hold(left_[s]));
  }

  void send(EdgeId edge, std::uint32_t from, Cycle at, Ref permission) {
    const std::uint32_t s = r_.sender(edge, from);
    // Of a page to several receivers, once.
    if (sending_[s] != 0 && chain_.at(sending_[s]) == at &&
        chain_.at(permission) <= chain_.at(chain_.before(sending_[s])))
      return;
    const BufferAt source{BufferId{r_.edges[edge.value].buffer}, from};
    const Ref page = from < r_.instances(source.buffer) ? pushed_[r_.of(source)] : 0;
    const Ref why = latest({section_, page, permission, left_[s]});
    chain_.replace(sending_[s], chain_.make(at, why, {PathPiece::waiting_credit, EventSubject::sender, s}));
  }

  const Roster& r_;
  Chain chain_;
  Ref section_ = 0, last_ = 0;
  std::vector<Engine> engine_;
  std::vector<std::deque<Ref>> open_;  // firings that started and did not complete
  std::vector<Ref> started_, pushed_, popped_;
  std::vector<std::deque<Ref>> returning_, in_flight_;  // credits; pages behind tokens
  std::vector<Ref> credit_, sending_, left_, signal_;
  std::vector<std::vector<std::uint32_t>> receivers_;  // channels that end at a stage instance
  std::vector<Ref> stored_;                            // by tensor: the last firing of a store of it
};

}  // namespace

Result<CriticalPath> critical_path_of(EventLogReader& log) {
  PathFold fold(log.roster());
  Each each([&fold](const auto& e) { fold(e); });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  CriticalPath path = fold.finish(end->end ? end->end->cycles : end->last);
  path.notes = end->notes;
  return path;
}

Result<Inspected> critical_path(EventLogReader& log, std::size_t most) {
  const auto path = critical_path_of(log);
  if (!path) return path.diagnostics();
  std::array<Cycles, path_pieces> sums{};
  std::map<std::string, Cycles> units;
  Cycles total = 0;
  for (const CriticalStep& s : path->steps) {
    sums[static_cast<std::size_t>(s.piece)] += s.to - s.from;
    units[s.unit] += s.to - s.from;
    total += s.to - s.from;
  }
  Json j;
  j.set("cycles", path->cycles).set("sum", total).set("ends_at", path->last).set("pieces", path->steps.size());
  Json causes;
  for (std::size_t p = 0; p < path_pieces; ++p)
    if (sums[p] != 0) causes.set(std::string(name_of(static_cast<PathPiece>(p))), sums[p]);
  j.set("by_cause", std::move(causes));
  std::vector<std::pair<std::string, Cycles>> by_unit(units.begin(), units.end());
  std::stable_sort(by_unit.begin(), by_unit.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  JsonArray unit_rows;
  for (std::size_t i = 0; i < by_unit.size() && i < most; ++i)
    unit_rows.push_back(Json().set("unit", by_unit[i].first).set("cycles", by_unit[i].second));
  j.set("by_unit", std::move(unit_rows));
  std::vector<const CriticalStep*> longest;
  for (const CriticalStep& s : path->steps) longest.push_back(&s);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const CriticalStep* a, const CriticalStep* b) { return a->to - a->from > b->to - b->from; });
  if (longest.size() > most) longest.resize(most);
  std::sort(longest.begin(), longest.end(),
            [](const CriticalStep* a, const CriticalStep* b) { return a->from < b->from; });
  JsonArray rows;
  for (const CriticalStep* s : longest)
    rows.push_back(Json()
                       .set("from", s->from)
                       .set("to", s->to)
                       .set("cycles", s->to - s->from)
                       .set("what", name_of(s->piece))
                       .set("unit", s->unit));
  j.set("longest", std::move(rows));
  return Inspected{std::move(j), path->notes};
}

}  // namespace rdusim
