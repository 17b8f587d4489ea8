// The rows of a report, made of what the listeners of a run learnt.
#pragma once

#include <optional>
#include <string>

#include "compiler/cost/cost.h"
#include "sim/listeners.h"

namespace rdusim {

// Who counts what stages, buffers, links and memories did.
struct UnitCounts {
  const Instances& instances;
  const Statistics& statistics;
  const HandshakeChecker& handshakes;
};

// Fills report.stages, buffers, links and memories, of a report whose cycles are known.
void add_unit_rows(const LoadedProgram& loaded, const UnitCounts& units, const Costs& costs, Report& report);

// Those, and report.checks, collectives, roofline and the multiply-accumulates, of a report whose cycles and clock are known. `finished`: the program came to its end. `comparison`: absent where outputs were not
// compared.
void add_rows(const LoadedProgram& loaded, const Listeners& listeners, const Costs& costs, bool finished,
              const std::optional<Comparison>& comparison, Report& report);

// "memory-bound", "compute-bound", "link-bound", "network-bound": what the cost model's sections spend most on; empty
// where they spend nothing.
std::string bound_by(const Costs& costs);

}  // namespace rdusim
