#include "compiler/workload/operator_graph.h"

#include "compiler/support/units.h"

namespace rdusim {

std::string_view name_of(TensorRole role) {
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
  return "";
}

std::string_view name_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::matmul:
      return "matmul";
  }
  return "";
}

std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& shape) {
  std::optional<std::int64_t> count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 1) return std::nullopt;
    if (count) count = checked_multiply(*count, extent);
  }
  return count;
}

}  // namespace rdusim
