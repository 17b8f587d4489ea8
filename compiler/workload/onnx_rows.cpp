// ONNX operators that work along an axis: matmuls, softmax, norms, reductions.
#include "compiler/workload/onnx_node.h"

namespace rdusim::onnx_nodes {
namespace {

// ---- matmuls

// Numpy's: one of rank 1 is a row on the left and a column on the right, and its axis is gone from the result.
OperandId product_of(const Node& c, OperandId a, OperandId b, std::optional<DType> dtype) {
  if (c.g.failed()) return a;
  Axes left = c.g.shape(a), right = c.g.shape(b);
  if (left.empty() || right.empty()) {
    c.g.refuse(Code::RDU1050, "a matmul takes no scalars");
    return a;
  }
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) a = c.g.reshape(a, {1, left[0]});
  if (column) b = c.g.reshape(b, {right[0], 1});
  OperandId out = c.g.emit(OperatorKind::matmul, {a, b}, {}, dtype);
  if (c.g.failed() || (!row && !column)) return out;
  Axes shape = c.g.shape(out);
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return c.g.reshape(out, shape);
}
void matmul(const Node& c) {
  const OperandId a = c.in(0);
  c.out(product_of(c, a, c.in(1), std::nullopt));
}
void matmul_integer(const Node& c) {
  for (std::size_t i = 2; i < 4; ++i) {
    const auto zero = c.integers_in(i);
    if (zero && std::any_of(zero->begin(), zero->end(), [](std::int64_t z) { return z != 0; }))
      c.g.refuse(Code::RDU1052, "its zero points are not 0");
  }
  const OperandId a = c.in(0);
  c.out(product_of(c, a, c.in(1), DType::int32));
}
void gemm(const Node& c) {
  OperandId a = c.in(0);
  const OperandId b = c.in(1);
  if (c.g.failed()) return;
  if (c.integer("transA", 0) != 0) a = c.g.transpose(a, {1, 0});
  OperatorAttributes transposed;
  transposed.transposed = c.integer("transB", 0) != 0;
  OperandId out = c.g.emit(OperatorKind::matmul, {a, b}, transposed);
  const auto scaled = [&](OperandId x, double by) {
    if (c.g.failed() || by == 1) return x;
    return c.g.emit(OperatorKind::multiply, {x, c.g.filled(by, {}, c.g.dtype(x))});
  };
  out = scaled(out, c.real("alpha", 1));
  if (c.has_in(2)) out = c.g.emit(OperatorKind::add, {out, scaled(c.in(2), c.real("beta", 1))});
  c.out(out);
}

// ---- by row

// The axes with `axis` moved to the end: to itself where undone by moved_back.
Axes moved_to_end(std::size_t rank, std::size_t axis) {
  Axes out = counting(rank);
  std::rotate(out.begin() + static_cast<std::ptrdiff_t>(axis), out.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
              out.end());
  return out;
}
void softmax(const Node& c) {
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  const Axes shape = c.g.shape(x);
  const auto axis = c.axis(c.integer("axis", c.opset >= 13 ? -1 : 1), std::max<std::size_t>(shape.size(), 1));
  if (!axis) return;
  if (c.opset < 13) {  // everything from `axis` on is one row
    const OperandId flat = c.g.reshape(x, {product(shape, 0, *axis), product(shape, *axis, shape.size())});
    return c.out(c.g.reshape(c.g.emit(OperatorKind::softmax, {flat}), shape));
  }
  if (shape.empty()) return c.out(c.g.emit(OperatorKind::softmax, {x}));
  const Axes forth = moved_to_end(shape.size(), *axis);
  c.out(c.g.transpose(c.g.emit(OperatorKind::softmax, {c.g.transpose(x, forth)}), inverse(forth)));
}

void layer_normalization(const Node& c) {
  const OperandId x = c.in(0);
  const OperandId scale = c.in(1);
  if (c.g.failed()) return;
  const Axes shape = c.g.shape(x);
  const auto axis = c.axis(c.integer("axis", -1), shape.size());
  if (!axis) return;
  const std::int64_t n = product(shape, *axis, shape.size());
  const OperandId rows = c.g.reshape(x, {product(shape, 0, *axis), n});
  const DType dtype = c.g.dtype(x);
  const double epsilon = c.real("epsilon", 1e-5);
  const OperandId bias = c.has_in(2) ? c.g.reshape(c.in(2), {n}) : c.g.filled(0, {n}, dtype);
  OperatorAttributes a;
  a.epsilon = epsilon;
  c.out(c.g.reshape(c.g.emit(OperatorKind::layer_norm, {rows, c.g.reshape(scale, {n}), bias}, a), shape));
  if (!c.wants(1) && !c.wants(2)) return;
  Axes kept = shape;
  std::fill(kept.begin() + static_cast<std::ptrdiff_t>(*axis), kept.end(), 1);
  const OperandId mean = c.g.emit(OperatorKind::reduce_mean, {rows});
  if (c.wants(1)) c.out(c.g.reshape(mean, kept), 1);
  if (!c.wants(2) || c.g.failed()) return;
  const OperandId away = c.g.emit(OperatorKind::subtract, {rows, mean});
  const OperandId variance = c.g.emit(OperatorKind::reduce_mean, {c.g.emit(OperatorKind::multiply, {away, away})});
  const OperandId sum = c.g.emit(OperatorKind::add, {variance, c.g.filled(epsilon, {}, dtype)});
  const OperandId root = c.g.emit(OperatorKind::square_root, {sum});
  c.out(c.g.reshape(c.g.emit(OperatorKind::reciprocal, {root}), kept), 2);
}

// Over any axes: they go to the end, as one row.
OperandId reduced(const Node& c, OperatorKind kind, OperandId x, std::int64_t axes_are_input_since) {
  if (c.g.failed()) return x;
  const Axes shape = c.g.shape(x);
  const auto given = c.integers("axes", 1, axes_are_input_since);
  if (c.g.failed()) return x;
  std::vector<bool> gone(shape.size(), !given || given->empty());
  if ((!given || given->empty()) && c.integer("noop_with_empty_axes", 0) != 0) return x;
  for (const std::int64_t a : given.value_or(Axes{})) {
    const auto axis = c.axis(a, shape.size());
    if (!axis) return x;
    gone[*axis] = true;
  }
  Axes order, kept;
  std::int64_t rows = 1;
  const bool keeps = c.integer("keepdims", 1) != 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!gone[i]) order.push_back(static_cast<std::int64_t>(i)), kept.push_back(shape[i]), rows *= shape[i];
    if (gone[i] && keeps) kept.push_back(1);
  }
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (gone[i]) order.push_back(static_cast<std::int64_t>(i));
  const std::int64_t all = product(shape, 0, shape.size());
  const OperandId flat = c.g.reshape(c.g.transpose(x, order), {rows, all / rows});
  return c.g.reshape(c.g.emit(kind, {flat}), kept);
}
template <OperatorKind kind, std::int64_t axes_are_input_since>
void reduce(const Node& c) {
  c.out(reduced(c, kind, c.in(0), axes_are_input_since));
}
void reduce_l1(const Node& c) {
  c.out(reduced(c, OperatorKind::reduce_sum, c.g.emit(OperatorKind::absolute, {c.in(0)}), 18));
}
void reduce_square(const Node& c) {
  const OperandId x = c.in(0);
  const OperandId sum = reduced(c, OperatorKind::reduce_sum, c.g.emit(OperatorKind::multiply, {x, x}), 18);
  c.out(c.n.kind == "ReduceL2" ? c.g.emit(OperatorKind::square_root, {sum}) : sum);
}

}  // namespace

const Table& row_operators() {
  static const Table all = {
      {"Gemm", gemm},
      {"LayerNormalization", layer_normalization},
      {"MatMul", matmul},
      {"MatMulInteger", matmul_integer},
      {"ReduceL1", reduce_l1},
      {"ReduceL2", reduce_square},
      {"ReduceMax", reduce<OperatorKind::reduce_max, 18>},
      {"ReduceMean", reduce<OperatorKind::reduce_mean, 18>},
      {"ReduceMin", reduce<OperatorKind::reduce_min, 18>},
      {"ReduceSum", reduce<OperatorKind::reduce_sum, 13>},
      {"ReduceSumSquare", reduce_square},
      {"Softmax", softmax},
  };
  return all;
}

}  // namespace rdusim::onnx_nodes
