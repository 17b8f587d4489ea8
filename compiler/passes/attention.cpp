#include "compiler/passes/attention.h"

#include <algorithm>

#include "compiler/passes/deal.h"
#include "compiler/passes/extents.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// Of keys, and as many of values: large enough that hand-offs are few, small enough that a row starts early.
constexpr Bytes most_key_page_bytes = Bytes{32} << 10;

std::vector<std::uint64_t> row_axes(const AttentionExtents& e, std::uint32_t tile) {
  std::vector<std::uint64_t> axes = e.stack;
  axes.push_back(tiles_of(e.queries, tile));
  return axes;
}
std::uint64_t product_of(const std::vector<std::uint64_t>& extents) {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : extents) n *= extent;
  return n;
}

// Slices of the pages of keys, where scores have `scores` sites: a fold of four takes few buffers and ports.
std::uint64_t value_slices(std::uint64_t scores, std::uint64_t pages) {
  std::uint64_t slices = 1;
  while (slices < 4 && 2 * slices <= scores && pages % (2 * slices) == 0) slices *= 2;
  return slices;
}

// The most sites, of `most`, over which the blocks can be dealt; as pinned.
std::optional<std::uint64_t> sites_over(const std::vector<std::uint64_t>& axes, std::uint64_t most,
                                        std::optional<std::uint32_t> pinned) {
  for (std::uint64_t sites = std::min(most, product_of(axes)); sites > 0; --sites)
    if ((!pinned || *pinned == sites) && deal(axes, sites)) return sites;
  return std::nullopt;
}

}  // namespace

AttentionExtents attention_extents(const OperatorGraph& graph, const Operator& op) {
  const auto& q = graph.operand(op.in[0]).shape;
  const auto& k = graph.operand(op.in[1]).shape;
  AttentionExtents e;
  for (std::size_t d = 0; d + 2 < q.size(); ++d) e.stack.push_back(static_cast<std::uint64_t>(q[d]));
  e.queries = q[q.size() - 2];
  e.keys = k[k.size() - 2];
  e.heads = op.attributes.heads;
  e.kv_heads = op.attributes.kv_heads;
  e.width = q.back() / op.attributes.heads;
  if (const auto further = further_at(op.in.size()))
    e.further_width = graph.operand(op.in[*further]).shape.back() / op.attributes.heads;
  return e;
}

AttentionExtents attention_extents(const OperatorGraph& graph, const Work& w) {
  AttentionExtents e = attention_extents(graph, graph.operators[w.op.value]);
  const std::uint64_t group = e.group();
  e.heads = static_cast<std::uint64_t>(w.n / e.width);
  e.first_head = static_cast<std::uint64_t>(w.offset_n / e.width);
  e.kv_heads = std::max<std::uint64_t>(e.heads / group, 1);
  return e;
}

std::uint64_t score_blocks(const OperatorGraph& graph, const Work& w, const BlockPlan& plan, const Target& t) {
  const Operator& op = graph.operators[w.op.value];
  const AttentionExtents e = attention_extents(graph, w);
  const std::uint32_t tile = t.native_tile;
  const DType accumulator = accumulator_of(graph.operand(op.in[0]).dtype);
  const Bytes scores = page_bytes(1, plan.page_k, e.queries, e.keys, accumulator, tile);
  const Bytes column = page_bytes(1, 1, e.queries, 1, accumulator, tile);
  const Bytes beside = (4 + 2 * score_groups(e)) * scores + 6 * column;  // pages that come and go, and accumulators
  const Bytes usable = t.pmu.capacity_bytes - t.pmu.capacity_bytes / 8;
  for (std::uint64_t blocks = plan.rounds_m * plan.rounds_n > 1 ? 2 : 1; blocks > 0; --blocks)
    if (beside <= usable && scores <= (usable - beside) / (blocks * plan.k_pages * plan.sites_k)) return blocks;
  return 0;
}

std::uint64_t score_groups(const AttentionExtents& e) {
  return e.further_width == 0 ? 1 : 2;
}

std::uint64_t score_passes(const OperatorGraph& graph, const Work& w, const BlockPlan& plan, const Target& t) {
  return score_blocks(graph, w, plan, t) > 0 ? 1 : 3;
}

AttentionSites attention_sites(const AttentionExtents& e, const BlockPlan& plan, const Target& t) {
  const std::uint64_t values = tiles_of(e.width, t.native_tile) / plan.block_n;
  return {plan.sites_n / values, plan.sites_k, values, value_slices(plan.sites_k, plan.sites_k * plan.k_pages)};
}

