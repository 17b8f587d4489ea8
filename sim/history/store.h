// The history: runs of many commits in one SQLite file, with their metrics, what was accepted of them and why.
//
// A *series* is what is watched over time: a name (the program's, or one that the user gave), a target, a number of
// chips. A run belongs to one; its metrics have the chips folded (sim/compare/read_report.h). A file of an older schema
// is brought to this one when it is opened, in one transaction. Every change is one transaction, so that two writers at
// once leave both their runs; one waits up to ten seconds for the other. history.md beside this says how the file is
// laid out.
//
// Errors of every function: RDU8035 the file is no history or damaged, RDU8036 of a newer rdusim, RDU8037 another
// writer held it too long, RDU8038 reading or writing failed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/compare/read_report.h"

namespace rdusim {

inline constexpr int history_schema_version = 2;

struct Series {
  std::int64_t id = 0;
  std::string name, target;
  std::uint32_t chips = 0;
  friend bool operator==(const Series&, const Series&) = default;
};
std::string to_string(const Series& s);  // "down on sn40l, 16 chips"

// Where a run comes from; what is not known is empty.
struct Origin {
  std::string commit, parent, branch, host;
  std::int64_t time = 0;  // seconds since 1970, UTC
};

// Failed: the gate judged it and found something.
enum class GateMark : std::uint8_t { none, failed, passed };

struct RecordedRun {
  std::int64_t id = 0;  // rises with each run that is added
  std::int64_t series = 0;
  Origin origin;
  std::string version, program, program_sha256, target_sha256, options, verdict;
  GateMark gate = GateMark::none;
};

// An acceptance of a run's values as what is right from now on.
struct Acceptance {
  std::int64_t id = 0;
  std::int64_t run = 0;
  std::string metric;  // empty: all of the run's
  std::string reason, author;
  std::int64_t time = 0;
};

// One metric over the runs of a series.
struct Sample {
  std::int64_t run = 0;
  Quantity value;  // NaN where the file holds what is no number
};

// What a metric is, without a value.
struct MetricKind {
  std::string name, unit;
  Exactness exactness = Exactness::exact;
  Better better = Better::lower;
};

class History {
 public:
  enum class Open : std::uint8_t { read, write, create };  // create: where there is none
  // `wait_ms`: for another writer, here and in every function.
  static Result<History> open(const std::string& path, Open how, int wait_ms = 10'000);
  History(History&&) noexcept;
  History& operator=(History&&) noexcept;
  ~History();

  struct Added {
    std::int64_t run = 0;
    bool fresh = true;  // false: the same report of the same commit was there
  };
  // `name`: of the series; empty: the program's. All reports or none.
  struct Addition {
    std::string name;
    ReportFile report;
    Origin origin;
  };
  Result<std::vector<Added>> add(const std::vector<Addition>& additions);

  Result<std::vector<Series>> series();
  // Rising by time, then id; of one series, or of all.
  Result<std::vector<RecordedRun>> runs(std::optional<std::int64_t> series = std::nullopt);
  Result<std::vector<Metric>> metrics(std::int64_t run);  // rising by name
  Result<std::vector<MetricKind>> metric_kinds();         // rising by name
  Result<std::vector<Acceptance>> acceptances();          // rising by id
  // Of one series and metric, in the order of runs().
  Result<std::vector<Sample>> samples(std::int64_t series, const std::string& metric);
  Result<std::vector<std::pair<std::string, std::string>>> decisions(std::int64_t run);
  struct AnySample {
    std::int64_t run = 0;
    std::size_t metric = 0;  // of metric_kinds()
    Quantity value;
  };
  // Every sample of the history, rising by run.
  Result<std::vector<AnySample>> all_samples();

  // Requires that the runs exist. `metric` empty: all.
  Result<bool> accept(const std::vector<std::int64_t>& runs, const std::string& metric, const std::string& reason,
                      const std::string& author, std::int64_t time);
  Result<bool> mark(const std::vector<std::pair<std::int64_t, GateMark>>& marks);

 private:
  struct Database;
  explicit History(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace rdusim
