// Runs in processes of their own, several at a time: SystemC allows one simulation a process, and what a fault has
// broken may take its process with it.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sim/run.h"

namespace rdusim {

struct IsolatedRun {
  // Else the process was ended: by a signal (a crash, or the limits below), without a word.
  bool ended = false;
  int signal = 0;
  ExitStatus status = ExitStatus::done;
  Verdict verdict = Verdict::pass;
  Cycle cycles = 0;
  std::vector<Code> errors;           // in the order in which they were found
  std::string message;                // of the first of them
  std::string outputs;                // SHA-256 of the hashes of all outputs; of nothing in a timing-only run
  std::string counts;                 // SHA-256 of what every buffer reserved, pushed and popped, and every stage fired
  std::vector<std::uint64_t> struck;  // RunResult::struck
};

struct IsolationLimits {
  unsigned jobs = 1;            // runs at a time
  double seconds = 3600;        // of a run; beyond, it is ended
  std::optional<Bytes> memory;  // of a run's address space
};

// In the order of `options`, whichever ends first. `stop` ends them all; what had not ended by then says so. Requires
// that this process has one thread.
std::vector<IsolatedRun> run_isolated(const LoadedProgram& loaded, const std::vector<RunOptions>& options,
                                      const IsolationLimits& limits, const std::atomic<bool>& stop);

}  // namespace rdusim
