#include "compiler/passes/move_nests.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/ir/access_pattern.h"
#include "compiler/passes/mutate.h"
#include "compiler/support/units.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// As of other streams: a few of them, double, in every buffer of a site.
constexpr Bytes most_moved_page_bytes = Bytes{32} << 10;
// Pages of a move; one that would take more moves element by element, or nearly.
constexpr std::uint64_t most_moved_pages = std::uint64_t{1} << 20;

using Extents = std::vector<std::uint64_t>;

Extents extents(const std::vector<std::int64_t>& shape) {
  return {shape.begin(), shape.end()};
}

std::uint64_t largest_divisor(std::uint64_t n, std::uint64_t most) {
  for (std::uint64_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

// Deals the iterations of the loop that feeds most sites out to them.
void share_out(MoveNest& nest, std::uint64_t most_sites) {
  for (std::size_t l = 0; l < nest.loops.size(); ++l) {
    const std::uint64_t sites = largest_divisor(nest.loops[l], most_sites);
    if (sites > nest.sites) nest.sites = sites, nest.shared_loop = l;
  }
}

// Rows of a page along an axis of `extent` rows, at most `most`: of like size, and as many pages as several sites can share
// evenly, but no smaller ones than it takes for the sake of more sites.
std::uint64_t page_along(std::uint64_t extent, std::uint64_t most, std::uint64_t most_sites) {
  constexpr std::uint64_t enough_rows = 32;
  most = std::min(std::max<std::uint64_t>(most, 1), extent);
  const std::uint64_t least_pages = ceil_div(extent, most);
  std::uint64_t chosen = most, chosen_sites = 0;
  constexpr std::uint64_t most_tried = 1024;
  const std::uint64_t most_pages = std::max(2 * least_pages, ceil_div(extent, enough_rows));
  for (std::uint64_t pages = least_pages; pages <= std::min(most_pages, least_pages + most_tried); ++pages) {
    const std::uint64_t page = ceil_div(extent, pages), sites = largest_divisor(ceil_div(extent, page), most_sites);
    if (sites > chosen_sites) chosen = page, chosen_sites = sites;
    if (sites == most_sites) break;
  }
  return chosen;
}

// A block of the result that lies together in one operand, its axes perhaps in another order.
struct Region {
  OperandId from;
  Extents extent, at_result, at_operand;  // by axis of the result; the last is where it begins in the operand's axis
  std::vector<std::size_t> axis;          // of the operand, by axis of the result
};

// Pages of whole blocks where the last two axes stay behind each other; else of rows; else of columns, that become rows.
MoveNest nest_of(const Region& r, OperandId result, const Extents& operand_shape, DType dtype,
                 std::uint64_t most_sites) {
  const std::size_t rank = r.extent.size(), last = rank - 1;
  const std::uint64_t budget = std::max<std::uint64_t>(most_moved_page_bytes / bytes_of(dtype), 1);
  Extents page(rank, 1);
  // A page along one axis of the operand is whole rows, a part of one row, or one column of consecutive rows.
  const bool keeps_last = r.axis[last] == last;
  const bool has_column = keeps_last || r.axis[last] + 2 == rank;
  const bool keeps_rows = rank > 1 && keeps_last && r.axis[last - 1] == last - 1;
  const std::uint64_t rows = keeps_rows ? r.extent[last - 1] : 1;
  if (has_column) page[last] = std::min(r.extent[last], budget);
  if (keeps_rows && page[last] == r.extent[last])
    page[last - 1] = page_along(rows, budget / page[last], most_sites);
  else if (has_column && !keeps_rows)
    page[last] = std::min(r.extent[last], budget);
  MoveNest nest;
  nest.from.operand = r.from;
  nest.to.operand = result;
  nest.from.begin = nest.from.page = nest.from.end = Extents(operand_shape.size(), 0);
  nest.to.begin = r.at_result;
  nest.to.page = page;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t a = r.axis[d];
    nest.loops.push_back(ceil_div(r.extent[d], page[d]));
    nest.from.stride.emplace_back(rank, 0);
    nest.from.stride.back()[a] = page[d];
    nest.to.stride.emplace_back(rank, 0);
    nest.to.stride.back()[d] = page[d];
    nest.from.begin[a] = r.at_operand[d];
    nest.from.page[a] = page[d];
    nest.from.end[a] = r.at_operand[d] + r.extent[d];
    nest.to.end.push_back(r.at_result[d] + r.extent[d]);
    nest.page_elements *= page[d];
  }
  share_out(nest, most_sites);
  return nest;
}

std::vector<Region> regions_of(const OperatorGraph& graph, const Operator& op, std::int64_t columns) {
  const Extents result = extents(graph.operand(op.out).shape);
  const OperatorAttributes& a = op.attributes;
  std::vector<std::size_t> in_order(result.size());
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  const Extents none(result.size(), 0);
  std::vector<Region> regions;
  switch (op.kind) {
    case OperatorKind::slice: {
      Extents begin = extents(a.begin);
      begin.back() = mutated("moves.slice_from_the_edge", begin.back(), 0);
      regions.push_back({op.in[0], result, none, begin, in_order});
      break;
    }
    case OperatorKind::transpose: {
      std::vector<std::size_t> axes(a.axes.begin(), a.axes.end());
      if (mutated("moves.axes_stay", false, true)) axes = in_order;
      regions.push_back({op.in[0], result, none, none, axes});
      break;
    }
    case OperatorKind::concat: {
      const auto axis = static_cast<std::size_t>(a.axes[0]);
      Extents at = none;
      for (const OperandId in : op.in) {
        const Extents part = extents(graph.operand(in).shape);
        regions.push_back({in, part, at, none, in_order});
        at[axis] += part[axis];
      }
      if (regions.size() > 1 && mutated("moves.parts_change_places", false, true))
        std::swap(regions[0].from, regions[1].from);
      break;
    }
    default: {  // append
      Extents rows = extents(graph.operand(op.in[1]).shape);
      rows.back() = static_cast<std::uint64_t>(columns);
      Extents at = none;
      at[at.size() - 2] =
          static_cast<std::uint64_t>(a.begin[0]) - mutated("moves.appends_a_row_early", std::uint64_t{0}, 1);
      regions.push_back({op.in[1], rows, at, none, in_order});
    }
  }
  return regions;
}

// Elements that an index along each axis spans, and all of them, in front.
Extents spans_of(const Extents& shape) {
  Extents spans = {1};
  for (std::size_t d = shape.size(); d-- > 0;) spans.insert(spans.begin(), spans.front() * shape[d]);
  return spans;
}

// Whether runs of `page` elements are blocks of both shapes, and a nest of loops goes through them: what spans less
// divides them, and what spans more is a multiple of them, and of what comes before.
bool cuts(std::uint64_t page, const Extents& spans) {
  std::uint64_t before = page;
  for (const std::uint64_t span : spans) {
    if (span <= page ? page % span != 0 : span % before != 0) return false;
    before = std::max(before, span);
  }
  return true;
}

// How pages of `page` elements go through a tensor: a loop for each of `steps`, of so many elements.
MoveSide side_of(OperandId operand, const Extents& shape, std::uint64_t page, const Extents& steps) {
  const Extents spans = spans_of(shape);
  const auto axis_of = [&](std::uint64_t elements) {  // the axis along which so many elements are a step
    for (std::size_t d = shape.size(); d-- > 0;)
      if (elements < spans[d]) return d;
    return std::size_t{0};
  };
  MoveSide side{operand, {}, Extents(shape.size(), 0), Extents(shape.size(), 1), shape};
  for (const std::uint64_t step : steps) {
    side.stride.emplace_back(shape.size(), 0);
    const std::size_t d = axis_of(step);
    side.stride.back()[d] = step / spans[d + 1];
  }
  for (std::size_t d = 0; d < shape.size(); ++d)
    side.page[d] = std::clamp<std::uint64_t>(page / spans[d + 1], 1, shape[d]);
  return side;
}

std::optional<MoveNest> reshape_nest(const OperatorGraph& graph, const Operator& op, std::uint64_t most_sites) {
  const Extents from = extents(graph.operand(op.in[0]).shape), to = extents(graph.operand(op.out).shape);
  Extents spans = spans_of(from);
  const Extents others = spans_of(to);
  spans.insert(spans.end(), others.begin(), others.end());
  std::sort(spans.begin(), spans.end());
  spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
  const std::uint64_t all = spans.back();
  const std::uint64_t budget = most_moved_page_bytes / bytes_of(graph.operand(op.out).dtype);
  std::optional<MoveNest> chosen;
  for (std::uint64_t page = std::min(all, budget); page >= 1; --page) {
    if (all % page != 0 || !cuts(page, spans)) continue;
    MoveNest nest;
    Extents steps;  // elements, outermost first
    std::uint64_t step = page;
    for (const std::uint64_t span : spans) {
      if (span <= page) continue;
      steps.insert(steps.begin(), step);
      nest.loops.insert(nest.loops.begin(), span / step);
      step = span;
    }
    if (steps.empty()) steps = {page}, nest.loops = {1};
    nest.from = side_of(op.in[0], from, page, steps);
    nest.to = side_of(op.out, to, page, steps);
    if (mutated("moves.reshape_repeats_a_page", false, true))
      std::fill(nest.from.stride.back().begin(), nest.from.stride.back().end(), 0);
    nest.page_elements = page;
    share_out(nest, most_sites);
    // The largest pages, but somewhat smaller ones where twice as many sites share them.
    if (!chosen || nest.sites >= 2 * chosen->sites) chosen = std::move(nest);
    if (page * 64 < budget) break;
  }
  return chosen;
}

}  // namespace

