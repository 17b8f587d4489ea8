// `rdusim history ...`: reports of many runs, kept, accepted, judged, blamed, exported.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct HistoryRequest {
  std::string action;  // "add", "list", "accept", "gate", "blame", "export"
  std::string db;
  std::vector<std::string> reports;
  std::string name, commit, parent, branch, time, host;  // of a run; empty: as git and the computer say
  std::string program, metric, reason, author;
  std::optional<std::uint32_t> run, limit;
  bool retire = false, dry_run = false, json = false;
  std::string junit;           // a file for the gate's answer
  std::string form = "jsonl";  // of export
  std::string output = "-";
};

CommandWords words(HistoryRequest& request);

}  // namespace rdusim::cli
