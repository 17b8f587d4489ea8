#include "compiler/certificate/terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace rdusim::certificate {

namespace {

bool commutes(ExprOp op) {
  return op == ExprOp::add || op == ExprOp::multiply || op == ExprOp::maximum || op == ExprOp::minimum;
}

// Whether every value of `from` is one of `to`.
bool holds_all(DType from, DType to) {
  if (from == to) return true;
  if (is_integer(from) != is_integer(to)) return false;
  return to == accumulator_of(from) || (is_integer(from) && bytes_of(from) < bytes_of(to)) ||
         (!is_integer(from) && to == DType::fp32);
}

const char* word(ExprOp op) {
  switch (op) {
    case ExprOp::add:
      return "+";
    case ExprOp::subtract:
      return "-";
    case ExprOp::multiply:
      return "*";
    case ExprOp::divide:
      return "/";
    case ExprOp::maximum:
      return "max";
    case ExprOp::minimum:
      return "min";
    case ExprOp::negate:
      return "-";
    case ExprOp::exponential:
      return "exp";
    case ExprOp::square_root:
      return "sqrt";
    case ExprOp::tanh:
      return "tanh";
    case ExprOp::erf:
      return "erf";
    case ExprOp::row:
      return "row";
    case ExprOp::column:
      return "column";
    case ExprOp::mask:
      return "mask";
    default:
      return "?";
  }
}

}  // namespace

Terms::Terms(const SpatialProgram& p) {
  nodes_.push_back({});
  if (!p.operators) return;
  for (const Operator& op : p.operators->operators) {
    if (op.out.value >= p.operators->operands.size() || op.in.empty()) continue;
    if (op.kind == OperatorKind::rotary) learn_rotary(*p.operators, op);
    const TermId formula = of_operator(p, op);
    if (formula == no_term) continue;
    formula_of_.emplace(op.out.value, formula);
    // A formula that is an operand alone (a cast that loses nothing) does not turn that operand into another.
    if (nodes_[formula].kind != Kind::operand) results_.emplace(std::pair(formula, op.id), op.out);
  }
}

TermId Terms::intern(const Node& n) {
  const auto [at, fresh] = ids_.try_emplace(n, static_cast<TermId>(nodes_.size()));
  if (fresh) nodes_.push_back(n);
  return at->second;
}

TermId Terms::operand(OperandId o) {
  return intern({Kind::operand, {}, {}, o.value, no_term, no_term});
}
TermId Terms::product(DType in, TermId a, TermId b, bool transposed) {
  if (a == no_term || b == no_term) return no_term;
  return intern({Kind::product, {}, in, transposed ? 1u : 0u, a, b});
}
TermId Terms::constant(DType in, double number) {
  if (in == DType::fp32) number = static_cast<double>(static_cast<float>(number));
  return intern({Kind::constant, {}, in, std::bit_cast<std::uint64_t>(number), no_term, no_term});
}
TermId Terms::place(ExprOp op, DType in) {
  return intern({Kind::apply, op, in, 0, no_term, no_term});
}
TermId Terms::by_head(TermId of, std::uint64_t heads) {
  if (of == no_term || heads == 1) return of;
  return intern({Kind::by_head, {}, {}, heads, of, no_term});
}
TermId Terms::side_by_side(TermId of, std::uint64_t heads) {
  if (of == no_term || heads == 1) return of;
  const Node& n = nodes_[of];
  if (n.kind == Kind::by_head && n.number == heads) return n.left;
  return intern({Kind::side_by_side, {}, {}, heads, of, no_term});
}
TermId Terms::apply(ExprOp op, DType in, TermId left, TermId right) {
  if (left == no_term || (arity(op) == 2 && right == no_term)) return no_term;
  if (commutes(op) && right < left) std::swap(left, right);
  return intern({Kind::apply, op, in, 0, left, right});
}
TermId Terms::join(ExprOp op, DType in, TermId of) {
  return of == no_term ? no_term : intern({Kind::join, op, in, 0, of, no_term});
}
TermId Terms::shifted(TermId of, std::int64_t columns) {
  if (of == no_term || columns == 0) return of;
  return intern({Kind::shifted, {}, {}, static_cast<std::uint64_t>(columns), of, no_term});
}
TermId Terms::gather(TermId table, TermId indices) {
  if (table == no_term || indices == no_term) return no_term;
  return intern({Kind::gather, {}, {}, 0, table, indices});
}
TermId Terms::converted(DType from, DType to, TermId of) {
  if (of == no_term) return no_term;
  if (!holds_all(from, to)) of = intern({Kind::converted, {}, to, 0, of, no_term});
  return of;
}
TermId Terms::given(DType from, DType to, TermId of, std::optional<OperatorId> by) {
  of = converted(from, to, of);
  const auto result = results_.lower_bound({of, by.value_or(OperatorId{})});
  const bool asked = result != results_.end() && result->first.first == of && (!by || result->first.second == *by);
  return asked ? operand(result->second) : of;
}

