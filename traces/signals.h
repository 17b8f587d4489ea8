// A run as signals that change: what waveform viewers show. Names form a hierarchy of chip, site, unit and part.
//
//   stage     state    0 waiting, 1 busy (its engine works for it), 2 all firings completed
//             firing   number of the firing that started last
//   buffer    valid    a page is there that the slowest consumer has not taken
//             ready    there is room for a page
//             occupancy, claimed    pages held; pages held or reserved
//             valid_semaphore       of a landing buffer behind a semaphore
//   crossing  credits, under_way (one a receiver); ready_semaphore, at_barrier (one a sender)
//   link, memory channel    busy
//
// What happens in a cycle is shown from that cycle on; of several changes within a cycle the last one counts.
#pragma once

#include <initializer_list>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "traces/machine_state.h"
#include "traces/signal_tree.h"
#include "traces/trace_scope.h"
#include "traces/trace_writer.h"

namespace rdusim {

// Who writes signals to a file. Times are cycles and rise.
class SignalSink {
 public:
  virtual ~SignalSink() = default;
  // Once, before the first change; the values, one a signal, are those at cycle `from`.
  virtual void declare(const SignalTree& tree, const std::vector<std::uint64_t>& values, Cycle from) = 0;
  virtual void change(Cycle at, std::uint32_t signal, std::uint64_t value) = 0;
};

// Every signal of the units that `scope` keeps; those of kinds that it leaves out are absent.
class Signals final : public EventSink {
 public:
  // All outlive this.
  Signals(const Roster& roster, const TraceScope& scope, SignalSink& sink);

  const SignalTree& tree() const { return tree_; }
  // Of every signal, what was last told of it.
  std::vector<std::uint64_t> values() const;

  // The changes that were still to come when the run ended, as far as the window reaches; then what was shown and left
  // out, but for the file's bytes and what the sink itself left out.
  TraceSize finish(const TraceEnd& end);

#define RDU_DECLARE(Event) void on(const Event& e) override;
  RDU_EVENTS(RDU_DECLARE)
#undef RDU_DECLARE

 private:
  using Number = std::optional<std::uint32_t>;
  struct Later {
    Cycle at = 0;
    std::uint64_t order = 0;
    std::uint32_t signal = 0;
    std::uint64_t value = 0;
    friend bool operator>(const Later& a, const Later& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };

  SignalTree::Scope scope_of(const Site& site);
  bool keeps_any(std::initializer_list<EventKind> kinds) const;
  void add_stages();
  void add_buffers();
  void add_crossings();
  void add_resources();
  template <class E>
  void take(const E& e);
  void show(const FiringStarted& e);
  void show(const FiringCompleted& e);
  void show(const LinkUsed& e);
  void show(const MemoryUsed& e);
  template <class E>
  void show(const E& e);
  void advance(Cycle at);
  void write_cycle();
  void declare();
  void set(std::uint32_t signal, std::uint64_t value);
  void later(Cycle at, std::uint32_t signal, std::uint64_t value);
  void show_buffer(std::uint32_t n);

  const Roster& roster_;
  const TraceScope& scope_;
  SignalSink& sink_;
  MachineState state_;
  SignalTree tree_;
  std::vector<Number> chip_;                                               // scopes of chips
  std::unordered_map<std::uint64_t, std::uint32_t> site_;                  // scopes of sites, by chip and place
  std::vector<Number> stage_, buffer_, channel_, sender_, link_, memory_;  // first signal of each
  std::vector<Number> valid_;                                              // by buffer
  struct Level {
    std::uint64_t now = 0, written = 0;
  };
  std::vector<Level> level_;
  std::vector<bool> touched_;
  std::vector<std::uint32_t> changed_;  // in this cycle
  std::priority_queue<Later, std::vector<Later>, std::greater<>> later_;
  std::uint64_t order_ = 0;
  Cycle now_ = 0;
  bool declared_ = false;
  std::uint64_t events_ = 0;
  LeftOut dropped_;
};

}  // namespace rdusim
