// One run, from a loaded program to everything that is known of it: images filled, machine built, events folded by
// checkers and statistics, outputs compared, outcome judged.
//
// One run a process (SystemC allows one simulation a process).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/processes/mpi_crew.h"
#include "models/systemc/machine.h"
#include "sim/exit_status.h"
#include "sim/forecast.h"
#include "sim/limits.h"
#include "sim/load.h"
#include "sim/report.h"
#include "sim/run_traces.h"

namespace rdusim {

class Understudy;

struct RunOptions {
  CheckLevel check = CheckLevel::exact;
  bool values = true;  // else timing-only
  // Launches that go as the one before are not simulated (MachineOptions::reuse), unless traces want every event.
  bool reuse = true;
  bool collect_violations = false;
  std::vector<std::string> faults;  // --inject
  std::vector<Assignment> set;      // operands from files
  std::optional<Cycle> max_cycles;
  std::optional<double> max_seconds;
  std::optional<Bytes> max_memory;  // absent: what this computer has
  // One of several processes that mpirun started, all with the same options, divides the chips with the others. All but the
  // first end with the machine: they have no limits, write no traces, and report nothing.
  std::optional<MpiPlace> mpi;
  std::uint32_t processes = 1;     // of this computer, over which chips are divided where they can be
  std::uint64_t shuffle_seed = 0;  // equal-time events in a random order (a test)
  NetworkLevel network = NetworkLevel::fast;
  std::optional<std::uint64_t> jitter;  // links and stages are late at random, by this seed
  Understudy* understudy = nullptr;     // confirms the cure of a circular wait; may be null
  TraceOptions trace;
  JsonObject reported;                            // for the report's `options`
  std::atomic<bool>* stop = nullptr;              // raised from outside (Ctrl-C); may be null
  std::atomic<Cycle>* reached = nullptr;          // follows the cycle; may be null
  std::atomic<std::uint64_t>* pages = nullptr;    // follows the pages that were pushed; may be null
  std::function<void(const Forecast&)> forecast;  // told once, from another thread, of a run of over a second
};

// Why every launch of relaunched sections is simulated, whatever they do; nothing where they need not be.
std::optional<std::string> why_no_reuse(const RunOptions& options);

struct RunResult {
  Report report;
  Diagnostics diagnostics;  // violations, the diagnosis of a run that is stuck, limits
  ExitStatus status = ExitStatus::done;
  std::string dot;                    // of a run that is stuck: who waits for whom
  std::vector<std::uint64_t> struck;  // by RunOptions::faults: how often it changed what would have happened
  TensorImages images;                // as the run left them; empty in a timing-only run
  // A run of several processes that was stopped leaves what was stored where it was: `images` do not have it.
  bool images_whole = true;
};

// What needs more than `max_memory` is not begun: RDU6004 in the result's diagnostics, verdict and status `limit`.
//
// A process of the run that is lost ends it: RDU9003.
//
// Errors (nothing ran): RDU6002, RDU6003, RDU6004 (more than the computer has left), RDU6006 (the target has no flit level), RDU6007, RDU6009, RDU6031, RDU1001, RDU1017-RDU1020, RDU1025, RDU4105.
Result<RunResult> run_program(const LoadedProgram& loaded, const RunOptions& options);

// How the machine ended, and why where somebody stopped it.
struct RunEnd {
  MachineOutcome outcome;
  Limit limit = Limit::none;
};

// The same judgement from an event log instead of the machine: every checker, the diagnosis and the report. A log
// carries no values, so outputs are not compared. Of `options` only `stop` and `reached` matter, the rest is in the
// log; `log` has read nothing yet. Errors: RDU8012, RDU8013, RDU8015 not every event is there, or not how the run
// ended; RDU5001-RDU5005, RDU2002-RDU2008, RDU3xxx of the program that it carries.
Result<RunResult> replay_run(class EventLogReader& log, const RunOptions& options);

}  // namespace rdusim
