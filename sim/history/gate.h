// The gate: whether the runs of a commit may stand.
//
// exact  A metric that is not what was accepted last is a finding, better or worse: a change in simulated cycles is to
// be
//        explained, by `rdusim history accept --reason`. What was accepted is the whole of the run accepted last, and
//        then single metrics accepted after it.
// timed  timed_law.h, against runs of the same host.
// both   A run whose verdict is not "pass", one without metrics, a metric that was accepted and is gone, one that is no
//        number, a series that was accepted and has no run of this commit (unless it was retired), a series of which
//        nothing was ever accepted.
#pragma once

#include <string>
#include <vector>

#include "sim/history/store.h"

namespace rdusim {

// As an Acceptance's `metric`: the series is not run any more.
inline constexpr const char* retired = "*retired";

struct GateFinding {
  enum class Kind : std::uint8_t {
    changed,
    unstable,  // two runs of the commit disagree on an exact metric
    vanished,
    not_a_number,
    empty,
    verdict,
    missing,
    never_accepted,
    slower,
    drifted,
  };
  Kind kind = Kind::changed;
  std::string metric;  // empty where it is the run's
  std::string text;    // a sentence with the numbers
};
std::string_view name_of(GateFinding::Kind k);  // "changed", "not-a-number", ...

// One series' part of the answer.
struct GateRow {
  Series series;
  std::vector<RecordedRun> judged;   // of the commit, oldest first; empty where it is missing
  std::vector<std::string> metrics;  // that were judged
  std::vector<GateFinding> findings;
  std::size_t unjudged = 0;  // timed metrics of which there are too few runs yet
};

struct GateResult {
  std::string commit;
  std::vector<GateRow> rows;  // in the order of History::series
  bool passed() const;
};

// `commit`: empty: that of the newest run. Errors: RDU8041 no run, RDU8039 no run of that commit, those of the store.
Result<GateResult> judge(History& history, const std::string& commit);

// The marks that the answer gives the judged runs, for History::mark.
std::vector<std::pair<std::int64_t, GateMark>> marks_of(const GateResult& result);

std::string gate_text(const GateResult& result, bool colour);
Json gate_json(const GateResult& result);          // history.md
std::string gate_junit(const GateResult& result);  // JUnit XML: a suite a series, a case a metric

}  // namespace rdusim