std::uint64_t sites_for_moves(const Target& target) {
  return std::min<std::uint64_t>(target.sites(), 2 * std::max<std::uint64_t>(target.agcu.at.size(), 1));
}

std::vector<MoveNest> nests_of(const OperatorGraph& graph, const Operator& op, std::int64_t columns,
                               std::uint64_t most_sites, std::string& why) {
  std::vector<MoveNest> nests;
  if (op.kind == OperatorKind::reshape) {
    if (auto nest = reshape_nest(graph, op, most_sites)) nests.push_back(std::move(*nest));
  } else {
    const std::vector<Region> regions = regions_of(graph, op, columns);
    const std::uint64_t share = std::max<std::uint64_t>(most_sites / regions.size(), 1);
    for (const Region& r : regions)
      nests.push_back(nest_of(r, op.out, extents(graph.operand(r.from).shape), graph.operand(op.out).dtype, share));
  }
  std::uint64_t pages = 0;
  for (const MoveNest& nest : nests) {
    std::uint64_t n = 1;
    for (const std::uint64_t trips : nest.loops) n *= trips;
    pages += n;
  }
  if (!nests.empty() && pages <= most_moved_pages) return nests;
  why = fmt::format("would move in {} pages of up to {} elements; at most {} are lowered", pages,
                    nests.empty() ? 0 : nests.front().page_elements, most_moved_pages);
  return {};
}

