#include "sim/places.h"

#include <fmt/format.h>

#include <algorithm>

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
  return v;
}

std::optional<Place> page_place(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                std::uint32_t instance, std::uint64_t firing) {
  const std::size_t rank = tensor.shape.size();
  if (rank == 0 || pattern.page_tiles.size() != rank || pattern.extent_tiles.size() != rank ||
      instance >= pattern.first.size() || pattern.first[instance].size() != rank ||
      pattern.stride.size() != pattern.loops.size() || (!pattern.grain.empty() && pattern.grain.size() != rank)) {
    return std::nullopt;
  }
  std::uint64_t firings = 1;
  for (std::uint64_t n : pattern.loops) firings *= n;
  if (firings == 0) return std::nullopt;
  firing %= firings;

  Place place{0, 0, 1, 1};
  std::vector<std::uint64_t> index(pattern.loops.size());
  for (std::size_t l = pattern.loops.size(); l-- > 0;) {
    index[l] = firing % pattern.loops[l];
    firing /= pattern.loops[l];
  }
  std::uint64_t row = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    std::uint64_t tile = pattern.first[instance][d];
    for (std::size_t l = 0; l < index.size(); ++l) {
      if (pattern.stride[l].size() != rank) return std::nullopt;
      tile += index[l] * pattern.stride[l][d];
    }
    const std::uint64_t size = !pattern.grain.empty() ? pattern.grain[d] : d + 2 >= rank ? native_tile : 1;
    const std::uint64_t tiles = std::min(tile + pattern.page_tiles[d], std::max(tile, pattern.extent_tiles[d])) - tile;
    const std::uint64_t extent = as_unsigned(tensor.shape[d]);
    const std::uint64_t begin = std::min(tile * size, extent);
    const std::uint64_t end = std::min((tile + tiles) * size, extent);
    const std::uint64_t offset = d < tensor.offset.size() ? as_unsigned(tensor.offset[d]) : 0;
    if (d + 1 == rank) {
      place.col = begin + offset, place.cols = end - begin;
    } else {
      const std::uint64_t whole = d < tensor.whole.size() ? as_unsigned(tensor.whole[d]) : extent;
      row = row * whole + begin + offset;
      place.rows *= end - begin;
    }
  }
  place.row = row;
  return place;
}

std::optional<Place> page_on_chip(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                  std::uint32_t instance, std::uint64_t firing) {
  auto place = page_place(pattern, tensor, native_tile, instance, firing);
  if (!place) return place;
  const MatrixElement at = in_heads({place->row, place->col}, tensor.whole, pattern.heads);
  place->row = at.row;
  place->col = at.col;
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

MatmulPlaces::MatmulPlaces(const SpatialProgram& program)
    : tile_(program.header.native_tile), known_(program.stages.size()) {
  for (const Stage& s : program.stages) known_[s.id.value].tiles = std::get_if<MatmulTiles>(&s.kind);
  if (!program.placement) return;
  for (const WorkAssignment& a : program.placement->work) {
    if (a.stage.value >= known_.size() || a.work.value >= program.work.size()) continue;
    known_[a.stage.value].items = &a;
    known_[a.stage.value].work = &program.work[a.work.value];
    known_[a.stage.value].rows = rows_of_a_matrix(program, program.work[a.work.value]);
  }
}

std::optional<MatmulPlace> MatmulPlaces::item(const Known& k, std::uint32_t instance, std::uint64_t round,
                                              std::uint64_t k_page) const {
  if (k.items == nullptr || k.tiles == nullptr || !k.work->plan || instance >= k.items->items.size())
    return std::nullopt;
  const std::vector<std::uint64_t>& items = k.items->items[instance];
  if (items.empty()) return std::nullopt;
  const BlockPlan& plan = *k.work->plan;
  const std::uint64_t m = as_unsigned(k.work->m), n = as_unsigned(k.work->n), depth = as_unsigned(k.work->k);
  if (plan.block_m == 0 || plan.block_n == 0 || plan.page_k == 0 || tile_ == 0) return std::nullopt;
  if (k.rows == 0) return std::nullopt;
  const std::uint64_t of_a_matrix = ceil_div(k.rows, plan.block_m * tile_);
  const std::uint64_t blocks_m = of_a_matrix * ceil_div(m, k.rows);
  const std::uint64_t blocks_n = ceil_div(n, plan.block_n * tile_);
  if (blocks_m == 0 || blocks_n == 0) return std::nullopt;
  const std::uint64_t number = items[round % items.size()];
  const std::uint64_t bn = number % blocks_n;
  const std::uint64_t bm = number / blocks_n % blocks_m;
  const std::uint64_t slice = number / blocks_n / blocks_m;
  const auto clip = [](std::uint64_t at, std::uint64_t size, std::uint64_t extent) {
    return std::pair{std::min(at, extent), std::min(at + size, extent)};
  };
  const auto [top, bottom] = clip(bm % of_a_matrix * plan.block_m * tile_, plan.block_m * tile_, k.rows);
  const std::uint64_t r0 = bm / of_a_matrix * k.rows + top, r1 = bm / of_a_matrix * k.rows + bottom;
  const auto [c0, c1] = clip(bn * plan.block_n * tile_, plan.block_n * tile_, n);
  const std::uint64_t page = plan.page_k * tile_;
  const auto [k0, k1] = clip((slice * plan.k_pages + k_page) * page, page, depth);
  return MatmulPlace{{r0 + as_unsigned(k.work->offset_m), c0 + as_unsigned(k.work->offset_n), r1 - r0, c1 - c0},
                     k0 + as_unsigned(k.work->offset_k),
                     k1 + as_unsigned(k.work->offset_k)};
}

std::optional<MatmulPlace> MatmulPlaces::at(const StageAt& s, std::uint64_t firing) const {
  const Known& k = known_[s.stage.value];
  if (k.tiles == nullptr || k.tiles->k_pages == 0) return std::nullopt;
  return item(k, s.instance, firing / k.tiles->k_pages, firing % k.tiles->k_pages);
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

std::uint64_t followed_until(const std::vector<Contribution>& contributions, ContractionRanges& ranges) {
  ranges.clear();
  for (const Contribution& c : contributions) ranges.emplace_back(c.k_begin, c.k_end);
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t next = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != next) break;
    next = end;
  }
  return next;
}

}  // namespace rdusim
