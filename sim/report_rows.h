// The rows of a report, made of what the listeners of a run learnt.
#pragma once

#include <optional>
#include <string>

#include "compiler/cost/cost.h"
#include "sim/listeners.h"

namespace rdusim {

// Fills report.checks, collectives, stages, buffers, links, memories and the multiply-accumulates, of a report whose
// cycles and clock are known. `finished`: the program came to its end. `comparison`: absent where outputs were not
// compared.
void add_rows(const LoadedProgram& loaded, const Listeners& listeners, const Costs& costs, bool finished,
              const std::optional<Comparison>& comparison, Report& report);

// "memory-bound", "compute-bound", "link-bound", "network-bound": what the cost model's sections spend most on; empty
// where they spend nothing.
std::string bound_by(const Costs& costs);

}  // namespace rdusim
