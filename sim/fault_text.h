// --inject KIND@PLACE[#INSTANCE][:NTH]: what a test breaks in the machine, as text.
//
//   page_drop@x_c0#3:7     page 7 of instance 3 of buffer 'x_c0' is lost
//   credit_drop@edge 12    the first credit of edge 12
//   partial_double@fold    the first firing of stage 'fold' adds its operand twice
//   link_down@link3:100    link 3 carries nothing from its 101st transfer on
//
// KIND is a FaultKind (models/units/fault.h), with '-' or '_'. PLACE is the name of a buffer or stage, or "edgeN" or
// "linkN" ("edge N"), as the kind asks for. INSTANCE and NTH count from 0.
#pragma once

#include <string>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"
#include "models/units/fault.h"

namespace rdusim {

// Errors: RDU6007, with what would be accepted.
Result<Fault> parse_fault(const std::string& text, const SpatialProgram& program);

// What parse_fault reads as `f`.
std::string to_text(const Fault& f, const SpatialProgram& program);

std::string_view name_of(FaultPlace p);      // "buffer or edgeN"
std::string checks_of(const FaultLaw& law);  // "RDU7029 RDU7020"; "costs time alone"

// Whether a fault of that place may strike a stage, or a hand-off.
bool may_strike(FaultPlace place, const Stage& s);
bool may_strike(FaultPlace place, const Edge& e);

}  // namespace rdusim
