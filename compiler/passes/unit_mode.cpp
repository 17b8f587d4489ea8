#include "compiler/passes/unit_mode.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/passes/recipe.h"

namespace rdusim {

std::string unit_fault(const OperatorGraph& graph, const Operator& op, const SchedulePin& pin, const Target& target) {
  if (!pin.unit && !pin.lanes && !pin.stream_lanes) return "";
  const bool multiplies = op.kind == OperatorKind::matmul;
  if (!multiplies && recipe_of(graph, op).empty())
    return "unit, lanes and stream_lanes can be pinned of matmuls, point-wise operators and what works by row";
  if (!multiplies && pin.unit == UnitMode::systolic) return "a systolic array multiplies matrices only";
  if (multiplies && pin.unit != UnitMode::simd)
    return pin.lanes ? "a systolic array has no lanes to choose: unit = \"simd\"" : "";
  const DType accumulator = accumulator_of(graph.operand(op.in[0]).dtype);
  if (target.pcu.simd(accumulator) == 0)
    return fmt::format("target '{}' does no element-wise operations in {}", target.name, name_of(accumulator));
  const std::uint32_t lanes = multiplies ? matmul_lanes(pin, target) : pin.lanes.value_or(1);
  if (!std::has_single_bit(lanes) || lanes > target.pcu.lanes || target.native_tile % lanes != 0)
    return fmt::format(
        "it asks for {} lanes, and a unit of target '{}' has {}, of which powers of two that divide its "
        "tile of {} can be used",
        lanes, target.name, target.pcu.lanes, target.native_tile);
  return "";
}

}  // namespace rdusim
