// One run, from a loaded program to everything that is known of it: images filled, machine built, events folded by
// checkers and statistics, outputs compared, outcome judged.
//
// One run a process (SystemC allows one simulation a process).
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "models/systemc/machine.h"
#include "sim/exit_status.h"
#include "sim/load.h"
#include "sim/report.h"

namespace rdusim {

struct RunOptions {
  CheckLevel check = CheckLevel::exact;
  bool values = true;  // else timing-only
  bool collect_violations = false;
  std::vector<std::string> faults;  // --inject
  std::vector<Assignment> set;      // operands from files
  std::optional<Cycle> max_cycles;
  std::optional<double> max_seconds;
  std::optional<Bytes> max_memory;        // absent: what this computer has
  std::uint64_t shuffle_seed = 0;         // equal-time events in a random order (a test)
  JsonObject reported;                    // for the report's `options`
  std::atomic<bool>* stop = nullptr;      // raised from outside (Ctrl-C); may be null
  std::atomic<Cycle>* reached = nullptr;  // follows the cycle; may be null
};

struct RunResult {
  Report report;
  Diagnostics diagnostics;  // violations, the diagnosis of a run that is stuck, limits
  ExitStatus status = ExitStatus::done;
  std::string dot;      // of a run that is stuck: who waits for whom
  TensorImages images;  // as the run left them; empty in a timing-only run
};

// Errors (nothing ran): RDU6002, RDU6003, RDU6004, RDU6007, RDU1001, RDU1017-RDU1020, RDU1025, RDU4105.
Result<RunResult> run_program(const LoadedProgram& loaded, const RunOptions& options);

}  // namespace rdusim
