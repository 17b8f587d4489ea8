// `rdusim net TARGET`: the on-chip network alone, at its flit level, under synthetic traffic.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct NetRequest {
  std::string target;
  std::string pattern = "uniform", mesh, switching = "wormhole", measure, warm_up, seed, svg, hot_share;
  std::vector<std::string> rates, hot;
  std::optional<std::uint32_t> vcs, buffer_flits, packet_flits, routing, vc_allocation, switch_allocation, traversal,
      link, endpoint, credit;
  bool wait_for_tail_credit = false, sweep = false, json = false;
};

CommandWords words(NetRequest& request);

}  // namespace rdusim::cli
