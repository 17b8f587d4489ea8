// The mode of the compute unit that a [schedule.OP] table asks for, as a target has it.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/target/target.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

// What of `pin` the operator cannot have of the target's units, in words; empty: it can.
std::string unit_fault(const OperatorGraph& graph, const Operator& op, const SchedulePin& pin, const Target& target);

// MatmulTiles::lanes of a matmul that is pinned so: 0 for the systolic array. Requires a pin without fault.
inline std::uint32_t matmul_lanes(const SchedulePin& pin, const Target& t) {
  return pin.unit == UnitMode::simd ? pin.lanes.value_or(t.pcu.lanes) : 0;
}

}  // namespace rdusim
