// From a program and a target to the state of its chips: only what the program uses comes to be.
#pragma once

#include <vector>

#include "compiler/ir/program.h"
#include "models/units/chip_state.h"
#include "models/units/fault.h"

namespace rdusim {

struct Elaboration {
  MachineLaws laws;
  std::vector<ChipState> chips;  // by chip id; `used` where the program has a site on it or a route through it
};

// Requires a placed program whose ids resolve. What does not fit together (a port whose buffer is not on the stage's
// site, a route that is none) is left unconnected, or connected by the target's own route: the machine obeys.
Elaboration elaborate(const SpatialProgram& program, const Target& target, bool values,
                      const std::vector<Fault>& faults, NetworkLevel network = NetworkLevel::fast);

}  // namespace rdusim
