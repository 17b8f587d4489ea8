// A run over several processes of this computer (--processes), or of several (mpirun), as far as the program can be divided.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "compiler/support/diagnostics.h"
#include "models/processes/crew.h"
#include "models/systemc/machine.h"
#include "sim/run.h"

namespace rdusim {

// Starts the processes, or joins those that mpirun started, none where they would not be used (a warning RDU6030 in `notes` says why). Those that are started
// run their chips and end here; only the first one comes back. The machine goes on using `crew`, empty before. Errors:
// RDU6031, RDU6032.
Diagnostics start_processes(Machine& machine, const RunOptions& options, std::optional<Crew>& crew, Diagnostics& notes);

// What all processes of a run hold, asked from another thread. Before there are several, what this one does.
class HeldByAll {
 public:
  void count(std::vector<pid_t> children) {
    children_ = std::move(children);
    several_.store(true);
  }
  // What several share counts once (Pss of /proc/PID/smaps_rollup), and is looked at five times a second.
  Bytes operator()();

 private:
  std::vector<pid_t> children_;
  std::atomic<bool> several_{false};
  std::uint32_t looks_ = 0;
  Bytes last_ = 0;
};

// What more than one process brought, in a line; empty where the run was not divided.
std::string to_text(const std::vector<ProcessWork>& processes, double listening_seconds);

}  // namespace rdusim
