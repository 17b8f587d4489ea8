// What firings compute: tags and provenance always, values where the run carries them.
#include <algorithm>
#include <array>
#include <cstring>

#include "models/units/body.h"
#include "models/units/chip.h"
#include "models/values/kernels.h"

namespace rdusim {
namespace {

std::uint64_t area(const PageTag& t) {
  return std::uint64_t{t.rows} * t.cols;
}

}  // namespace

// The page that input port `port` takes in `firing`, which has not been claimed yet: its chunk of this phase.
Chip::View Chip::view(const StageState& s, std::uint32_t port, std::uint64_t firing) const {
  const PortSpec& ps = spec(s).ports[port];
  const PortState& state = c_.ports[s.first_port + port];
  View v;
  if (!state.bound) return v;
  const BufferState& b = c_.buffers[state.buffer];
  const std::uint64_t page = c_.consumers[state.consumer].claimed;
  v.header = &header(b, page);
  v.tag = v.header->tag;
  const std::uint32_t size = bytes_of(ps.dtype);
  v.elements = v.header->bytes / size;
  const Chunk& chunk = ps.chunk.at(firing);
  Bytes begin = 0;
  if (chunk.of > 1) {
    const ElementRange range = chunk_range(v.elements, std::min(chunk.index, chunk.of - 1), chunk.of);
    v.elements = range.size();
    begin = range.begin * size;
    v.tag.chunk = chunk.index;
    v.tag.chunks = chunk.of;
  }
  if (laws_.values) v.values = slot(b, page) + begin;
  return v;
}

// Puts the result of a firing into the pages that it will push: header and, where there are values, `values` of type
// `from` converted to the buffer's.
void Chip::write_outputs(StageState& s, std::uint64_t firing, const PageTag& tag, std::uint64_t elements,
                         const std::byte* values, DType from) {
  const StageSpec& sp = spec(s);
  for (const PortUse& use : uses(sp, firing)) {
    PortState& port = c_.ports[s.first_port + use.port];
    if (use.push == 0 || !port.bound) continue;
    const DType type = sp.ports[use.port].dtype;
    BufferState& b = c_.buffers[port.buffer];
    const std::uint64_t bytes = elements * bytes_of(type);
    for (std::uint32_t n = use.push; n > 0; --n) {
      const std::uint64_t page = port.assigned++;
      PageHeader& h = staged_header(b, page);
      h.tag = tag;
      h.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, b.slot_bytes));
      if (laws_.values && values != nullptr && bytes <= b.slot_bytes)
        convert(from, values, type, staged_slot(b, page), elements, laws_.saturate);
    }
  }
}

