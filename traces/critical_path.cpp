#include "traces/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "compiler/ir/print.h"
#include "compiler/support/fifo.h"
#include "traces/causes.h"
#include "traces/inspect_common.h"
#include "traces/slack.h"

namespace rdusim {

namespace {

using Ref = Chain::Ref;

class PathFold {
 public:
  PathFold(const Roster& r, std::size_t most)
      : r_(r),
        most_(most),
        chain_(most),
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
        stored_(r.tensors.size()),
        stores_(r.tensors.size()),
        slack_(std::size_t{r.stage_instances()} + r.senders() + r.channels()),
        done_(r.stage_instances()),
        home_(r.channels()) {
    for (std::uint32_t n = 0; n < r.stages.size(); ++n)
      if (r.stages[n].kind == "store")
        for (const std::uint32_t t : r.stages[n].tensors) stores_[t].push_back(n);
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
    if constexpr (std::is_same_v<E, BarrierLeft>) barrier_left(e);
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
      met(channel(n), why, chain_.at(why));
      home_[n] = e.at;
      chain_.replace(credit_[n], chain_.make(e.at, why, {PathPiece::signal, EventSubject::channel, n}));
      if (queue.empty()) return;
      chain_.drop(queue.front());
      queue.pop_front();
    }
    if constexpr (std::is_same_v<E, ReadyRaised>) {
      const std::uint32_t n = r_.of(e.channel);
      const auto landing = r_.landing(e.channel);
      const Ref why = landing ? popped_[r_.of(*landing)] : section_;
      met(channel(n), why, chain_.at(latest({why, section_})));
      home_[n] = e.at;
      chain_.replace(signal_[r_.sender(e.channel.edge, e.channel.from)],
                     chain_.make(e.at, latest({why, section_}), {PathPiece::signal, EventSubject::channel, n}));
    }
  }

  CriticalPath finish(Cycle cycles) {
    CriticalPath path;
    path.cycles = cycles;
    const Ref end = latest({last_, section_});
    std::string room;
    const auto text = [&](const About& a) { return std::string(text_of(a.subject, a.unit, r_, room)); };
    if (last_ != 0) path.last = text(chain_.about(last_));
    PathTally tally(most_);
    tally.add(PathStep{chain_.at(end),
                       cycles,
                       {PathPiece::drain, EventSubject::section,
                        chain_.about(end).subject == EventSubject::section ? chain_.about(end).unit : 0}});
    chain_.tell(end, tally);
    tally.close();
    path.pieces = tally.pieces();
    std::map<std::string, Cycles> units;
    for (const auto& [about, sum] : tally.sums()) {
      path.by_piece[static_cast<std::size_t>(about.piece)] += sum;
      units[text(about)] += sum;
    }
    path.by_unit.assign(units.begin(), units.end());
    std::stable_sort(path.by_unit.begin(), path.by_unit.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const PathStep& s : tally.longest()) path.longest.push_back({s.from, s.to, s.about.piece, text(s.about)});
    // A log that was cut has no end of its section.
    if (!ended_) end_section(chain_.at(latest({last_, section_})), cycles);
    path.slack = slack();
    return path;
  }

 private:
  struct Engine {
    Ref start = 0;
    Cycle free_at = 0;
    std::uint32_t stage = 0;  // of the last firing
  };

  // Units of the slack: stage instances, then senders, then channels. The instances of a load are one unit: those that
  // share reads start together, and a log does not say which they are.
  std::size_t stage_unit(std::uint32_t n) const {
    const StageAt at = r_.stage_at(n);
    return r_.stages[at.stage.value].kind == "load" ? r_.of(StageAt{at.stage, 0}) : n;
  }
  std::size_t sender(std::uint32_t n) const { return std::size_t{r_.stage_instances()} + n; }
  std::size_t channel(std::uint32_t n) const { return sender(r_.senders()) + n; }
  // The unit that a node's piece is about.
  std::optional<std::size_t> unit_of(Ref n) const {
    const About& a = chain_.about(n);
    if (n == 0) return std::nullopt;
    if (a.subject == EventSubject::stage) return stage_unit(a.unit);
    if (a.subject == EventSubject::sender) return sender(a.unit);
    if (a.subject == EventSubject::channel) return channel(a.unit);
    return std::nullopt;
  }
  // `consumer` used what `supplier` gave; what it waited for last came at `set`.
  void met(std::size_t consumer, Ref supplier, Cycle set) {
    if (const auto unit = unit_of(supplier)) slack_.met(consumer, *unit, set - std::min(set, chain_.at(supplier)));
  }
  // A load, whose firing was set at `set`, waited for every store of its tensor in this section. Where a store is in a
  // later trip by now, its gap is set down too small.
  void met_stores(std::uint32_t load, std::uint32_t tensor, Cycle set) {
    for (const std::uint32_t store : stores_[tensor])
      for (std::uint32_t i = 0; i < r_.instances(StageId{store}); ++i) {
        const std::uint32_t n = r_.of(StageAt{StageId{store}, i});
        if (done_[n]) slack_.met(stage_unit(load), n, set - std::min(set, *done_[n]));
      }
  }
  // `set`: when the last of its stages was done; `end`: when its credits were home.
  void end_section(Cycle set, Cycle end) {
    for (std::uint32_t n = 0; n < done_.size(); ++n)
      if (done_[n]) slack_.ended(n, set - std::min(set, *done_[n]));
    for (std::uint32_t n = 0; n < home_.size(); ++n)
      if (home_[n]) slack_.ended(channel(n), end - std::min(end, *home_[n]));
    done_.assign(done_.size(), std::nullopt);
    home_.assign(home_.size(), std::nullopt);
  }

