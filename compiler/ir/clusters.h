// Stages that hand-offs join, directly or through others: what can run, and be understood, apart from the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

struct Cluster {
  std::vector<StageId> stages;   // rising
  std::vector<EdgeId> crossing;  // rising
  // Every hand-off joins instance i with instance i: each of `instances` is a small program of its own. Otherwise 1.
  bool one_to_one = true;
  std::size_t instances = 1;
  // How often in a trip every port and body of every stage is back at its first phase with all buffers as they were at
  // the start: what follows repeats. 1 where that is not known.
  std::uint64_t repeats = 1;
};

// In the order of their least stage. Requires a program that keeps RDU3002, RDU3003 and RDU3028. Near linear.
std::vector<Cluster> clusters_of(const SpatialProgram& program);

}  // namespace rdusim
