#include "sim/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/ir/access_pattern.h"

namespace rdusim {

std::string to_string(const Place& p) {
  return fmt::format("rows [{}, {}) x columns [{}, {})", p.row, p.row + p.rows, p.col, p.col + p.cols);
}

namespace {

std::string operand_name(OperandId id, const SpatialProgram& program) {
  if (is_value(id) && maker_of(id).value < program.stages.size())
    return "result of " + program.stage(maker_of(id)).name;
  if (program.operators && id.value < program.operators->operands.size()) return program.operators->operand(id).name;
  for (const Tensor& t : program.tensors) {
    if (t.operand == id) return t.name;
  }
  return fmt::format("operand {}", id.value);
}

std::uint64_t as_unsigned(std::int64_t v) {
  return v < 0 ? 0 : static_cast<std::uint64_t>(v);
}

}  // namespace

std::string to_string(const PageTag& t, const SpatialProgram& program) {
  std::string text = fmt::format("'{}' {}", operand_name(t.operand, program), to_string(place_of(t)));
  if (t.chunks != 1) text += fmt::format(" chunk {} of {}", t.chunk, t.chunks);
  if (t.trip != 0) text += fmt::format(" trip {}", t.trip);
  return text;
}

MatrixView matrix_view(const Tensor& t) {
  MatrixView v;
  const std::size_t rank = t.shape.size();
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t extent = as_unsigned(t.shape[d]);
    const std::uint64_t whole = d < t.whole.size() ? as_unsigned(t.whole[d]) : extent;
    const std::uint64_t offset = d < t.offset.size() ? as_unsigned(t.offset[d]) : 0;
    if (d + 1 == rank) {
      v.cols = extent, v.whole_cols = whole, v.col = offset;
    } else {
      v.rows *= extent, v.whole_rows *= whole;
      v.row = v.row * whole + offset;
    }
  }
  if (rank < 3 || rank > t.whole.size() || rank > t.offset.size()) return v;
  const std::size_t x = rank - 2;
  if (t.shape[x] != t.whole[x] && v.rows != as_unsigned(t.shape[x])) {
    v.matrix_rows = as_unsigned(t.shape[x]);
    v.whole_matrix_rows = as_unsigned(t.whole[x]);
    v.first = as_unsigned(t.offset[x]);
  }
  return v;
}

std::optional<std::uint64_t> MatrixView::row_of(std::uint64_t whole_row) const {
  if (whole_row < row) return std::nullopt;
  if (matrix_rows == 0) return whole_row - row < rows ? std::optional(whole_row - row) : std::nullopt;
  // Its matrices follow each other.
  const std::uint64_t matrix = whole_row / whole_matrix_rows - row / whole_matrix_rows;
  const std::uint64_t within = whole_row % whole_matrix_rows;
  if (within < first || within - first >= matrix_rows || matrix * matrix_rows >= rows) return std::nullopt;
  return matrix * matrix_rows + within - first;
}

std::uint64_t MatrixView::whole_row_of(std::uint64_t own) const {
  if (matrix_rows == 0) return row + own;
  return row + own / matrix_rows * whole_matrix_rows + own % matrix_rows;
}

PagePlaces::PagePlaces(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile)
    : instances_(pattern.first.size()), heads_(pattern.heads), whole_(tensor.whole) {
  const std::size_t rank = tensor.shape.size();
  if (rank == 0 || rank > most_axes || pattern.page_tiles.size() != rank || pattern.extent_tiles.size() != rank ||
      pattern.stride.size() != pattern.loops.size() || (!pattern.grain.empty() && pattern.grain.size() != rank))
    return;
  const auto as_long = [&](const auto& list) { return list.size() == rank; };
  if (!std::all_of(pattern.stride.begin(), pattern.stride.end(), as_long) ||
      !std::all_of(pattern.first.begin(), pattern.first.end(), as_long))
    return;
  firings_ = 1;
  for (std::uint64_t n : pattern.loops) firings_ *= n;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t extent = as_unsigned(tensor.shape[d]);
    axes_.push_back({extent, d < tensor.whole.size() ? as_unsigned(tensor.whole[d]) : extent,
                     d < tensor.offset.size() ? as_unsigned(tensor.offset[d]) : 0,
                     !pattern.grain.empty() ? pattern.grain[d] : tile_extent(rank, d, native_tile),
                     pattern.page_tiles[d], pattern.extent_tiles[d]});
  }
  for (std::size_t l = pattern.loops.size(); l-- > 0;) {
    if (pattern.loops[l] == 1) continue;
    loops_.push_back(pattern.loops[l]);
    loops_.insert(loops_.end(), pattern.stride[l].begin(), pattern.stride[l].end());
  }
  for (const auto& first : pattern.first) first_.insert(first_.end(), first.begin(), first.end());
}

