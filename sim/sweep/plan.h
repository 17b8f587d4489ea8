// A sweep plan: many compile-and-run points from one description (TOML; sweep-plan.md says every key).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/support/result.h"
#include "sim/sweep/cell.h"

namespace rdusim {

inline constexpr std::uint64_t plan_bytes_limit = std::uint64_t{4} << 20;
inline constexpr std::size_t plan_points_limit = 1'000'000;

// What is set at each point: "chips" (an option of compile), "run.max-seconds" (one of run),
// "target.links[0].gb_per_s", "workload.tensors.x.shape[0]".
struct SweepPoint {
  std::vector<Cell> values;  // by axis; absent: as the plan's base says
};

struct SweepPlan {
  std::string name;
  std::string workload;  // a path that is good from the working folder
  std::string program;   // one that is compiled already: points only run it, on the target that they set; else ""
  std::string target;    // the base; "" where an axis gives it or compile's default stands
  std::vector<std::pair<std::string, Cell>> compile, run;  // options of every point
  std::vector<std::string> axes;                           // in the order of the plan
  std::vector<SweepPoint> points;    // in their order: grid (last axis fastest), then list, then random; each once
  std::vector<std::string> metrics;  // columns of the table
  std::size_t excluded = 0;          // points that a constraint took out
};

// Errors: RDU1001, RDU1024; RDU8060 no TOML, RDU8061 an unknown key, RDU8062 a value, RDU8064 no point or too many,
// RDU8065 and RDU8066 a constraint.
Result<SweepPlan> read_plan(const std::string& path);
Result<SweepPlan> parse_plan(const std::string& text, const std::string& path);

}  // namespace rdusim
