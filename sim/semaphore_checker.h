// Semaphore hand-offs, at every event: a receiver raises `ready` once a generation, and for none before the sender has
// begun the one before it; the sender consumes a generation when all its receivers have raised it, raises `valid` once a
// generation and receiver, and each is waited for once; the values follow from the counts and stay within the
// semaphore's width; no page lands that no generation has sent, and `valid` is not raised before the generation's page
// has landed.
//
// RDU7005 semaphore-out-of-range, RDU7024 page-stale; at the end RDU7008 counter-not-at-rest.
#pragma once

#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/violations.h"

namespace rdusim {

class SemaphoreChecker final : public EventSink {
 public:
  SemaphoreChecker(const Instances& instances, Violations& violations);

  void on(const PageLanded& e) override;
  void on(const ReadyRaised& e) override;
  void on(const ReadyConsumed& e) override;
  void on(const ValidRaised& e) override;
  void on(const ValidConsumed& e) override;

  void finish(Cycle at);

  struct Counts {
    std::uint64_t ready_raised = 0;
    std::uint64_t valid_raised = 0;
    std::uint64_t valid_consumed = 0;
    std::uint64_t landed = 0;  // pages
  };
  const Counts& counts(std::uint32_t channel) const { return counts_[channel]; }
  std::uint64_t ready_consumed(EdgeId e, std::uint32_t from) const {
    return senders_[instances_.sender(e, from)].consumed;
  }
  std::uint64_t greatest(EdgeId e) const { return greatest_[e.value]; }

 private:
  struct Sender {
    std::uint64_t raised = 0;    // by all its receivers
    std::uint64_t consumed = 0;  // generations
  };
  struct Range {
    std::uint64_t initial = 0;
    std::uint64_t greatest = 0;  // that the width can hold
  };
  Range range(const ChannelAt& channel, bool ready) const;
  void check_value(Cycle at, const ChannelAt& channel, bool ready, std::uint64_t value, std::uint64_t expected);
  void violated(Cycle at, const ChannelAt& channel, const char* semaphore, const std::string& what);
  void describe(Diagnostic& d, const ChannelAt& channel) const;

  const Instances& instances_;
  Violations& violations_;
  std::vector<bool> semaphore_;          // by edge
  std::vector<Counts> counts_;           // by channel
  std::vector<Sender> senders_;          // by sender
  std::vector<std::uint64_t> valid_;     // by receiver: raised - consumed over its channels
  std::vector<std::uint64_t> greatest_;  // by edge: seen
};

}  // namespace rdusim
