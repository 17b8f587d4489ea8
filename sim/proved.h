// What the certificate proves of a program beside what a run of it came to, and the slack between: how near each limit
// was.
#pragma once

#include "compiler/ir/certificate.h"
#include "compiler/support/json.h"
#include "sim/handshake_checker.h"
#include "sim/semaphore_checker.h"
#include "sim/token_checker.h"

namespace rdusim {

// The report's `proved` (report.md). After the last event.
Json proved_and_observed(const Instances& instances, const Certificate& certificate, const HandshakeChecker& handshakes,
                         const TokenChecker& tokens, const SemaphoreChecker& semaphores, Cycle cycles);

}  // namespace rdusim
