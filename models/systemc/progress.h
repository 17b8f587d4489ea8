// How a run is going, as all chips of a process see it.
#pragma once

#include <cstdint>

#include "compiler/support/units.h"

namespace rdusim {

struct RunProgress {
  std::uint64_t activations = 0;
  Cycle last = 0;    // latest cycle in which something happened
  Cycle window = 0;  // 1: every chip is woken at each of its event times; else chips run ahead to the window's end
  Cycle window_start = 0;
  Cycle window_end = 0;  // first cycle after the window that chips are running in
  bool stopped = false;
  bool beyond = false;
};

}  // namespace rdusim
