// What the certificate proves of a program beside what a run of it came to, and the slack between: how near each limit
// was.
#pragma once

#include <string>

#include "compiler/ir/certificate.h"
#include "compiler/support/json.h"
#include "sim/handshake_checker.h"
#include "sim/semaphore_checker.h"
#include "sim/token_checker.h"

namespace rdusim {

// What makes the certificate hold of every schedule, or of this input only, in a sentence.
std::string scope_line(const SpatialProgram& program, const Certificate& certificate);

// The circles of firings whose cycles bound those of their sections: a row each (report.md).
Json circle_rows(const SpatialProgram& program, const Certificate& certificate);

// The report's `proved` (report.md). After the last event.
Json proved_and_observed(const Instances& instances, const Certificate& certificate, const HandshakeChecker& handshakes,
                         const TokenChecker& tokens, const SemaphoreChecker& semaphores, Cycle cycles);

}  // namespace rdusim
