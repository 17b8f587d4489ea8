#include "compiler/passes/place_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/passes/extents.h"
#include "compiler/passes/move_nests.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/section_builder.h"

namespace rdusim {
namespace {

// As of other streams. A row that is longer comes in parts.
constexpr Bytes most_gathered_page_bytes = Bytes{32} << 10;
// Indices are counted in the phases of a port.
constexpr std::int64_t most_indices = std::int64_t{1} << 16;

}  // namespace

std::string gather_fault(const OperatorGraph& graph, const Operator& op) {
  const std::int64_t n = graph.operand(op.out).shape[0];
  return n <= most_indices ? std::string() : fmt::format("takes {} rows; at most {} are lowered", n, most_indices);
}

std::optional<BlockPlan> gather_plan(const OperatorGraph&, const Work& w, const SchedulePin& pin, const Target& t) {
  if (pin.unroll_m || pin.unroll_n || pin.unroll_k || pin.block_m || pin.block_n || pin.page_k) return std::nullopt;
  const auto m = static_cast<std::uint64_t>(w.m);
  BlockPlan plan;
  plan.sites_m = std::min({m, sites_for_moves(t), std::uint64_t{pin.sites.value_or(t.sites())}});
  if (plan.sites_m == 0) return std::nullopt;
  while (m % plan.sites_m != 0) --plan.sites_m;
  plan.rounds_m = m / plan.sites_m;
  plan.block_n = tiles_of(w.n, t.native_tile);
  return plan;
}

void place_gather(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                  SiteAllocator& sites) {
  SectionBuilder build(program, target, work, section);
  const Operator& op = build.op();
  const Tensor& table = build.tensor_of(op.in[0]);
  const Tensor& indices = build.tensor_of(op.in[1]);
  const Tensor& to = build.tensor_of(op.out);
  const auto m = static_cast<std::uint64_t>(work.m), n = static_cast<std::uint64_t>(work.n);
  const std::uint64_t site_count = work.plan->sites_m, rows = work.plan->rounds_m;
  const std::uint64_t width = std::min(n, most_gathered_page_bytes / bytes_of(table.dtype));
  const std::uint64_t parts = ceil_div(n, width);
  // Where memory is read is not known before the run: as if index i were i, where the table has so many rows.
  const std::uint64_t down = m <= static_cast<std::uint64_t>(table.shape[0]) ? 1 : 0;

  AccessPattern list{{1}, {{0}}, {}, {1}, {site_count}, 1, {rows}};
  AccessPattern read{{rows, parts}, {{down, 0}, {0, 1}}, {}, {1, 1}, {down == 1 ? m : 1, parts}, 1, {1, width}};
  AccessPattern written{{rows, parts}, {{1, 0}, {0, 1}}, {}, {1, 1}, {m, parts}, 1, {1, width}};
  for (std::uint64_t i = 0; i < site_count; ++i) {
    list.first.push_back({mutated("gather.all_sites_take_the_first", i, 0)});
    read.first.push_back({down * i * rows, 0});
    written.first.push_back({i * rows, 0});
  }

  const GroupId group = build.add_group(sites.near_agcus(site_count));
  const auto buffer = [&](const char* name, DType type, std::uint64_t high, std::uint64_t wide) {
    return build.add_buffer(name, BufferKind::fifo, group, type, tiles_of(std::int64_t(high), target.native_tile),
                            tiles_of(std::int64_t(wide), target.native_tile), std::int64_t(high), std::int64_t(wide));
  };
  const BufferId numbers = buffer("indices", indices.dtype, 1, rows);
  const BufferId page = buffer("rows", table.dtype, 1, width);
  const StageId first = build.add_stage("load_indices", Load{indices.id, std::move(list), {}}, group,
                                        movement_engine(target, 0), 1, {output_port(numbers)});
  // One page of indices for all firings: each takes one of them, for all parts of its row.
  const auto firings = static_cast<std::uint32_t>(rows * parts);
  Port which = input_port(numbers);
  which.pop = in_phases(firings - 1, firings, firings);
  if (rows > 1) {
    which.chunk.clear();
    for (std::uint32_t r = 0; r < rows; ++r)
      which.chunk.push_back({static_cast<std::uint32_t>(parts),
                             {mutated("gather.same_index_again", r, 0), static_cast<std::uint32_t>(rows)}});
  }
  const StageId load = build.add_stage("load_rows", Load{table.id, std::move(read), {}, true}, group,
                                       movement_engine(target, 1), firings, {std::move(which), output_port(page)});
  const StageId store = build.add_stage("store", Store{to.id, std::move(written), {}}, group,
                                        movement_engine(target, 2), firings, {input_port(page)});
  build.add_edge(first, numbers, {load});
  build.add_edge(load, page, {store});
}

}  // namespace rdusim
