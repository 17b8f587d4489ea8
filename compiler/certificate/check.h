// Proves a program's certificate again. Shares no code with the passes, the verifier or the ir's graph view: it reads
// the program's types and works everything out for itself.
#pragma once

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

// What the checker finds, whatever the program's own certificate says: every obligation proved, refuted with a witness,
// or unchecked with a reason. Requires a program whose references resolve (verify's first rules).
Certificate prove_again(const SpatialProgram& program, const Target& target);

// Compares the program's certificate with what prove_again() found. Errors: RDU5010 none, RDU5011 an obligation is
// refuted (witness in the message), RDU5012 a claim differs, or the certificate calls proved what the checker cannot
// prove.
Diagnostics compare_certificate(const SpatialProgram& program, const Certificate& found);

// Both: proves again, and compares.
Diagnostics check_certificate(const SpatialProgram& program, const Target& target);

}  // namespace rdusim
