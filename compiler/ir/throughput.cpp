#include "compiler/ir/throughput.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/token_run.h"

namespace rdusim {
namespace {

using Index = std::uint32_t;
__extension__ using Length = __int128;  // of a way

constexpr std::size_t most_arcs_looked_at = 50'000'000;  // buffers times arcs: what is beyond keeps its depths unknown

struct Arc {
  Index from = 0, to = 0;
  Cycles cycles = 0;
  std::int64_t parts = 0;  // that it reaches back
  std::optional<BufferId> buffer;
};

struct Pace {  // cycles that parts take
  Cycles cycles = 0;
  std::uint64_t parts = 1;
};

// Longest ways with each arc's cycles less what its parts cost at some ratio: they exist just where no circle exceeds
// it.
class Potentials {
 public:
  Potentials(std::size_t nodes, const std::vector<Arc>& arcs) : arcs_(arcs), at_(nodes, 0), by_(nodes, none) {}

  // The arcs of a circle that exceeds `ratio`; empty where there is none.
  std::vector<std::size_t> exceeding(const Pace& ratio) {
    std::fill(by_.begin(), by_.end(), none);
    while (true) {
      bool changed = false;
      for (std::size_t a = 0; a < arcs_.size(); ++a) {
        const Arc& arc = arcs_[a];
        const Length length = Length{arc.cycles} * ratio.parts - Length{ratio.cycles} * arc.parts;
        if (at_[arc.from] + length <= at_[arc.to]) continue;
        at_[arc.to] = at_[arc.from] + length;
        by_[arc.to] = a;
        changed = true;
      }
      if (!changed) return {};
      if (std::vector<std::size_t> circle = circle_of_ways(); !circle.empty()) return circle;
    }
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // Ways that were made longer and lead back to themselves are a circle that exceeds.
  std::vector<std::size_t> circle_of_ways() const {
    std::vector<std::uint32_t> seen(by_.size(), 0);
    for (std::size_t start = 0; start < by_.size(); ++start) {
      std::size_t v = start;
      while (seen[v] == 0 && by_[v] != none) {
        seen[v] = static_cast<std::uint32_t>(start + 1);
        v = arcs_[by_[v]].from;
      }
      if (by_[v] == none || seen[v] != start + 1) continue;
      std::vector<std::size_t> circle;
      std::size_t w = v;
      do {
        circle.push_back(by_[w]);
        w = arcs_[by_[w]].from;
      } while (w != v);
      std::reverse(circle.begin(), circle.end());
      return circle;
    }
    return {};
  }

  const std::vector<Arc>& arcs_;
  std::vector<Length> at_;
  std::vector<std::size_t> by_;
};

class EventGraph {
 public:
  EventGraph(const SpatialProgram& p, const Cluster& c, const std::vector<StageTiming>& timing)
      : p_(p), timing_(timing), run_(p, c) {
    run_.start(c.repeats, c.one_to_one ? std::optional<Index>(0) : std::nullopt);
    first_.assign(run_.actors().size(), none);
    last_.assign(run_.actors().size(), none);
    channels_.resize(run_.channels().size());
    for (std::size_t i = 0; i < channels_.size(); ++i) channels_[i].pops.resize(run_.channels()[i].consumers.size());
  }

  // Fires all of the part, node by node; whether it came to its end within the limit.
  bool record() {
    while (const auto actor = run_.next()) {
      if (stage_of_.size() > most_throughput_firings) return false;
      const auto* joint = run_.joint_of(*actor);
      if (joint == nullptr)
        note(*actor);
      else
        for (const Index member : *joint) note(member);
      run_.take(*actor);
    }
    return run_.finished();
  }

  std::size_t nodes() const { return stage_of_.size(); }
  StageId stage(Index node) const { return stage_of_[node]; }

