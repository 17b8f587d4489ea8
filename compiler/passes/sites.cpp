#include "compiler/passes/sites.h"

#include <tuple>

#include "compiler/passes/attention.h"

namespace rdusim {
namespace {

std::uint64_t apart(std::uint32_t a, std::uint32_t b) {
  return a < b ? b - a : a - b;
}

}  // namespace

std::uint64_t sites_wanted(const OperatorGraph& graph, const Work& work, const Target& target) {
  const BlockPlan& plan = *work.plan;
  if (graph.operators[work.op.value].kind != OperatorKind::attention) return plan.sites_m * plan.sites_n * plan.sites_k;
  const AttentionSites parts = attention_sites(attention_extents(graph, work), plan, target);
  const std::uint64_t passes = score_passes(graph, work, plan, target);
  return plan.sites_m * parts.heads * (passes * (parts.scores + 1) + parts.values * parts.slices);
}

SiteAllocator::SiteAllocator(const Target& target, ChipId chip)
    : target_(target), chip_(chip), taken_(target.sites(), false), free_(target.sites()) {}

std::uint64_t SiteAllocator::distance(Position a, AgcuId agcu) const {
  const Position b = target_.agcu.at[agcu.value];
  return apart(a.x, b.x) + apart(a.y, b.y);
}

Position SiteAllocator::take(std::size_t index) {
  taken_[index] = true;
  --free_;
  return {static_cast<std::uint32_t>(index % target_.mesh.width),
          static_cast<std::uint32_t>(index / target_.mesh.width)};
}

Group SiteAllocator::near_agcus(std::size_t count) {
  Group group;
  for (std::size_t i = 0; i < count; ++i) {
    const AgcuId agcu(next_agcu_);
    next_agcu_ = (next_agcu_ + 1) % target_.agcu.at.size();
    std::size_t best = taken_.size();
    std::uint64_t best_distance = 0;
    for (std::size_t s = 0; s < taken_.size(); ++s) {
      if (taken_[s]) continue;
      const Position at{static_cast<std::uint32_t>(s % target_.mesh.width),
                        static_cast<std::uint32_t>(s / target_.mesh.width)};
      const std::uint64_t d = distance(at, agcu);
      if (best == taken_.size() || d < best_distance) {
        best = s;
        best_distance = d;
      }
    }
    group.sites.push_back({chip_, take(best)});
    group.agcus.push_back(agcu);
  }
  return group;
}

Group SiteAllocator::block(std::size_t rows, std::size_t columns) {
  Group group;
  std::size_t s = 0;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    while (taken_[s]) ++s;
    group.sites.push_back({chip_, take(s)});
  }
  group.agcus.resize(group.sites.size());
  std::vector<std::size_t> served(target_.agcu.at.size(), 0);
  const auto assign = [&](std::size_t i) {
    AgcuId best(0);
    for (std::size_t a = 1; a < served.size(); ++a)
      if (std::tuple(served[a], distance(group.sites[i].at, AgcuId(a))) <
          std::tuple(served[best.value], distance(group.sites[i].at, best)))
        best = AgcuId(a);
    ++served[best.value];
    group.agcus[i] = best;
  };
  // A row's tree is cheapest from an AGCU of its own mesh row (routes go along x first), so rows choose first; a
  // column's tree runs through all rows, wherever it starts.
  for (std::size_t i = 0; i < group.sites.size(); i += columns) assign(i);
  for (std::size_t i = 1; i < columns; ++i) assign(i);
  for (std::size_t i = columns; i < group.sites.size(); ++i)
    if (i % columns != 0) assign(i);
  return group;
}

}  // namespace rdusim
