// `rdusim trace`: questions to a trace (an event log), and its other forms.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct TraceRequest {
  std::string command;  // summary, timeline, ...
  std::string log, other, name, output, cycle, from, to, limit, top;
  std::vector<std::string> filters;
  bool json = false;
};

CommandWords words(TraceRequest& request);

}  // namespace rdusim::cli
