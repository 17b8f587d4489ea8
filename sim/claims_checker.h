// Holds what a run observed against what its certificate proved: no buffer fuller, no counter higher, no count other,
// no run faster.
//
// RDU7022 beaten-bound, RDU7023 peak-exceeds-proof, RDU7007 counting-balance (a count that the certificate does not
// claim).
#pragma once

#include "compiler/ir/certificate.h"
#include "sim/handshake_checker.h"
#include "sim/semaphore_checker.h"
#include "sim/token_checker.h"
#include "sim/violations.h"

namespace rdusim {

// After the last event. `finished`: the run came to its end, so that counts and the bound can be held against it too.
void check_claims(const Instances& instances, const Certificate& certificate, const HandshakeChecker& handshakes,
                  const TokenChecker& tokens, const SemaphoreChecker& semaphores, bool finished, Cycle cycles,
                  Violations& violations);

}  // namespace rdusim
