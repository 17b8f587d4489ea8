// `rdusim view REPORT|LOG -o FILE.html`.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct ViewRequest {
  std::string input;
  std::string output;
  std::string echarts;  // empty: where the build or the installation puts it
};

CommandWords words(ViewRequest& request);

}  // namespace rdusim::cli
