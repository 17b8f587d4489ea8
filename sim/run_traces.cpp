#include "sim/run_traces.h"

#include <fmt/format.h>

#include <filesystem>

#include "compiler/program/prog_bin.h"
#include "sim/version.h"
#include "traces/chrome.h"
#include "traces/perfetto.h"
#include "traces/vcd.h"

namespace rdusim {

Result<RunTraces> RunTraces::open(const LoadedProgram& loaded, const TraceOptions& options, const std::string& run) {
  if (options.files.empty()) return RunTraces();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  if (!roster.index()) {
    Diagnostics d;
    d.error(Code::RDU6006, "--trace", "a program with more than {} instances of stages is not traced",
            Roster::most_instances);
    return d;
  }
  return open(roster, encode(loaded.program), options, run);
}

Result<RunTraces> RunTraces::open(const Roster& roster, const std::string& program, const TraceOptions& options,
                                  const std::string& run) {
  RunTraces t;
  t.roster_ = std::make_unique<Roster>(roster);
  TraceScope scope;
  auto selection = TraceSelection::parse(options.filters, roster);
  if (!selection) return selection.diagnostics();
  scope.selection = std::move(selection).value();
  scope.from = options.from.value_or(scope.from);
  scope.to = options.to.value_or(scope.to);
  scope.limit = options.limit;
  const LogHead head{std::string(version), run, fmt::format("{}", fmt::join(options.filters, " "))};
  for (const std::string& file : options.files) {
    Diagnostics d = t.add(file, scope, head, program);
    if (d.has_errors()) return d;
  }
  return t;
}

Diagnostics RunTraces::add(const std::string& file, const TraceScope& scope, const LogHead& head,
                           const std::string& program) {
  Open o;
  o.row.file = file;
  Diagnostics d;
  const auto take = [&](const char* format, auto made) {
    o.row.format = format;
    if (made)
      o.writer = std::move(made).value();
    else
      d = made.diagnostics();
  };
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".rdulog") {
    take("event-log", EventLogWriter::create(file, *roster_, head, program, scope));
  } else if (extension == ".vcd") {
    take("vcd", VcdWriter::create(file, *roster_, scope, head.rdusim));
  } else if (extension == ".pftrace") {
    take("perfetto", PerfettoWriter::create(file, *roster_, scope, head.rdusim));
  } else if (extension == ".json") {
    take("chrome", ChromeWriter::create(file, *roster_, scope, head.rdusim));
  } else {
    d.error(Code::RDU8018, file, "'{}' is no format of a trace", extension);
  }
  if (!d.has_errors()) open_.push_back(std::move(o));
  return d;
}

std::vector<EventSink*> RunTraces::sinks() const {
  std::vector<EventSink*> list;
  for (const Open& o : open_) list.push_back(o.writer.get());
  return list;
}

void RunTraces::use(const ProvenanceTable& table) {
  for (Open& o : open_) o.writer->use(table);
}

Result<std::vector<TraceRow>> RunTraces::finish(const TraceEnd& end) {
  std::vector<TraceRow> rows;
  Diagnostics wrong;
  for (Open& o : open_) {
    auto size = o.writer->finish(end);
    if (!size) {
      wrong.append(size.diagnostics());
      continue;
    }
    o.row.size = *size;
    rows.push_back(o.row);
  }
  if (wrong.has_errors()) return wrong;
  return rows;
}

}  // namespace rdusim
