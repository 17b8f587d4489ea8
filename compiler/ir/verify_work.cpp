#include <algorithm>
#include <map>

#include "compiler/ir/rules.h"
#include "compiler/support/units.h"

namespace rdusim {
namespace {

// Tiles of the contraction in a work item. Requires a plan that covers its work.
std::uint64_t contraction_tiles(const Work& w, std::uint64_t item, std::uint32_t native_tile) {
  const BlockPlan& plan = *w.plan;
  const std::uint64_t blocks = plan.sites_m * plan.rounds_m * plan.sites_n * plan.rounds_n;
  const std::uint64_t whole = ceil_div(static_cast<std::uint64_t>(w.k), std::uint64_t{native_tile});
  const std::uint64_t slice = plan.page_k * plan.k_pages, begin = item / blocks * slice;
  return begin >= whole ? 0 : std::min(whole - begin, slice);
}

}  // namespace

// RDU3047: the matmuls of a work take each of its items just once, and sum as many tiles of the contraction as an item
// has.
void check_work(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (!p.placement) return;
  std::map<WorkId, std::vector<std::uint64_t>> taken;
  for (const WorkAssignment& a : p.placement->work) {
    const Work& w = p.work[a.work.value];
    if (!w.plan) continue;
    const Stage& st = p.stage(a.stage);
    const auto* matmul = std::get_if<MatmulTiles>(&st.kind);
    bool agrees = true;
    for (const auto& items : a.items) {
      taken[w.id].insert(taken[w.id].end(), items.begin(), items.end());
      for (const std::uint64_t item : items) {
        const std::uint64_t tiles = contraction_tiles(w, item, p.header.native_tile);
        if (!agrees || matmul == nullptr || matmul->k_tiles == tiles) continue;
        agrees = false;
        out.error(Code::RDU3047, s.where, "{} sums {} tiles of the contraction, and item {} of work item {} has {}",
                  place_of(st), matmul->k_tiles, item, w.id.value, tiles);
      }
    }
  }
  for (auto& [id, items] : taken) {
    const BlockPlan& plan = *p.work[id.value].plan;
    const std::uint64_t all = plan.sites_m * plan.rounds_m * plan.sites_n * plan.rounds_n * plan.sites_k;
    std::sort(items.begin(), items.end());
    if (const auto twice = std::adjacent_find(items.begin(), items.end()); twice != items.end())
      out.error(Code::RDU3047, s.where, "item {} of work item {} is carried out more than once", *twice, id.value);
    else if (items.size() != all)
      out.error(Code::RDU3047, s.where, "{} of the {} items of work item {} are carried out by nobody",
                all - items.size(), all, id.value);
  }
}

// RDU3048: every stage has a place of its own in its section's order, and the orders of engines follow it.
void check_schedule(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (!p.schedule) return;
  const auto order = [&](StageId st) { return p.schedule->slots[st.value].order; };
  std::map<std::pair<SectionId, std::uint32_t>, StageId> at;
  for (const Stage& st : p.stages) {
    const auto [other, fresh] = at.try_emplace({st.section, order(st.id)}, st.id);
    if (!fresh)
      out.error(Code::RDU3048, s.where, "'{}' and '{}' both have place {} in the order of section '{}'",
                p.stage(other->second).name, st.name, order(st.id), p.sections[st.section.value].name);
  }
  for (const EngineOrder& o : p.schedule->engine_orders)
    for (std::size_t i = 1; i < o.stages.size(); ++i)
      if (p.stage(o.stages[i - 1]).section == p.stage(o.stages[i]).section &&
          order(o.stages[i - 1]) > order(o.stages[i]))
        out.error(Code::RDU3048, s.where, "'{}' is served before '{}', and has place {} after its {}",
                  p.stage(o.stages[i - 1]).name, p.stage(o.stages[i]).name, order(o.stages[i - 1]), order(o.stages[i]));
}

}  // namespace rdusim
