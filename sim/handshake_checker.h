// Local hand-offs and landing buffers, at every event and for each instance:
//
//   0 <= popped <= pushed <= reserved <= popped + depth     (popped is the slowest consumer's)
//
// and a firing starts when all its pages are there: it takes none that was not pushed.
//
// RDU7024 page-stale, RDU7001 pop-from-empty, RDU7002 push-without-reserve, RDU7003 reserve-beyond-depth, RDU7025
// page-out-of-order; at the end RDU7007 counting-balance. Keeps the counts that the report and the diagnosis show.
#pragma once

#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/violations.h"

namespace rdusim {

struct BufferCounts {
  std::uint64_t reserved = 0;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;                // by the slowest consumer
  std::uint64_t peak_pages = 0;            // most of reserved - popped
  Bytes bytes = 0;                         // of pages pushed
  Cycle last_pushed = 0, last_popped = 0;  // 0: never
};

class HandshakeChecker final : public EventSink {
 public:
  HandshakeChecker(const Instances& instances, Violations& violations);

  void on(const FiringStarted& e) override;
  void on(const PageReserved& e) override;
  void on(const PagePushed& e) override;
  void on(const PagePopped& e) override;
  void repeated(const Repetition& r) override;

  // After the last event of a run that finished.
  void finish(Cycle at);

  const BufferCounts& counts(std::uint32_t buffer_instance) const { return watched_[buffer_instance].counts; }
  std::uint64_t popped(std::uint32_t buffer_instance, std::uint32_t consumer) const {
    return popped_[watched_[buffer_instance].first_consumer + consumer];
  }

 private:
  // An input port of a stage: what its firings look at and take.
  struct Intake {
    BufferId buffer;
    std::uint32_t need = 0, pop = 0;  // of every firing, but where they follow a cycle
    const Port* cyclic = nullptr;
  };
  // All that is kept of a buffer instance, but who has popped what: one cache line.
  struct alignas(64) Watched {
    BufferCounts counts;
    std::uint32_t depth = 0;           // 2^32 - 1 stands for all above
    std::uint32_t first_consumer = 0;  // into popped_; the next instance's is one past the last
  };

  void violated(Code code, Cycle at, const BufferAt& buffer, std::uint32_t consumer, const char* what);
  void describe(Diagnostic& d, const BufferAt& buffer) const;

  const Instances& instances_;
  Violations& violations_;
  std::vector<Watched> watched_;             // by buffer instance, and one past the end
  std::vector<std::uint64_t> popped_;        // by buffer instance and consumer
  std::vector<std::uint32_t> first_intake_;  // by stage, and one past the end: into intakes_
  std::vector<Intake> intakes_;
  std::vector<std::size_t>
      first_taken_;                   // by stage: of instance 0, into taken_; instance by instance, intake by intake
  std::vector<std::uint64_t> taken_;  // pages that the firings which started take
};

}  // namespace rdusim
