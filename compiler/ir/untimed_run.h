// Runs the stages of a program without time and without values: who waits for whom for ever, and which partial sums
// each store receives.
//
// token_run.h says how stages fire, and what is left out; here every page also says what it holds.
//
// work     A step is a firing, a page pushed, or a stage taken up. The instances of a cluster (clusters.h) whose hand-offs
//          are one to one run apart, so that a program of thousands of sites is many small runs. Within `steps` all of
//          them run a whole trip. Where that is more, only the first and the last instance run, and of a trip only the
//          part that repeats. A run that still takes more than `steps` and `steps_a_stage` for each of its stages, or
//          than is left of four times `steps` and `steps_a_stage` for each stage of the program, is not started:
//          `undecided`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/diagnostics.h"

namespace rdusim {

inline constexpr std::uint64_t most_untimed_steps = 2'000'000;

struct UntimedLimits {
  std::uint64_t steps = most_untimed_steps;
  // More than a stage of a ring over 1,024 chips takes. A stage is some hundred bytes of a file: that many steps for each do
  // not make a small file take long.
  std::uint64_t steps_a_stage = 4096;
};

// `stage` waits for `on`: for a page of `buffer`, or for room in it.
struct UntimedWait {
  StageId stage;
  std::uint32_t instance = 0;
  bool for_room = false;
  BufferId buffer;
  StageId on;
  std::uint64_t firing = 0;   // the one that cannot start
  std::uint64_t firings = 0;  // of how many
  friend bool operator==(const UntimedWait&, const UntimedWait&) = default;
};

// Something wrong with a sum: RDU3024 incomplete, doubled or mixed, RDU3025 not linear, RDU3032 not the tree's order,
// RDU3046 partial in a buffer that is not Interm.
struct SumFault {
  Code code{};
  StageId stage;  // the store or the stage that adds
  std::string message;
  std::vector<Note> notes;
};

struct UntimedRun {
  std::vector<UntimedWait> cycle;  // circular wait, each on the next, the last on the first; empty where none
  std::vector<UntimedWait>
      starved;              // else: a chain of waits that ends with a stage that has finished; empty where none
  std::uint64_t stuck = 0;  // stage instances that did not finish
  std::optional<StageId> undecided;              // a stage of a run that was not started
  std::uint64_t undecided_steps = 0, limit = 0;  // what it would take, and the limit that this is beyond
  std::vector<SumFault> sums;  // the first fault of each kind of each stage, by stage; only where nothing is stuck
};

// Requires a program whose structure is sound: the verifier's rules on references, sizes, rates, ports, maps and ends.
UntimedRun run_untimed(const SpatialProgram& program, std::uint32_t native_tile, const UntimedLimits& limits = {});

}  // namespace rdusim
