// ONNX operators that work element by element.
#include "compiler/workload/onnx_node.h"

namespace rdusim::onnx_nodes {
namespace {

template <OperatorKind kind>
void unary(const Node& c) {
  c.out(c.g.emit(kind, {c.in(0)}));
}
template <OperatorKind kind>
void binary(const Node& c) {
  c.out(c.g.emit(kind, {c.in(0), c.in(1)}));
}
// Of one or more.
template <OperatorKind kind>
OperandId folded(const Node& c) {
  OperandId out = c.in(0);
  for (std::size_t i = 1; i < c.n.in.size(); ++i) out = c.g.emit(kind, {out, c.in(i)});
  return out;
}
template <OperatorKind kind>
void variadic(const Node& c) {
  c.out(folded<kind>(c));
}
void mean(const Node& c) {
  const OperandId sum = folded<OperatorKind::add>(c);
  if (c.g.failed() || c.n.in.size() == 1) return c.out(sum);
  c.out(
      c.g.emit(OperatorKind::multiply, {sum, c.g.filled(1 / static_cast<double>(c.n.in.size()), {}, c.g.dtype(sum))}));
}
void identity(const Node& c) {
  const auto* training = c.n.kind == "Dropout" && c.has_in(2) ? c.g.constant(c.n.in[2]) : nullptr;
  if (c.n.kind == "Dropout" && (c.wants(1) || (c.has_in(2) && (training == nullptr || training->integers != Axes{0}))))
    return c.g.refuse(Code::RDU1052, "a Dropout that trains, or whose mask is asked for");
  if (const OnnxTensor* t = c.g.constant(c.n.in.empty() ? "" : c.n.in[0])) return c.g.bind(c.n.out[0], *t);
  c.out(c.in(0));
}
// Of the parts of x above and below zero, which meet at 0: max(x, 0) + below(min(x, 0)).
template <class Below>
void by_sign(const Node& c, Below below) {
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  const OperandId zero = c.g.filled(0, {}, c.g.dtype(x));
  const OperandId negative = c.g.emit(OperatorKind::minimum, {x, zero});
  if (c.g.failed()) return;
  const OperandId part = below(negative);
  c.out(c.g.emit(OperatorKind::add, {c.g.emit(OperatorKind::relu, {x}), part}));
}
void leaky_relu(const Node& c) {
  by_sign(c, [&](OperandId x) {
    return c.g.emit(OperatorKind::multiply, {x, c.g.filled(c.real("alpha", 0.01), {}, c.g.dtype(x))});
  });
}
void sloped_relu(const Node& c) {
  by_sign(c, [&](OperandId x) { return c.g.emit(OperatorKind::multiply, {x, c.in(1)}); });
}
void elu(const Node& c) {
  by_sign(c, [&](OperandId x) {
    const DType dtype = c.g.dtype(x);
    const OperandId grown = c.g.emit(OperatorKind::exponential, {x});
    const OperandId down = c.g.emit(OperatorKind::subtract, {grown, c.g.filled(1, {}, dtype)});
    return c.g.emit(OperatorKind::multiply, {down, c.g.filled(c.real("alpha", 1), {}, dtype)});
  });
}
// max(0, min(1, alpha x + beta)), and x times it.
void hard_sigmoid(const Node& c) {
  const bool swish = c.n.kind == "HardSwish";
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  const DType dtype = c.g.dtype(x);
  const OperandId alpha = c.g.filled(swish ? 1.0 / 6 : c.real("alpha", 0.2), {}, dtype);
  const OperandId beta = c.g.filled(swish ? 0.5 : c.real("beta", 0.5), {}, dtype);
  const OperandId line = c.g.emit(OperatorKind::add, {c.g.emit(OperatorKind::multiply, {x, alpha}), beta});
  const OperandId low = c.g.emit(OperatorKind::minimum, {line, c.g.filled(1, {}, dtype)});
  const OperandId out = c.g.emit(OperatorKind::relu, {low});
  c.out(swish ? c.g.emit(OperatorKind::multiply, {x, out}) : out);
}
void clip(const Node& c) {
  OperandId x = c.in(0);
  const auto bounded = [&](OperatorKind kind, const char* name, std::size_t input) {
    if (c.g.failed()) return;
    if (c.opset >= 11 && c.has_in(input)) {
      x = c.g.emit(kind, {x, c.in(input)});
    } else if (c.opset < 11 && c.attribute(name) != nullptr) {
      x = c.g.emit(kind, {x, c.g.filled(c.real(name, 0), {}, c.g.dtype(x))});
    }
  };
  bounded(OperatorKind::maximum, "min", 1);
  bounded(OperatorKind::minimum, "max", 2);
  c.out(x);
}
void power(const Node& c) {
  const OnnxTensor* exponent = c.has_in(1) ? c.g.constant(c.n.in[1]) : nullptr;
  const OperandId x = c.in(0);
  if (exponent != nullptr && exponent->floats == std::vector<double>{2})
    return c.out(c.g.emit(OperatorKind::multiply, {x, x}));
  if (exponent != nullptr && exponent->floats == std::vector<double>{0.5})
    return c.out(c.g.emit(OperatorKind::square_root, {x}));
  c.g.refuse(Code::RDU1052, "of all powers there are 2 and 0.5, as constants of x's type");
}
void cast_to(const Node& c, std::optional<DType> to, const std::string& name) {
  const OperandId x = c.in(0);
  if (c.g.failed()) return;
  if (!to) return c.g.refuse(Code::RDU1052, "there is no dtype {}", name);
  const DType from = c.g.dtype(x);
  if (from == *to) return c.out(x);
  // ONNX cuts off a fraction and keeps low bits; a cast here goes to the nearest and saturates.
  if (is_integer(*to) && (!is_integer(from) || bytes_of(from) > bytes_of(*to)))
    return c.g.refuse(Code::RDU1052, "a cast from {} to {} cuts off, which rdusim's does not", name_of(from),
                      name_of(*to));
  c.out(c.g.emit(OperatorKind::cast, {x}, {}, *to));
}
void cast(const Node& c) {
  const auto type = static_cast<std::int32_t>(c.integer("to", 0));
  cast_to(c, dtype_of_onnx(type), onnx_type_name(type));
}
void cast_like(const Node& c) {
  const OperandId like = c.in(1);
  if (!c.g.failed()) cast_to(c, c.g.dtype(like), "");
}

}  // namespace

const Table& point_wise_operators() {
  static const Table all = {
      {"Abs", unary<OperatorKind::absolute>},
      {"Add", binary<OperatorKind::add>},
      {"Cast", cast},
      {"CastLike", cast_like},
      {"Clip", clip},
      {"Div", binary<OperatorKind::divide>},
      {"Dropout", identity},
      {"Elu", elu},
      {"Erf", unary<OperatorKind::erf>},
      {"Exp", unary<OperatorKind::exponential>},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", hard_sigmoid},
      {"Identity", identity},
      {"LeakyRelu", leaky_relu},
      {"Max", variadic<OperatorKind::maximum>},
      {"Mean", mean},
      {"Min", variadic<OperatorKind::minimum>},
      {"Mul", binary<OperatorKind::multiply>},
      {"Neg", unary<OperatorKind::negate>},
      {"PRelu", sloped_relu},
      {"Pow", power},
      {"Reciprocal", unary<OperatorKind::reciprocal>},
      {"Relu", unary<OperatorKind::relu>},
      {"Sigmoid", unary<OperatorKind::sigmoid>},
      {"Sqrt", unary<OperatorKind::square_root>},
      {"Sub", binary<OperatorKind::subtract>},
      {"Sum", variadic<OperatorKind::add>},
      {"Tanh", unary<OperatorKind::tanh>},
  };
  return all;
}

}  // namespace rdusim::onnx_nodes
