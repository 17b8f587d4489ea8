// Barrier hand-offs, at every event: every member arrives once a generation, all leave when all have arrived, nobody is
// a generation ahead; a page lands between the two generations that it moves in. RDU7006 barrier-skew; at the end
// RDU7008 counter-not-at-rest.
#pragma once

#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/violations.h"

namespace rdusim {

class BarrierChecker final : public EventSink {
 public:
  BarrierChecker(const Instances& instances, Violations& violations);

  void on(const PageLanded& e) override;
  void on(const BarrierArrived& e) override;
  void on(const BarrierLeft& e) override;

  void finish(Cycle at);

  struct Counts {
    std::uint64_t arrived = 0;
    std::uint64_t left = 0;
  };
  // Members of the barrier of one sender: it first, then its receivers in the order of its channels.
  std::uint32_t members(EdgeId e, std::uint32_t from) const { return 1 + instances_.channels_of(e, from); }
  const Counts& counts(EdgeId e, std::uint32_t from, std::uint32_t member) const {
    return counts_[first(e, from) + member];
  }
  // Pages of a channel that the sender has sent, one after each first generation of two, and that have landed.
  std::uint64_t sent(std::uint32_t channel) const {
    const ChannelAt& c = instances_.channel_at(channel);
    return instances_.turn(channel).of((counts(c.edge, c.from, 0).left + 1) / 2);
  }
  std::uint64_t landed(std::uint32_t channel) const { return landed_[channel]; }

 private:
  std::size_t first(EdgeId e, std::uint32_t from) const {
    return instances_.first_channel(e, from) +
           instances_.sender(e, from);  // a sender has one member more than channels
  }
  bool known(Cycle at, EdgeId e, std::uint32_t from, std::uint32_t member);
  std::string name(EdgeId e, std::uint32_t from, std::uint32_t member) const;

  const Instances& instances_;
  Violations& violations_;
  std::vector<bool> barrier_;          // by edge
  std::vector<Counts> counts_;         // by sender and member
  std::vector<std::uint64_t> landed_;  // by channel: pages
};

}  // namespace rdusim
