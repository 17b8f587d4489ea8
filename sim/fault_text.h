// --inject KIND@PLACE[#INSTANCE][:NTH]: what a test breaks in the machine, as text.
//
//   page_drop@x_c0#3:7     page 7 of instance 3 of buffer 'x_c0' is lost
//   credit_drop@edge 12    the first credit of edge 12
//   partial_double@fold    the first firing of stage 'fold' adds its operand twice
//
// KIND is a FaultKind (models/units/fault.h), with '-' or '_'. PLACE is the name of a buffer or stage, or "edge N"
// ("edgeN"), as the kind asks for. INSTANCE and NTH count from 0.
#pragma once

#include <string>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"
#include "models/units/fault.h"

namespace rdusim {

// Errors: RDU6007, with what would be accepted.
Result<Fault> parse_fault(const std::string& text, const SpatialProgram& program);

}  // namespace rdusim