void Chip::start_matmul(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  const MatmulTiles& m = *sp.matmul;
  MatmulState& acc = c_.matmuls[s.detail];
  const std::uint64_t f = s.next;
  const View a = view(s, sp.in_a, f);
  const View b = view(s, sp.in_b, f);
  if (a.header == nullptr || b.header == nullptr) return;
  tell(OperandsJoined{now_, at(s), f, a.tag, b.tag});
  moved_.clear();
  moves(pmu_of(s, sp.in_a), a.header->bytes);
  moves(pmu_of(s, sp.in_b), b.header->bytes);

  const std::uint64_t k_pages = std::max<std::uint64_t>(m.k_pages, 1);
  std::byte* const held = laws_.values ? pool_.get() + acc.accumulator : nullptr;
  const std::uint32_t size = bytes_of(m.accumulator);
  if (f % sp.firings % k_pages == 0) {
    const ProvenanceId before = acc.tag.provenance;
    acc.tag = PageTag{};
    acc.tag.operand = sp.operand;
    acc.tag.trip = a.tag.trip;
    acc.tag.row = a.tag.row;
    acc.tag.rows = a.tag.rows;
    acc.tag.col = m.transposed ? b.tag.row % sp.b_rows : b.tag.col;
    acc.tag.cols = m.transposed ? b.tag.rows : b.tag.cols;
    const bool stale = s.faulty && before != 0 && c_.faults.strikes(FaultKind::accumulator_stale, at(s), f);
    if (stale) {
      acc.tag.provenance = before;
    } else if (held != nullptr) {
      std::memset(held, 0, std::min<std::uint64_t>(area(acc.tag) * size, sp.accumulator_bytes));
    }
  }
  // Pages that a fault mixed up may not fit each other: what they have in common is multiplied.
  const std::uint32_t b_depth = m.transposed ? b.tag.cols : b.tag.rows, b_cols = m.transposed ? b.tag.rows : b.tag.cols;
  const std::uint32_t depth = std::min(a.tag.cols, b_depth);
  for (std::uint32_t n = partial_copies(s, f); n > 0; --n) {
    acc.tag.provenance =
        provenance_.extend(acc.tag.provenance, {c_.chip, a.tag.col, a.tag.col + std::uint64_t{a.tag.cols}});
    const bool fits = a.tag.rows == acc.tag.rows && b_cols == acc.tag.cols &&
                      area(acc.tag) * size <= sp.accumulator_bytes && std::uint64_t{a.tag.rows} * depth <= a.elements &&
                      std::uint64_t{depth} * b_cols <= b.elements;
    if (held != nullptr && fits && depth != 0)
      matmul_accumulate(m.operand, a.values, b.values, held, a.tag.rows, depth, b_cols, m.transposed,
                        std::max(m.lanes, 1u));
  }
  reserve(s, f);
  if (f % sp.firings % k_pages == k_pages - 1) {
    const bool fits = area(acc.tag) * size <= sp.accumulator_bytes;
    if (s.faulty && held != nullptr && fits) narrow(s, f, m.accumulator, held, area(acc.tag));
    write_outputs(s, f, acc.tag, area(acc.tag), fits ? held : nullptr, m.accumulator);
  } else {
    write_outputs(s, f, acc.tag, area(acc.tag), nullptr, m.accumulator);
  }
  claim(s, f);
  run_compute(stage, m.lanes != 0
                         ? laws_.pcu.simd_product(m.accumulator, a.tag.rows, b_cols, a.tag.cols, m.lanes)
                         : laws_.pcu.systolic(m.operand, a.tag.rows, b_cols, std::max<std::uint64_t>(a.tag.cols, 1)));
}

