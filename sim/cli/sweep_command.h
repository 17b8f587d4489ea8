// `rdusim sweep PLAN`: many compile-and-run points from one description, to one table.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct SweepRequest {
  std::string plan;
  std::string folder;                 // empty: beside the plan, its name with ".sweep"
  std::optional<std::uint32_t> jobs;  // absent: as many as the computer has processors
  std::string where, pareto;
  std::string task;  // "3/1000", of a job array
  bool json = false, slurm = false, merge = false;
};

CommandWords words(SweepRequest& request);

}  // namespace rdusim::cli