  // All arcs, the rooms of buffers as deep as `depth` says.
  template <class Depth>
  std::vector<Arc> arcs(Depth&& depth) const {
    std::vector<Arc> all;
    for (std::size_t a = 0; a < first_.size(); ++a) {
      if (first_[a] == none) continue;
      const StageTiming& t = timing_[run_.actors()[a].stage->id.value];
      all.push_back({last_[a], first_[a], t.interval, 1, {}});
    }
    for (const auto& [from, to] : follows_) all.push_back({from, to, timing_[stage_of_[from].value].interval, 0, {}});
    for (std::size_t n = 0; n < channels_.size(); ++n) {
      const Recorded& c = channels_[n];
      const BufferId b = run_.channels()[n].buffer;
      const auto initial = static_cast<std::int64_t>(p_.buffer(b).initial_pages);
      for (const auto& [node, page] : c.wants)
        reach(all, c.pushes, page - initial, node, b, [&](StageId s) { return timing_[s.value].to_push; });
      const std::uint64_t deep = depth(b);
      if (deep == 0) continue;
      for (const auto& [node, page] : c.reserves)
        for (const std::vector<Index>& pops : c.pops)
          reach(all, pops, page + initial - static_cast<std::int64_t>(deep), node, b,
                [&](StageId s) { return timing_[s.value].to_pop; });
    }
    // Along the order of firing first: one pass settles a part.
    std::stable_sort(all.begin(), all.end(), [](const Arc& a, const Arc& b) { return a.from < b.from; });
    return all;
  }

 private:
  static constexpr Index none = TokenRun::none;

  struct Recorded {  // of a channel, over the part; pages and rooms by number from 0
    std::vector<Index> pushes;
    std::vector<std::vector<Index>> pops;                  // by consumer
    std::vector<std::pair<Index, std::int64_t>> wants;     // a firing, and the last page that must be there
    std::vector<std::pair<Index, std::int64_t>> reserves;  // a firing, and the last page that must have room
    std::vector<std::int64_t> popped;                      // by consumer, so far
    std::int64_t reserved = 0;
  };

  void push(Index channel, Index node, std::uint32_t pages, std::uint32_t reserved) {
    Recorded& c = channels_[channel];
    c.pushes.insert(c.pushes.end(), pages, node);
    c.reserved += reserved;
    if (reserved != 0) c.reserves.emplace_back(node, c.reserved - 1);
  }
  void pop(Index channel, Index slot, Index node, std::uint32_t need, std::uint32_t pages) {
    Recorded& c = channels_[channel];
    auto& pops = c.pops[slot];
    if (need != 0) c.wants.emplace_back(node, static_cast<std::int64_t>(pops.size()) + need - 1);
    pops.insert(pops.end(), pages, node);
  }

  void note(Index actor) {
    const TokenRun::Actor& a = run_.actors()[actor];
    const auto node = static_cast<Index>(stage_of_.size());
    stage_of_.push_back(a.stage->id);
    if (first_[actor] == none) first_[actor] = node;
    if (last_[actor] != none) follows_.emplace_back(last_[actor], node);
    last_[actor] = node;
    if (std::holds_alternative<Recv>(a.stage->kind)) {
      const TokenRun::Link& link = run_.link_of(a);
      pop(link.channel, link.slot, node, 1, link.step);
      push(a.ports[0].channel, node, 1, 1);
      return;
    }
    if (!run_.moves(a)) return;
    for (std::size_t i = 0; i < a.ports.size(); ++i) {
      const TokenRun::PortState& port = a.ports[i];
      if (a.stage->ports[i].direction == Direction::input)
        pop(port.channel, port.slot, node, port.need.value(), port.pop.value());
      else
        push(port.channel, node, port.push.value(), port.reserve.value());
    }
  }

  // `node` waits for number `page` of `events`, which repeat part after part.
  template <class Time>
  void reach(std::vector<Arc>& all, const std::vector<Index>& events, std::int64_t page, Index node, BufferId b,
             Time&& time) const {
    if (events.empty()) return;
    const auto n = static_cast<std::int64_t>(events.size());
    const std::int64_t part = page >= 0 ? page / n : -((n - 1 - page) / n);
    const Index from = events[static_cast<std::size_t>(page - part * n)];
    all.push_back({from, node, time(stage_of_[from]), -part, b});
  }

