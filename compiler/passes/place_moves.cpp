#include "compiler/passes/place_moves.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/passes/extents.h"
#include "compiler/passes/move_nests.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/section_builder.h"

namespace rdusim {
namespace {

// Native tiles that a page of at most `side.page` elements fills.
std::uint64_t tiles_of_page(const MoveSide& side, std::uint32_t native_tile) {
  std::vector<std::int64_t> shape(side.page.begin(), side.page.end());
  std::uint64_t tiles = 1;
  for (const std::uint64_t n : tile_grid(shape, native_tile)) tiles *= n;
  return tiles;
}

std::uint64_t most_sites_of(const SchedulePin& pin, const Target& t) {
  return std::min<std::uint64_t>(sites_for_moves(t), pin.sites.value_or(t.sites()));
}

std::uint64_t sites_of(const std::vector<MoveNest>& nests) {
  std::uint64_t sites = 0;
  for (const MoveNest& nest : nests) sites += nest.sites;
  return sites;
}

}  // namespace

std::optional<BlockPlan> move_plan(const OperatorGraph& graph, const Work& w, const SchedulePin& pin, const Target& t) {
  if (pin.unroll_m || pin.unroll_n || pin.unroll_k || pin.block_m || pin.block_n || pin.page_k) return std::nullopt;
  const Operator& op = graph.operators[w.op.value];
  std::string why;
  BlockPlan plan;
  plan.sites_m = sites_of(nests_of(graph, op, w.n, most_sites_of(pin, t), why));
  if (plan.sites_m == 0 || plan.sites_m > t.sites()) return std::nullopt;
  plan.block_m = ceil_div(tiles_of(w.m, t.native_tile), plan.sites_m);
  plan.block_n = tiles_of(w.n, t.native_tile);
  return plan;
}

void place_moves(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                 SiteAllocator& sites) {
  SectionBuilder build(program, target, work, section);
  const OperatorGraph& graph = *program.operators;
  std::string why;
  // As many sites as the plan has, which may have been made for a share of them (fit_trip in tile.cpp).
  std::vector<MoveNest> nests;
  for (std::uint64_t most = most_sites_of(pin_of(graph, build.op().id), target);
       most > 0 && sites_of(nests) != work.plan->sites_m; --most)
    nests = nests_of(graph, build.op(), work.n, most, why);
  for (std::size_t i = 0; i < nests.size(); ++i) {
    const MoveNest& nest = nests[i];
    const std::string number = std::to_string(i);
    const Tensor& from = build.tensor_of(nest.from.operand);
    const Tensor& to = build.tensor_of(nest.to.operand);
    const GroupId group = build.add_group(sites.near_agcus(nest.sites));
    const BufferId part = build.add_buffer("part_" + number, BufferKind::fifo, group, to.dtype, 1, 1, 1, 1);
    Buffer& buffer = program.buffers[part.value];
    buffer.page_tiles =
        std::max(tiles_of_page(nest.from, target.native_tile), tiles_of_page(nest.to, target.native_tile));
    buffer.page_bytes = nest.page_elements * bytes_of(to.dtype);
    AccessPattern taken = pattern_of(nest, nest.from, from, target.native_tile);
    AccessPattern given = pattern_of(nest, nest.to, to, target.native_tile);
    if (mutated("place_moves.stores_where_it_loads", false, true)) given.first = taken.first;
    std::uint64_t firings = 1;
    for (const std::uint64_t trips : taken.loops) firings *= trips;
    const StageId load = build.add_stage("load_" + number, Load{from.id, std::move(taken), {}}, group,
                                         movement_engine(target, 0), firings, {output_port(part)});
    const StageId store = build.add_stage("store_" + number, Store{to.id, std::move(given), {}}, group,
                                          movement_engine(target, 1), firings, {input_port(part)});
    build.add_edge(load, part, {store});
  }
}

}  // namespace rdusim
