// The order of stages is their place in their section's data flow; the distance of firings is the cost model's.
// Movement stages that meet on an engine are served in data-flow order, so that what is further on goes out only after
// what feeds it where both are ready.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "compiler/cost/cost.h"
#include "compiler/cost/stage_order.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"

namespace rdusim {
namespace {

// Sets of stages: two are in one set where they share an engine of a site, or both share one with a third.
std::vector<std::vector<StageId>> sharing(const SpatialProgram& p) {
  std::vector<std::size_t> parent(p.stages.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t s) {
    while (parent[s] != s) s = parent[s] = parent[parent[s]];
    return s;
  };
  std::map<std::tuple<SectionId, Site, std::uint32_t>, std::size_t> user;
  for (const Stage& s : p.stages) {
    if (s.role != StageRole::movement) continue;
    for (const Site& site : p.sites_of(s).sites) {
      const auto [it, is_new] = user.try_emplace({s.section, site, s.engine.index}, s.id.value);
      if (!is_new) {
        const std::size_t a = root(it->second), b = root(s.id.value);
        parent[std::max(a, b)] = std::min(a, b);
      }
    }
  }
  std::map<std::size_t, std::vector<StageId>> sets;
  for (const Stage& s : p.stages)
    if (s.role == StageRole::movement) sets[root(s.id.value)].push_back(s.id);
  std::vector<std::vector<StageId>> shared;
  for (auto& [first, stages] : sets)
    if (stages.size() > 1) shared.push_back(std::move(stages));
  return shared;
}

}  // namespace

Result<SpatialProgram> schedule(SpatialProgram program, const Target& target) {
  if (program.schedule || !program.placement) return program;
  Schedule result;
  result.slots.resize(program.stages.size());
  for (const Section& section : program.sections) {
    std::uint32_t place = 0;
    for (const StageId s : cost::stage_order(program, section.id))
      result.slots[s.value].order = mutated("schedule.all_at_once", place++, 0);
  }
  const std::vector<StageCost> costs = estimate_stages(program, target);
  for (const Stage& s : program.stages)
    result.slots[s.id.value].initiation_interval_cycles = costs[s.id.value].initiation_interval_cycles;
  for (std::vector<StageId>& stages : sharing(program)) {
    std::stable_sort(stages.begin(), stages.end(), [&](StageId a, StageId b) {
      return result.slots[mutated("schedule.turns_reversed", a, b).value].order <
             result.slots[mutated("schedule.turns_reversed", b, a).value].order;
    });
    if (mutated("schedule.turn_left_out", false, true)) stages.pop_back();
    result.engine_orders.push_back({std::move(stages)});
  }
  program.schedule = std::move(result);
  return program;
}

}  // namespace rdusim
