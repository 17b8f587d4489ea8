// Firings that make whole values: bodies that work by row, and element-wise ones that do more than add.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "models/units/body.h"
#include "models/units/chip.h"

namespace rdusim {

// A body's operands are spread to the rows and columns of the result where they do not have them. The result says who
// made it, and where it lies: its rows are those of the first operand that has rows, its columns likewise. Operands
// that a fault mixed up may not fit each other: what they have in common is computed.
void Chip::start_values(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  const Generic& g = *sp.generic;
  GenericState& state = c_.generics[s.detail];
  const std::uint64_t f = s.next;
  const Expr& body = *sp.bodies[sp.body.at(f)];
  const bool rows_matter = by_row(g), joins = joins_rows(g);
  const std::uint64_t place_in_row = f % sp.row_pages;
  const std::uint32_t size = bytes_of(g.accumulator);

  struct Taken {
    View view;
    std::uint32_t port = 0;
  };
  std::array<Taken, most_stacked> operands;
  std::size_t count = 0;
  PageTag made;
  made.operand = sp.operand;
  std::optional<std::uint32_t> rows, cols;
  std::uint64_t stack_rows = 0;
  moved_.clear();
  for (const ExprNode& node : body) {
    if (node.op != ExprOp::operand) continue;
    const bool known = std::any_of(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count),
                                   [&](const Taken& o) { return o.port == node.index; });
    if (known) continue;
    if (count == most_stacked || node.index >= sp.ports.size() || sp.ports[node.index].direction != Direction::input)
      return;
    Taken& o = operands[count++];
    o = {view(s, node.index, f), node.index};
    if (o.view.header == nullptr) return;
    moves(pmu_of(s, node.index), o.view.elements * bytes_of(sp.ports[node.index].dtype));
    const PageTag& tag = o.view.tag;
    if (count == 1) made.trip = tag.trip;
    if (!rows_matter) {
      const auto n = static_cast<std::uint32_t>(o.view.elements);
      cols = cols ? std::min(*cols, n) : n;
      if (count == 1) made.row = tag.row, made.col = tag.col, made.rows = tag.rows, made.cols = tag.cols;
      if (count == 1) made.chunk = tag.chunk, made.chunks = tag.chunks;
      continue;
    }
    if (sp.reach[node.index].has_rows) {
      // Where a matrix serves a whole stack, the stack says which rows.
      if (!rows || sp.flat_rows[node.index] > stack_rows) made.row = tag.row, stack_rows = sp.flat_rows[node.index];
      rows = rows ? std::min(*rows, tag.rows) : tag.rows;
    }
    if (sp.reach[node.index].has_cols) {
      if (!cols) made.col = tag.col;
      cols = cols ? std::min(*cols, tag.cols) : tag.cols;
    }
  }
  const std::uint32_t height = rows.value_or(1), width = cols.value_or(1);
  const std::uint64_t elements = std::uint64_t{height} * width;
  if (rows_matter) made.rows = height, made.cols = width;
  const std::uint64_t first_row = made.row % sp.matrix_rows, first_col = made.col;
  if (joins) made.col = 0, made.cols = 1;
  for (std::size_t i = 0; i < count; ++i)
    tell(PartialFolded{now_, at(s), f, joins && place_in_row != 0 ? state.tag : PageTag{}, operands[i].view.tag, made});

  std::array<const std::byte*, most_stacked> stack;
  std::size_t depth = 0;
  std::uint64_t operations = joins ? 1 : 0;
  bool values = laws_.values && is_arithmetic(g.accumulator) && elements * size <= c_.scratch_bytes;
  std::byte* const kept = values && sp.keeps ? pool_.get() + state.accumulator : nullptr;
  const auto scratch = [&](std::size_t place) { return scratch_.data() + place * c_.scratch_bytes; };
  const auto take = [&](const Taken& o, std::byte* to) -> const std::byte* {
    const std::uint32_t in_cols = rows_matter ? o.view.tag.cols : width;
    const Spread how = rows_matter ? sp.reach[o.port] : Spread{};
    const std::uint64_t last = (how.has_rows ? std::uint64_t{height - 1} * in_cols : 0) + (how.has_cols ? width : 1);
    const DType type = sp.ports[o.port].dtype;
    if (last > o.view.elements || o.view.elements * size > c_.scratch_bytes) return nullptr;
    const bool as_it_is = how.has_rows && how.has_cols && in_cols == width;
    const std::byte* page = o.view.values;
    if (type != g.accumulator) {
      std::byte* const converted = as_it_is ? to : scratch(most_stacked + 1);
      convert(type, page, g.accumulator, converted, o.view.elements, laws_.saturate);
      page = converted;
    }
    if (as_it_is) return page;
    spread(how, g.accumulator, page, in_cols, to, height, width);
    return to;
  };
  for (std::size_t n = 0; n < body.size(); ++n) {
    const ExprNode& node = body[n];
    const std::uint32_t pops = arity(node.op);
    if (depth < pops || depth - pops == most_stacked) return;
    depth -= pops;
    std::byte* const to = scratch(depth);
    switch (pops) {
      case 0:
        stack[depth] = to;
        if (!values) break;
        if (node.op == ExprOp::constant) {
          fill_page(g.accumulator, node.number, to, elements);
        } else if (node.op == ExprOp::row || node.op == ExprOp::column) {
          fill_places(node.op == ExprOp::row, first_row, first_col, height, width, to);
        } else if (node.op == ExprOp::accumulator) {
          stack[depth] = kept;
        } else {
          const auto o = std::find_if(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count),
                                      [&](const Taken& known) { return known.port == node.index; });
          stack[depth] = take(*o, to);
        }
        values = stack[depth] != nullptr;
        break;
      case 1:
        ++operations;
        if (values) element_wise(unary_op(node.op), g.accumulator, stack[depth], to, elements);
        stack[depth] = to;
        break;
      default:
        ++operations;
        if (values) element_wise(element_op(node.op), g.accumulator, stack[depth], stack[depth + 1], to, elements);
        stack[depth] = to;
        if (s.faulty && node.op == ExprOp::add && body[n - 1].op == ExprOp::operand &&
            c_.faults.strikes(FaultKind::bias_again, at(s), f)) {
          const auto bias = std::find_if(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count),
                                         [&](const Taken& o) { return o.port == body[n - 1].index; });
          tell(PartialFolded{now_, at(s), f, PageTag{}, bias->view.tag, made});
          if (values) element_wise(element_op(node.op), g.accumulator, to, stack[depth + 1], to, elements);
        }
    }
    ++depth;
  }
  if (depth == 0) return;

  const std::byte* result = values ? stack[0] : nullptr;
  std::uint64_t made_elements = elements;
  if (joins) {
    made_elements = height;
    if (values && made_elements * size <= sp.accumulator_bytes) {
      join_rows(element_op(*g.join), g.accumulator, result, kept, height, width, place_in_row == 0);
      result = kept;
    }
    state.tag = made;
  } else if (sp.keeps && values && elements * size <= sp.accumulator_bytes) {
    std::memmove(kept, result, elements * size);
  }
  reserve(s, f);
  write_outputs(s, f, made, made_elements, result, g.accumulator);
  claim(s, f);
  run_compute(stage, laws_.pcu.simd(g.accumulator, elements, operations, g.lanes));
}

}  // namespace rdusim
