#include "compiler/workload/operator_traits.h"

namespace rdusim {

std::string_view name_of(Attribute attribute) {
  switch (attribute) {
    case Attribute::transposed:
      return "transposed";
    case Attribute::epsilon:
      return "epsilon";
    case Attribute::heads:
      return "heads";
    case Attribute::kv_heads:
      return "kv_heads";
    case Attribute::scale:
      return "scale";
    case Attribute::causal:
      return "causal";
    case Attribute::window:
      return "window";
    case Attribute::axes:
      return "axes";
    case Attribute::begin:
      return "begin";
    case Attribute::end:
      return "end";
    case Attribute::scattered:
      return "scattered";
    case Attribute::alone:
      return "alone";
  }
  return "";
}

bool takes(OperatorKind kind, Attribute attribute) {
  switch (attribute) {
    case Attribute::transposed:
      return kind == OperatorKind::matmul;
    case Attribute::scattered:
      return kind == OperatorKind::matmul || kind == OperatorKind::gather;
    case Attribute::alone:
      return kind != OperatorKind::append;
    case Attribute::epsilon:
      return kind == OperatorKind::rms_norm || kind == OperatorKind::layer_norm;
    case Attribute::heads:
      return kind == OperatorKind::rotary || kind == OperatorKind::attention;
    case Attribute::kv_heads:
    case Attribute::scale:
    case Attribute::causal:
    case Attribute::window:
      return kind == OperatorKind::attention;
    case Attribute::axes:
      return kind == OperatorKind::transpose || kind == OperatorKind::concat;
    case Attribute::begin:
      return kind == OperatorKind::slice || kind == OperatorKind::append;
    case Attribute::end:
      return kind == OperatorKind::slice;
  }
  return false;
}

bool is_default(const OperatorAttributes& attributes, Attribute attribute) {
  const OperatorAttributes usual;
  switch (attribute) {
    case Attribute::transposed:
      return attributes.transposed == usual.transposed;
    case Attribute::epsilon:
      return attributes.epsilon == usual.epsilon;
    case Attribute::heads:
      return attributes.heads == usual.heads;
    case Attribute::kv_heads:
      return attributes.kv_heads == usual.kv_heads;
    case Attribute::scale:
      return attributes.scale == usual.scale;
    case Attribute::causal:
      return attributes.causal == usual.causal;
    case Attribute::window:
      return attributes.window == usual.window;
    case Attribute::axes:
      return attributes.axes == usual.axes;
    case Attribute::begin:
      return attributes.begin == usual.begin;
    case Attribute::end:
      return attributes.end == usual.end;
    case Attribute::scattered:
      return attributes.scattered == usual.scattered;
    case Attribute::alone:
      return attributes.alone == usual.alone;
  }
  return true;
}

OperatorTraits traits_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::matmul:
      return {2, 2, true, "in0(m x k) and in1(k x n), or stacks of them"};
    case OperatorKind::add:
    case OperatorKind::subtract:
    case OperatorKind::multiply:
    case OperatorKind::maximum:
    case OperatorKind::minimum:
      return {2, 2, true, "two operands"};
    case OperatorKind::divide:
      return {2, 2, false, "two operands"};
    case OperatorKind::negate:
    case OperatorKind::absolute:
    case OperatorKind::relu:
    case OperatorKind::cast:
    case OperatorKind::reduce_sum:
    case OperatorKind::reduce_max:
    case OperatorKind::reduce_min:
    case OperatorKind::transpose:
    case OperatorKind::reshape:
    case OperatorKind::slice:
      return {1, 1, true, "one operand"};
    case OperatorKind::exponential:
    case OperatorKind::square_root:
    case OperatorKind::reciprocal:
    case OperatorKind::tanh:
    case OperatorKind::erf:
    case OperatorKind::sigmoid:
    case OperatorKind::silu:
    case OperatorKind::gelu:
    case OperatorKind::gelu_tanh:
    case OperatorKind::softmax:
    case OperatorKind::reduce_mean:
      return {1, 1, false, "one operand"};
    case OperatorKind::rms_norm:
      return {2, 2, false, "x with rows of n, and a weight of n"};
    case OperatorKind::layer_norm:
      return {3, 3, false, "x with rows of n, a weight of n and a bias of n"};
    case OperatorKind::rotary:
      return {3, 3, false, "x(m x heads d), cos(m x d/2) and sin(m x d/2)"};
    case OperatorKind::attention:
      return {3, 6, false,
              "q(m x heads d), k(c x kv_heads d) and v(c x kv_heads d), where it has some s(heads x 1 x 1; of one head "
              "1 x 1), and where it "
              "has some q'(m x heads d') and k'(c x kv_heads d')"};
    case OperatorKind::gather:
      return {2, 2, true, "table(rows x n) and indices(m)"};
    case OperatorKind::concat:
      return {1, 256, true, "one to 256 operands"};
    case OperatorKind::append:
      return {2, 2, true, "state(c x n), or a stack of such, and rows(r x n)"};
  }
  return {};
}

std::span<const DType> result_dtypes(OperatorKind kind, DType operand) {
  static constexpr std::array from_int8 = {DType::int32, DType::int8};
  static constexpr std::array from_floats = {DType::fp32, DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2};
  const std::span<const DType> itself(&all_dtypes[static_cast<std::size_t>(operand)], 1);
  if (kind == OperatorKind::cast) return all_dtypes;
  if (is_move(kind)) return itself;
  if (operand == DType::int8) return from_int8;
  return is_integer(operand) ? itself : std::span<const DType>(from_floats);
}

}  // namespace rdusim
