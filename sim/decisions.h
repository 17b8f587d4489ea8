// What the compiler chose, as data: enough to see that two programs of one workload differ in a decision, and in which.
//
// Chips that were given the same are one row. Positions of a placement are summed up: how many sites, the rectangle
// around them, and a hash that differs where any site does.
#pragma once

#include "compiler/ir/program.h"
#include "compiler/support/json.h"

namespace rdusim {

// The report's `decisions` (report.md).
Json decisions_of(const SpatialProgram& program);

}  // namespace rdusim
