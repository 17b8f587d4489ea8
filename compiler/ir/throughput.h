// How fast a cluster can go round: the maximum cycle mean of its firings, and how deep each buffer must be not to hold
// it back.
//
// A part of a trip that repeats (clusters.h) is an event graph: a node a firing; an arc from what must come before to
// what must come after, with the cycles between and the number of parts that it reaches back. In the long run a part
// takes as long as the circle with the most cycles a part allows: rings of buffers full of pages, pages that go round,
// credits on their way (F. Baccelli, G. Cohen, G. Olsder, J.-P. Quadrat, "Synchronization and Linearity", 1992). All in
// integers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/clusters.h"
#include "compiler/ir/program.h"

namespace rdusim {

// What a stage's firings take, by stage id; what the caller knows or estimates.
struct StageTiming {
  Cycles interval = 1;  // from one start to the next
  Cycles to_push = 1;   // from the start until consumers see the pages
  Cycles to_pop = 1;    // from the start until the producer sees the room of the pages taken
};

struct CriticalCircle {
  std::vector<StageId> stages;    // in order, each once where it comes several times in a row
  std::vector<BufferId> buffers;  // that hold them to each other; rising
  Cycles cycles = 0;              // once round
  std::uint64_t parts = 1;        // that it spans: a part takes cycles / parts
};

inline constexpr std::size_t most_throughput_firings = 20'000;

struct Throughput {
  // Nothing where no circle holds the cluster back (it has no cycle of firings), or where it is too large to look at.
  std::optional<CriticalCircle> circle;
  bool looked_at = false;
  // By buffer id, of the cluster's buffers: the least depth with which a part takes no longer than with any depth of
  // this buffer, all other depths as given; 0 for others, and where more than `most_depth` would be needed.
  std::vector<std::uint64_t> full_rate_depth;
  static constexpr std::uint64_t most_depth = 4096;
};

// Requires what least_depths() requires, a cluster that runs to its end, and depths that are chosen. Of a one-to-one
// cluster, instance 0 stands for all.
Throughput throughput_of(const SpatialProgram& program, const Cluster& cluster, const std::vector<StageTiming>& timing);

}  // namespace rdusim
