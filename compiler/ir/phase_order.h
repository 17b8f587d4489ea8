// The order in which a stage does what it does, as a cure of a circular wait: a stage whose ports take turns by phase may
// wait for a page that comes only of what it would do next. No depth helps there, or a great one; another order does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// Two runs of phases of a stage's cycle that change places. What lies between stays between.
struct PhaseExchange {
  StageId stage;
  std::uint64_t first = 0, first_phases = 0;
  std::uint64_t second = 0, second_phases = 0;  // second >= first + first_phases
  friend bool operator==(const PhaseExchange&, const PhaseExchange&) = default;
};

// The program with its stage's rates, chunks and bodies so exchanged. Requires an exchange within the stage's cycle.
SpatialProgram with_exchange(SpatialProgram program, const PhaseExchange& exchange);

// The first exchange, of the stages in the order given and then by phase, with which the program runs to its end with
// the depths that it has, and which changes nothing of what any buffer brings: phases that change their order have no
// port in common, and a body that reads what the firing before it left is not looked at. Of a Store the chunks of one
// page change places. Nothing where there is none, or where it would take too long to find out.
//
// Requires what run_untimed() requires.
std::optional<PhaseExchange> find_exchange(const SpatialProgram& program, const std::vector<StageId>& stages);

// "let 'left' push into 'to_right' (phase 1) before it takes from 'from_right' (phase 0)"
std::string exchange_text(const SpatialProgram& program, const PhaseExchange& exchange);

}  // namespace rdusim