std::optional<Place> PagePlaces::at(std::uint32_t instance, std::uint64_t firing) const {
  if (firings_ == 0 || instance >= instances_) return std::nullopt;
  const std::size_t rank = axes_.size();
  std::array<std::uint64_t, most_axes> start;
  std::copy_n(first_.data() + instance * rank, rank, start.data());
  // Digits beyond the outermost loop count trips.
  for (std::size_t l = 0; l < loops_.size() && firing != 0; l += 1 + rank) {
    const std::uint64_t i = firing % loops_[l];
    firing /= loops_[l];
    for (std::size_t d = 0; d < rank; ++d) start[d] += i * loops_[l + 1 + d];
  }
  Place place{0, 0, 1, 1};
  for (std::size_t d = 0; d < rank; ++d) {
    const Axis& axis = axes_[d];
    const std::uint64_t stop = std::min(start[d] + axis.page, std::max(start[d], axis.limit));
    const std::uint64_t begin = std::min(start[d] * axis.step, axis.extent);
    const std::uint64_t end = std::min(stop * axis.step, axis.extent);
    if (d + 1 == rank) {
      place.col = begin + axis.offset, place.cols = end - begin;
    } else {
      place.row = place.row * axis.whole + begin + axis.offset;
      place.rows *= end - begin;
    }
  }
  return place;
}

std::optional<Place> PagePlaces::on_chip(std::uint32_t instance, std::uint64_t firing) const {
  auto place = at(instance, firing);
  if (!place || heads_ < 2) return place;
  const MatrixElement element = in_heads({place->row, place->col}, whole_, heads_);
  place->row = element.row;
  place->col = element.col;
  return place;
}

namespace {

// Of the left operand; blocks of a stack do not go from one matrix to the next.
std::uint64_t rows_of_a_matrix(const SpatialProgram& p, const Work& w) {
  if (p.operators && w.op.value < p.operators->operators.size()) {
    const Operator& op = p.operators->operators[w.op.value];
    if (!op.in.empty() && op.in[0].value < p.operators->operands.size())
      if (const auto& shape = p.operators->operand(op.in[0]).shape; shape.size() > 2)
        return as_unsigned(shape[shape.size() - 2]);
  }
  return as_unsigned(w.m);
}

}  // namespace

MatmulPlaces::MatmulPlaces(const SpatialProgram& program) : known_(program.stages.size()) {
  const std::uint64_t tile = program.header.native_tile;
  for (const Stage& s : program.stages)
    if (const auto* tiles = std::get_if<MatmulTiles>(&s.kind)) known_[s.id.value].k_pages = tiles->k_pages;
  if (!program.placement || tile == 0) return;
  for (const WorkAssignment& a : program.placement->work) {
    if (a.stage.value >= known_.size() || a.work.value >= program.work.size()) continue;
    if (!std::holds_alternative<MatmulTiles>(program.stage(a.stage).kind)) continue;
    const Work& w = program.work[a.work.value];
    Known& k = known_[a.stage.value];
    k.items = nullptr;
    k.rows = rows_of_a_matrix(program, w);
    if (!w.plan || w.plan->block_m == 0 || w.plan->block_n == 0 || w.plan->page_k == 0 || k.rows == 0) continue;
    k.block_rows = w.plan->block_m * tile;
    k.block_cols = w.plan->block_n * tile;
    k.page_depth = w.plan->page_k * tile;
    k.n = as_unsigned(w.n), k.k = as_unsigned(w.k);
    k.of_a_matrix = ceil_div(k.rows, k.block_rows);
    k.blocks_m = k.of_a_matrix * ceil_div(as_unsigned(w.m), k.rows);
    k.blocks_n = ceil_div(k.n, k.block_cols);
    k.slice_pages = w.plan->k_pages;
    k.offset_m = as_unsigned(w.offset_m), k.offset_n = as_unsigned(w.offset_n), k.offset_k = as_unsigned(w.offset_k);
    if (k.blocks_m != 0 && k.blocks_n != 0) k.items = &a;
  }
}

