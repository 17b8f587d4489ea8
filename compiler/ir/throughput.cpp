#include "compiler/ir/throughput.h"

#include <algorithm>

#include "compiler/ir/event_graph.h"

namespace rdusim {
namespace {

constexpr std::size_t most_arcs_looked_at = 50'000'000;  // buffers times arcs: what is beyond keeps its depths unknown

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
  const std::vector<FiringArc> arcs = graph.arcs(given);
  const auto slowest = greatest_pace(graph.nodes(), arcs);
  if (!slowest) return out;
  out.circle = graph.named(arcs, slowest->circle);
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
    const Pace best = holds_back ? greatest_pace(graph.nodes(), with(0)).value_or(GreatestPace{}).pace : slowest->pace;
    const auto reaches = [&](std::uint64_t depth) { return keeps(graph.nodes(), with(depth), best); };
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
