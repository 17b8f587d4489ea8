#include "compiler/ir/event_graph.h"

#include <algorithm>

namespace rdusim {
namespace {

__extension__ using Length = __int128;  // of a way

// Longest ways with each arc's cycles less what its parts cost at some ratio: they exist just where no circle exceeds
// it.
class Potentials {
 public:
  // Looks at no more arcs than `left`, which it counts down.
  Potentials(std::size_t nodes, const std::vector<FiringArc>& arcs, std::uint64_t& left)
      : arcs_(arcs), left_(left), at_(nodes, 0), by_(nodes, none) {}

  // The arcs of a circle that exceeds `ratio`; empty where there is none, or none was found in time.
  std::vector<std::size_t> exceeding(const Pace& ratio) {
    std::fill(by_.begin(), by_.end(), none);
    while (left_ >= arcs_.size()) {
      left_ -= arcs_.size();
      bool changed = false;
      for (std::size_t a = 0; a < arcs_.size(); ++a) {
        const FiringArc& arc = arcs_[a];
        const Length length = Length{arc.cycles} * ratio.parts - Length{ratio.cycles} * arc.parts;
        if (at_[arc.from] + length <= at_[arc.to]) continue;
        at_[arc.to] = at_[arc.from] + length;
        by_[arc.to] = a;
        changed = true;
      }
      if (!changed) return {};
      if (std::vector<std::size_t> circle = circle_of_ways(); !circle.empty()) return circle;
    }
    return {};
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

  const std::vector<FiringArc>& arcs_;
  std::uint64_t& left_;
  std::vector<Length> at_;
  std::vector<std::size_t> by_;
};

}  // namespace

EventGraph::EventGraph(const SpatialProgram& p, const Cluster& c, const std::vector<StageTiming>& timing)
    : p_(p), timing_(timing), run_(p, c) {
  run_.start(c.repeats, c.one_to_one ? std::optional<Index>(0) : std::nullopt);
  first_.assign(run_.actors().size(), none);
  last_.assign(run_.actors().size(), none);
  channels_.resize(run_.channels().size());
  for (std::size_t i = 0; i < channels_.size(); ++i) channels_[i].pops.resize(run_.channels()[i].consumers.size());
}

bool EventGraph::record() {
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

std::vector<FiringArc> EventGraph::arcs(const std::function<std::uint64_t(BufferId)>& depth, bool by_sender) const {
  const auto in_order = [&](std::size_t actor) { return !by_sender || run_.actors()[actor].links.size() <= 1; };
  std::vector<FiringArc> all;
  for (std::size_t a = 0; a < first_.size(); ++a) {
    if (first_[a] == none || !in_order(a)) continue;
    const StageTiming& t = timing_[run_.actors()[a].stage->id.value];
    all.push_back({last_[a], first_[a], t.interval, 1, {}});
  }
  for (const Following& f : follows_)
    if (in_order(f.actor)) all.push_back({f.from, f.to, timing_[stage_of_[f.from].value].interval, 0, {}});
  for (std::size_t n = 0; n < channels_.size(); ++n) {
    const Recorded& c = channels_[n];
    const BufferId b = run_.channels()[n].buffer;
    const auto initial = static_cast<std::int64_t>(p_.buffer(b).initial_pages);
    for (const auto& [node, page] : c.wants) reach(all, c.pushes, page - initial, node, b, &StageTiming::to_push);
    const std::uint64_t deep = depth(b);
    if (deep == 0) continue;
    for (const auto& [node, page] : c.reserves)
      for (const std::vector<Index>& pops : c.pops)
        reach(all, pops, page + initial - static_cast<std::int64_t>(deep), node, b, &StageTiming::to_pop);
  }
  // Along the order of firing first: one pass settles a part.
  std::stable_sort(all.begin(), all.end(), [](const FiringArc& a, const FiringArc& b) { return a.from < b.from; });
  return all;
}

CriticalCircle EventGraph::named(const std::vector<FiringArc>& arcs, const std::vector<std::size_t>& of) const {
  CriticalCircle circle;
  circle.parts = 0;
  for (const std::size_t a : of) {
    const StageId s = stage(arcs[a].from);
    if (std::find(circle.stages.begin(), circle.stages.end(), s) == circle.stages.end()) circle.stages.push_back(s);
    if (arcs[a].buffer) circle.buffers.push_back(*arcs[a].buffer);
    circle.cycles += arcs[a].cycles;
    circle.parts += static_cast<std::uint64_t>(arcs[a].parts);
  }
  std::sort(circle.buffers.begin(), circle.buffers.end());
  circle.buffers.erase(std::unique(circle.buffers.begin(), circle.buffers.end()), circle.buffers.end());
  return circle;
}

void EventGraph::push(Index channel, Index node, std::uint32_t pages, std::uint32_t reserved) {
  Recorded& c = channels_[channel];
  c.pushes.insert(c.pushes.end(), pages, node);
  c.reserved += reserved;
  if (reserved != 0) c.reserves.emplace_back(node, c.reserved - 1);
}

void EventGraph::pop(Index channel, Index slot, Index node, std::uint32_t need, std::uint32_t pages) {
  Recorded& c = channels_[channel];
  auto& pops = c.pops[slot];
  if (need != 0) c.wants.emplace_back(node, static_cast<std::int64_t>(pops.size()) + need - 1);
  pops.insert(pops.end(), pages, node);
}

void EventGraph::note(Index actor) {
  const TokenRun::Actor& a = run_.actors()[actor];
  const auto node = static_cast<Index>(stage_of_.size());
  stage_of_.push_back(a.stage->id);
  if (first_[actor] == none) first_[actor] = node;
  if (last_[actor] != none) follows_.push_back({actor, last_[actor], node});
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

void EventGraph::reach(std::vector<FiringArc>& all, const std::vector<Index>& events, std::int64_t page, Index node,
                       BufferId b, Cycles StageTiming::*time) const {
  if (events.empty()) return;
  const auto n = static_cast<std::int64_t>(events.size());
  const std::int64_t part = page >= 0 ? page / n : -((n - 1 - page) / n);
  const Index from = events[static_cast<std::size_t>(page - part * n)];
  all.push_back({from, node, timing_[stage_of_[from].value].*time, -part, b});
}

std::optional<GreatestPace> greatest_pace(std::size_t nodes, const std::vector<FiringArc>& arcs,
                                          std::uint64_t most_steps) {
  std::optional<GreatestPace> best;
  Pace ratio;  // 0
  while (true) {
    Potentials potentials(nodes, arcs, most_steps);
    std::vector<std::size_t> circle = potentials.exceeding(ratio);
    if (circle.empty()) return best;
    Cycles cycles = 0;
    std::int64_t parts = 0;
    for (const std::size_t a : circle) {
      cycles += arcs[a].cycles;
      parts += arcs[a].parts;
    }
    if (parts <= 0) return std::nullopt;  // no cluster that runs to its end does
    ratio = {cycles, static_cast<std::uint64_t>(parts)};
    best = GreatestPace{ratio, std::move(circle)};
  }
}

bool keeps(std::size_t nodes, const std::vector<FiringArc>& arcs, const Pace& pace) {
  std::uint64_t most_steps = ~std::uint64_t{0};
  return Potentials(nodes, arcs, most_steps).exceeding(pace).empty();
}

}  // namespace rdusim
