// Gather, transpose, reshape, slice, concat and append: what goes where.
#include <algorithm>
#include <variant>

#include "compiler/support/units.h"
#include "compiler/workload/operator_rules.h"

namespace rdusim {
namespace {

struct IndexRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// The least and the greatest index, where the fill says so.
std::optional<IndexRange> indices_of(const Operand& indices) {
  if (indices.role != TensorRole::input && indices.role != TensorRole::weight) return std::nullopt;
  if (std::holds_alternative<ZeroFill>(indices.fill)) return IndexRange{0, 0};
  if (const auto* constant = std::get_if<ConstantFill>(&indices.fill))
    return IndexRange{constant->integer, constant->integer};
  if (const auto* values = std::get_if<ValuesFill>(&indices.fill)) {
    if (values->integers.empty()) return std::nullopt;
    const auto [low, high] = std::minmax_element(values->integers.begin(), values->integers.end());
    return IndexRange{*low, *high};
  }
  if (const auto* pattern = std::get_if<PatternFill>(&indices.fill)) {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    if (pattern->modulus < 1 || pattern->shift < -most || pattern->shift > most) return std::nullopt;
    return IndexRange{-pattern->shift, std::min(pattern->modulus, indices.shape[0]) - 1 - pattern->shift};
  }
  if (const auto* random = std::get_if<RandomFill>(&indices.fill)) {
    constexpr double most = 0x1p53;
    if (!(random->low >= -most && random->high <= most)) return std::nullopt;  // the fill's own rule says so
    return IndexRange{static_cast<std::int64_t>(random->low), static_cast<std::int64_t>(random->high)};
  }
  return std::nullopt;
}

std::optional<Shape> gather_shape(const OperatorCase& c) {
  const Shape& table = c.shape(0);
  const Shape& indices = c.shape(1);
  if (table.size() != 2 || indices.size() != 1) {
    c.error(Code::RDU1031, "operator '{}' gathers rows of a matrix by a list of indices; '{}' is {}, and '{}' {}",
            c.op.name, c.in(0).name, shape_text(table), c.in(1).name, shape_text(indices));
    return std::nullopt;
  }
  const auto range = indices_of(c.in(1));
  if (range && (range->low < 0 || range->high >= table[0])) {
    c.error(Code::RDU1035, "operator '{}' reads row {} of '{}', which has {}", c.op.name,
            range->low < 0 ? range->low : range->high, c.in(0).name, table[0]);
    return std::nullopt;
  }
  return Shape{indices[0], table[1]};
}

std::optional<Shape> transpose_shape(const OperatorCase& c) {
  const Shape& x = c.shape(0);
  const auto& axes = c.op.attributes.axes;
  std::vector<std::int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == x.size();
  for (std::size_t i = 0; permutes && i < sorted.size(); ++i) permutes = sorted[i] == static_cast<std::int64_t>(i);
  if (!permutes) {
    c.error(Code::RDU1033, "'axes' of operator '{}' is [{}]; it is each axis of '{}', 0 to {}, once", c.op.name,
            fmt::join(axes, ", "), c.in(0).name, x.size() - 1);
    return std::nullopt;
  }
  Shape out;
  for (const std::int64_t axis : axes) out.push_back(x[static_cast<std::size_t>(axis)]);
  return out;
}

std::optional<Shape> reshape_shape(const OperatorCase& c) {
  if (c.given == nullptr) {
    c.error(Code::RDU1037, "operator '{}' reshapes '{}', and '{}' has no shape", c.op.name, c.in(0).name,
            c.graph.operand(c.op.out).name);
    return std::nullopt;
  }
  const auto before = element_count(c.shape(0));
  const auto after = element_count(*c.given);
  if (before == after) return *c.given;
  c.error(Code::RDU1009, "operator '{}' reshapes {} elements of '{}' to {}, which has {}", c.op.name,
          before.value_or(0), c.in(0).name, shape_text(*c.given), after.value_or(0));
  return std::nullopt;
}

std::optional<Shape> slice_shape(const OperatorCase& c) {
  const Shape& x = c.shape(0);
  const auto& begin = c.op.attributes.begin;
  const auto& end = c.op.attributes.end;
  if (begin.size() != x.size() || end.size() != x.size()) {
    c.error(Code::RDU1033, "'begin' and 'end' of operator '{}' have {} and {} numbers; '{}' has {} axes", c.op.name,
            begin.size(), end.size(), c.in(0).name, x.size());
    return std::nullopt;
  }
  Shape out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (begin[i] < 0 || end[i] <= begin[i] || end[i] > x[i]) {
      c.error(Code::RDU1033, "operator '{}' slices [{}, {}) of axis {} of '{}', which is {} long", c.op.name, begin[i],
              end[i], i, c.in(0).name, x[i]);
      return std::nullopt;
    }
    out.push_back(end[i] - begin[i]);
  }
  return out;
}

std::optional<Shape> concat_shape(const OperatorCase& c) {
  Shape out = c.shape(0);
  const std::int64_t axis = c.op.attributes.axes[0];
  if (axis < 0 || axis >= static_cast<std::int64_t>(out.size())) {
    c.error(Code::RDU1033, "'axes' of operator '{}' is [{}]; '{}' has the axes 0 to {}", c.op.name, axis, c.in(0).name,
            out.size() - 1);
    return std::nullopt;
  }
  std::int64_t& length = out[static_cast<std::size_t>(axis)];
  for (std::size_t i = 1; i < c.op.in.size(); ++i) {
    Shape same = c.shape(i);
    if (same.size() == out.size()) same[static_cast<std::size_t>(axis)] = length;
    if (same != out) {
      c.error(Code::RDU1009, "operator '{}' joins '{}', {}, along axis {} to '{}', {}", c.op.name, c.in(i).name,
              shape_text(c.shape(i)), axis, c.in(0).name, shape_text(c.shape(0)));
      return std::nullopt;
    }
    const auto sum = checked_add(length, c.shape(i)[static_cast<std::size_t>(axis)]);
    if (!sum) {
      c.error(Code::RDU1008, "operator '{}' makes axis {} so long that 64 bits do not count it", c.op.name, axis);
      return std::nullopt;
    }
    length = *sum;
  }
  return out;
}

// Whose value an append replaces: a state, that nobody else reads as it was.
bool owns_state(const OperatorCase& c) {
  const auto misused = [&](const std::string& what) {
    c.error(Code::RDU1060, "operator '{}' {}", c.op.name, what);
    return false;
  };
  const auto writes = [&](const Operator& op) { return op.kind == OperatorKind::append && op.out == c.op.in[0]; };
  const auto& all = c.graph.operators;
  if (c.in(0).role != TensorRole::state && std::none_of(all.begin(), all.end(), writes))
    return misused(fmt::format("appends to '{}', which is no state", c.in(0).name));
  if (c.graph.operand(c.op.out).role != TensorRole::intermediate)
    return misused(fmt::format("gives '{}' the role {}; it is the state '{}' as it is from then on, an intermediate",
                               c.graph.operand(c.op.out).name, name_of(c.graph.operand(c.op.out).role), c.in(0).name));
  for (const Operator& other : all) {
    const auto reads = std::count(other.in.begin(), other.in.end(), c.op.in[0]);
    if (reads > (other.out == c.op.out ? 1 : 0))
      return misused(fmt::format("updates '{}' in place, which '{}' reads", c.in(0).name, other.name));
  }
  return true;
}

std::optional<Shape> append_shape(const OperatorCase& c) {
  const Shape& state = c.shape(0);
  const Shape& rows = c.shape(1);
  const auto& begin = c.op.attributes.begin;
  const std::size_t rank = state.size();
  if (rank < 2) {
    c.error(Code::RDU1031, "operator '{}' appends rows to a matrix, or a stack of them; '{}' is {}", c.op.name,
            c.in(0).name, shape_text(state));
    return std::nullopt;
  }
  Shape same = rows;
  if (same.size() == rank) same[rank - 2] = state[rank - 2];
  if (same != state) {
    c.error(Code::RDU1009, "operator '{}' appends '{}', {}, to '{}', {}", c.op.name, c.in(1).name, shape_text(rows),
            c.in(0).name, shape_text(state));
    return std::nullopt;
  }
  if (begin.size() != 1 || begin[0] < 0 || rows[rank - 2] > state[rank - 2] ||
      begin[0] > state[rank - 2] - rows[rank - 2]) {
    c.error(Code::RDU1033, "'begin' of operator '{}' is [{}]; it is the first of {} rows of '{}', which has {}",
            c.op.name, fmt::join(begin, ", "), rows[rank - 2], c.in(0).name, state[rank - 2]);
    return std::nullopt;
  }
  return owns_state(c) ? std::optional(state) : std::nullopt;
}

}  // namespace

std::optional<Shape> move_shape(const OperatorCase& c) {
  switch (c.op.kind) {
    case OperatorKind::gather:
      return gather_shape(c);
    case OperatorKind::transpose:
      return transpose_shape(c);
    case OperatorKind::reshape:
      return reshape_shape(c);
    case OperatorKind::slice:
      return slice_shape(c);
    case OperatorKind::append:
      return append_shape(c);
    default:
      return concat_shape(c);
  }
}

}  // namespace rdusim
