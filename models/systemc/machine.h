// The machine: a program elaborated on a target as a SystemC model, run once.
//
// This header includes no SystemC. Only what the program uses is elaborated. One simulation a process: a second Machine
// in the same process is refused by SystemC itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "models/events/events.h"
#include "models/events/provenance.h"
#include "models/systemc/reuse.h"
#include "models/units/fault.h"
#include "models/units/network_level.h"
#include "models/units/waiting.h"

namespace rdusim {

struct MachineOptions {
  bool values = true;  // else timing-only: provenance, no values
  std::optional<Cycle> max_cycles;
  std::uint64_t shuffle_seed = 0;  // not 0: equal-time events are dispatched in a random order (a test)
  // Chips run ahead of each other as far as the links' latency allows, and events are put in order afterwards; else
  // every chip is woken at each of its event times. Both give the same.
  bool run_ahead = true;
  // Launches that go as the one before are not simulated, and told as one Repetition (reuse.h). Requires timing only, and
  // that nothing is broken, shuffled, late or divided.
  bool reuse = false;
  bool bursts = true;  // memory is told burst by burst, else page by page (MemoryUsed): a fifth of all there is to tell
  std::vector<Fault> faults;
  NetworkLevel network = NetworkLevel::fast;  // flit requires !no_flit_level(target) (models/units/network.h)
  std::uint64_t jitter_seed = 0;              // not 0: links and stages are late at random; values never change by it
  std::atomic<std::uint64_t>* pages =
      nullptr;                              // follows the pages that are simulated, from window to window; may be null
  const std::atomic<bool>* stop = nullptr;  // looked at after each event time; set by a checker or by Ctrl-C
};

class Crew;

// What one of the processes of a divided run did.
struct ProcessWork {
  std::uint32_t rank = 0, first_chip = 0, chips = 0;
  std::uint64_t windows = 0;  // that it ran its chips in
  double work_seconds = 0;    // in them
  double wait_seconds = 0;    // for others
};

struct MachineOutcome {
  enum class End : std::uint8_t { finished, quiescent, stopped, max_cycles };
  End end{};
  Cycle cycles = 0;                 // when the last section ended, or when it stopped
  std::vector<Waiting> waiting;     // quiescent: everyone who has not finished, by id
  std::uint64_t activations = 0;    // of SC_METHODs
  std::uint64_t page_handoffs = 0;  // pages pushed
  std::uint64_t traversals = 0;     // flit level: flits that crossed a switch
  std::vector<LaunchReuse> reuse;   // where it was asked for: of relaunched sections that began
  // Of a run that was divided:
  std::vector<ProcessWork> processes;  // by rank
  double listening_seconds = 0;        // of process 0, with the listeners
  std::optional<std::string> lost;     // a process that ended before the run did: beside it only `cycles` counts
  std::vector<std::uint64_t> struck;   // by MachineOptions::faults: how often it changed what would have happened
};

class Machine {
 public:
  // Requires a complete program that verifies for `target` (or that a test broke on purpose: a unit obeys and never
  // judges, and stays within its own memory whatever it is told). `images` and `sink` outlive the run.
  Machine(const SpatialProgram& program, const Target& target, const MachineOptions& options, TensorImages& images,
          EventSink& sink);
  ~Machine();
  MachineOutcome run();

  // Dividing the chips over processes (divided_run.h), before run(). Why they cannot be; nothing where they can.
  std::optional<std::string> undivided() const;
  std::uint32_t most_processes() const;  // one for each chip with work, and one that listens
  // Requires !undivided(), 2 <= crew.size() <= most_processes(). `crew` outlives the run. In every process of it but
  // the first, run() returns when all has been said, and the process should end.
  void divide(Crew& crew);

  // The contributions that events name by id.
  const ProvenanceTable& provenance() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rdusim
