#include "compiler/passes/unit_mode.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/passes/recipe.h"

namespace rdusim {

std::string unit_fault(const OperatorGraph& graph, const Operator& op, const SchedulePin& pin, const Target& target) {
  const bool multiplies = op.kind == OperatorKind::matmul;
  if (pin.fold_apart && !multiplies) return "only a matmul has slices to fold";
  if (!pin.unit && !pin.lanes && !pin.stream_lanes && !pin.pmus) return "";
  if (!multiplies && recipe_of(graph, op).empty())
    return "unit, lanes, stream_lanes and pmus can be pinned of matmuls, point-wise operators and what works by row";
  if (pin.pmus.value_or(1) > 1 && target.local != LocalHandshake::valid_ready)
    return fmt::format("a site of target '{}' works with no memory but its own", target.name);
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
