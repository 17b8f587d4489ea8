// Token hand-offs: each receiver's credits are conserved at every event,
//
//   credits held + pages in flight + pages held + credits returning = depth of the landing buffer
//
// which with the counts of a channel reads: credits held = its share + arrived - taken >= 0, in flight = taken - landed
// >= 0, returning = returned - arrived >= 0; and of a receiver: pages held = initial pages + landed - returned >= 0,
// over all its channels. The share of a channel is the slots of the landing buffer that its first pages take: a
// receiver takes its senders' pages in turn, so page p of n senders is of sender p mod n, and the pop of a page returns
// the credit of the page that its slot is for next. Hence, channel by channel, credits returned and pages landed need
// not agree where n does not divide the depth; over a receiver's channels they do.
//
// RDU7004 token-not-conserved, RDU7025 page-out-of-order; at the end RDU7008 counter-not-at-rest.
#pragma once

#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/violations.h"

namespace rdusim {

class TokenChecker final : public EventSink {
 public:
  struct Counts {
    std::uint64_t taken = 0;     // credits that the sender used
    std::uint64_t landed = 0;    // pages
    std::uint64_t returned = 0;  // credits that the receiver sent back
    std::uint64_t arrived = 0;   // credits that are back
  };

  TokenChecker(const Instances& instances, Violations& violations);

  void on(const CreditTaken& e) override;
  void on(const PageLanded& e) override;
  void on(const CreditReturned& e) override;
  void on(const CreditArrived& e) override;

  void finish(Cycle at);

  const Counts& counts(std::uint32_t channel) const { return counts_[channel]; }
  // Greatest number of credits that a sender of edge `e` held at once for one receiver.
  std::uint64_t greatest(EdgeId e) const { return greatest_[e.value]; }

 private:
  bool is_token(EdgeId e) const { return token_[e.value]; }
  void violated(Code code, Cycle at, const ChannelAt& channel, const char* what);

  const Instances& instances_;
  Violations& violations_;
  std::vector<bool> token_;              // by edge
  std::vector<Counts> counts_;           // by channel
  std::vector<std::uint64_t> share_;     // by channel
  std::vector<std::uint64_t> landed_;    // by receiver, initial pages included
  std::vector<std::uint64_t> returned_;  // by receiver
  std::vector<std::uint64_t> initial_;   // by receiver: pages that lie there at the start, and at the end
  std::vector<std::uint64_t> depth_;     // by receiver
  std::vector<std::uint64_t> greatest_;  // by edge
};

}  // namespace rdusim
