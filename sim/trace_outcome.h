// What an event log says besides its events, so that a replay can judge them: what was asked of the run, and how the
// machine ended. As JSON, within the log.
#pragma once

#include <optional>
#include <string>

#include "models/systemc/machine.h"
#include "sim/load.h"
#include "sim/run.h"
#include "traces/event_log.h"

namespace rdusim {

// Of RunOptions, what the judgement of a run depends on.
std::string run_to_text(const RunOptions& options, const std::string& program_sha256);
struct TracedRun {
  RunOptions options;
  std::string program_sha256;  // of the file that was run
};
std::optional<TracedRun> run_from_text(std::string_view text);

// The program that a log carries, and what was asked of its run. Errors: RDU8015 where it is not the program whose units
// the log lists; those of carried_program().
struct TracedProgram {
  LoadedProgram loaded;
  TracedRun run;
};
Result<TracedProgram> traced_program(EventLogReader& log);

// RDU8015: of a log that left events out, for answers that only all of them give.
Diagnostics refuse_partial(const EventLogReader& log, const LogEnd& end);

std::string outcome_to_text(const RunEnd& end);
// Every id is one of `program`'s. Nothing for anything else.
std::optional<RunEnd> outcome_from_text(std::string_view text, const SpatialProgram& program);

std::string_view name_of(MachineOutcome::End end);  // "finished", "quiescent", "stopped", "max-cycles"

}  // namespace rdusim
