#include "compiler/passes/recipe.h"

#include <cmath>
#include <initializer_list>

#include "compiler/passes/mutate.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// Expressions in the notation of the formulas, put together in postfix order.
struct Term {
  Expr nodes;
};
Term make(ExprOp op, std::initializer_list<Term> operands) {
  Term t;
  for (const Term& operand : operands) t.nodes.insert(t.nodes.end(), operand.nodes.begin(), operand.nodes.end());
  t.nodes.push_back({op, 0, 0});
  return t;
}
Term input(std::uint32_t place) {
  return {{{ExprOp::operand, place, 0}}};
}
// Rounded once to fp32, in which floats are computed; integers below 2^24 stay as they are.
Term number(double value) {
  return {{{ExprOp::constant, 0, double{static_cast<float>(value)}}}};
}
Term operator+(const Term& a, const Term& b) {
  return make(ExprOp::add, {a, b});
}
Term operator-(const Term& a, const Term& b) {
  return make(ExprOp::subtract, {a, b});
}
Term operator*(const Term& a, const Term& b) {
  return make(ExprOp::multiply, {a, b});
}
Term operator/(const Term& a, const Term& b) {
  return make(ExprOp::divide, {a, b});
}
Term operator-(const Term& a) {
  return make(ExprOp::negate, {a});
}
Term exp(const Term& a) {
  return make(ExprOp::exponential, {a});
}
Term sqrt(const Term& a) {
  return make(ExprOp::square_root, {a});
}

constexpr Step::Source operand(std::uint32_t place) {
  return {false, place};
}
constexpr Step::Source step(std::uint32_t index) {
  return {true, index};
}

Step whole(const Operator& op, std::vector<Step::Source> in, Term body) {
  return {std::string(name_of(op.kind)), std::move(in), std::move(body.nodes), std::nullopt, false};
}
Step joined(std::string name, ExprOp join, std::vector<Step::Source> in, Term body) {
  return {std::move(name), std::move(in), std::move(body.nodes), join, true};
}
Step column(std::string name, std::vector<Step::Source> in, Term body) {
  return {std::move(name), std::move(in), std::move(body.nodes), std::nullopt, true};
}

std::optional<Term> unary(OperatorKind kind) {
  const Term x = input(0);
  switch (kind) {
    case OperatorKind::negate:
      return -x;
    case OperatorKind::absolute:
      return make(ExprOp::maximum, {x, -x});
    case OperatorKind::relu:
      return make(ExprOp::maximum, {x, number(0)});
    case OperatorKind::exponential:
      return exp(x);
    case OperatorKind::square_root:
      return sqrt(x);
    case OperatorKind::reciprocal:
      return number(1) / x;
    case OperatorKind::tanh:
      return make(ExprOp::tanh, {x});
    case OperatorKind::erf:
      return make(ExprOp::erf, {x});
    case OperatorKind::sigmoid:
      return number(1) / (number(1) + exp(-x));
    case OperatorKind::silu:
      return x / (number(1) + exp(-x));
    case OperatorKind::gelu:
      return (number(0.5) * x) * (number(1) + make(ExprOp::erf, {x * number(std::sqrt(0.5))}));
    case OperatorKind::gelu_tanh: {
      const Term inner = number(std::sqrt(2 / 3.14159265358979323846)) * (x + number(0.044715) * ((x * x) * x));
      return (number(0.5) * x) * (number(1) + make(ExprOp::tanh, {inner}));
    }
    case OperatorKind::cast:
      return x;
    default:
      return std::nullopt;
  }
}

