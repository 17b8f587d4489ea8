#include "sim/run_traces.h"

#include <filesystem>

#include "compiler/program/prog_bin.h"
#include "sim/version.h"

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
  for (const std::string& file : options.files) {
    const std::string format = std::filesystem::path(file).extension().string();
    Open o;
    o.row.file = file;
    if (format == ".rdulog") {
      o.row.format = "event-log";
      LogHead head;
      head.rdusim = version;
      head.run = run;
      auto w = EventLogWriter::create(file, *t.roster_, head, encode(loaded.program), options.limit);
      if (!w) return w.diagnostics();
      o.writer = std::move(w).value();
    } else {
      d.error(Code::RDU8018, "--trace " + file, "'{}' is no format of a trace", format);
      return d;
    }
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
