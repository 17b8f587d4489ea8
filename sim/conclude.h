// The judgement of a run that is over, from what its listeners learnt: verdict, diagnosis, report.
#pragma once

#include <vector>

#include "sim/listeners.h"
#include "sim/operands.h"

namespace rdusim {

// Everything that is known of a run that ended as `end` says. `sources`: its operands; null where there are no values
// to compare. `result`: its images and the seconds that it took. Errors: those of fill_whole() and compare_outputs().
Result<RunResult> conclude(const LoadedProgram& loaded, const RunOptions& options, Listeners& listeners,
                           const RunEnd& end, const std::vector<OperandSource>* sources, RunResult result);

// What is known of a run that was never begun: the program, and what it was to be.
RunResult never_ran(const LoadedProgram& loaded, const RunOptions& options);

// The most memory that this process has had, in bytes; 0 where the system does not say.
std::uint64_t peak_rss_bytes();

}  // namespace rdusim
