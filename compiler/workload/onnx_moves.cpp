// ONNX operators that move elements or are constants.
#include <limits>

#include "compiler/workload/onnx_node.h"
#include "compiler/workload/shape_text.h"

namespace rdusim::onnx_nodes {
namespace {

// ---- moves

void transpose(const Node& c) {
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  Axes axes = counting(c.g.shape(x).size());
  std::reverse(axes.begin(), axes.end());
  if (const auto* perm = c.attribute("perm")) axes = perm->integers;
  c.out(axes.empty() ? x : c.g.transpose(x, axes));
}

void reshape(const Node& c) {
  const OperandId x = c.in(0);
  const auto asked = c.integers("shape", 1, 5);
  if (c.g.failed() || !asked) return c.g.refuse(Code::RDU1052, "its shape is not given");
  const Axes shape = c.g.shape(x);
  Axes to = *asked;
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && c.integer("allowzero", 0) == 0 && i < shape.size()) to[i] = shape[i];
    if (to[i] == -1 && !open) {
      open = i;
    } else if (to[i] < 1 || to[i] > std::numeric_limits<std::int64_t>::max() / known) {
      return c.g.refuse(Code::RDU1052, "it asks for {}", shape_text(to));
    } else {
      known *= to[i];
    }
  }
  if (open) to[*open] = product(shape, 0, shape.size()) / known;
  c.out(c.g.reshape(x, to));
}
void flatten(const Node& c) {
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  const Axes shape = c.g.shape(x);
  const std::int64_t axis = c.integer("axis", 1);
  if (axis != static_cast<std::int64_t>(shape.size()) && !c.axis(axis, shape.size())) return;
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
  c.out(c.g.reshape(x, {product(shape, 0, at), product(shape, at, shape.size())}));
}
// The shape without the axes, or with extents of 1 there.
std::optional<Axes> squeezed(const Node& c, const Axes& shape) {
  const auto axes = c.integers("axes", 1, 13);
  if (c.g.failed()) return std::nullopt;
  const bool in = c.n.kind == "Unsqueeze";
  const std::size_t rank = shape.size() + (in && axes ? axes->size() : 0);
  std::vector<bool> marked(rank, false);
  for (std::size_t i = 0; i < rank && !in && !axes; ++i) marked[i] = shape[i] == 1;
  for (const std::int64_t a : axes.value_or(Axes{})) {
    const auto axis = c.axis(a, rank);
    if (!axis) return std::nullopt;
    marked[*axis] = true;
  }
  Axes out;
  std::size_t from = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (in) {
      out.push_back(marked[i] || from == shape.size() ? 1 : shape[from++]);
    } else if (!marked[i]) {
      out.push_back(shape[i]);
    }
  }
  return out;
}
void squeeze(const Node& c) {
  const auto shape = c.n.in.empty() ? std::nullopt : c.g.shape_of(c.n.in[0]);
  const auto to = shape ? squeezed(c, *shape) : std::nullopt;
  if (!to) return;
  if (const OnnxTensor* t = c.g.constant(c.n.in[0])) {
    OnnxTensor out = *t;
    out.dims = *to;
    return c.g.bind(c.n.out[0], std::move(out));
  }
  c.out(c.g.reshape(c.in(0), *to));
}
void expand(const Node& c) {
  const OperandId x = c.in(0);
  const auto to = c.integers_in(1);
  if (c.g.failed() || !to) return;
  // Repeated by what repeats: times ones.
  c.out(c.g.emit(OperatorKind::multiply, {x, c.g.filled(1, *to, c.g.dtype(x))}));
}
void slice(const Node& c) {
  const auto begins = c.integers("starts", 1, 10);
  const auto ends = c.integers("ends", 2, 10);
  const auto axes = c.integers("axes", 3, 10);
  const auto steps = c.opset >= 10 ? c.integers_in(4) : std::nullopt;
  OperandId x = c.in(0);
  if (c.g.failed()) return;
  if (!begins || !ends || begins->size() != ends->size() || (axes && axes->size() != begins->size()))
    return c.g.refuse(Code::RDU1050, "starts, ends and axes are not of one length");
  if (steps && std::any_of(steps->begin(), steps->end(), [](std::int64_t s) { return s != 1; }))
    return c.g.refuse(Code::RDU1052, "its steps are not 1");
  const Axes shape = c.g.shape(x);
  for (std::size_t i = 0; i < begins->size(); ++i) {
    const auto axis = c.axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), shape.size());
    if (!axis) return;
    const std::int64_t extent = shape[*axis];
    const auto clamped = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    const std::int64_t from = clamped((*begins)[i]), to = clamped((*ends)[i]);
    if (from != 0 || to != extent) x = c.g.slice(x, *axis, from, to);
  }
  c.out(x);
}
void split(const Node& c) {
  const OperandId x = c.in(0);
  auto parts = c.integers("split", 1, 13);
  if (c.g.failed()) return;
  const Axes shape = c.g.shape(x);
  const auto axis = c.axis(c.integer("axis", 0), shape.size());
  if (!axis) return;
  const auto n = static_cast<std::int64_t>(c.n.out.size());
  if (!parts && (n == 0 || shape[*axis] % n != 0))
    return c.g.refuse(Code::RDU1052, "{} outputs do not divide {}", n, shape[*axis]);
  if (!parts) parts = Axes(c.n.out.size(), shape[*axis] / n);
  if (parts->size() != c.n.out.size()) return c.g.refuse(Code::RDU1050, "as many parts as outputs are given");
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    c.out(c.g.slice(x, *axis, at, at + (*parts)[i]), i);
    at += (*parts)[i];
  }
}
void concat(const Node& c) {
  std::vector<OperandId> in;
  for (std::size_t i = 0; i < c.n.in.size(); ++i) in.push_back(c.in(i));
  if (c.g.failed() || in.empty()) return c.g.refuse(Code::RDU1050, "it has no inputs");
  const auto axis = c.axis(c.integer("axis", 1), c.g.shape(in[0]).size());
  if (!axis) return;
  OperatorAttributes a;
  a.axes = {static_cast<std::int64_t>(*axis)};
  c.out(c.g.emit(OperatorKind::concat, in, a));
}
// Rows of a table: the axis goes to the front, all others are one row, and back.
void gather(const Node& c) {
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  const Axes shape = c.g.shape(x);
  const auto axis = c.axis(c.integer("axis", 0), shape.size());
  if (!axis) return;
  OperandId indices{};
  Axes places;
  if (const OnnxTensor* known = c.has_in(1) ? c.g.constant(c.n.in[1]) : nullptr) {
    OnnxTensor from_start = *known;
    for (std::int64_t& i : from_start.integers) i += i < 0 ? shape[*axis] : 0;
    places = from_start.dims;
    const std::string name = c.n.in[1] + "/" + c.n.out[0];
    c.g.bind(name, std::move(from_start));
    indices = c.g.operand(name);
  } else {
    indices = c.in(1);
    if (c.g.failed()) return;
    places = c.g.shape(indices);
  }
  const std::int64_t n = product(places, 0, places.size());
  const std::size_t rank = shape.size();
  Axes forth = {static_cast<std::int64_t>(*axis)};
  for (std::size_t i = 0; i < rank; ++i)
    if (i != *axis) forth.push_back(static_cast<std::int64_t>(i));
  const std::int64_t row = product(shape, 0, *axis) * product(shape, *axis + 1, rank);
  const OperandId table = c.g.reshape(c.g.transpose(x, forth), {shape[*axis], row});
  OperandId out = c.g.emit(OperatorKind::gather, {table, c.g.reshape(indices, {n})});
  Axes apart = {n}, to;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != *axis) apart.push_back(shape[i]), to.push_back(shape[i]);
    if (i == *axis) to.insert(to.end(), places.begin(), places.end());
  }
  c.out(c.g.reshape(c.g.transpose(c.g.reshape(out, apart), inverse(forth)), to));
}

