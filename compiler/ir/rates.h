// How many pages a stage instance moves through its ports, from its firings, its section's trips and its ports' rates.
//
// Unit: pages over one run of the stage's section (all trips). A Load's or Store's firing whose page can never be moved
// (AccessPattern) neither reserves, pushes nor pops: that is how a program whose tensors were sliced and whose stages
// were not is found to be unbalanced.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/program.h"

namespace rdusim {

// Steps through a Cyclic a phase at a time, each step in constant time. Requires cycle_length > 0 and every repeat > 0.
template <class T>
class CyclicCursor {
 public:
  explicit CyclicCursor(const Cyclic<T>& cycle) : cycle_(&cycle) {}

  const T& value() const { return (*cycle_)[run_].value; }
  void advance() {
    if (++used_ < (*cycle_)[run_].repeat) return;
    used_ = 0;
    if (++run_ == cycle_->size()) run_ = 0;
  }
  bool constant() const { return cycle_->size() == 1; }

 private:
  const Cyclic<T>* cycle_;
  std::size_t run_ = 0;
  std::uint32_t used_ = 0;
};

// The sum over the first `phases` phases. Nothing on overflow. Requires cycle_length > 0.
std::optional<std::uint64_t> sum_over(const Cyclic<std::uint32_t>& rate, std::uint64_t phases);

// The greatest value of a cycle. Requires that it is not empty.
std::uint32_t greatest(const Cyclic<std::uint32_t>& rate);

struct PortCounts {
  std::uint64_t needed = 0;
  std::uint64_t popped = 0;
  std::uint64_t reserved = 0;
  std::uint64_t pushed = 0;
  friend bool operator==(const PortCounts&, const PortCounts&) = default;
};

// Nothing where a count does not fit 64 bits, or movable_pages() gives nothing. Requires a program that keeps RDU3003
// and RDU3030.
std::optional<PortCounts> count_pages(const SpatialProgram& program, const Stage& stage, std::size_t port,
                                      std::size_t instance);

// Whether all instances of `stage` have the counts of instance 0: always, but for a Load or Store some of whose pages
// cannot be moved.
bool counts_alike(const SpatialProgram& program, const Stage& stage);

// Firings of `stage` (a Load or Store) that write or read one page: a Store's chunks, else 1.
std::uint64_t firings_per_page(const Stage& stage);

// The least common multiple of the cycles of `stage`'s ports and bodies; nothing on overflow.
std::optional<std::uint64_t> hyperperiod(const Stage& stage);

// The instances of `edge.from` that send to instance `receiver` of edge.to[to], rising; the receiver takes their pages
// in turn. Requires a map that keeps RDU3028.
std::vector<std::vector<std::uint32_t>> senders_by_receiver(const Edge& edge, std::size_t receivers);

// Of `pages` that instance `sender` pushes into the source buffer, those that `edge` sends to `receiver`.
std::uint64_t pages_sent(const Edge& edge, std::size_t sender, std::uint32_t receiver, std::uint64_t pages);

}  // namespace rdusim
