// How a cycle stands in a file whose times are whole numbers of a decimal unit.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/support/units.h"

namespace rdusim {

struct Timebase {
  std::string unit = "1 ns";  // of a tick: 1, 10 or 100 of fs, ps, ns, us
  std::uint64_t ticks_per_cycle = 1;
  bool exact = true;  // a tick is `unit`; else a tick is a cycle, and the unit only a name
  std::string note;   // for people: "1 cycle = 5/6 ns at 1.2 GHz ..."
};

// The coarsest unit of which a cycle of the clock is a whole number. Where there is none (at 1.2 GHz a cycle is 5/6
// ns), a tick is a cycle, and the note says so: exact counts of cycles instead of rounded times.
Timebase timebase_of(const Fraction& clock_ghz);

}  // namespace rdusim