  std::vector<CriticalPath::Slack> slack() const {
    const auto least = slack_.slack();
    std::vector<CriticalPath::Slack> rows;
    const auto fold = [&](std::string unit, std::size_t first, std::size_t count) {
      CriticalPath::Slack row{std::move(unit), ~Cycles{0}, 0, 0};
      for (std::size_t u = first; u < first + count; ++u) {
        if (!least[u]) continue;
        ++row.instances;
        row.least = std::min(row.least, *least[u]);
        row.most = std::max(row.most, *least[u]);
      }
      if (row.instances != 0) rows.push_back(std::move(row));
    };
    for (std::uint32_t s = 0; s < r_.stages.size(); ++s)
      if (const std::uint32_t n = r_.instances(StageId{s}); n != 0)
        fold(r_.stages[s].name, r_.of(StageAt{StageId{s}, 0}), r_.stages[s].kind == "load" ? 1 : n);
    for (std::uint32_t first = 0, next = 0; first < r_.channels(); first = next) {
      const EdgeId edge = r_.channel_at(first).edge;
      while (next < r_.channels() && r_.channel_at(next).edge == edge) ++next;
      fold(fmt::format("edge {} from '{}'", edge.value, r_.stages[r_.edges[edge.value].from].name), channel(first),
           next - first);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.least < b.least; });
    return rows;
  }

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
    ended_ = false;
  }
  void section_ended(const SectionEnded& e) {
    end_section(chain_.at(latest({last_, section_})), e.at);
    ended_ = true;
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
    std::array<Ref, most_offers> seen{};
    std::size_t offers = 0;
    const auto look = [&](Ref ref) {
      if (ref == 0 || chain_.at(ref) > e.at) return;
      if (offers < seen.size())
        seen[offers++] = chain_.hold(ref);
      else
        met(stage_unit(n), ref, chain_.at(ref));  // one too many: as if it had come last
    };
    const bool input = e.cause == StallCause::input_starvation || e.cause == StallCause::link ||
                       e.cause == StallCause::network_contention;
    const bool room = e.cause == StallCause::back_pressure || e.cause == StallCause::memory;
    if (engine.start != 0) {
      const Ref freed = chain_.make(engine.free_at, engine.start,
                                    {work_of(r_.stage_at(engine.stage).stage), EventSubject::stage, engine.stage});
      offer(freed, e.stall == 0 || e.cause == StallCause::engine);
      look(freed);
      chain_.drop(freed);
    }
    // A load's firing may have waited until its page was stored. A log does not say which store's firing that was: the
    // last one of the tensor stands for it.
    const bool loads = stage.kind == "load" && !stage.tensors.empty() && e.firing < stage.firings;
    const bool reads = loads && e.firing % stage.firings_a_tensor() == 0;
    if (loads && input && (reads || e.stall != 0)) offer(stored_[stage.tensor_of(e.firing)], true);
    // Of pages and room the latest, which may be later than what the firing needs: then the slack is set down too
    // small.
    const bool waited = e.stall != 0 || engine.start == 0;
    const auto ports = [&](const std::vector<std::uint32_t>& buffers, const std::vector<Ref>& refs, bool named) {
      for (const std::uint32_t b : buffers) {
        if (e.stage.instance >= r_.instances(BufferId{b})) continue;
        const Ref ref = refs[r_.of(BufferAt{BufferId{b}, e.stage.instance})];
        look(ref);
        if (waited) offer(ref, named);
      }
    };
    ports(stage.inputs, pushed_, input);
    ports(stage.outputs, popped_, room);
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
      if (sent != 0) {
        const Cycle set = chain_.at(best);
        slack_.met(stage_unit(n), channel(c), set - std::min(set, chain_.at(sent)));
        met(channel(c), sent, chain_.at(sent));
      }
    }
    if (reads) met_stores(n, stage.tensor_of(e.firing), chain_.at(best));
    for (std::size_t i = 0; i < offers; ++i) {
      met(stage_unit(n), seen[i], chain_.at(best));
      chain_.drop(seen[i]);
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
    done_[stage_unit(n)] = e.at;
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

  // Everyone waits for everyone.
  void barrier_left(const BarrierLeft& e) {
    if (e.member != 0) return;
    const std::uint32_t s = r_.sender(e.edge, e.from);
    for (std::uint32_t c = r_.first_channel(s); c < r_.first_channel(s) + r_.channels_of(s); ++c) {
      slack_.met(sender(s), channel(c), 0);
      const auto landing = r_.landing(r_.channel_at(c));
      if (!landing) continue;
      const Ref room = popped_[r_.of(*landing)];
      met(channel(c), room, chain_.at(room));
    }
  }

  void send(EdgeId edge, std::uint32_t from, Cycle at, Ref permission) {
    const std::uint32_t s = r_.sender(edge, from);
    // Of a page to several receivers, once.
    if (sending_[s] != 0 && chain_.at(sending_[s]) == at && chain_.at(permission) <= chain_.set_at(sending_[s])) {
      met(sender(s), permission, chain_.set_at(sending_[s]));
      return;
    }
    const BufferAt source{BufferId{r_.edges[edge.value].buffer}, from};
    const Ref page = from < r_.instances(source.buffer) ? pushed_[r_.of(source)] : 0;
    const Ref why = latest({section_, page, permission, left_[s]});
    for (const Ref given : {page, permission}) met(sender(s), given, chain_.at(why));
    chain_.replace(sending_[s], chain_.make(at, why, {PathPiece::waiting_credit, EventSubject::sender, s}));
  }

  const Roster& r_;
  std::size_t most_;
  Chain chain_;
  Ref section_ = 0, last_ = 0;
  std::vector<Engine> engine_;
  std::vector<Fifo<Ref>> open_;  // firings that started and did not complete
  std::vector<Ref> started_, pushed_, popped_;
  std::vector<Fifo<Ref>> returning_, in_flight_;  // credits; pages behind tokens
  std::vector<Ref> credit_, sending_, left_, signal_;
  std::vector<std::vector<std::uint32_t>> receivers_;  // channels that end at a stage instance
  std::vector<Ref> stored_;                            // by tensor: the last firing of a store of it
  std::vector<std::vector<std::uint32_t>> stores_;     // by tensor: stages
  static constexpr std::size_t most_offers = 64;       // inputs, outputs and the engine of a stage
  SlackFold slack_;
  std::vector<std::optional<Cycle>> done_, home_;  // in this section: last completion; last credit or ready
  bool ended_ = false;
};

}  // namespace

