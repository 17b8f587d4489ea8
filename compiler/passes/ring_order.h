// The order in which chips stand in a ring.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/target/target.h"

namespace rdusim {

// Chips 0 to chips - 1, each once, 0 first, so that each has a link to the next and the last to the first, where the
// topology has such a round and a bounded search finds it (the least in order of ids that it meets); else in order of
// ids, and steps take routes of several links. A two-level machine of two full meshes joined by counterparts goes up
// the one and comes back by the other. Requires 1 <= chips <= target.chips. Deterministic.
std::vector<ChipId> ring_order(const Target& target, std::uint32_t chips);

}  // namespace rdusim