std::optional<MatmulPlace> MatmulPlaces::item(const Known& k, std::uint32_t instance, std::uint64_t round,
                                              std::uint64_t k_page) const {
  if (k.items == nullptr || instance >= k.items->items.size()) return std::nullopt;
  const std::vector<std::uint64_t>& items = k.items->items[instance];
  if (items.empty()) return std::nullopt;
  const std::uint64_t number = items[round < items.size() ? round : round % items.size()];
  const std::uint64_t bn = number % k.blocks_n;
  const std::uint64_t above = number / k.blocks_n;
  const std::uint64_t bm = above % k.blocks_m;
  const std::uint64_t slice = above / k.blocks_m;
  const std::uint64_t matrix = bm / k.of_a_matrix;
  const auto clip = [](std::uint64_t at, std::uint64_t size, std::uint64_t extent) {
    return std::pair{std::min(at, extent), std::min(at + size, extent)};
  };
  const auto [top, bottom] = clip((bm - matrix * k.of_a_matrix) * k.block_rows, k.block_rows, k.rows);
  const auto [c0, c1] = clip(bn * k.block_cols, k.block_cols, k.n);
  const auto [k0, k1] = clip((slice * k.slice_pages + k_page) * k.page_depth, k.page_depth, k.k);
  return MatmulPlace{
      {matrix * k.rows + top + k.offset_m, c0 + k.offset_n, bottom - top, c1 - c0}, k0 + k.offset_k, k1 + k.offset_k};
}

std::optional<MatmulPlace> MatmulPlaces::at(const StageAt& s, std::uint64_t firing) const {
  const Known& k = known_[s.stage.value];
  if (k.k_pages == 0) return std::nullopt;
  const std::uint64_t round = firing / k.k_pages;
  return item(k, s.instance, round, firing - round * k.k_pages);
}

std::optional<Place> MatmulPlaces::output(const StageAt& s, std::uint64_t page) const {
  const auto place = item(known_[s.stage.value], s.instance, page, 0);
  if (!place) return std::nullopt;
  return place->out;
}

std::vector<std::optional<OperandId>> page_operands(const SpatialProgram& p) {
  std::vector<std::optional<OperandId>> operand(p.buffers.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const Stage& s : p.stages) {
      std::optional<OperandId> made;
      if (const auto* load = std::get_if<Load>(&s.kind))
        made = load->indexed ? value_of(s.id) : p.tensor(load->tensor).operand;
      if (const auto* recv = std::get_if<Recv>(&s.kind)) made = operand[p.edge(recv->edge).buffer.value];
      if (const auto* g = std::get_if<Generic>(&s.kind); g != nullptr && makes_values(*g)) made = value_of(s.id);
      if (!made) continue;
      for (const Port& port : s.ports) {
        if (port.direction == Direction::input || operand[port.buffer.value]) continue;
        operand[port.buffer.value] = made;
        changed = true;
      }
    }
  }
  return operand;
}

std::vector<Contraction> contractions(const SpatialProgram& program) {
  std::size_t operands = program.operators ? program.operators->operands.size() : 0;
  for (const Tensor& t : program.tensors) operands = std::max<std::size_t>(operands, t.operand.value + std::size_t{1});
  std::vector<Contraction> result(operands);
  if (program.operators) {
    for (const Operator& op : program.operators->operators) {
      if (op.kind != OperatorKind::matmul || op.out.value >= operands || op.in.empty()) continue;
      result[op.out.value].op = op.id;
      const auto& shape = program.operators->operand(op.in.front()).shape;
      if (!shape.empty()) result[op.out.value].k = as_unsigned(shape.back());
    }
    return result;
  }
  // An assembled program: the operator that a store's stage comes from, and the extents of its work.
  const auto operand = page_operands(program);
  for (const Stage& s : program.stages) {
    const auto* store = std::get_if<Store>(&s.kind);
    const bool of_values = std::any_of(s.ports.begin(), s.ports.end(), [&](const Port& port) {
      const auto& o = operand[port.buffer.value];
      return o && is_value(*o);
    });
    if (store != nullptr && s.origin && !of_values) result[program.tensor(store->tensor).operand.value].op = s.origin;
  }
  for (Contraction& c : result) {
    if (!c.op) continue;
    for (const Work& w : program.work) {
      if (w.op != *c.op) continue;
      c.k = std::max(c.k.value_or(0), as_unsigned(w.offset_k) + as_unsigned(w.k));
    }
  }
  return result;
}

std::uint64_t followed_until(std::span<const ContributionRun> contributions, ContractionRanges& ranges) {
  ranges.clear();
  for (const ContributionRun& r : contributions) ranges.emplace_back(r.k_begin, r.k_end());
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t next = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != next) break;
    next = end;
  }
  return next;
}

}  // namespace rdusim
