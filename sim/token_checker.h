// Token hand-offs: each receiver's credits are conserved at every event,
//
//   credits held + pages in flight + pages held + credits returning = depth of the landing buffer
//
// which with the counts of a channel reads arrived <= returned <= landed <= taken, and over the channels of a receiver
// taken - arrived <= depth. RDU7004 token-not-conserved, RDU7025 page-out-of-order; at the end RDU7008
// counter-not-at-rest.
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
  std::vector<std::uint64_t> out_;       // by receiver: taken - arrived
  std::vector<std::uint64_t> depth_;     // by receiver
  std::vector<std::uint64_t> greatest_;  // by edge
};

}  // namespace rdusim
