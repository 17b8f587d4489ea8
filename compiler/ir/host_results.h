// Results that a program hands to the host without a memory between: machines may have registers that the host reads.
#pragma once

#include "compiler/ir/program.h"

namespace rdusim {

// Whether what `store` writes is an output that fits one of the target's registers (host.result_bytes) and that no stage
// reads. Its pages leave over the network, and neither an AGCU nor a memory takes part.
bool handed_to_host(const SpatialProgram& program, const Target& target, const Store& store);

}  // namespace rdusim
