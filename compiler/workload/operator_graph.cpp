#include "compiler/workload/operator_graph.h"

#include "compiler/support/units.h"
#include "compiler/workload/operator_names.h"

namespace rdusim {

std::string_view name_of(TensorRole role) {
  return spelled(role);
}
std::string_view name_of(OperatorKind kind) {
  return spelled(kind);
}

std::string_view name_of(UnitMode mode) {
  return spelled(mode);
}

SchedulePin pin_of(const OperatorGraph& graph, OperatorId op) {
  for (const SchedulePin& pin : graph.pins)
    if (pin.op == op) return pin;
  SchedulePin none;
  none.op = op;
  return none;
}

bool is_part(const std::vector<std::int64_t>& alone) {
  constexpr std::int64_t most_parts = std::int64_t{1} << 20;
  return alone.empty() || (alone.size() == 2 && alone[0] >= 0 && alone[0] < alone[1] && alone[1] <= most_parts);
}

std::optional<ChipId> home_of(const std::vector<std::int64_t>& alone, std::uint32_t chips) {
  if (alone.empty()) return std::nullopt;
  return ChipId(static_cast<std::uint64_t>(alone[0]) * chips / static_cast<std::uint64_t>(alone[1]));
}

OperandId storage_of(const OperatorGraph& graph, OperandId id) {
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const Operator& op = graph.operators[i];
    if (op.kind == OperatorKind::append && op.out == id && !op.in.empty()) id = op.in[0];
  }
  return id;
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
