#include "compiler/certificate/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "compiler/workload/operator_traits.h"

namespace rdusim::certificate {

namespace {

using Index = std::vector<std::uint64_t>;

std::uint64_t extent(std::int64_t n) {
  return static_cast<std::uint64_t>(n);
}

// The elements of a shape; 0 of none, and of more than can be counted.
std::uint64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t n = shape.empty() ? 0 : 1;
  for (const std::int64_t e : shape)
    if (e < 1 || __builtin_mul_overflow(n, extent(e), &n)) return 0;
  return n;
}

Index position(std::uint64_t flat, const std::vector<std::int64_t>& shape) {
  Index at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    at[d] = flat % extent(shape[d]);
    flat /= extent(shape[d]);
  }
  return at;
}
std::uint64_t flat_of(const Index& at, const std::vector<std::int64_t>& shape) {
  std::uint64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * extent(shape[d]) + at[d];
  return flat;
}

// Where an element of a result comes from, and how many that follow it come from just behind.
struct Source {
  OperandId operand;
  std::uint64_t flat = 0;
  std::uint64_t run = 1;
};

std::optional<Source> source_of(const OperatorGraph& g, const Operator& op, std::uint64_t flat) {
  const std::vector<std::int64_t>& shape = g.operand(op.out).shape;
  const std::vector<std::int64_t>& first = g.operand(op.in[0]).shape;
  if (op.kind == OperatorKind::reshape) return Source{op.in[0], flat, std::numeric_limits<std::uint64_t>::max()};
  Index at = position(flat, shape);
  const std::size_t last = shape.size() - 1;
  const std::uint64_t rest = extent(shape[last]) - at[last];
  switch (op.kind) {
    case OperatorKind::slice:
      for (std::size_t d = 0; d < at.size(); ++d) at[d] += extent(op.attributes.begin[d]);
      return Source{op.in[0], flat_of(at, first), rest};
    case OperatorKind::transpose: {
      Index from(at.size());
      for (std::size_t d = 0; d < at.size(); ++d) from[static_cast<std::size_t>(op.attributes.axes[d])] = at[d];
      return Source{op.in[0], flat_of(from, first),
                    op.attributes.axes[last] == static_cast<std::int64_t>(last) ? rest : 1};
    }
    case OperatorKind::concat: {
      const auto axis = static_cast<std::size_t>(op.attributes.axes[0]);
      for (const OperandId in : op.in) {
        const std::uint64_t length = extent(g.operand(in).shape[axis]);
        if (at[axis] < length)
          return Source{in, flat_of(at, g.operand(in).shape), axis == last ? length - at[axis] : rest};
        at[axis] -= length;
      }
      return std::nullopt;
    }
    case OperatorKind::append: {
      const std::uint64_t begin = extent(op.attributes.begin[0]), rows = extent(g.operand(op.in[1]).shape[last - 1]);
      if (at[last - 1] < begin || at[last - 1] - begin >= rows) return std::nullopt;  // stays as it is
      at[last - 1] -= begin;
      return Source{op.in[1], flat_of(at, g.operand(op.in[1]).shape), rest};
    }
    default:
      return std::nullopt;
  }
}

std::uint64_t flat_at(const Part& p, std::uint64_t element) {
  return (p.box->row + element / p.box->cols) * p.whole->back() + p.box->col + element % p.box->cols;
}

// Shapes and attributes that source_of may count with: graph rules hold a workload to these, and nobody a file.
bool sound(const OperatorGraph& g, const Operator& op) {
  if (op.in.empty() || op.out.value >= g.operands.size()) return false;
  const std::size_t rank = g.operand(op.out).shape.size();
  if (elements_of(g.operand(op.out).shape) == 0) return false;
  for (const OperandId in : op.in) {
    if (in.value >= g.operands.size() || elements_of(g.operand(in).shape) == 0) return false;
    if (op.kind != OperatorKind::reshape && g.operand(in).shape.size() != rank) return false;
  }
  const OperatorAttributes& a = op.attributes;
  const auto negative = [](std::int64_t n) { return n < 0; };
  const auto beyond = [&](std::int64_t n) { return n < 0 || n >= static_cast<std::int64_t>(rank); };
  switch (op.kind) {
    case OperatorKind::reshape:
      return true;
    case OperatorKind::slice:
      return a.begin.size() == rank && std::none_of(a.begin.begin(), a.begin.end(), negative);
    case OperatorKind::transpose:
      return a.axes.size() == rank && std::none_of(a.axes.begin(), a.axes.end(), beyond);
    case OperatorKind::concat:
      return a.axes.size() == 1 && !beyond(a.axes[0]);
    case OperatorKind::append:
      return op.in.size() == 2 && rank >= 2 && a.begin.size() == 1 && a.begin[0] >= 0;
    default:
      return false;
  }
}

}  // namespace

