// Which sites of a chip a group gets.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// How many sites an operator takes of a chip, all its stages together. Requires a work with a plan.
std::uint64_t sites_wanted(const OperatorGraph& graph, const Work& work, const Target& target);

// Gives out the sites of one chip, each once, for the stages that are configured together. Deterministic.
class SiteAllocator {
 public:
  SiteAllocator(const Target& target, ChipId chip);

  // `count` sites, each as near as can be to an AGCU, the AGCUs taken in turn: for instances that stream data of their
  // own. Requires free() >= count.
  Group near_agcus(std::size_t count);

  // rows * columns sites in row-major order over the mesh, instance (i, j) at i * columns + j: for instances that share
  // operands by rows and columns, so that a multicast's tree stays on few links. The instances that read for a row (the
  // first of it) take near AGCUs, then those that read for a column, then the others, all spread evenly. Requires free() >= rows * columns.
  Group block(std::size_t rows, std::size_t columns);

  std::size_t free() const { return free_; }

 private:
  std::uint64_t distance(Position a, AgcuId agcu) const;
  Position take(std::size_t index);

  const Target& target_;
  ChipId chip_;
  std::vector<bool> taken_;  // row-major over the mesh
  std::size_t free_;
  std::size_t next_agcu_ = 0;
};

}  // namespace rdusim
