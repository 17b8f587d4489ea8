// The circle of firings that holds a cluster back, as a bound on the cycles of its section that no run can beat
// (CircleClaim, certificate.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/throughput.h"

namespace rdusim {

// Of the first parts of a run, so many firings are looked at, where it has more: a bound on them is one on all.
inline constexpr std::uint64_t most_bound_firings = std::uint64_t{1} << 18;

// `least`: what firings take at the very least, by stage id, whatever else the machine does. Of a Recv, a firing begins
// when its page is sent: to_pop is then what it takes to leave, to_push to be there. `trips` of the section.
//
// The circle is the one of the greatest mean (throughput.h), or one near it where looking for that would take too long.
// Where the longest way through a single part is longer than what the run goes round it, that is the claim, without a
// circle.
//
// Nothing where throughput_of() looks at nothing. Requires what that requires.
std::optional<CircleClaim> circle_bound(const SpatialProgram& program, const Cluster& cluster,
                                        const std::vector<StageTiming>& least, std::uint64_t trips);

}  // namespace rdusim
