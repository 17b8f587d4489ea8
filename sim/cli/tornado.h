// What a sweep of sensitivity needs of the rest: the machine that a program carries, and the picture of its table.
#pragma once

#include <string>

#include "compiler/support/result.h"
#include "sim/sweep/sensitivity.h"
#include "sim/tornado_chart.h"

namespace rdusim::cli {

// Writes the machine of a program into the folder, and gives the file. Errors: those of the program; RDU5008.
Result<std::string> machine_of_program(const std::string& program, const std::string& folder);

// The rows that move something, at most 30.
TornadoChart tornado_of(const Sensitivity& table, const std::string& plan);

}  // namespace rdusim::cli
