// Standard output and standard error, as a well-behaved command uses them.
#pragma once

#include <atomic>
#include <string_view>
#include <thread>

#include "compiler/support/diagnostics.h"
#include "compiler/support/units.h"

namespace rdusim::cli {

// A descriptor is a terminal and NO_COLOR (https://no-color.org) is not set to something.
bool colour_on(int descriptor);

// All of `text` to standard output. False where it could not be written; a reader that has gone away (a closed pipe) is
// no failure.
bool write_out(std::string_view text);
// To standard error; failures are nobody's concern.
void write_err(std::string_view text);

// Diagnostics on standard error, coloured where that is wanted.
void report(const Diagnostics& diagnostics);

// A line on standard error that says how far a run is, if standard error is a terminal, from the first second on.
class Progress {
 public:
  // `expected`: pages that the run pushes, and how many it has pushed.
  Progress(const std::atomic<Cycle>& reached, const std::atomic<std::uint64_t>& pages, std::uint64_t expected);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace rdusim::cli
