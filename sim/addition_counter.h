// A firing of a Generic takes the operands that its body says, each as often as it says: PartialFolded tells of each,
// and FiringStarted comes after the last of them. What is left out or added twice is found in the cycle in which it
// happens, for partial sums and whole values alike, and whatever they hold. And a page that a matmul pushes holds what
// the firings that made it have multiplied, each contraction index of theirs once.
//
// RDU7009 contribution-missing, RDU7010 contribution-doubled.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/support/fifo.h"
#include "models/events/events.h"
#include "models/events/provenance.h"
#include "sim/instances.h"
#include "sim/violations.h"

namespace rdusim {

class AdditionCounter {
 public:
  AdditionCounter(const Instances& instances, Violations& violations);

  // The table that events' numbers refer to; before the first event. It outlives the run.
  void use(const ProvenanceTable& table) { table_ = &table; }

  void on(const PartialFolded& e) { ++told_[instances_.of(e.stage)]; }
  void on(const FiringStarted& e);
  void on(const OperandsJoined& e);
  void on(const PagePushed& e);

 private:
  // Of a matmul's instance, contraction indices multiplied: for the block under way, and for those not pushed yet.
  struct Blocks {
    std::uint64_t under_way = 0;
    Fifo<std::uint64_t> made;
  };

  const Instances& instances_;
  Violations& violations_;
  std::vector<Cyclic<std::uint32_t>> due_;  // by stage: events of a firing; empty where none are counted
  std::vector<std::uint32_t> told_;         // by stage instance: of the firing that is about to start
  std::vector<const Stage*> by_matmul_;     // by buffer: the matmul that pushes its pages, one a block; else null
  std::vector<Blocks> blocks_;              // by stage instance
  const ProvenanceTable* table_ = nullptr;
};

}  // namespace rdusim
