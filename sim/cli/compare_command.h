// `rdusim compare OLD NEW`: did it get worse, and where.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct CompareRequest {
  std::string old, now;              // two reports, or two folders of reports
  std::vector<std::string> fail_on;  // thresholds; none: cycles>0%
  bool all = false;                  // every change of every chip
  bool markdown = false, json = false;
};

CommandWords words(CompareRequest& request);

}  // namespace rdusim::cli