std::string not_moved(const OperatorGraph& g, const Operator& op, OperandId from, const Part& taken,
                      const Part& stored) {
  if (!sound(g, op)) return fmt::format("'{}' cannot be read", op.name);
  if (stored.end - stored.begin != taken.end - taken.begin)
    return fmt::format("{} elements go where there are {}", taken.end - taken.begin, stored.end - stored.begin);
  const std::uint64_t all = elements_of(g.operand(op.out).shape);
  const std::uint64_t n = stored.end - stored.begin;
  for (std::uint64_t e = 0; e < n;) {
    const std::uint64_t t = taken.begin + e, s = stored.begin + e;
    const std::uint64_t is = flat_at(taken, t), at = flat_at(stored, s);
    const auto due = at < all ? source_of(g, op, at) : std::nullopt;
    if (!due) return fmt::format("element {} of '{}' is none that '{}' writes", at, g.operand(op.out).name, op.name);
    if (due->operand != from || due->flat != is)
      return fmt::format("element {} of '{}' is element {} of '{}', and comes from element {} of operand {}", at,
                         g.operand(op.out).name, due->flat, g.operand(due->operand).name, is, from.value);
    const std::uint64_t in_rows =
        std::min(taken.box->cols - t % taken.box->cols, stored.box->cols - s % stored.box->cols);
    // Rows that lie one behind the other go on.
    const bool without_end = taken.box->cols == taken.whole->back() && stored.box->cols == stored.whole->back();
    e += std::min(without_end ? n - e : in_rows, due->run);
  }
  return {};
}

std::vector<OperandId> holders(const OperatorGraph& g) {
  std::vector<OperandId> of;
  for (const Operand& o : g.operands) of.push_back(o.id);
  for (const Operator& op : g.operators)
    if (op.kind == OperatorKind::append && !op.in.empty() && op.out.value < of.size() && op.in[0].value < of.size())
      of[op.out.value] = of[op.in[0].value];
  return of;
}

const Operator* mover_into(const SpatialProgram& p, OperandId o, std::optional<OperatorId> by) {
  if (!p.operators || !by || by->value >= p.operators->operators.size()) return nullptr;
  const Operator& op = p.operators->operators[by->value];
  if (!is_move(op.kind) || op.kind == OperatorKind::gather) return nullptr;
  if (op.kind != OperatorKind::append) return op.out == o ? &op : nullptr;
  const std::vector<OperandId> holder = holders(*p.operators);
  return op.out.value < holder.size() && holder[op.out.value] == o ? &op : nullptr;
}

AppendedRows::AppendedRows(const SpatialProgram& p) : known_(p.operators.has_value()) {
  if (!known_) return;
  const std::vector<OperandId> holder = holders(*p.operators);
  for (const Operator& op : p.operators->operators)
    if (op.kind == OperatorKind::append && sound(*p.operators, op)) {
      const std::uint64_t begin = extent(op.attributes.begin[0]);
      const auto& rows = p.operators->operand(op.in[1]).shape;
      replaced_[holder[op.out.value]].emplace_back(begin, begin + extent(rows[rows.size() - 2]));
    }
  for (auto& [operand, list] : replaced_) std::sort(list.begin(), list.end());
}

std::vector<Box> AppendedRows::kept(const Tensor& t) const {
  std::vector<Box> kept;
  if (!known_ || t.role != TensorRole::state || t.whole.size() < 2 || t.shape.size() != t.whole.size() ||
      t.offset.size() != t.whole.size())
    return kept;
  const std::size_t last = t.whole.size() - 1;
  const std::uint64_t rows = extent(t.whole[last - 1]), cols = extent(t.shape[last]);
  const std::uint64_t first_col = extent(t.offset[last]);
  const auto list = replaced_.find(t.operand);
  std::uint64_t matrices = 1;
  for (std::size_t d = 0; d + 1 < last; ++d) matrices *= extent(t.whole[d]);
  for (std::uint64_t m = 0; m < matrices; ++m) {
    std::uint64_t next = 0;
    const auto keep = [&](std::uint64_t end) {
      if (end > next) kept.push_back({m * rows + next, first_col, end - next, cols});
    };
    if (list != replaced_.end())
      for (const auto& [begin, end] : list->second) {
        keep(std::min(begin, rows));
        next = std::max(next, std::min(end, rows));
      }
    keep(rows);
  }
  return kept;
}

bool alike_everywhere(const OperatorGraph& g, const Operator& op) {
  return g.operand(op.out).shape.size() <= 2 && op.kind != OperatorKind::transpose && op.kind != OperatorKind::reshape;
}

}  // namespace rdusim::certificate