bool Terms::is(TermId term, OperandId o) const {
  if (term == no_term) return false;
  const Node& n = nodes_[term];
  if (n.kind == Kind::operand && n.number == o.value) return true;
  const auto due = formula_of_.find(o.value);
  return due != formula_of_.end() && due->second == term;
}

void Terms::learn_rotary(const OperatorGraph& g, const Operator& op) {
  const auto in_range = [&](OperandId o) { return o.value < g.operands.size(); };
  if (op.in.size() != 3 || !std::all_of(op.in.begin(), op.in.end(), in_range)) return;
  const auto& shape = g.operand(op.in[0]).shape;
  if (shape.empty() || shape.back() < 1 || op.attributes.heads == 0) return;
  const std::uint64_t half = static_cast<std::uint64_t>(shape.back()) / op.attributes.heads / 2;
  if (half == 0) return;
  rotaries_[op.out.value] = {
      op.in[0], op.in[1], op.in[2], half, accumulator_of(g.operand(op.in[0]).dtype), g.operand(op.out).dtype};
}

bool Terms::is(TermId term, OperandId o, std::uint64_t begin, std::uint64_t end) {
  const auto turned = rotaries_.find(o.value);
  if (turned == rotaries_.end()) return is(term, o);
  const Rotary& r = turned->second;
  if (term == no_term || begin >= end || begin / r.half != (end - 1) / r.half) return false;  // in several halves
  const auto half = static_cast<std::int64_t>(r.half);
  const std::int64_t to_angle = static_cast<std::int64_t>(begin % r.half) - static_cast<std::int64_t>(begin);
  const bool first = begin / r.half % 2 == 0;
  const TermId here = operand(r.x), there = shifted(here, first ? half : -half);
  const TermId cos = shifted(operand(r.cos), to_angle), sin = shifted(operand(r.sin), to_angle);
  const TermId due = apply(first ? ExprOp::subtract : ExprOp::add, r.in, apply(ExprOp::multiply, r.in, here, cos),
                           apply(ExprOp::multiply, r.in, there, sin));
  return term == converted(r.in, r.out, due);
}

