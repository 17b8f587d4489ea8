// How workloads, files and people spell the enumerators of operator_graph.h; empty for what is no enumerator.
#pragma once

#include <string_view>

#include "compiler/workload/operator_graph.h"

namespace rdusim {

constexpr std::string_view spelled(TensorRole role) {
  switch (role) {
    case TensorRole::input:
      return "input";
    case TensorRole::weight:
      return "weight";
    case TensorRole::output:
      return "output";
    case TensorRole::intermediate:
      return "intermediate";
    case TensorRole::state:
      return "state";
  }
  return {};
}

constexpr std::string_view spelled(UnitMode mode) {
  switch (mode) {
    case UnitMode::systolic:
      return "systolic";
    case UnitMode::simd:
      return "simd";
  }
  return {};
}

constexpr std::string_view spelled(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::matmul:
      return "matmul";
    case OperatorKind::add:
      return "add";
    case OperatorKind::subtract:
      return "subtract";
    case OperatorKind::multiply:
      return "multiply";
    case OperatorKind::divide:
      return "divide";
    case OperatorKind::maximum:
      return "maximum";
    case OperatorKind::minimum:
      return "minimum";
    case OperatorKind::negate:
      return "negate";
    case OperatorKind::absolute:
      return "absolute";
    case OperatorKind::relu:
      return "relu";
    case OperatorKind::exponential:
      return "exponential";
    case OperatorKind::square_root:
      return "square_root";
    case OperatorKind::reciprocal:
      return "reciprocal";
    case OperatorKind::tanh:
      return "tanh";
    case OperatorKind::erf:
      return "erf";
    case OperatorKind::sigmoid:
      return "sigmoid";
    case OperatorKind::silu:
      return "silu";
    case OperatorKind::gelu:
      return "gelu";
    case OperatorKind::gelu_tanh:
      return "gelu_tanh";
    case OperatorKind::cast:
      return "cast";
    case OperatorKind::softmax:
      return "softmax";
    case OperatorKind::rms_norm:
      return "rms_norm";
    case OperatorKind::layer_norm:
      return "layer_norm";
    case OperatorKind::reduce_sum:
      return "reduce_sum";
    case OperatorKind::reduce_mean:
      return "reduce_mean";
    case OperatorKind::reduce_max:
      return "reduce_max";
    case OperatorKind::reduce_min:
      return "reduce_min";
    case OperatorKind::rotary:
      return "rotary";
    case OperatorKind::attention:
      return "attention";
    case OperatorKind::gather:
      return "gather";
    case OperatorKind::transpose:
      return "transpose";
    case OperatorKind::reshape:
      return "reshape";
    case OperatorKind::slice:
      return "slice";
    case OperatorKind::concat:
      return "concat";
    case OperatorKind::append:
      return "append";
  }
  return {};
}

}  // namespace rdusim