std::optional<BlockPlan> attention_plan(const OperatorGraph& graph, const Work& w, const SchedulePin& pin,
                                        const Target& t) {
  if (pin.block_m && *pin.block_m != 1) return std::nullopt;
  const Operator& op = graph.operators[w.op.value];
  const AttentionExtents e = attention_extents(graph, w);
  const std::uint32_t tile = t.native_tile;
  const std::uint64_t keys = tiles_of(e.keys, tile), width = tiles_of(e.width, tile);
  const DType type = graph.operand(op.in[0]).dtype;
  if (pin.block_n && (*pin.block_n == 0 || width % *pin.block_n != 0)) return std::nullopt;
  const Bytes column = page_bytes(1, width, e.keys, e.width, type, tile);
  const std::uint64_t most_page = std::max<std::uint64_t>(most_key_page_bytes / std::max<Bytes>(column, 1), 1);
  const std::uint64_t page = pin.page_k ? std::uint64_t{*pin.page_k} : ceil_div(keys, ceil_div(keys, most_page));
  if (page == 0 || page > keys) return std::nullopt;
  const std::uint64_t pages = ceil_div(keys, page);

  const std::uint64_t most = std::min<std::uint64_t>(t.sites(), pin.sites.value_or(t.sites()));
  const std::vector<std::uint64_t> rows = row_axes(e, tile);
  const std::uint64_t passes = score_passes(graph, w, BlockPlan{1, width, page, 1, 1, 1, 1, 1, pages}, t);
  const std::uint64_t pinned_values = pin.block_n ? width / *pin.block_n : 1,
                      pinned_slices = value_slices(pin.unroll_k.value_or(1), pages), groups = score_groups(e),
                      least = passes * (1 + groups * pin.unroll_k.value_or(1)) + pinned_values * pinned_slices;
  std::optional<std::uint32_t> pinned_heads;
  if (pin.unroll_n) {
    if (*pin.unroll_n % pinned_values != 0) return std::nullopt;
    pinned_heads = static_cast<std::uint32_t>(*pin.unroll_n / pinned_values);
  }
  const auto heads = sites_over({e.kv_heads, e.group()}, most / least, pinned_heads);
  if (!heads) return std::nullopt;
  const auto blocks = sites_over(rows, most / least / *heads, pin.unroll_m);
  if (!blocks) return std::nullopt;

  // Sites beyond one of each group shorten the way from a block's keys to its result, until memory or the weights' one
  // site takes as long.
  const double rounds = double(product_of(rows) / *blocks) * double(e.heads / *heads);
  const double tiles = double(keys * width) * rounds;  // that scores multiply, and values
  const double multiply = tiles * tile * tile * tile / std::max(1u, t.pcu.macs(type));
  const DType accumulator = accumulator_of(type);
  const double elements = double(std::min<std::int64_t>(tile, e.queries)) * double(e.keys) * rounds;
  // An element: scaled in three steps, two exponentials, a quotient, a sum, a maximum; with a sink, those of its share.
  const double operations = 12 + (sinks_at(op.in.size()) ? 4 : 0) + double(groups - 1);
  const double weigh = elements * operations / std::max(1u, t.pcu.simd(accumulator));
  const double bytes =
      2.0 * double(product_of(e.stack)) * double(e.keys) * double(e.kv_heads) * double(e.width) * bytes_of(type);
  const double enough = std::max(weigh, bytes / 2 / to_double(t.hbm.sustainable_bytes_per_cycle()));
  const auto shares = [&](std::uint64_t extent, std::uint64_t room, std::optional<std::uint64_t> pinned) {
    std::uint64_t best = 1;
    for (std::uint64_t n = 1; n <= std::min(extent, room); ++n) {
      if (extent % n != 0) continue;
      if (pinned ? n == *pinned : multiply / double(best) > enough) best = n;
    }
    return best;
  };
  const std::uint64_t room = most / (*blocks * *heads);
  const std::uint64_t values = shares(width, (room - passes * (1 + groups * pin.unroll_k.value_or(1))) / pinned_slices,
                                      pin.block_n ? std::optional(pinned_values) : std::nullopt);
  std::uint64_t scores = 1;
  for (std::uint64_t n = 1; n <= pages; ++n) {
    if (pages % n != 0 || passes * (groups * n + 1) + values * value_slices(n, pages) > room) continue;
    if (pin.unroll_k ? n == *pin.unroll_k : multiply / double(scores) > enough) scores = n;
  }
  if ((pin.unroll_k && *pin.unroll_k != scores) || (pin.block_n && values != pinned_values)) return std::nullopt;
  return BlockPlan{1,
                   width / values,
                   page,
                   *blocks,
                   *heads * values,
                   scores,
                   product_of(rows) / *blocks,
                   e.heads / *heads,
                   pages / scores};
}

}  // namespace rdusim
