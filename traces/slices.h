// A run as slices on tracks: what timeline viewers show. A process is a chip; a track is a stage at a unit, or the
// sending end of a crossing.
//
//   slice     a firing, for as long as it holds its engine; or a page on its way out of its source buffer
//   counter   pages held in a buffer; credits of a channel
//   flow      an arrow: from the firing that made a page to its sending, from there to the receiver's firing, and on to
//             the firing that takes the landed page; one a page and hop
//
// A slice is told when it is over, so its times do not rise from slice to slice; on a track they do. The time is the
// cycle.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/fifo.h"
#include "traces/machine_state.h"
#include "traces/trace_scope.h"
#include "traces/trace_writer.h"

namespace rdusim {

struct Track {
  std::uint32_t chip = 0;
  std::string name;
};

struct Slice {
  std::uint32_t track = 0;
  std::uint32_t name = 0;  // into names()
  Cycle begin = 0, end = 0;
  // Of a firing.
  bool firing = true;
  std::uint64_t number = 0;  // of the firing, or of the page in its source buffer
  Cycles stall = 0;
  StallCause cause{};
  Cycle completed = 0;
  std::vector<std::uint64_t> flows_out, flows_in;
};

// Who writes them.
class SliceSink {
 public:
  virtual ~SliceSink() = default;
  virtual void slice(const Slice& s) = 0;
  virtual void counter(std::uint32_t counter, Cycle at, std::uint64_t value) = 0;
};

class Slices final : public EventSink {
 public:
  // All outlive this.
  Slices(const Roster& roster, const TraceScope& scope, SliceSink& sink);

  const std::vector<Track>& tracks() const { return tracks_; }
  const std::vector<std::string>& names() const { return names_; }  // of slices
  const std::vector<Track>& counters() const { return counters_; }
  // Slices that were not over.
  void finish();
  std::uint64_t events() const { return events_; }
  const LeftOut& dropped() const { return dropped_; }

#define RDU_DECLARE(Event) void on(const Event& e) override;
  RDU_EVENTS(RDU_DECLARE)
#undef RDU_DECLARE

 private:
  using Number = std::optional<std::uint32_t>;
  struct Stage {
    Number track;
    Fifo<Slice> open;  // started and not completed, oldest first
  };
  struct Sender {
    Number track;
    Cycle begin = 0;
    std::vector<std::uint64_t> flows;  // of the pages that left in this cycle
  };

  template <class E>
  void take(const E& e);
  template <class E>
  void show(const E& e);
  void started(const FiringStarted& e);
  void completed(const FiringCompleted& e);
  void pushed(const PagePushed& e);
  void popped(const PagePopped& e);
  void sent(const PageSent& e);
  void landed(const PageLanded& e);
  void sending(EdgeId edge, std::uint32_t from, Cycle at);
  void tell(Slice& s);
  void count(const Number& counter, Cycle at, std::uint64_t value);

  const Roster& roster_;
  const TraceScope& scope_;
  SliceSink& sink_;
  MachineState state_;
  std::vector<Track> tracks_, counters_;
  std::vector<std::string> names_;  // of stages by id, then of edges
  std::vector<Stage> stages_;
  std::vector<Sender> senders_;
  std::vector<bool> lands_;  // by buffer instance: pages come from a crossing
  std::vector<Number> held_, credits_;
  std::vector<std::uint64_t> counted_;
  std::uint64_t events_ = 0;
  LeftOut dropped_;
};

// "input_starvation", ...
std::string_view cause_name(StallCause cause);

}  // namespace rdusim
