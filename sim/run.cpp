#include "models/units/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "compiler/ir/trips.h"
#include "models/units/network.h"
#include "sim/conclude.h"
#include "sim/fault_text.h"
#include "sim/run_processes.h"
#include "sim/trace_outcome.h"

namespace rdusim {

namespace {

// Why a run is not begun: it needs more memory than the user allows, or than the computer has left.
struct TooLarge {
  bool for_user = false;
  Diagnostics why;
};
std::optional<TooLarge> too_large(const SpatialProgram& p, const RunOptions& options, const MemoryEstimate& needed) {
  const Bytes held = resident_bytes();
  const Bytes whole = held + needed.total();
  const ComputerMemory computer = computer_memory();
  const bool for_user = options.max_memory && whole > *options.max_memory;
  if (!for_user && needed.total() <= computer.left) return std::nullopt;
  TooLarge out{for_user, {}};
  Diagnostic& d =
      for_user ? out.why.error(Code::RDU6004, p.header.name, "the run needs about {}, and --max-memory allows {}",
                               format_bytes(whole), format_bytes(*options.max_memory))
               : out.why.error(Code::RDU6004, p.header.name,
                               "the run needs about {}, and this computer has {} of its {} left", format_bytes(whole),
                               format_bytes(computer.left + held), format_bytes(computer.total));
  d.note(p.header.name, "tensors of all chips {}, reference {}, machine and checkers {}; held already {}",
         format_bytes(needed.images), format_bytes(needed.reference), format_bytes(needed.machine), format_bytes(held));
  if (options.values)
    d.suggest("--timing-only carries provenance and no values; --check none does without the reference");
  return out;
}

// Makes a forecast of a run when its machine has worked for a second.
class Forecaster {
 public:
  Forecaster(const SpatialProgram& p, bool reuse, Bytes memory, const std::atomic<std::uint64_t>& pages)
      : pages_(pages) {
    made_.expected = expected_pages(p, reuse);
    made_.memory = memory;
  }
  void begin() {
    begun_ = Clock::now();
    working_.store(true);
  }
  // From the thread that looks.
  void look(const std::function<void(const Forecast&)>& told) {
    if (!working_.load() || done_.load()) return;
    made_.after_seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    made_.pages = pages_.load(std::memory_order_relaxed);
    if (made_.after_seconds < 1 || made_.pages == 0) return;
    done_.store(true);
    if (told) told(made_);
  }
  // Once nobody looks any more.
  std::optional<Forecast> made() const { return done_.load() ? std::optional(made_) : std::nullopt; }

 private:
  using Clock = std::chrono::steady_clock;
  Forecast made_;
  const std::atomic<std::uint64_t>& pages_;
  Clock::time_point begun_;
  std::atomic<bool> working_{false}, done_{false};
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

std::vector<ReuseRow> reuse_of(const SpatialProgram& p, const std::vector<LaunchReuse>& sections,
                               const std::optional<std::string>& why_not) {
  std::vector<ReuseRow> rows;
  for (const LaunchReuse& r : sections)
    rows.push_back({p.sections[r.section.value].name, r.simulated, r.reused, r.why_not});
  if (!why_not) return rows;
  for (const Section& s : p.sections)
    if (launches_of(s) > 1) rows.push_back({s.name, std::nullopt, 0, *why_not});
  return rows;
}

}  // namespace

std::optional<std::string> why_no_reuse(const RunOptions& options) {
  if (!options.reuse) return "as asked";
  if (options.values) return "each has values of its own";
  if (!options.faults.empty() || options.jitter || options.shuffle_seed != 0)
    return "with faults or delays, or in another order";
  if (!options.trace.files.empty()) return "a trace tells each of their events";
  if (options.processes > 1 || options.mpi) return "chips are divided over processes";
  return std::nullopt;
}

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

  const MemoryEstimate needed = estimate_memory(p, *sources, options.values, compare);
  if (auto refused = too_large(p, options, needed)) {
    if (!refused->for_user) return std::move(refused->why);
    RunResult result = never_ran(loaded, options);
    result.diagnostics = std::move(refused->why);
    return result;
  }

