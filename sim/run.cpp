#include "models/units/network.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "models/units/network.h"
#include "sim/conclude.h"
#include "sim/fault_text.h"
#include "sim/trace_outcome.h"

namespace rdusim {

namespace {

Bytes memory_of_this_computer() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<Bytes>(pages) * static_cast<Bytes>(size) : ~Bytes{0};
}

// Raises a flag after a time, unless it is destroyed before.
class Watchdog {
 public:
  Watchdog(std::optional<double> seconds, std::atomic<bool>& stop) {
    if (!seconds) return;
    thread_ = std::thread([this, s = *seconds, &stop] {
      std::unique_lock lock(mutex_);
      // Beyond what the clock can add up, the limit is never reached.
      const auto span = std::chrono::duration<double>(std::min(s, 1e8));
      if (done_.wait_for(lock, span, [this] { return finished_; })) return;
      expired_.store(true);
      stop.store(true);
    });
  }
  ~Watchdog() { finish(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void finish() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  bool expired() const { return expired_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
  std::atomic<bool> expired_{false};
  std::thread thread_;
};

Json to_json(const std::vector<TraceRow>& rows) {
  JsonArray list;
  for (const TraceRow& row : rows) {
    const LeftOut& d = row.size.dropped;
    list.push_back(Json()
                       .set("file", row.file)
                       .set("format", row.format)
                       .set("bytes", row.size.bytes)
                       .set("events", row.size.events)
                       .set("dropped", Json().set("filter", d.filter).set("window", d.window).set("limit", d.limit)));
  }
  return Json(std::move(list));
}

}  // namespace

Result<RunResult> run_program(const LoadedProgram& loaded, const RunOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  const SpatialProgram& p = loaded.program;
  const bool compare = options.values && options.check != CheckLevel::none;

  Diagnostics wrong;
  std::vector<Fault> faults;
  for (const std::string& text : options.faults) {
    auto fault = parse_fault(text, p);
    if (!fault) {
      wrong.append(fault.diagnostics());
    } else if (law_of(fault->kind).values && !options.values) {
      wrong.error(Code::RDU6009, "--inject " + text, "it changes values, and a timing-only run carries none")
          .suggest("run it without --timing-only");
    } else if (needs_flits(fault->kind) && options.network != NetworkLevel::flit) {
      wrong.error(Code::RDU6006, "--inject " + text, "the fast network carries whole pages, and has no flits to break")
          .suggest("run it with --network flit");
    } else {
      faults.push_back(std::move(fault).value());
    }
  }
  if (options.network == NetworkLevel::flit)
    if (const auto why = no_flit_level(loaded.target))
      wrong.error(Code::RDU6006, "--network flit", "'{}' has no flit level: {}", loaded.target.name, *why)
          .suggest("run it with --network fast");
  if (wrong.has_errors()) return wrong;
  auto sources = operand_sources(p, loaded.folder, options.set);
  if (!sources) return sources.diagnostics();

  const MemoryEstimate needed = estimate_memory(p, options.values, compare);
  const Bytes limit = options.max_memory.value_or(memory_of_this_computer());
  if (needed.total() > limit) {
    Diagnostic& d =
        wrong.error(Code::RDU6004, p.header.name, "the run needs about {}, and {} {}", format_bytes(needed.total()),
                    options.max_memory ? "--max-memory allows" : "this computer has", format_bytes(limit));
    d.note(p.header.name, "tensors of all chips {}, reference {}, pages in buffers and checkers {}",
           format_bytes(needed.images), format_bytes(needed.reference), format_bytes(needed.machine));
    if (options.values)
      d.suggest("--timing-only carries provenance and no values; --check none does without the reference");
    return wrong;
  }

  RunResult result;
  if (options.values) {
    auto images = fill_images(p, *sources);
    if (!images) return images.diagnostics();
    result.images = std::move(images).value();
  } else {
    result.images.resize(p.tensors.size());
  }

  std::atomic<bool> own_stop{false};
  std::atomic<bool>& stop = options.stop != nullptr ? *options.stop : own_stop;
  auto traces = RunTraces::open(loaded, options.trace, run_to_text(options, loaded.sha256));
  if (!traces) return traces.diagnostics();
  Listeners l(loaded, options, stop);
  const std::vector<EventSink*> traced = traces->sinks();
  FanOut tracing(traced);
  if (!traced.empty()) l.traces = &tracing;

  MachineOptions machine_options;
  machine_options.values = options.values;
  machine_options.max_cycles = options.max_cycles;
  machine_options.shuffle_seed = options.shuffle_seed;
  if (options.jitter) machine_options.jitter_seed = *options.jitter * 2 + 1;
  machine_options.faults = faults;
  machine_options.network = options.network;
  machine_options.stop = &stop;
  Machine machine(p, loaded.target, machine_options, result.images, l);
  l.provenance.use(machine.provenance());
  l.made.use(machine.provenance());
  traces->use(machine.provenance());

  Watchdog watchdog(options.max_seconds, stop);
  const auto machine_began = std::chrono::steady_clock::now();
  RunEnd end{machine.run(), false};
  result.report.machine_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - machine_began).count();
  watchdog.finish();
  end.out_of_time = watchdog.expired();

  auto written = traces->finish({std::string(name_of(end.outcome.end)), end.outcome.cycles, outcome_to_text(end)});
  auto concluded = conclude(loaded, options, l, end, &*sources, std::move(result));
  if (!concluded) return concluded;
  if (!written) {
    concluded->diagnostics.append(written.diagnostics());
    if (concluded->status == ExitStatus::done) concluded->status = ExitStatus::request_fault;
  } else if (!written->empty()) {
    concluded->report.traces = to_json(*written);
  }
  concluded->report.peak_rss_bytes = peak_rss_bytes();
  concluded->report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return concluded;
}

}  // namespace rdusim
