// How a cycle stands in a file whose times are whole numbers of a decimal unit.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/support/units.h"

namespace rdusim {

struct Timebase {
  std::string unit = "1 ns";                  // of a tick: 1, 10 or 100 of fs, ps, ns, us
  Fraction ticks_per_cycle = Fraction{1, 1};  // whole where a cycle is
  std::string note;                           // for people: "one cycle is 5 ticks of 100 ps, at 2 GHz"

  // The time of a cycle, rounded down to a tick; every cycle has its own.
  std::uint64_t tick(Cycle cycle) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(cycle) * ticks_per_cycle.num / ticks_per_cycle.den);
  }
};

// The coarsest unit of which a cycle of the clock is a whole number. Where there is none (at 1.2 GHz a cycle is 5/6
// ns), picoseconds, or femtoseconds of a cycle that has less than a hundred: each time is right to the last of them, and as
// none is a sum of others, no error grows.
Timebase timebase_of(const Fraction& clock_ghz);

}  // namespace rdusim
