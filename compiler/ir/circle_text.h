// What a circle of firings says of a section's cycles, in a sentence: for `show`, `check` and the report.
#pragma once

#include <string>

#include "compiler/ir/program.h"

namespace rdusim {

// "section 'main' takes 77,100 cycles or more: once round 'load_a', 'matmul0' through 'a' (depth 2) takes 5,120 cycles
// for 4 of 64 parts, ..." Ids that the program does not have are left out.
std::string circle_text(const SpatialProgram& program, const CircleClaim& claim);

}  // namespace rdusim
