// A sum in another order, for a fault.
#pragma once

#include <optional>

#include "compiler/ir/program.h"

namespace rdusim {

// The stage with the operands of its sum taken from the last to the first: those of a body, and those of the phases
// that take one each. Nothing where that changes nothing: fewer than three, or no sum.
std::optional<Stage> turned_round(const Stage& sum);

}  // namespace rdusim
