// What a run found, as data: the report (JSON, the page report.md beside this says what each key means) and the summary
// are made of it.
//
// All but `host` is the same for the same inputs, whatever the machine that ran it or the flags that only observe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/json.h"
#include "models/events/events.h"
#include "models/systemc/machine.h"
#include "sim/compare_outputs.h"
#include "sim/forecast.h"
#include "sim/residual.h"

namespace rdusim {

enum class Verdict : std::uint8_t {
  pass,
  check_failed,
  circular_wait,
  starvation,
  lost_token,
  missing_participant,
  limit
};
std::string_view name_of(Verdict v);  // "pass", "check-failed", ...

struct CheckRow {
  enum class Status : std::uint8_t { pass, fail, unchecked };
  Code code{};
  std::string scope;  // "every event", "end of run", ...
  Status status = Status::unchecked;
  std::string observed;
  std::string expected;
};

struct CollectiveRow {
  std::string name, kind, algorithm;
  std::uint32_t chips = 0;
  std::uint64_t trips = 1;       // of its section
  Bytes bytes = 0;               // of one member's contribution, a trip
  Bytes sent = 0;                // by all members, over the edges of the collective
  std::optional<Cycles> cycles;  // first page sent to last store, of all trips
  std::optional<Cycles> predicted;
  std::optional<double> algorithm_gb_per_s, bus_gb_per_s;
  std::optional<std::uint64_t> contributions;  // members whose contribution every stored page holds
  bool complete = false;
};

// A stage, by its slowest instance.
struct StageRow {
  std::string name, site;
  std::uint64_t instances = 0;
  std::uint64_t firings = 0;
  Cycles cycles = 0, predicted = 0;
  Cycles busy = 0, idle = 0;
  std::array<Cycles, stall_causes> stall{};
  std::optional<std::uint64_t> macs;  // as these two are meant in roofline.h
  Bytes moved = 0;
};

// The most that one chip can do for the program (roofline.h); 0: it has none of it.
struct RooflinePeaks {
  double macs_per_cycle = 0;
  double hbm_bytes_per_cycle = 0, link_bytes_per_cycle = 0, pmu_bytes_per_cycle = 0;
};

// A buffer, over its instances.
struct BufferRow {
  std::string name, site;
  std::uint64_t instances = 0;
  std::uint64_t depth = 0, peak = 0;  // of the fullest instance
  std::uint64_t reserved = 0, pushed = 0, popped = 0;
  Bytes bytes = 0;
};

struct LinkRow {
  std::string name;
  Bytes bytes = 0;
  Cycles busy = 0;
  double utilisation = 0;
  std::uint64_t retries = 0;  // of what came broken
};

struct MemoryRow {
  std::string name;
  Bytes read = 0, written = 0, peak = 0, capacity = 0;
  std::optional<Cycle> first, last;
  Cycles busy = 0;         // a channel, in the mean
  double utilisation = 0;  // bytes moved over what the peak rate could move in the run's cycles
};

// Launches of a relaunched section: those that were simulated, and those that went as the last of these.
struct ReuseRow {
  std::string section;
  std::optional<std::uint64_t> simulated;  // nothing: all that began
  std::uint64_t reused = 0;
  std::string why_not;  // where none was reused
};

struct Report {
  std::string version;
  std::string program, program_sha256, target, target_sha256;
  std::uint32_t chips = 1;
  JsonObject options;
  Verdict verdict = Verdict::pass;
  bool values = true;  // else timing-only
  Cycle cycles = 0;
  Cycles predicted = 0, lower_bound = 0;
  std::optional<Residual> residual;  // of a run that finished
  double clock_ghz = 0, microseconds = 0;
  std::optional<double> tokens_per_s;
  std::uint64_t useful_macs = 0, padding_macs = 0;
  RooflinePeaks peaks;
  std::vector<CheckRow> checks;
  std::vector<CollectiveRow> collectives;
  std::vector<StageRow> stages;
  std::vector<BufferRow> buffers;
  std::vector<LinkRow> links;
  std::vector<MemoryRow> memories;
  std::vector<OutputCheck> outputs;
  Json decisions;  // what the compiler chose: decisions.h
  Json flight;     // of a run that did not end well: the last events (flight_recorder.h); null: it did
  Json proved;     // what the certificate proves, and what the run came to: proved.h; null: no certificate
  // For the summary.
  double pcu_utilisation = 0;   // useful multiply-accumulates over what the PCUs in use could do in the run's cycles
  std::uint64_t pcus = 0;       // in use, over all chips
  double tile_utilisation = 1;  // rows of the matmul that do most work, over whole tiles
  std::uint64_t tile_rows = 0, rows = 0;
  std::string bound_by;  // "memory-bound", "compute-bound", "link-bound"; empty where nothing ran
  // host
  double wall_seconds = 0;
  double machine_seconds = 0;  // of it, in the machine with its listeners
  std::uint64_t events = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::vector<ReuseRow> reuse;         // of relaunched sections
  std::vector<ProcessWork> processes;  // of a run that was divided
  double listening_seconds = 0;        // of the first of them
  std::optional<Forecast> forecast;    // of a run of over a second
  Json traces;                         // what was written, a row each; null: nothing was asked for
};

Json to_json(const Report& report);

// What a person reads after a run; several lines, no colour unless asked.
std::string summary(const Report& report, bool colour);

// The difference between simulated and predicted, cause by cause, and where the slowest stages spent their time.
std::string explanation(const Report& report);

}  // namespace rdusim
