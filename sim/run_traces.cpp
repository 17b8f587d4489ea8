#include "sim/run_traces.h"

#include <fmt/format.h>

#include <filesystem>

#include "compiler/program/prog_bin.h"
#include "sim/version.h"
#include "traces/chrome.h"
#include "traces/fst.h"
#include "traces/perfetto.h"
#include "traces/vcd.h"

namespace rdusim {

std::optional<std::string> format_of(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".rdulog") return "event-log";
  if (extension == ".pftrace") return "perfetto";
  if (extension == ".json") return "chrome";
  if (extension == ".vcd") return "vcd";
  if (extension == ".fst") return "fst";
  return std::nullopt;
}

std::string_view entries_of(std::string_view format) {
  if (format == "vcd" || format == "fst") return "changes";
  return format == "event-log" ? "events" : "slices and counts";
}

Result<RunTraces> RunTraces::open(const LoadedProgram& loaded, const TraceOptions& options, const std::string& run) {
  if (options.files.empty()) return RunTraces();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  if (!roster.index()) {
    Diagnostics d;
    d.error(Code::RDU6006, "--trace", "a program with more than {} instances of stages is not traced",
            Roster::most_instances);
    return d;
  }
  return open(roster, encode(loaded.program), options, run, {});
}

Result<RunTraces> RunTraces::open(const Roster& roster, const std::string& program, const TraceOptions& options,
                                  const std::string& run, const std::string& filtered) {
  RunTraces t;
  t.roster_ = std::make_unique<Roster>(roster);
  TraceScope scope;
  auto selection = TraceSelection::parse(options.filters, roster);
  if (!selection) return selection.diagnostics();
  scope.selection = std::move(selection).value();
  scope.from = options.from.value_or(scope.from);
  scope.to = options.to.value_or(scope.to);
  scope.limit = options.limit;
  std::vector<std::string> kept;
  if (!filtered.empty()) kept.push_back(filtered);
  kept.insert(kept.end(), options.filters.begin(), options.filters.end());
  // A converted log's window may be all of it.
  if (scope.from != 0 || scope.to != ~Cycle{0})
    kept.push_back(scope.to == ~Cycle{0} ? fmt::format("cycle>={}", scope.from)
                                         : fmt::format("cycle={}..{}", scope.from, scope.to));
  const LogHead head{std::string(version), run, fmt::format("{}", fmt::join(kept, " "))};
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
  const auto take = [&](auto made) {
    if (made)
      o.writer = std::move(made).value();
    else
      d = made.diagnostics();
  };
  const auto format = format_of(file);
  o.row.format = format.value_or("");
  if (o.row.format == "event-log") {
    take(EventLogWriter::create(file, *roster_, head, program, scope));
  } else if (o.row.format == "vcd") {
    take(VcdWriter::create(file, *roster_, scope, head.rdusim));
  } else if (o.row.format == "perfetto") {
    take(PerfettoWriter::create(file, *roster_, scope, head.rdusim));
  } else if (o.row.format == "chrome") {
    take(ChromeWriter::create(file, *roster_, scope, head.rdusim));
  } else if (o.row.format == "fst") {
    take(FstWriter::create(file, *roster_, scope, head.rdusim));
  } else {
    d.error(Code::RDU8018, file, "'{}' is no format of a trace", std::filesystem::path(file).extension().string());
  }
  if (d.has_errors()) return d;
  if (!o.writer->shows_any()) {
    const bool waves = entries_of(o.row.format) == "changes";
    d.error(Code::RDU8022, file, "its form shows nothing of what the filters keep")
        .suggest("{} show {}", waves ? "waveforms" : "timelines",
                 waves ? "firings, pages, credits, semaphores, barriers, links and memories"
                       : "firings, pages and credits; an event log and waveforms show the other kinds");
    return d;
  }
  if (scope.limit && o.writer->head() > *scope.limit) {
    d.error(Code::RDU8021, file, "its limit is {}, and its head alone takes {}", format_bytes(*scope.limit),
            format_bytes(o.writer->head()));
    return d;
  }
  open_.push_back(std::move(o));
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

Result<Converted> convert_log(EventLogReader& log, const TraceOptions& options) {
  const auto program = log.program();
  if (!program) return program.diagnostics();
  auto traces = RunTraces::open(log.roster(), *program, options, log.head().run, log.head().filter);
  if (!traces) return traces.diagnostics();
  traces->use(log.provenance());
  const auto end = log.read(*traces->sinks().front());
  if (!end) return end.diagnostics();
  TraceEnd how = end->end.value_or(TraceEnd{"cut", end->last, "null", {}});
  how.lost = end->dropped;
  const auto rows = traces->finish(how);
  if (!rows) {
    Diagnostics d = end->notes;
    d.append(rows.diagnostics());
    return d;
  }
  return Converted{rows->front().size, end->notes};
}

}  // namespace rdusim
