// What the process says to the shell (the table is a contract with scripts).
#pragma once

#include "compiler/support/diagnostics.h"

namespace rdusim {

enum class ExitStatus : int {
  done = 0,
  program_fault = 1,  // the program decodes but breaks a rule or an obligation, a check fired, it is stuck
  request_fault = 2,  // usage, an unreadable or unsupported file, a workload that cannot be compiled as asked
  limit = 3,          // stopped at a limit the user set
  internal = 70,      // a fault of rdusim itself
  interrupted = 130,
};

// Of what stopped a command that was given a program: errors of rdusim itself first, then of the request, then of the
// program.
ExitStatus status_of(const Diagnostics& diagnostics);

}  // namespace rdusim