  std::atomic<bool> own_stop{false};
  std::atomic<bool>& stop = options.stop != nullptr ? *options.stop : own_stop;
  std::atomic<std::uint64_t> own_pages{0};
  std::atomic<std::uint64_t>& pages = options.pages != nullptr ? *options.pages : own_pages;
  const auto why_not = why_no_reuse(options);
  Forecaster forecaster(p, !why_not, resident_bytes() + needed.total(), pages);
  HeldByAll held;
  const bool follows = options.mpi && options.mpi->rank != 0;
  std::optional<LimitWatch> watch;
  if (!follows)
    watch.emplace(Limits{options.max_seconds, options.max_memory, [&] { return held(); },
                         [&] { forecaster.look(options.forecast); }},
                  stop);

  RunResult result;
  if (options.values) {
    auto images = fill_images(p, *sources);
    if (!images) return images.diagnostics();
    result.images = std::move(images).value();
  } else {
    result.images.resize(p.tensors.size());
  }

  auto traces = RunTraces::open(loaded, follows ? TraceOptions() : options.trace, run_to_text(options, loaded.sha256));
  if (!traces) return traces.diagnostics();
  Listeners l(loaded, options, stop);
  const std::vector<EventSink*> traced = traces->sinks();
  FanOut tracing(traced);
  if (!traced.empty()) l.traces = traced.size() == 1 ? traced.front() : &tracing;

  MachineOptions machine_options;
  machine_options.values = options.values;
  machine_options.reuse = !why_not;
  machine_options.max_cycles = options.max_cycles;
  machine_options.shuffle_seed = options.shuffle_seed;
  if (options.jitter) machine_options.jitter_seed = *options.jitter * 2 + 1;
  machine_options.faults = faults;
  machine_options.network = options.network;
  machine_options.bursts = !options.trace.files.empty();
  machine_options.stop = &stop;
  machine_options.pages = &pages;
  Machine machine(p, loaded.target, machine_options, result.images, l);
  l.provenance.use(machine.provenance());
  l.made.use(machine.provenance());
  traces->use(machine.provenance());

  Diagnostics notes;
  std::optional<Crew> crew;
  if (const Diagnostics refused = start_processes(machine, options, crew, notes); refused.has_errors()) return refused;
  if (crew) held.count(crew->children());
  result.diagnostics.append(notes);

  forecaster.begin();
  const auto machine_began = std::chrono::steady_clock::now();
  RunEnd end{machine.run(), Limit::none};
  result.report.machine_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - machine_began).count();
  end.limit = watch->reached();
  // Whatever ended it; of a run that lost a process, what came before.
  auto written = traces->finish({std::string(name_of(end.outcome.end)), end.outcome.cycles, outcome_to_text(end)});
  if (end.outcome.lost) {
    Diagnostics d;
    d.error(Code::RDU9003, "rdusim", "{}, in or after cycle {}", *end.outcome.lost, end.outcome.cycles);
    if (!written) d.append(written.diagnostics());
    return d;
  }
  const bool divided = crew.has_value();
  crew.reset();
  result.report.reuse = reuse_of(p, end.outcome.reuse, why_not);
  result.report.processes = end.outcome.processes;
  result.report.listening_seconds = end.outcome.listening_seconds;
  result.images_whole = !divided || end.outcome.end != MachineOutcome::End::stopped;

  auto concluded = conclude(loaded, options, l, end, &*sources, std::move(result));
  if (!concluded) return concluded;
  if (!written) {
    concluded->diagnostics.append(written.diagnostics());
    if (concluded->status == ExitStatus::done) concluded->status = ExitStatus::request_fault;
  } else if (!written->empty()) {
    concluded->report.traces = to_json(*written);
  }
  watch->finish();
  concluded->report.forecast = forecaster.made();
  concluded->report.peak_rss_bytes = peak_rss_bytes();
  concluded->report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return concluded;
}

}  // namespace rdusim
