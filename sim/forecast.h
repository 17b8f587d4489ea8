// How long a run will take and how much memory, before it is over.
//
// The pages that a program pushes are known before it runs; how fast they go is measured while it does. Pages are not
// alike, and those of a program's beginning (loads, while nothing else goes on) less than others: of the decoders of
// examples/ a forecast after a second is within a third of what comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/ir/program.h"

namespace rdusim {

// Pages that all buffers of a program are given in a run that finishes.
// `reuse`: where launches that are alike are not simulated, of a relaunched section two.
std::uint64_t expected_pages(const SpatialProgram& program, bool reuse);

struct Forecast {
  double after_seconds = 0;    // when it was made
  std::uint64_t pages = 0;     // until then
  std::uint64_t expected = 0;  // in all
  Bytes memory = 0;            // from the sizes of what the program has (estimate_memory), and what was held before
  double pages_per_second() const { return after_seconds > 0 ? static_cast<double>(pages) / after_seconds : 0; }
  // Of the whole run; nothing before its first page.
  std::optional<double> seconds() const {
    if (pages == 0) return std::nullopt;
    return after_seconds * static_cast<double>(expected < pages ? pages : expected) / static_cast<double>(pages);
  }
};

// "forecast    about 95 s and 1.20 GB (...), after 1.0 s: 4,240,000 pages at 45,000 a second"
std::string to_text(const Forecast& forecast);

}  // namespace rdusim
