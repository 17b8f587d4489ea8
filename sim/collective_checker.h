// Every member of a collective logs what it takes part in: which collectives, in which order, with how many bytes. The
// logs of its members agree with each other and with the program. RDU7026 collective-logs-disagree. (Two that run side by
// side in one section, neither depending on all of the other, may come in either order: chips are not in step.)
//
// A member contributes a page when a stage outside the collective pushes it into a buffer that the collective reads.
// Keeps what the report says of a collective: how long it took, and what was sent.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/violations.h"

namespace rdusim {

class CollectiveChecker final : public EventSink {
 public:
  CollectiveChecker(const Instances& instances, Violations& violations);

  void on(const PagePushed& e) override;
  void on(const PageSent& e) override;
  void on(const PageLanded& e) override;
  void on(const FiringCompleted& e) override;
  void on(const PageStored& e) override;
  void repeated(const Repetition& r) override;

  // After the last event of a run that finished.
  void finish(Cycle at);

  Bytes sent(CollectiveId c) const { return seen_[c.value].sent; }
  // From the first page that a member sends to the last store (or firing) that it ends with, of all trips; nothing where
  // none was sent.
  std::optional<Cycles> cycles(CollectiveId c) const;
  // Of the last trip that began: first page sent, last store.
  std::optional<std::pair<Cycle, Cycle>> last_trip(CollectiveId c) const;
  // How often its section carries it out.
  std::uint64_t trips(CollectiveId c) const { return seen_[c.value].trips; }
  // What a member has contributed so far, in the order of members.
  Bytes contributed(CollectiveId c, std::size_t member) const { return contributed_[first_member_[c.value] + member]; }

 private:
  struct Seen {
    std::uint64_t trips = 1;
    std::uint64_t ends = 0;           // firings that end it, of all trips
    std::uint64_t ended = 0;          // of these, so far
    Cycles before = 0;                // what the trips before this one took
    std::optional<Cycle> first_sent;  // of the trip at hand
    std::optional<Cycle> last;
    bool over = false;  // the trip at hand has ended
    Bytes sent = 0;
  };

  void end(CollectiveId c, Cycle at);
  void takes_part(CollectiveId c, std::size_t member);
  std::optional<std::uint32_t> member(CollectiveId c, ChipId chip) const;
  // Whether two logs of the same collectives have two in another order that follow each other.
  bool disagree(const std::vector<CollectiveId>& first, const std::vector<CollectiveId>& second) const;
  // Whether one of them waits for the other: in another section, or by way of the operators that they end.
  bool ordered(CollectiveId a, CollectiveId b) const;

  const Instances& instances_;
  Violations& violations_;
  std::vector<std::optional<CollectiveId>> input_;  // by buffer: the collective that it feeds from outside
  std::vector<std::optional<CollectiveId>> ends_;   // by stage: the collective that its stores and firings end
  std::vector<Seen> seen_;                          // by collective
  std::vector<std::size_t> first_member_;           // by collective, and one past the end
  std::vector<Bytes> contributed_;
  std::vector<bool> taken_part_;  // by member of all collectives: whether it is in its chip's log
  std::vector<std::vector<CollectiveId>>
      log_;  // by chip: collectives in the order in which it first contributed, or was
             // first sent what it is given in a broadcast
};

}  // namespace rdusim
