// Who waits for whom in a machine in which nothing moves any more.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/memory_order.h"
#include "sim/diagnose.h"

namespace rdusim {

// A node is a stage instance or a channel, as one number: stages first.
class WaitGraph {
 public:
  // Both outlive this.
  WaitGraph(const MachineOutcome& outcome, const Observed& observed);

  // Whose wait `w` is; nothing: the machine's.
  std::optional<std::size_t> node(const Waiting& w) const;
  bool waits(std::size_t node) const { return !entry_of_[node].empty(); }
  // Into MachineOutcome::waiting.
  const std::vector<std::size_t>& entries(std::size_t node) const { return entry_of_[node]; }
  std::size_t nodes() const { return entry_of_.size(); }

  // Who could give `w` what it waits for, rising.
  std::vector<std::size_t> suppliers(const Waiting& w) const;

  std::string name(std::size_t node) const;

 private:
  BufferAt source(const ChannelAt& c) const;
  BufferAt landing(const ChannelAt& c) const;
  std::uint64_t least_arrived(const ChannelAt& c) const;
  void add_stage(StageId s, std::uint32_t instance, std::vector<std::size_t>& out) const;
  // A load fires for its whole multicast set at once: who of the set has no room holds up the others.
  void set_members(const StageAt& s, std::vector<std::size_t>& out) const;
  // Those that have not finished of the stores that a load waits for.
  void stores_before(const StageAt& s, std::vector<std::size_t>& out) const;
  bool waits_for_room(std::size_t n) const;
  void channels_into(const StageAt& s, std::vector<std::size_t>& out) const;
  void producers_of(const BufferAt& b, std::vector<std::size_t>& out) const;
  void consumers_of(const BufferAt& b, std::vector<std::size_t>& out) const;

  const MachineOutcome& outcome_;
  const Observed& o_;
  std::vector<MemoryOrder> orders_;
  std::vector<std::vector<std::size_t>> entry_of_;  // by node: entries of outcome.waiting
};

}  // namespace rdusim
