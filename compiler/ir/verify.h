// Holds a program to its rules, whoever made it. A rule is one predicate, one code, one sentence; it reports both ends
// with their numbers and goes on to the next.
#pragma once

#include <optional>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

// The rules that apply follow from the parts that are there: before `schedule` is set, abstract Fifo hand-offs, depth
// 0, CollectiveStage and missing addresses are allowed; afterwards they are faults. Checks ids and references first and
// stops there if one is wrong, so that no later rule reads out of bounds. Errors: RDU3001-RDU3043, RDU2009.
//
// Takes time linear in the program, but for what follows from running it (RDU3024, RDU3025, RDU3032, RDU3039), whose
// work untimed_run.h bounds: a program that would take more to decide is refused with RDU3039. Cycles of rates are
// stepped through up to a million phases (RDU3030), outputs looked at up to 2^24 tiles (RDU3015).
Diagnostics verify(const SpatialProgram& program, const Target& target);

// The obligation of the certificate that breaking a rule refutes: a program that breaks such a rule is wrong, not
// meaningless, and can be run to see what comes of it. Nothing for the other rules.
std::optional<ObligationKind> obligation_of(Code code);

}  // namespace rdusim
