// The traces that a run writes while it goes on: opened before it, closed whatever ended it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/events/events.h"
#include "models/events/provenance.h"
#include "sim/load.h"
#include "traces/event_log.h"
#include "traces/trace_writer.h"

namespace rdusim {

struct TraceOptions {
  std::vector<std::string> files;    // the extension says the format: .rdulog .pftrace .json .vcd .fst
  std::vector<std::string> filters;  // --trace-filter
  std::optional<Cycle> from, to;     // included
  std::optional<Bytes> limit;        // of each file
};

// What was written, for the report's `host`.
struct TraceRow {
  std::string file;
  std::string format;
  TraceSize size;
};

// What a file of a format consists of, and its limit counts: "events", "changes", "slices and counts".
std::string_view entries_of(std::string_view format);

// Of a file's name: "event-log", "perfetto", "chrome", "vcd", "fst"; nothing where its extension says none.
std::optional<std::string> format_of(const std::string& file);

class RunTraces {
 public:
  // `run`: JSON for a replay. Errors: RDU8016, RDU8018, RDU8019, RDU8021, RDU8022, RDU5008, RDU6006 too many units.
  static Result<RunTraces> open(const LoadedProgram& loaded, const TraceOptions& options, const std::string& run);
  // The same of a log that is converted; `program`: prog.bin; `filtered`: the filters that it was written with.
  static Result<RunTraces> open(const Roster& roster, const std::string& program, const TraceOptions& options,
                                const std::string& run, const std::string& filtered);

  // Who listens; empty where nothing was asked for. They stay valid when this is moved.
  std::vector<EventSink*> sinks() const;
  void use(const ProvenanceTable& table);
  // Errors: RDU5008.
  Result<std::vector<TraceRow>> finish(const TraceEnd& end);

 private:
  struct Open {
    TraceRow row;
    std::unique_ptr<TraceWriter> writer;
  };
  Diagnostics add(const std::string& file, const TraceScope& scope, const LogHead& head, const std::string& program);

  std::unique_ptr<Roster> roster_;
  std::vector<Open> open_;
};

// What a log has, in the one form that `options` names. Before anything was read of it. Errors: those of
// RunTraces::open(), of the log's program() and read(), RDU5008.
struct Converted {
  TraceSize size;
  Diagnostics notes;  // of the log
};
Result<Converted> convert_log(EventLogReader& log, const TraceOptions& options);

}  // namespace rdusim
