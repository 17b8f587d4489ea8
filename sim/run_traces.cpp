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
  RunTraces t;
  if (options.files.empty()) return t;
  t.roster_ = std::make_unique<Roster>(roster_of(loaded.program, loaded.target, loaded.sha256));
  Diagnostics d;
  if (!t.roster_->index()) {
    d.error(Code::RDU6006, "--trace", "a program with more than {} instances of stages is not traced",
            Roster::most_instances);
    return d;
  }
  TraceScope scope;
  auto selection = TraceSelection::parse(options.filters, *t.roster_);
  if (!selection) return selection.diagnostics();
  scope.selection = std::move(selection).value();
  scope.from = options.from.value_or(scope.from);
  scope.to = options.to.value_or(scope.to);
  scope.limit = options.limit;
  for (const std::string& file : options.files) {
    Open o;
    o.row.file = file;
    const auto take = [&](auto made) {
      if (made)
        o.writer = std::move(made).value();
      else
        d = made.diagnostics();
    };
    const std::string extension = std::filesystem::path(file).extension().string();
    if (extension == ".rdulog") {
      o.row.format = "event-log";
      const LogHead head{std::string(version), run, fmt::format("{}", fmt::join(options.filters, " "))};
      take(EventLogWriter::create(file, *t.roster_, head, encode(loaded.program), scope));
    } else if (extension == ".vcd") {
      o.row.format = "vcd";
      take(VcdWriter::create(file, *t.roster_, scope, std::string(version)));
    } else if (extension == ".pftrace") {
      o.row.format = "perfetto";
      take(PerfettoWriter::create(file, *t.roster_, scope, std::string(version)));
    } else if (extension == ".json") {
      o.row.format = "chrome";
      take(ChromeWriter::create(file, *t.roster_, scope, std::string(version)));
    } else {
      d.error(Code::RDU8018, "--trace " + file, "'{}' is no format of a trace", extension);
    }
    if (d.has_errors()) return d;
    t.open_.push_back(std::move(o));
  }
  return t;
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
