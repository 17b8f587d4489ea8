// `rdusim sweep PLAN`: many compile-and-run points from one description, to one table; or, with --sensitivity, what
// hangs on each number that the machine's description assumes.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct SweepRequest {
  std::string plan;                   // with `sensitivity`, what does not end in .toml is a program
  std::string folder;                 // empty: beside the plan, its name with ".sweep"
  std::optional<std::uint32_t> jobs;  // absent: as many as the computer has processors
  std::string where, pareto;
  std::string task;                    // "3/1000", of a job array
  std::string metric, svg;             // of `sensitivity`; empty: the time, none
  std::vector<std::string> numbers;    // only those whose keys begin so
  std::optional<std::uint32_t> chips;  // of a program that is portable
  bool json = false, slurm = false, merge = false, sensitivity = false;
};

CommandWords words(SweepRequest& request);

}  // namespace rdusim::cli
