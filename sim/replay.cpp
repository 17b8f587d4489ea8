// The judgement of a run from its event log.
#include <fmt/format.h>

#include <chrono>

#include "sim/conclude.h"
#include "sim/trace_outcome.h"

namespace rdusim {

Result<RunResult> replay_run(EventLogReader& log, const RunOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  auto traced = traced_program(log);
  if (!traced) return traced.diagnostics();
  LoadedProgram& loaded = traced->loaded;
  RunOptions& asked = traced->run.options;
  asked.stop = options.stop;
  asked.reached = options.reached;

  std::atomic<bool> own_stop{false};
  Listeners l(loaded, asked, own_stop);
  l.provenance.use(log.provenance());
  l.made.use(log.provenance());
  const auto read = log.read(l);
  if (!read) return read.diagnostics();
  if (!read->end) {
    Diagnostics d = read->notes;
    d.error(Code::RDU8015, log.name(), "it does not say how the run ended, so that no verdict can be given")
        .suggest(
            "`rdusim trace summary`, `hot` and `critical-path` tell of what was read; trace the run again for the "
            "rest");
    return d;
  }
  if (Diagnostics d = refuse_partial(log, *read); d.has_errors()) return d;
  const auto end = outcome_from_text(read->end->outcome, loaded.program);
  if (!end) {
    Diagnostics d;
    d.error(Code::RDU8015, log.name(), "how the run ended is malformed");
    return d;
  }
  auto concluded = conclude(loaded, asked, l, *end, nullptr, RunResult());
  if (!concluded) return concluded;
  concluded->report.peak_rss_bytes = peak_rss_bytes();
  concluded->report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return concluded;
}

}  // namespace rdusim
