// A run whose chips are divided over the processes of a crew, each with a SystemC kernel of its own.
//
//   windows    All processes with chips run them to the end of the same window of the least link latency, and then
//              exchange what was sent: nothing that a chip does reaches another one within a window. The next window is
//              that of the least next event of all, so idle ones are skipped. A section is over when nobody has one.
//   listening  Process 0 is sent what was recorded, and hands it on window by window, in rising time and chip by chip,
//              just as one process does (Machine): listeners hear the same, whatever the number of processes. It
//              listens while it waits for the others, who run ahead of it as far as the rings of their records allow,
//              and pauses in the middle of a window when something has come; it may have no chips at all.
//   stopping   When a listener, a limit or Ctrl-C asks to stop, the run ends with what was handed on; the others are
//              ended by whoever owns the crew. Their stores stay where they were made.
//   ends       A run that ends by itself brings back who waits for what, and the tensors that were stored to.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/events/event_record.h"
#include "models/processes/crew.h"
#include "models/systemc/division.h"
#include "models/systemc/machine.h"
#include "models/systemc/progress.h"
#include "models/systemc/window_mail.h"

namespace rdusim {

// The machine in this process, as such a run asks for it.
struct MachineParts {
  const SpatialProgram& program;
  const MachineOptions& options;
  Cycles launch = 0;                          // from the end of a section to the start of the next
  std::vector<std::unique_ptr<Chip>>& chips;  // by id; null where the program does not use it
  std::vector<EventRecord>& records;          // by id, to be listened to
  bool recording = false;                     // somebody listens
  ProvenanceTable& provenance;
  TensorImages& images;
  EventSink& sink;
  RunProgress& progress;
  const Cycle& told;                                         // time of what was handed on last
  std::function<void(std::uint32_t chip, Cycle at)> expect;  // the chip's next event may have become this
  std::function<void(Cycle end)> run_window;                 // the kernel, to the cycle before `end`
  // What is in `records`, of the window before `end`, goes to the listeners: put in order first, then handed on, until
  // `pause` (false: to be called again) or to the end, or to where a listener asks to stop (progress.stopped).
  std::function<void(Cycle end)> put_in_order;
  std::function<bool(const std::function<bool()>& pause)> hand_on;
};

class DividedRun {
 public:
  DividedRun(MachineParts parts, Crew& crew);

  bool mine(std::uint32_t chip) const { return owner_[chip] == crew_.rank(); }
  void post(std::uint32_t chip, Cycle at, const Event& e) { out_[owner_[chip]].post(chip, at, e); }
  void deliver(std::uint32_t chip, std::uint32_t channel, std::uint64_t page, const PageTag& tag,
               std::span<const std::byte> values, std::uint32_t bytes, Cycle sent) {
    out_[owner_[chip]].deliver(chip, channel, page, tag, values, bytes, sent, m_.provenance);
  }

  // In process 0 the run's outcome; in another one, when all that it had to say has been sent, nothing of interest.
  MachineOutcome run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind : std::uint32_t { window, section, last };
  struct FrameHead {  // what a process tells process 0
    Kind kind{};
    std::uint32_t chips = 0;        // window: whose records follow
    Cycle end = 0;                  // window: the cycle after it
    std::uint64_t activations = 0;  // window: in it
    std::uint64_t pages = 0;        // until now
    Cycle last = 0;                 // section: in which something happened
    bool finished = false, beyond = false;
    std::uint64_t set_bytes = 0;
  };
  struct Frame {
    FrameHead head;
    std::vector<std::pair<std::uint32_t, EventRecord>> chips;
    Bits rest;  // of the last one
  };
  struct WindowHead {  // what processes with chips tell each other
    Cycle least = 0, last = 0;
    bool finished = false;
    std::uint64_t set_bytes = 0;
  };
  struct Agreed {
    Cycle least = 0, last = 0;
    bool finished = true;
  };

  bool listens() const { return crew_.rank() == 0; }
  bool simulates(std::uint32_t rank) const { return !blocks_[rank].empty(); }
  bool beyond_limit(Cycle at) const { return m_.options.max_cycles && at > *m_.options.max_cycles; }
  Cycle start_after(Cycle now) const { return std::max<Cycle>(now + m_.launch, 1); }
  bool asked_to_stop() const { return m_.options.stop != nullptr && m_.options.stop->load(std::memory_order_relaxed); }

  // The chips of this process. False: the run was stopped, or a process was lost.
  bool simulate();
  bool simulate_section(SectionId section, Cycle& now, bool& finished, bool& beyond);
  std::optional<Agreed> agree(SectionId section);
  bool take_mail(std::uint32_t from, Agreed& agreed);
  void tell_window();
  EventRecord spare();
  void put_aside(EventRecord record);
  void tell_section(const Agreed& agreed, bool beyond);
  void tell_last(std::optional<SectionId> stuck);
  void send_frame(FrameHead head, const std::vector<std::span<const std::byte>>& parts);
  // Until `done`; in process 0 it listens meanwhile. False where the run ends before.
  template <class Done>
  bool wait_until(Done&& done);

  // The listening of process 0.
  bool listen();
  bool next_frame(std::uint32_t from);
  bool read_frame(std::uint32_t from, std::span<const std::byte> bytes, Frame& frame);
  void begin_section(Cycle now);
  void hear_window();
  void hear_on();
  void hear_section();
  void hear_last();
  void end(MachineOutcome::End how, Cycle at);
  void lose(std::string how);

  MachineParts m_;
  Crew& crew_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> owner_;  // by chip
  std::vector<WindowOut> out_;        // by process
  std::vector<WindowIn> in_;
  std::vector<EventRecord> recorded_;  // by chip, of this process in a window
  Bits bytes_;
  ProvenanceId sets_told_ = 1;  // to process 0
  std::uint64_t activations_told_ = 0;
  ProcessWork work_;

  // process 0
  std::deque<Frame> own_;
  std::size_t own_words_ = 0;
  std::vector<std::optional<Frame>> frames_;    // by process, the oldest
  std::vector<EventRecord> spare_;              // their memory is used again
  std::vector<std::vector<ProvenanceId>> ids_;  // by process: its numbers of sets here
  std::vector<std::uint64_t> pages_;            // by process, so far
  std::size_t section_ = 0;                     // that is listened to
  std::uint64_t trip_ = 0;                      // the launch of it that is
  bool hearing_ = false;                        // in the middle of a window
  std::uint32_t seen_ = 0;                      // news before it listens
  bool closing_ = false;                        // only last frames come
  bool ended_ = false;
  MachineOutcome outcome_;
};

}  // namespace rdusim
