// Where a metric moved: the commits between whose runs it took another value.
//
// exact  Every run whose value is not that of the run before it, in order of time.
// timed  Of the runs of each host, the one cut into before and after (three runs at least on each side) whose medians
// lie
//        farthest apart, where that is more than three deviations (1.4826 MAD around the two medians) and 5 %.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/history/store.h"

namespace rdusim {

struct Move {
  RecordedRun before, after;  // neighbours among the runs that have the metric
  Quantity old, now;          // of timed metrics the medians
  // The commit that moved it, where the runs are of a commit and its parent; else it lies between the two commits.
  std::optional<std::string> culprit;
  std::string accepted;  // the reason, where the new value was accepted
};

struct Blame {
  Series series;
  std::string metric;
  Exactness exactness = Exactness::exact;
  std::vector<Move> moves;  // oldest first
};

// Of every series that has the metric, or of those called `program`. Errors: RDU8031 no such metric, RDU8039 no such
// series, those of the store.
Result<std::vector<Blame>> blame(History& history, const std::string& metric, const std::string& program);

std::string blame_text(const std::vector<Blame>& list);
Json blame_json(const std::vector<Blame>& list);  // history.md

}  // namespace rdusim
