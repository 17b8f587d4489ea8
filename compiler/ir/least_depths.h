// How deep each buffer must be.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

inline constexpr std::uint64_t most_depth_steps = 40'000'000;

// No run can do with less: what one firing claims or looks at, and what is there from the start. At least 1.
std::vector<std::uint64_t> depth_floors(const SpatialProgram& program);

// d(b) of each buffer: the least depth with which all that hand-offs join it to (its cluster) runs to its end, all other
// depths as given; 0 where that is not worked out: no depth of this buffer alone lets the cluster end, or the limit on
// steps is reached. Where the cluster does not end with the depths given, d(b) is a depth that cures it.
//
// Exact under program.h's rule of firing, whatever the order of firings (token_run.h). The buffers of a cluster are
// tried at their floors together, then in halves, so that a cluster of many buffers at their floors costs one run; one
// that must be deeper is deepened in the middle of a run, by just what lets somebody go on: what was fired by then
// could have been with any depth, so that one run finds d(b).
//
// Requires what run_untimed() requires, and counts that balance (RDU3008): then one instance of a one-to-one cluster,
// and the part of a trip that repeats, stand for all.
std::vector<std::uint64_t> least_depths(const SpatialProgram& program, std::uint64_t most_steps = most_depth_steps);

// A depth for each buffer that has none (depth_pages 0), with which everything runs to its end; none of them can be
// less with the others as they are. Nothing where there are no such depths, or where it would take too long.
std::optional<std::vector<std::uint64_t>> depths_together(const SpatialProgram& program,
                                                          std::uint64_t most_steps = most_depth_steps);

}  // namespace rdusim
