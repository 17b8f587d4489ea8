// A SpatialProgram as JSON: what `show --json` writes and `assemble` reads. The page program-json.md beside this
// describes it. assemble after show gives the same prog.bin, byte for byte.
#pragma once

#include "compiler/ir/program.h"
#include "compiler/support/json.h"

namespace rdusim {

Json to_json(const SpatialProgram& program);

// Parts that may be absent: operators, placement.work, memory, schedule, trees, required, certificate (the passes whose
// part is absent are run by `assemble`); and any key whose default program.h states. Unknown keys are errors with the
// nearest known name. Errors: RDU5007.
Result<SpatialProgram> program_from_json(const Json& json, const std::string& where);

}  // namespace rdusim