// ---- constants

void constant(const Node& c) {
  OnnxTensor t;
  const auto of = [&](std::int32_t type, Axes dims, Axes integers, std::vector<double> reals) {
    t.type = type;
    t.dims = std::move(dims);
    t.integers = std::move(integers);
    t.floats = std::move(reals);
    t.held = true;
  };
  constexpr std::int32_t type_float = 1, type_int64 = 7;
  if (const auto* value = c.attribute("value"); value != nullptr && value->tensor) {
    t = *value->tensor;
  } else if (const auto* i = c.attribute("value_int"); i != nullptr && i->integer) {
    of(type_int64, {}, {*i->integer}, {});
  } else if (const auto* f = c.attribute("value_float"); f != nullptr && f->real) {
    of(type_float, {}, {}, {double{*f->real}});
  } else if (const auto* is = c.attribute("value_ints")) {
    of(type_int64, {static_cast<std::int64_t>(is->integers.size())}, is->integers, {});
  } else if (const auto* fs = c.attribute("value_floats")) {
    of(type_float, {static_cast<std::int64_t>(fs->reals.size())}, {}, {fs->reals.begin(), fs->reals.end()});
  } else {
    return c.g.refuse(Code::RDU1052, "its value is no tensor, integer or float");
  }
  if (!c.n.out.empty()) c.g.bind(c.n.out[0], std::move(t));
}
void constant_of_shape(const Node& c) {
  const auto shape = c.integers_in(0);
  if (!shape || c.n.out.empty()) return;
  const auto* value = c.attribute("value");
  const OnnxTensor* t = value != nullptr && value->tensor ? &*value->tensor : nullptr;
  const auto type = t == nullptr ? std::optional(DType::fp32) : dtype_of_onnx(t->type);
  if (!type) return c.g.refuse(Code::RDU1052, "its value is of {}", onnx_type_name(t->type));
  const double v = t == nullptr              ? 0
                   : t->floats.size() == 1   ? t->floats[0]
                   : t->integers.size() == 1 ? static_cast<double>(t->integers[0])
                                             : 0;
  c.out(c.g.filled(v, *shape, *type));
}
void shape_of(const Node& c) {
  const auto shape = c.n.in.empty() ? std::nullopt : c.g.shape_of(c.n.in[0]);
  if (!shape || c.n.out.empty()) return;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t from = place(c.integer("start", 0));
  const std::int64_t to = std::max(from, place(c.integer("end", rank)));
  OnnxTensor t;
  t.type = 7;  // INT64
  t.held = true;
  t.integers.assign(shape->begin() + from, shape->begin() + to);
  t.dims = {to - from};
  c.g.bind(c.n.out[0], std::move(t));
}

}  // namespace

const Table& move_operators() {
  static const Table all = {
      {"Concat", concat},     {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
      {"Expand", expand},     {"Flatten", flatten},   {"Gather", gather},
      {"Reshape", reshape},   {"Shape", shape_of},    {"Slice", slice},
      {"Split", split},       {"Squeeze", squeeze},   {"Transpose", transpose},
      {"Unsqueeze", squeeze},
  };
  return all;
}

}  // namespace rdusim::onnx_nodes
