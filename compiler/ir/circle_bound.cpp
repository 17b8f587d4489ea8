#include "compiler/ir/circle_bound.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/event_graph.h"

namespace rdusim {
namespace {

constexpr std::uint64_t most_arcs_settled = 20'000'000;  // arcs looked at

// The longest ways to each firing of a part, and from each to the part's end, within the part.
class Ways {
 public:
  Ways(const EventGraph& graph, const std::vector<FiringArc>& arcs, const std::vector<StageTiming>& least)
      : graph_(graph),
        arcs_(arcs),
        to_(graph.nodes(), 0),
        from_(graph.nodes(), 0),
        before_(graph.nodes(), none),
        after_(graph.nodes(), none) {
    for (std::uint32_t n = 0; n < graph.nodes(); ++n) from_[n] = least[graph.stage(n).value].to_pop;
    // Arcs come by their first nodes, which are numbered before their second ones.
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      const FiringArc& a = arcs[i];
      if (a.parts != 0 || to_[a.from] + a.cycles <= to_[a.to]) continue;
      to_[a.to] = to_[a.from] + a.cycles;
      before_[a.to] = i;
    }
    for (std::size_t i = arcs.size(); i-- > 0;) {
      const FiringArc& a = arcs[i];
      if (a.parts != 0 || a.cycles + from_[a.to] <= from_[a.from]) continue;
      from_[a.from] = a.cycles + from_[a.to];
      after_[a.from] = i;
    }
  }

  Cycles through(std::uint32_t node) const { return to_[node] + from_[node]; }

  std::uint32_t longest() const {
    std::uint32_t best = 0;
    for (std::uint32_t n = 1; n < graph_.nodes(); ++n)
      if (through(n) > through(best)) best = n;
    return best;
  }

  // The way through a node, as its stages and buffers are named.
  CriticalCircle named(std::uint32_t node) const {
    std::vector<std::size_t> way;
    for (std::size_t i = before_[node]; i != none; i = before_[arcs_[i].from]) way.push_back(i);
    std::reverse(way.begin(), way.end());
    std::uint32_t last = node;
    for (std::size_t i = after_[node]; i != none; i = after_[last]) {
      way.push_back(i);
      last = arcs_[i].to;
    }
    CriticalCircle named = graph_.named(arcs_, way);
    if (std::find(named.stages.begin(), named.stages.end(), graph_.stage(last)) == named.stages.end())
      named.stages.push_back(graph_.stage(last));
    return named;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const EventGraph& graph_;
  const std::vector<FiringArc>& arcs_;
  std::vector<Cycles> to_, from_;
  std::vector<std::size_t> before_, after_;  // arcs
};

}  // namespace

std::optional<CircleClaim> circle_bound(const SpatialProgram& p, const Cluster& c,
                                        const std::vector<StageTiming>& least, std::uint64_t trips) {
  if (std::any_of(c.crossing.begin(), c.crossing.end(),
                  [&](EdgeId e) { return p.edge(e).map.kind == PageMapKind::scatter; }))
    return std::nullopt;
  // Counted before a graph of them is made.
  std::uint64_t firings = 0;
  for (const StageId id : c.stages) {
    const Stage& s = p.stage(id);
    const std::uint64_t instances = c.one_to_one ? 1 : p.sites_of(s).sites.size();
    std::uint64_t all = 0;
    if (__builtin_mul_overflow(s.firings / c.repeats, instances, &all) || all > most_throughput_firings ||
        (firings += all) > most_throughput_firings)
      return std::nullopt;
  }
  EventGraph graph(p, c, least);
  if (!graph.record() || graph.nodes() == 0) return std::nullopt;
  const std::vector<FiringArc> arcs = graph.arcs([&](BufferId b) { return p.buffer(b).depth_pages; }, true);
  for (const FiringArc& a : arcs)
    if (a.parts < 0 || (a.parts == 0 && a.from >= a.to)) return std::nullopt;
  const auto slowest = greatest_pace(graph.nodes(), arcs, most_arcs_settled);
  if (!slowest) return std::nullopt;

  const std::uint64_t most_parts = std::max<std::uint64_t>(most_bound_firings / graph.nodes(), 1);
  const std::uint64_t parts = trips > most_parts / c.repeats ? most_parts : std::min(trips * c.repeats, most_parts);
  const Ways ways(graph, arcs, least);
  const std::uint32_t longest = ways.longest();
  CriticalCircle named = graph.named(arcs, slowest->circle);
  CircleClaim claim;
  claim.section = p.stage(c.stages.front()).section;
  claim.cycles = named.cycles;
  claim.parts = named.parts;
  claim.rounds = (parts - 1) / named.parts;
  for (const std::size_t a : slowest->circle) claim.way = std::max(claim.way, ways.through(arcs[a].from));
  const auto bound = claim.bound();
  if (!bound) return std::nullopt;
  if (claim.rounds == 0 || *bound <= ways.through(longest)) {
    named = ways.named(longest);
    claim.cycles = claim.rounds = 0;
    claim.parts = 1;
    claim.way = ways.through(longest);
  }
  claim.stages = std::move(named.stages);
  claim.buffers = std::move(named.buffers);
  return claim;
}

}  // namespace rdusim
