// The chain of events that set a run's total: from its last event back, at every point to the one that had to happen
// first, to cycle 0. Its pieces follow each other without a gap, so their cycles add up to the total.
//
// Worked out while the log is read. Every event that others may wait for becomes a node with its predecessor, the last
// of its conditions to be met:
//
//   a firing starts       its engine is free, pages are there, room is there (which of them: the event says what it
//   waited
//                         for); a receive: the page was sent; else the section starts
//   a page is pushed      its firing started            a page is popped   the firing that reads it started; or it was
//   sent a page is sent        it was pushed, its credit (ready) came, the page before has left a credit comes back its
//   page was popped a section starts      the one before has ended
//
// What nobody can reach any more is forgotten. Where the event that a stage waited for is not in the log (a memory's
// answer, a barrier's other members), the time since the last known condition is put down to what it waited for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/inspect.h"
#include "traces/path_tally.h"

namespace rdusim {

struct CriticalStep {
  Cycle from = 0, to = 0;
  PathPiece piece{};
  std::string unit;
};

struct CriticalPath {
  Cycle cycles = 0;  // the run's total
  // The first begins at 0, each where the one before ends; neighbours that are about the same are one.
  std::uint64_t pieces = 0;
  std::array<Cycles, path_pieces> by_piece{};
  std::vector<std::pair<std::string, Cycles>> by_unit;  // falling
  std::vector<CriticalStep> longest;                    // of them, in time
  std::string last;                                     // the event that it ends at
  // Of what is on it and off it (slack.h): least and most over the instances of a stage, and the channels of a crossing
  // edge. Rising by the least, then in the order of the program; what nothing waits for is left out.
  struct Slack {
    std::string unit;  // "down.matmul_c3", "edge 7 from 'x'"
    Cycles least = 0, most = 0;
    std::uint64_t instances = 0;
  };
  std::vector<Slack> slack;
  Diagnostics notes;
};

// With the `most` longest pieces. Errors: RDU8012, RDU8013, RDU8015.
Result<CriticalPath> critical_path_of(EventLogReader& log, std::size_t most);

// The sums by kind of piece and by unit, the `most` longest pieces in time, and the slack of the `most` units that are
// next in line: those that have least of it and are not on the path.
Result<Inspected> critical_path(EventLogReader& log, std::size_t most);

}  // namespace rdusim