// operator_graph.h, OperatorKind, line by line.
TermId Terms::of_operator(const SpatialProgram& p, const Operator& op) {
  const OperatorGraph& g = *p.operators;
  const auto in_range = [&](OperandId o) { return o.value < g.operands.size(); };
  if (!std::all_of(op.in.begin(), op.in.end(), in_range)) return no_term;
  const Operand& x_operand = g.operand(op.in[0]);
  const DType acc = accumulator_of(x_operand.dtype), out = g.operand(op.out).dtype;
  const auto in = [&](std::size_t i) { return i < op.in.size() ? operand(op.in[i]) : no_term; };
  const auto number = [&](double v) { return constant(acc, v); };
  const auto two = [&](ExprOp e, TermId a, TermId b) { return apply(e, acc, a, b); };
  const auto one = [&](ExprOp e, TermId a) { return apply(e, acc, a); };
  const auto sum = [&](TermId t) { return join(ExprOp::add, acc, t); };
  const auto given = [&](TermId t) { return converted(acc, out, t); };
  const double n = x_operand.shape.empty() ? 1 : static_cast<double>(x_operand.shape.back());
  const TermId x = in(0);
  const TermId share = number(static_cast<double>(1.0f / static_cast<float>(n)));
  const auto root_of_mean = [&](TermId squares) {  // 1 / sqrt((sum squares) (1/n) + epsilon)
    const TermId mean = two(ExprOp::multiply, sum(squares), share);
    return two(ExprOp::divide, number(1),
               one(ExprOp::square_root, two(ExprOp::add, mean, number(op.attributes.epsilon))));
  };
  switch (op.kind) {
    case OperatorKind::matmul:
      return given(product(acc, x, in(1), op.attributes.transposed));
    case OperatorKind::add:
      return given(two(ExprOp::add, x, in(1)));
    case OperatorKind::subtract:
      return given(two(ExprOp::subtract, x, in(1)));
    case OperatorKind::multiply:
      return given(two(ExprOp::multiply, x, in(1)));
    case OperatorKind::divide:
      return given(two(ExprOp::divide, x, in(1)));
    case OperatorKind::maximum:
      return given(two(ExprOp::maximum, x, in(1)));
    case OperatorKind::minimum:
      return given(two(ExprOp::minimum, x, in(1)));
    case OperatorKind::negate:
      return given(one(ExprOp::negate, x));
    case OperatorKind::absolute:
      return given(two(ExprOp::maximum, x, one(ExprOp::negate, x)));
    case OperatorKind::relu:
      return given(two(ExprOp::maximum, x, number(0)));
    case OperatorKind::exponential:
      return given(one(ExprOp::exponential, x));
    case OperatorKind::square_root:
      return given(one(ExprOp::square_root, x));
    case OperatorKind::reciprocal:
      return given(two(ExprOp::divide, number(1), x));
    case OperatorKind::tanh:
      return given(one(ExprOp::tanh, x));
    case OperatorKind::erf:
      return given(one(ExprOp::erf, x));
    case OperatorKind::sigmoid:
    case OperatorKind::silu: {
      const TermId below = two(ExprOp::add, number(1), one(ExprOp::exponential, one(ExprOp::negate, x)));
      return given(two(ExprOp::divide, op.kind == OperatorKind::silu ? x : number(1), below));
    }
    case OperatorKind::gelu: {
      const TermId inner = one(ExprOp::erf, two(ExprOp::multiply, x, number(std::sqrt(0.5))));
      return given(two(ExprOp::multiply, two(ExprOp::multiply, number(0.5), x), two(ExprOp::add, number(1), inner)));
    }
    case OperatorKind::gelu_tanh: {
      const TermId cube = two(ExprOp::multiply, two(ExprOp::multiply, x, x), x);
      const TermId poly = two(ExprOp::add, x, two(ExprOp::multiply, number(0.044715), cube));
      const double scale = std::sqrt(2.0 / 3.14159265358979323846);
      const TermId inner = one(ExprOp::tanh, two(ExprOp::multiply, number(scale), poly));
      return given(two(ExprOp::multiply, two(ExprOp::multiply, number(0.5), x), two(ExprOp::add, number(1), inner)));
    }
    case OperatorKind::gather:
      return gather(x, in(1));
    case OperatorKind::cast:
      return given(x);
    case OperatorKind::softmax: {
      const TermId e = one(ExprOp::exponential, two(ExprOp::subtract, x, join(ExprOp::maximum, acc, x)));
      return given(two(ExprOp::divide, e, sum(e)));
    }
    case OperatorKind::rms_norm: {
      const TermId r = root_of_mean(two(ExprOp::multiply, x, x));
      return given(two(ExprOp::multiply, two(ExprOp::multiply, x, r), in(1)));
    }
    case OperatorKind::layer_norm: {
      const TermId d = two(ExprOp::subtract, x, two(ExprOp::multiply, sum(x), share));
      const TermId r = root_of_mean(two(ExprOp::multiply, d, d));
      return given(two(ExprOp::add, two(ExprOp::multiply, two(ExprOp::multiply, d, r), in(1)), in(2)));
    }
    case OperatorKind::attention:
      return attention(g, op);
    case OperatorKind::reduce_sum:
      return given(sum(x));
    case OperatorKind::reduce_mean:
      return given(two(ExprOp::multiply, sum(x), share));
    case OperatorKind::reduce_max:
      return given(join(ExprOp::maximum, acc, x));
    case OperatorKind::reduce_min:
      return given(join(ExprOp::minimum, acc, x));
    default:
      return no_term;
  }
}

