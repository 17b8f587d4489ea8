#include "compiler/workload/operator_rules.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/units.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// a b c ...; nothing where 64 bits do not count it.
std::optional<std::int64_t> counted_product(std::initializer_list<std::int64_t> factors) {
  std::optional<std::int64_t> out = 1;
  for (const std::int64_t f : factors) {
    if (out) out = checked_multiply(*out, f);
  }
  return out;
}

std::int64_t rows_of(const Shape& shape) {
  return shape.size() < 2 ? 1 : shape[shape.size() - 2];
}

bool has_rank(const OperatorCase& c, std::size_t i, std::size_t least) {
  if (c.shape(i).size() >= least) return true;
  c.error(Code::RDU1031, "operator '{}' is a {} of '{}', which has {} axis; it takes {}", c.op.name, name_of(c.op.kind),
          c.in(i).name, c.shape(i).size(), traits_of(c.op.kind).form);
  return false;
}

Shape leading(const Shape& shape) {
  return {shape.begin(), shape.end() - 2};
}

// Whether each matrix of a stack of `b` can serve as many consecutive ones of a stack of `a`: the leading extents are
// equal up to one that divides, and 1 from there on. A b without leading extents serves all.
bool stacks_agree(const Shape& a, const Shape& b) {
  if (b.empty()) return true;
  if (a.size() != b.size()) return false;
  std::size_t axis = 0;
  while (axis < a.size() && a[axis] == b[axis]) ++axis;
  if (axis == a.size()) return true;
  if (a[axis] % b[axis] != 0) return false;
  return std::all_of(b.begin() + static_cast<std::ptrdiff_t>(axis) + 1, b.end(), [](std::int64_t n) { return n == 1; });
}

}  // namespace

std::optional<Shape> matmul_shape(const OperatorCase& c) {
  if (!has_rank(c, 0, 2) || !has_rank(c, 1, 2)) return std::nullopt;
  const Shape& a = c.shape(0);
  const Shape& b = c.shape(1);
  const bool transposed = c.op.attributes.transposed;
  const std::int64_t m = rows_of(a), k = a.back();
  const std::int64_t depth = transposed ? b.back() : rows_of(b);
  const std::int64_t n = transposed ? rows_of(b) : b.back();
  bool sound = true;
  if (k != depth) {
    c.error(Code::RDU1009, "operator '{}' contracts {} columns of '{}' with {} {} of '{}'", c.op.name, k, c.in(0).name,
            depth, transposed ? "columns" : "rows", c.in(1).name);
    sound = false;
  }
  if (!stacks_agree(leading(a), leading(b))) {
    c.error(Code::RDU1009,
            "operator '{}' multiplies a stack of {} matrices by one of {}; leading extents are equal, or the second's "
            "divides the first's in the last place where they are not 1",
            c.op.name, shape_text(leading(a)), shape_text(leading(b)));
    sound = false;
  }
  if (!sound) return std::nullopt;
  Shape out = leading(a);
  out.push_back(m);
  out.push_back(n);
  const auto stack = element_count(leading(a));
  if (!counted_product({stack.value_or(1), m, k, n})) {
    c.error(Code::RDU1008, "operator '{}' has {} x {} x {} multiply-accumulates, which 64 bits do not count", c.op.name,
            m, k, n);
    return std::nullopt;
  }
  return out;
}

std::optional<Shape> point_wise_shape(const OperatorCase& c) {
  if (c.op.in.size() == 1) return c.shape(0);
  const Shape& a = c.shape(0);
  const Shape& b = c.shape(1);
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= out.size(); ++i) {  // from the last extent backwards
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) {
      c.error(Code::RDU1009, "operator '{}' joins '{}' and '{}' element by element, and {} is neither {} nor 1",
              c.op.name, c.in(0).name, c.in(1).name, x, y);
      return std::nullopt;
    }
    out[out.size() - i] = std::max(x, y);
  }
  return out;
}

std::optional<Shape> row_wise_shape(const OperatorCase& c) {
  Shape out = c.shape(0);
  const std::int64_t n = out.back();
  for (std::size_t i = 1; i < c.op.in.size(); ++i) {
    const Shape& w = c.shape(i);
    const bool one_row = std::all_of(w.begin(), w.end() - 1, [](std::int64_t e) { return e == 1; });
    if (one_row && w.back() == n) continue;
    c.error(Code::RDU1009, "operator '{}' has rows of {} in '{}', and '{}' is {}, not one row of {}", c.op.name, n,
            c.in(0).name, c.in(i).name, shape_text(w), n);
    return std::nullopt;
  }
  if (c.op.kind >= OperatorKind::reduce_sum && c.op.kind <= OperatorKind::reduce_min) out.back() = 1;
  return out;
}

std::optional<Shape> result_shape(const OperatorCase& c) {
  if (is_point_wise(c.op.kind)) return point_wise_shape(c);
  if (is_row_wise(c.op.kind)) return row_wise_shape(c);
  if (is_move(c.op.kind)) return move_shape(c);
  switch (c.op.kind) {
    case OperatorKind::rotary:
      return rotary_shape(c);
    case OperatorKind::attention:
      return attention_shape(c);
    default:
      return matmul_shape(c);
  }
}

bool check_attributes(const Operator& op, Diagnostics& out) {
  const std::size_t before = out.error_count();
  const OperatorAttributes& a = op.attributes;
  for (const Attribute attribute : all_attributes) {
    if (takes(op.kind, attribute) || is_default(a, attribute)) continue;
    Diagnostic& d = out.error(Code::RDU1032, op.where, "operator '{}' has '{}', which a {} does not know", op.name,
                              name_of(attribute), name_of(op.kind));
    std::string known;
    for (const Attribute other : all_attributes) {
      if (takes(op.kind, other)) known += fmt::format("{}'{}'", known.empty() ? "" : ", ", name_of(other));
    }
    if (!known.empty()) d.suggest("a {} knows: {}", name_of(op.kind), known);
  }
  const auto range = [&](Attribute attribute, bool holds, const auto& value, const char* what) {
    if (!takes(op.kind, attribute) || holds) return;
    out.error(Code::RDU1033, op.where, "'{}' of operator '{}' is {}; it is {}", name_of(attribute), op.name, value,
              what);
  };
  // Rounded to fp32, which all norms are worked out in.
  range(Attribute::epsilon, std::isfinite(static_cast<float>(a.epsilon)) && static_cast<float>(a.epsilon) > 0,
        a.epsilon, "above 0, also as fp32");
  range(Attribute::heads, a.heads >= 1, a.heads, "1 or more");
  range(Attribute::kv_heads, a.kv_heads >= 1, a.kv_heads, "1 or more");
  range(Attribute::scale, std::isfinite(static_cast<float>(a.scale)), a.scale, "finite, also as fp32");
  range(Attribute::window, a.window >= 0, a.window, "0 for none, or more");
  range(Attribute::alone, is_part(a.alone) && (a.alone.empty() || !a.scattered),
        fmt::format("[{}]", fmt::join(a.alone, ", ")),
        "[i, n], i from 0 to n - 1, of an operator whose result is not scattered");
  if (op.kind == OperatorKind::concat) range(Attribute::axes, a.axes.size() == 1, a.axes.size(), "a list of one axis");
  return out.error_count() == before;
}

}  // namespace rdusim
