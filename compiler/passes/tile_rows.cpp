#include "compiler/passes/tile_rows.h"

#include <algorithm>
#include <cmath>

#include "compiler/passes/extents.h"
#include "compiler/passes/recipe.h"

namespace rdusim {
namespace {

// Of the widest type that a page is worked on in: a few of them, double, in every buffer of a site.
constexpr Bytes most_row_page_bytes = Bytes{32} << 10;

std::uint64_t operations_of(const std::vector<Step>& steps) {
  std::uint64_t n = 0;
  for (const Step& s : steps) {
    if (s.is_column && !s.join) continue;  // one element a row
    for (const ExprNode& node : s.body) n += arity(node.op) != 0 ? 1 : 0;
    n += s.join ? 1 : 0;
  }
  return std::max<std::uint64_t>(n, 1);
}

}  // namespace

std::optional<BlockPlan> row_plan(const OperatorGraph& graph, const Work& w, const SchedulePin& pin, const Target& t) {
  if (pin.unroll_k.value_or(1) != 1 || pin.page_k.value_or(1) != 1) return std::nullopt;
  const Operator& op = graph.operators[w.op.value];
  const DType accumulator = accumulator_of(graph.operand(op.in[0]).dtype);
  const std::uint64_t tile = t.native_tile;
  const std::uint64_t mt = tiles_of(w.m, t.native_tile);
  const std::uint64_t nt = tiles_of(w.n, t.native_tile);

  const std::uint64_t block_m = pin.block_m.value_or(1);
  if (block_m == 0 || block_m > mt) return std::nullopt;
  const std::uint64_t blocks_m = ceil_div(mt, block_m);
  const std::uint64_t rows = std::min<std::uint64_t>(tile * block_m, static_cast<std::uint64_t>(w.m));
  const std::uint64_t widest = std::max<std::uint64_t>(most_row_page_bytes / (rows * tile * bytes_of(accumulator)), 1);
  const std::uint64_t block_n =
      pin.block_n ? std::uint64_t{*pin.block_n} : ceil_div(nt, ceil_div(nt, std::min(widest, nt)));
  if (block_n == 0 || block_n > nt) return std::nullopt;
  const std::uint64_t blocks_n = ceil_div(nt, block_n);

  // Sites that work as fast as the memory streams what is read and written.
  double bytes = double(w.m) * double(w.n) * bytes_of(graph.operand(op.out).dtype);
  for (const OperandId in : op.in) {
    const Operand& o = graph.operand(in);
    const double elements = double(o.shape.size() < 2 ? 1 : o.shape[0]) * double(o.shape.back());
    bytes += std::min(elements, double(w.m) * double(w.n)) * bytes_of(o.dtype);
  }
  const double rate = to_double(t.pcu.simd_rate(accumulator, pin.lanes.value_or(0)));
  const double work = double(w.m) * double(w.n) * double(operations_of(recipe_of(graph, op))) / rate;
  const double memory = bytes / to_double(t.hbm.sustainable_bytes_per_cycle());
  const std::uint64_t most = std::min<std::uint64_t>(t.sites(), pin.sites.value_or(t.sites()));
  const double wanted = std::min(double(most), std::ceil(work / std::max(memory, 1.0)));

  std::optional<BlockPlan> chosen;
  std::uint64_t chosen_sites = 0;
  const bool by_row = is_row_wise(op.kind);
  for (std::uint64_t m = 1; m <= std::min(blocks_m, most); ++m) {
    if (blocks_m % m != 0 || (pin.unroll_m && *pin.unroll_m != m)) continue;
    for (std::uint64_t n = 1; n <= (by_row ? 1 : std::min(blocks_n, most / m)); ++n) {
      if (blocks_n % n != 0 || (pin.unroll_n && *pin.unroll_n != n)) continue;
      const std::uint64_t sites = m * n;
      const bool enough = double(sites) >= wanted, was_enough = double(chosen_sites) >= wanted;
      if (chosen && (was_enough ? !enough || sites >= chosen_sites : sites <= chosen_sites)) continue;
      chosen = BlockPlan{block_m, block_n, 1, m, n, 1, blocks_m / m, blocks_n / n, 1};
      chosen_sites = sites;
    }
  }
  return chosen;
}

}  // namespace rdusim