// A body is evaluated on a stack of pages. Entries point to operands where those have the accumulator's type already,
// else to scratch pages, one a stack place; the last operation of a body that keeps its value writes to the
// accumulator.
void Chip::start_generic(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  const Generic& g = *sp.generic;
  GenericState& state = c_.generics[s.detail];
  const std::uint64_t f = s.next;
  const Expr& body = *sp.bodies[sp.body.at(f)];
  const bool values = laws_.values && is_arithmetic(g.accumulator);
  const std::uint32_t size = bytes_of(g.accumulator);
  std::byte* const kept = values ? pool_.get() + state.accumulator : nullptr;

  struct Entry {
    const std::byte* values = nullptr;
    PageTag tag;
    std::uint64_t elements = 0;
    bool fresh = false;  // an operand that nothing has been added to
    bool operand = false;
    bool constant = false;
  };
  constexpr std::size_t most = most_stacked;
  std::array<Entry, most> stack;
  std::size_t depth = 0;
  std::uint64_t elements = 0, operations = 0;
  std::size_t operands = 0;
  moved_.clear();
  const auto scratch = [&](std::size_t place) { return scratch_.data() + place * c_.scratch_bytes; };

  for (std::size_t i = 0; i < body.size(); ++i) {
    const ExprNode& node = body[i];
    const bool last = i + 1 == body.size();
    switch (node.op) {
      case ExprOp::operand: {
        if (depth == most || node.index >= sp.ports.size() || sp.ports[node.index].direction != Direction::input)
          return;
        const View v = s.faulty ? broken_operand(s, f, body, operands++) : view(s, node.index, f);
        if (v.header == nullptr) return;
        Entry& e = stack[depth];
        e = {v.values, v.tag, v.elements, true, true, false};
        moves(pmu_of(s, node.index), v.elements * bytes_of(sp.ports[node.index].dtype));
        if (values && sp.ports[node.index].dtype != g.accumulator) {
          if (v.elements * size > c_.scratch_bytes) e.elements = 0;
          convert(sp.ports[node.index].dtype, v.values, g.accumulator, scratch(depth), e.elements, laws_.saturate);
          e.values = scratch(depth);
        }
        elements = std::max(elements, v.elements);
        ++depth;
        break;
      }
      case ExprOp::accumulator:
        if (depth == most) return;
        stack[depth++] = {kept, state.tag, state.elements, false, false, false};
        break;
      case ExprOp::constant:
        if (depth == most) return;
        stack[depth] = {nullptr, PageTag{}, 0, false, false, true};
        if (values)
          fill_page(g.accumulator, node.number, scratch(depth), c_.scratch_bytes / size),
              stack[depth].values = scratch(depth);
        ++depth;
        break;
      case ExprOp::negate:
      case ExprOp::exponential:
      case ExprOp::square_root:
      case ExprOp::tanh:
      case ExprOp::erf: {
        if (depth == 0) return;
        Entry& e = stack[depth - 1];
        ++operations;
        if (values && e.elements * size > c_.scratch_bytes) return;
        if (values) {
          element_wise(unary_op(node.op), g.accumulator, e.values, scratch(depth - 1), e.elements);
          e.values = scratch(depth - 1);
        }
        e.operand = false;
        break;
      }
      default: {
        if (depth < 2) return;
        Entry& left = stack[depth - 2];
        const Entry right = stack[depth - 1];
        --depth;
        ++operations;
        // Pages that a fault mixed up may differ in size: what they have in common is computed.
        const std::uint64_t n = left.constant    ? right.elements
                                : right.constant ? left.elements
                                                 : std::min(left.elements, right.elements);
        const bool adds = node.op == ExprOp::add;
        const std::uint32_t times = adds && right.operand ? partial_copies(s, f) : 1;
        const ElementOp op = element_op(node.op);
        if (adds && left.fresh) {
          PageTag nothing = left.tag;
          nothing.provenance = 0;
          tell(PartialFolded{now_, at(s), f, nothing, left.tag, left.tag});
        }
        // Places of a page of zeros that was there at the start are those of what is added to it.
        if (area(left.tag) == 0 || left.constant) {
          const ProvenanceId held = left.tag.provenance;
          left.tag = right.tag;
          left.tag.provenance = held;
        }
        for (std::uint32_t t = 0; t < times; ++t) {
          const PageTag before = left.tag;
          left.tag.provenance = provenance_.sum(left.tag.provenance, right.tag.provenance);
          if (adds) tell(PartialFolded{now_, at(s), f, before, right.tag, left.tag});
          if (!values || n * size > c_.scratch_bytes) continue;
          std::byte* const to = last && sp.keeps && n * size <= sp.accumulator_bytes ? kept : scratch(depth - 1);
          element_wise(op, g.accumulator, left.values, right.values, to, n);
          left.values = to;
        }
        left.elements = n;
        left.fresh = left.operand = left.constant = false;
      }
    }
  }
  if (depth == 0) return;
  Entry& result = stack[depth - 1];
  if (result.fresh && result.operand) {
    PageTag nothing = result.tag;
    nothing.provenance = 0;
    tell(PartialFolded{now_, at(s), f, nothing, result.tag, result.tag});
  }
  if (sp.keeps) {
    state.tag = result.tag;
    state.elements = result.elements;
    if (values && result.values != kept && result.values != nullptr && result.elements * size <= sp.accumulator_bytes)
      std::memmove(kept, result.values, result.elements * size);
  }
  reserve(s, f);
  write_outputs(s, f, result.tag, result.elements, values ? result.values : nullptr, g.accumulator);
  claim(s, f);
  run_compute(stage, laws_.pcu.simd(g.accumulator, elements, operations, g.lanes));
}

}  // namespace rdusim