AccessPattern pattern_of(const MoveNest& nest, const MoveSide& side, const Tensor& tensor, std::uint32_t native_tile) {
  const std::size_t rank = side.page.size();
  AccessPattern pattern;
  pattern.loops = nest.loops;
  pattern.loops[nest.shared_loop] /= nest.sites;
  pattern.stride = side.stride;
  for (std::uint64_t& step : pattern.stride[nest.shared_loop]) step *= nest.sites;
  for (std::size_t l = 0; l < pattern.loops.size(); ++l)
    if (pattern.loops[l] == 1) std::fill(pattern.stride[l].begin(), pattern.stride[l].end(), 0);
  for (std::uint64_t i = 0; i < nest.sites; ++i) {
    pattern.first.push_back(side.begin);
    for (std::size_t d = 0; d < rank; ++d) pattern.first.back()[d] += i * side.stride[nest.shared_loop][d];
  }
  pattern.page_tiles = side.page;
  pattern.extent_tiles = side.end;
  bool by_tile = true;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto shape = static_cast<std::uint64_t>(tensor.shape[d]);
    // A page as long as the axis ends with it, whatever the grain.
    std::uint64_t grain = side.page[d] == shape ? 0 : side.page[d];
    if (side.end[d] != shape) grain = std::gcd(grain, side.end[d]);
    for (const auto& first : pattern.first) grain = std::gcd(grain, first[d]);
    for (std::size_t l = 0; l < pattern.loops.size(); ++l)
      if (pattern.loops[l] > 1) grain = std::gcd(grain, pattern.stride[l][d]);
    const std::uint64_t tile = tile_extent(rank, d, native_tile);
    if (grain == 0) grain = tile;
    by_tile = by_tile && grain % tile == 0;
    pattern.grain.push_back(grain);
  }
  if (by_tile)
    for (std::size_t d = 0; d < rank; ++d) pattern.grain[d] = tile_extent(rank, d, native_tile);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t grain = pattern.grain[d];
    pattern.page_tiles[d] = ceil_div(pattern.page_tiles[d], grain);
    pattern.extent_tiles[d] = ceil_div(pattern.extent_tiles[d], grain);
    for (auto& first : pattern.first) first[d] /= grain;
    for (std::size_t l = 0; l < pattern.loops.size(); ++l) pattern.stride[l][d] /= grain;
  }
  if (by_tile) pattern.grain.clear();
  return pattern;
}

}  // namespace rdusim
