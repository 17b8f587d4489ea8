// How much a trace of a run will hold, before it runs: counted from the program, not measured.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/ir/program.h"

namespace rdusim {

// Events that a run tells, by what they cost in a trace.
struct EventEstimate {
  double firings = 0;    // started and completed
  double pages = 0;      // reserved, pushed, popped
  double transfers = 0;  // of pages to and from memory, by memory channel; and what is joined or folded
  double crossings = 0;  // pages, credits, semaphores and barriers between sites and chips
  double links = 0;      // that a page or a signal passes
  std::uint64_t events() const;
};

// If it finishes. What memory and links split differently than assumed makes it a few per cent wrong.
EventEstimate estimate_events(const SpatialProgram& program, const Target& target);

// Bytes that they take in a format ("event-log", "perfetto", "chrome", "vcd", "fst"). Measured on nine programs of 1 to
// 16 chips: within a fifth, of waveforms within a third, of FST half to twice, where a trace has more than a megabyte.
Bytes estimate_bytes(const EventEstimate& estimate, std::string_view format);

}  // namespace rdusim