std::optional<ExprOp> binary(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::add:
      return ExprOp::add;
    case OperatorKind::subtract:
      return ExprOp::subtract;
    case OperatorKind::multiply:
      return ExprOp::multiply;
    case OperatorKind::divide:
      return ExprOp::divide;
    case OperatorKind::maximum:
      return ExprOp::maximum;
    case OperatorKind::minimum:
      return ExprOp::minimum;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<Step> recipe_of(const OperatorGraph& graph, const Operator& op) {
  const Term a = input(0), b = input(1), c = input(2);
  if (const auto body = unary(op.kind)) return {whole(op, {operand(0)}, *body)};
  if (const auto pair = binary(op.kind)) return {whole(op, {operand(0), operand(1)}, make(*pair, {a, b}))};

  if (!is_row_wise(op.kind)) return {};
  const Term share = number(1.0 / static_cast<double>(graph.operand(op.in[0]).shape.back()));
  const Term epsilon = number(op.attributes.epsilon);
  switch (op.kind) {
    case OperatorKind::softmax: {
      Step maximum = joined("max", ExprOp::maximum, {operand(0)}, a);
      Step sum = joined("sum", ExprOp::add, {operand(0), step(0)}, exp(a - b));
      return {maximum, sum, whole(op, {operand(0), step(0), step(1)}, exp(a - b) / c)};
    }
    case OperatorKind::rms_norm: {
      Step squares = joined("squares", ExprOp::add, {operand(0)}, a * a);
      Step scale = column("scale", {step(0)}, number(1) / sqrt(a * share + epsilon));
      return {squares, scale, whole(op, {operand(0), step(1), operand(1)}, (a * b) * c)};
    }
    case OperatorKind::layer_norm: {
      // The scale is worked out for each element: a unit takes few operands at once, and has few contexts for steps.
      const Term d = a - b * share;
      Step sum = joined("sum", ExprOp::add, {operand(0)}, a);
      Step squares = joined("squares", ExprOp::add, {operand(0), step(0)}, d * d);
      Step normal = whole(op, {operand(0), step(0), step(1)}, d * (number(1) / sqrt(c * share + epsilon)));
      normal.name = "normal";
      return {sum, squares, normal, whole(op, {step(2), operand(1), operand(2)}, a * b + c)};
    }
    case OperatorKind::reduce_sum:
      return {joined("reduce_sum", ExprOp::add, {operand(0)}, a)};
    case OperatorKind::reduce_max:
      return {joined("reduce_max", ExprOp::maximum, {operand(0)}, a)};
    case OperatorKind::reduce_min:
      return {joined("reduce_min", ExprOp::minimum, {operand(0)}, a)};
    case OperatorKind::reduce_mean: {
      Step sum = joined("sum", ExprOp::add, {operand(0)}, a);
      return {sum, column("reduce_mean", {step(0)}, a * share)};
    }
    default:
      return {};
  }
}

std::vector<Step> attention_steps(const OperatorGraph& graph, const Operator& op) {
  const auto& q = graph.operand(op.in[0]).shape;
  const auto& k = graph.operand(op.in[1]).shape;
  const std::int64_t m = q[q.size() - 2], c = k[k.size() - 2], window = op.attributes.window;
  const Term row = make(ExprOp::row, {}), column = make(ExprOp::column, {});
  const auto place = [](std::int64_t n) { return number(static_cast<double>(n)); };
  const bool further = further_at(op.in.size()).has_value(), sinks = sinks_at(op.in.size()).has_value();
  const Term products =
      further && mutated("attention.drops_further_columns", true, false) ? input(0) + input(1) : input(0);
  Term t = products * number(op.attributes.scale);
  if (op.attributes.causal && m > 1)
    t = make(ExprOp::mask, {t, row + place(mutated("attention.mask_one_key_short", c - m, c - m - 1)) - column});
  if (window != 0 && window < c) t = make(ExprOp::mask, {t, column - (row + place(c - m - window + 1))});
  const Term e = exp(input(0) - input(1));
  Step scaled = whole(op, {operand(0)}, t);
  if (further) scaled.in.push_back(operand(1));
  scaled.name = "scaled";
  Step most = joined("max", ExprOp::maximum, {step(0)}, input(0));
  Step sum = joined("sum", ExprOp::add, {step(0), step(1)}, e);
  Step weights = whole(op, {step(0), step(1), step(2)}, e / input(2));
  if (sinks) {
    // A unit has few contexts: what a sink adds is worked out where it is wanted, and not in columns of their own.
    most = joined("max", ExprOp::maximum, {step(0), operand(2)}, make(ExprOp::maximum, {input(0), input(1)}));
    const Term share = exp(input(3) - input(1));
    weights = whole(op, {step(0), step(1), step(2), operand(2)},
                    e / mutated("attention.sinks_take_no_share", input(2) + share, input(2) + number(0) * share));
  }
  weights.name = "weights";
  return {std::move(scaled), std::move(most), std::move(sum), std::move(weights)};
}

Work whole_work_of(const OperatorGraph& graph, const Operator& op) {
  Work w;
  w.op = op.id;
  if (op.kind == OperatorKind::matmul) {
    const auto& a = graph.operand(op.in[0]).shape;
    const auto& b = graph.operand(op.in[1]).shape;
    w.k = a.back();
    w.m = element_count(a).value_or(w.k) / w.k;
    w.n = op.attributes.transposed ? b[b.size() - 2] : b.back();
    return w;
  }
  if (op.kind == OperatorKind::attention) {
    const auto& q = graph.operand(op.in[0]).shape;
    const auto& k = graph.operand(op.in[1]).shape;
    w.n = q.back();
    w.m = element_count(q).value_or(w.n) / w.n;
    w.k = k[k.size() - 2];
    return w;
  }
  const auto& through = graph.operand(is_row_wise(op.kind) ? op.in[0] : op.out).shape;
  w.m = 1;
  for (std::size_t d = 0; d + 1 < through.size(); ++d) w.m *= through[d];
  w.n = through.back();
  w.k = 1;
  return w;
}

bool spans_rows(const OperatorGraph& graph, const Operator& op, std::size_t in) {
  const auto& shape = graph.operand(op.in[in]).shape;
  return (shape.size() < 2 ? 1 : shape[0]) == whole_work_of(graph, op).m;
}

bool spans_columns(const OperatorGraph& graph, const Operator& op, std::size_t in) {
  return graph.operand(op.in[in]).shape.back() == whole_work_of(graph, op).n;
}

}  // namespace rdusim
