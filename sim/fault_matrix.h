// The fault matrix of a program: faults of every kind at places, pages and firings drawn from seeds, each in a run of
// its own, and what became of each.
//
// A fault that struck is *caught* by a check that is meant for its kind (FaultLaw::checks), caught *elsewhere* by
// another one, *harmless* where the run passes with the outputs and counts of the run without it, or *missed*. A fault
// that found nothing to strike is *idle*; it says nothing.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "models/units/fault.h"
#include "sim/isolated_run.h"

namespace rdusim {

struct PlannedFault {
  Fault fault;
  std::string text;  // for --inject
  std::uint64_t seed = 0;
};

// For each kind and each of the seeds 1 .. `seeds` one fault, where the program has a place for it; in order of kind
// and seed. Requires a placed program that verifies.
std::vector<PlannedFault> plan_faults(const SpatialProgram& program, const std::vector<FaultKind>& kinds,
                                      std::uint64_t seeds);

enum class FaultFate : std::uint8_t { caught, elsewhere, harmless, missed, idle };
inline constexpr std::size_t fault_fates = 5;
std::string_view name_of(FaultFate f);

// `whole`: the run without the fault.
FaultFate judge(FaultKind kind, const IsolatedRun& whole, const IsolatedRun& broken);

struct FaultResult {
  PlannedFault planned;
  IsolatedRun run;
  FaultFate fate{};
};

std::string matrix_text(const std::vector<FaultKind>& kinds, const std::vector<FaultResult>& results);
Json matrix_json(const std::vector<FaultKind>& kinds, const std::vector<FaultResult>& results);

}  // namespace rdusim