Result<CriticalPath> critical_path_of(EventLogReader& log, std::size_t most) {
  PathFold fold(log.roster(), most);
  Each each([&fold](const auto& e) { fold(e); });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  if (end->dropped.total() != 0) {
    Diagnostics d;
    d.error(Code::RDU8015, "event log", "{} events were left out of it, and what set the total may be among them",
            with_commas(end->dropped.total()));
    return d;
  }
  CriticalPath path = fold.finish(end->end ? end->end->cycles : end->last);
  path.notes = end->notes;
  return path;
}

Result<Inspected> critical_path(EventLogReader& log, std::size_t most) {
  const auto path = critical_path_of(log, most);
  if (!path) return path.diagnostics();
  Cycles total = 0;
  Json causes;
  for (std::size_t p = 0; p < path_pieces; ++p) {
    total += path->by_piece[p];
    if (path->by_piece[p] != 0) causes.set(std::string(name_of(static_cast<PathPiece>(p))), path->by_piece[p]);
  }
  Json j;
  j.set("cycles", path->cycles).set("sum", total).set("ends_at", path->last).set("pieces", path->pieces);
  j.set("by_cause", std::move(causes));
  JsonArray unit_rows;
  for (std::size_t i = 0; i < path->by_unit.size() && i < most; ++i)
    unit_rows.push_back(Json().set("unit", path->by_unit[i].first).set("cycles", path->by_unit[i].second));
  j.set("by_unit", std::move(unit_rows));
  JsonArray rows;
  for (const CriticalStep& s : path->longest)
    rows.push_back(Json()
                       .set("from", s.from)
                       .set("to", s.to)
                       .set("cycles", s.to - s.from)
                       .set("what", name_of(s.piece))
                       .set("unit", s.unit));
  j.set("longest", std::move(rows));
  JsonArray slack_rows;
  std::size_t on_path = 0;
  for (const CriticalPath::Slack& s : path->slack) {
    if (s.least == 0) {
      ++on_path;
      continue;
    }
    if (slack_rows.size() == most) break;
    slack_rows.push_back(
        Json().set("unit", s.unit).set("slack", s.least).set("most", s.most).set("instances", s.instances));
  }
  j.set("without_slack", on_path).set("slack", std::move(slack_rows));
  return Inspected{std::move(j), path->notes};
}

}  // namespace rdusim
