// `rdusim dashboard --db FILE -o FILE.html`.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct DashboardRequest {
  std::string db;
  std::string output;
  std::vector<std::string> sweeps;  // folders of sweeps
  std::string accuracy;             // what scripts/accuracy wrote; empty: none
  std::string echarts;              // empty: where the build or the installation puts it
};

CommandWords words(DashboardRequest& request);

}  // namespace rdusim::cli
