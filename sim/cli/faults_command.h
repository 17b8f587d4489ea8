// `rdusim faults PROGRAM`: is every fault of the machine caught?
#pragma once

#include <atomic>

#include "sim/cli/words.h"
#include "sim/exit_status.h"

namespace rdusim::cli {

struct FaultsRequest {
  std::string program, target;
  std::optional<std::uint32_t> chips, seeds, jobs;
  std::vector<std::string> kinds;  // none: all
  std::string max_memory;          // of a run
  std::string check = "exact";     // of a run
  bool timing_only = false, list = false, json = false;
};

CommandWords words(FaultsRequest& request);

}  // namespace rdusim::cli
