// The judgement of a run from its event log.
#include <fmt/format.h>

#include <chrono>

#include "sim/conclude.h"
#include "sim/trace_outcome.h"

namespace rdusim {

Result<RunResult> replay_run(EventLogReader& log, const RunOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  const auto unfit = [](const std::string& why) {
    Diagnostics d;
    d.error(Code::RDU8015, "event log", "{}", why);
    return d;
  };
  auto carried = log.program();
  if (!carried) return carried.diagnostics();
  auto loaded = carried_program(*carried, "event log");
  if (!loaded) return loaded.diagnostics();
  auto run = run_from_text(log.head().run);
  Roster roster = roster_of(loaded->program, loaded->target, log.roster().program_sha256);
  if (!run || !roster.same_as(log.roster())) return unfit("its program is not the one that it lists the units of");
  loaded->sha256 = run->program_sha256;
  run->options.stop = options.stop;
  run->options.reached = options.reached;

  std::atomic<bool> own_stop{false};
  Listeners l(*loaded, run->options, own_stop);
  l.provenance.use(log.provenance());
  l.made.use(log.provenance());
  const auto read = log.read(l);
  if (!read) return read.diagnostics();
  if (!read->end) {
    Diagnostics d = read->notes;
    d.error(Code::RDU8015, "event log", "it does not say how the run ended");
    return d;
  }
  if (read->dropped.total() != 0)
    return unfit(fmt::format("{} events were left out of it", with_commas(read->dropped.total())));
  const auto end = outcome_from_text(read->end->outcome, loaded->program);
  if (!end) return unfit("how the run ended is malformed");
  auto concluded = conclude(*loaded, run->options, l, *end, nullptr, RunResult());
  if (!concluded) return concluded;
  concluded->report.peak_rss_bytes = peak_rss_bytes();
  concluded->report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return concluded;
}

}  // namespace rdusim