  const SpatialProgram& p_;
  const std::vector<StageTiming>& timing_;
  TokenRun run_;
  std::vector<StageId> stage_of_;    // by node
  std::vector<Index> first_, last_;  // by actor: nodes
  std::vector<std::pair<Index, Index>> follows_;
  std::vector<Recorded> channels_;
};

// The exact ratio of the circle that allows the least; nothing where there is no circle. `arcs` of it are left there.
std::optional<Pace> greatest_ratio(std::size_t nodes, const std::vector<Arc>& arcs,
                                   std::vector<std::size_t>* critical) {
  std::optional<Pace> best;
  Pace ratio;  // 0
  while (true) {
    Potentials potentials(nodes, arcs);
    const std::vector<std::size_t> circle = potentials.exceeding(ratio);
    if (circle.empty()) return best;
    Cycles cycles = 0;
    std::int64_t parts = 0;
    for (const std::size_t a : circle) {
      cycles += arcs[a].cycles;
      parts += arcs[a].parts;
    }
    if (parts <= 0) return std::nullopt;  // it waits for itself: no cluster that runs to its end does
    best = ratio = {cycles, static_cast<std::uint64_t>(parts)};
    if (critical != nullptr) *critical = circle;
  }
}

}  // namespace

Throughput throughput_of(const SpatialProgram& p, const Cluster& c, const std::vector<StageTiming>& timing) {
  Throughput out;
  out.full_rate_depth.assign(p.buffers.size(), 0);
  // A scatter's pages go to each receiver in turn, which the numbers of a channel's pages here do not tell.
  if (std::any_of(c.crossing.begin(), c.crossing.end(),
                  [&](EdgeId e) { return p.edge(e).map.kind == PageMapKind::scatter; }))
    return out;
  EventGraph graph(p, c, timing);
  if (!graph.record()) return out;
  out.looked_at = true;
  const auto given = [&](BufferId b) { return p.buffer(b).depth_pages; };
  const std::vector<Arc> arcs = graph.arcs(given);
  std::vector<std::size_t> critical;
  const auto ratio = greatest_ratio(graph.nodes(), arcs, &critical);
  if (!ratio) return out;
  CriticalCircle circle;
  circle.cycles = ratio->cycles;
  circle.parts = ratio->parts;
  for (const std::size_t a : critical) {
    const StageId s = graph.stage(arcs[a].from);
    if (circle.stages.empty() || circle.stages.back() != s) circle.stages.push_back(s);
    if (arcs[a].buffer) circle.buffers.push_back(*arcs[a].buffer);
  }
  if (circle.stages.size() > 1 && circle.stages.front() == circle.stages.back()) circle.stages.pop_back();
  std::sort(circle.buffers.begin(), circle.buffers.end());
  circle.buffers.erase(std::unique(circle.buffers.begin(), circle.buffers.end()), circle.buffers.end());
  out.circle = std::move(circle);

  std::vector<BufferId> buffers;
  for (const StageId s : c.stages)
    for (const Port& port : p.stage(s).ports) buffers.push_back(port.buffer);
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  if (buffers.size() * arcs.size() > most_arcs_looked_at) return out;
  for (const BufferId b : buffers) {
    const auto with = [&](std::uint64_t depth) {
      return graph.arcs([&](BufferId other) { return other == b ? depth : given(other); });
    };
    // What the others allow: less than now only where this buffer is part of what holds the cluster back.
    const bool holds_back = std::binary_search(out.circle->buffers.begin(), out.circle->buffers.end(), b);
    const Pace best = holds_back ? greatest_ratio(graph.nodes(), with(0), nullptr).value_or(Pace{}) : *ratio;
    const auto reaches = [&](std::uint64_t depth) {
      const std::vector<Arc> tried = with(depth);
      Potentials potentials(graph.nodes(), tried);
      return potentials.exceeding(best).empty();
    };
    std::uint64_t high = std::max<std::uint64_t>(given(b), 1);
    while (high < Throughput::most_depth && !reaches(high)) high *= 2;
    if (!reaches(high)) continue;
    std::uint64_t low = 1;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (reaches(middle))
        high = middle;
      else
        low = middle + 1;
    }
    out.full_rate_depth[b.value] = high;
  }
  return out;
}

}  // namespace rdusim