// t = (q k^T) scale, minus infinity where a query does not look; softmax(t), in v's type, times v. Whatever lets every
// query look at every key is no condition. Further columns add a product of their own to t; a sink is a key of its own
// score, and of no value.
TermId Terms::attention(const OperatorGraph& g, const Operator& op) {
  const std::size_t operands = op.in.size();
  if (operands < 3 || operands > 6) return no_term;
  const Operand& q = g.operand(op.in[0]);
  const Operand& k = g.operand(op.in[1]);
  const Operand& v = g.operand(op.in[2]);
  if (q.shape.size() < 2 || k.shape.size() < 2) return no_term;
  const DType acc = accumulator_of(q.dtype);
  const std::uint64_t heads = op.attributes.heads, kv_heads = op.attributes.kv_heads;
  const std::int64_t m = q.shape[q.shape.size() - 2], c = k.shape[k.shape.size() - 2], window = op.attributes.window;
  const auto two = [&](ExprOp e, TermId a, TermId b) { return apply(e, acc, a, b); };
  const auto number = [&](std::int64_t n) { return constant(acc, static_cast<double>(n)); };
  const TermId row = place(ExprOp::row, acc), column = place(ExprOp::column, acc);
  TermId t = product(acc, by_head(operand(op.in[0]), heads), by_head(operand(op.in[1]), kv_heads), true);
  if (operands >= 5) {
    const TermId more = by_head(operand(op.in[operands - 2]), heads),
                 keys = by_head(operand(op.in[operands - 1]), kv_heads);
    t = two(ExprOp::add, t, product(acc, more, keys, true));
  }
  t = two(ExprOp::multiply, t, constant(acc, op.attributes.scale));
  if (op.attributes.causal && m > 1)
    t = two(ExprOp::mask, t, two(ExprOp::subtract, two(ExprOp::add, row, number(c - m)), column));
  if (window != 0 && window < c)
    t = two(ExprOp::mask, t, two(ExprOp::subtract, column, two(ExprOp::add, row, number(c - m - window + 1))));
  const bool sinks = operands == 4 || operands == 6;
  const TermId sink = sinks ? operand(op.in[3]) : no_term;
  const TermId most = join(ExprOp::maximum, acc, sinks ? two(ExprOp::maximum, t, sink) : t);
  const auto share_of = [&](TermId of) { return apply(ExprOp::exponential, acc, two(ExprOp::subtract, of, most)); };
  const TermId e = share_of(t), keys_share = join(ExprOp::add, acc, e);
  const TermId all = sinks ? two(ExprOp::add, keys_share, share_of(sink)) : keys_share;
  const TermId p = converted(acc, v.dtype, two(ExprOp::divide, e, all));
  const TermId out = product(accumulator_of(v.dtype), p, by_head(operand(op.in[2]), kv_heads), false);
  return side_by_side(converted(accumulator_of(v.dtype), g.operand(op.out).dtype, out), heads);
}

std::string Terms::formula(OperandId o) const {
  if (rotaries_.contains(o.value)) return "the halves of each head, turned";
  const auto due = formula_of_.find(o.value);
  return due == formula_of_.end() ? std::string() : text(due->second);
}

std::string Terms::text(TermId term) const {
  constexpr std::size_t most = 120;
  const auto spelled = [&](const auto& self, TermId t, std::size_t depth) -> std::string {
    if (depth > 12) return "...";
    const Node& n = nodes_[t];
    switch (n.kind) {
      case Kind::unknown:
        return "something unknown";
      case Kind::operand:
        return fmt::format("operand {}", n.number);
      case Kind::product:
        return fmt::format("({} x {}{})", self(self, n.left, depth + 1), self(self, n.right, depth + 1),
                           n.number == 0 ? "" : "^T");
      case Kind::constant:
        return fmt::format("{}", std::bit_cast<double>(n.number));
      case Kind::join:
        return fmt::format("row {}({})", n.op == ExprOp::add ? "sum" : word(n.op), self(self, n.left, depth + 1));
      case Kind::gather:
        return fmt::format("({} by {})", self(self, n.left, depth + 1), self(self, n.right, depth + 1));
      case Kind::shifted:
        return fmt::format("{}[{:+}]", self(self, n.left, depth + 1), static_cast<std::int64_t>(n.number));
      case Kind::converted:
        return fmt::format("{}({})", name_of(n.type), self(self, n.left, depth + 1));
      case Kind::by_head:
        return fmt::format("heads({})", self(self, n.left, depth + 1));
      case Kind::side_by_side:
        return fmt::format("joined({})", self(self, n.left, depth + 1));
      case Kind::apply:
        if (arity(n.op) == 0) return word(n.op);
        if (arity(n.op) == 1) return fmt::format("{}({})", word(n.op), self(self, n.left, depth + 1));
        return fmt::format("({} {} {})", self(self, n.left, depth + 1), word(n.op), self(self, n.right, depth + 1));
    }
    return "";
  };
  std::string all = spelled(spelled, term, 0);
  if (all.size() > most) all = all.substr(0, most) + " ...";
  return all;
}

}  // namespace rdusim::certificate
