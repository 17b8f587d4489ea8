#include "sim/run.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

#include "compiler/cost/cost.h"
#include "compiler/ir/print.h"
#include "sim/claims_checker.h"
#include "sim/coverage_checker.h"
#include "sim/decisions.h"
#include "sim/diagnose.h"
#include "sim/fault_text.h"
#include "sim/page_checker.h"
#include "sim/proved.h"
#include "sim/provenance_checker.h"
#include "sim/roofline.h"
#include "sim/trace_outcome.h"
#include "sim/understudy.h"
#include "sim/value_checker.h"
#include "sim/version.h"

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

// Everyone who listens to a run.
struct Listeners {
  Listeners(const LoadedProgram& loaded, const RunOptions& options, std::atomic<bool>& stop)
      : instances(loaded.program),
        matmuls(loaded.program),
        violations(stop, options.collect_violations),
        handshakes(instances, violations),
        tokens(instances, violations),
        semaphores(instances, violations),
        barriers(instances, violations),
        pages(instances, matmuls, violations),
        provenance(instances, matmuls, violations),
        made(instances, violations),
        coverage(instances, violations),
        collectives(instances, violations),
        statistics(instances, loaded.target, options.reached) {}

  Instances instances;
  MatmulPlaces matmuls;
  Violations violations;
  HandshakeChecker handshakes;
  TokenChecker tokens;
  SemaphoreChecker semaphores;
  BarrierChecker barriers;
  PageChecker pages;
  ProvenanceChecker provenance;
  ValueChecker made;
  CoverageChecker coverage;
  CollectiveChecker collectives;
  Statistics statistics;

  std::vector<EventSink*> sinks() {
    std::vector<EventSink*> all = {&handshakes, &tokens, &semaphores, &barriers,    &pages,
                                   &provenance, &made,   &coverage,   &collectives, &statistics};
    if (!made.watches()) std::erase(all, &made);
    return all;
  }
  void finish(Cycle at) {
    handshakes.finish(at);
    tokens.finish(at);
    semaphores.finish(at);
    barriers.finish(at);
    coverage.finish(at);
    collectives.finish(at);
  }
};

// The sites of a group, folded.
std::string sites_text(const Instances& instances, BufferId b) {
  return fold_sites(instances.program().group(instances.program().buffer(b).group).sites);
}

bool has_edge(const SpatialProgram& p, Handshake h) {
  return std::any_of(p.edges.begin(), p.edges.end(), [h](const Edge& e) { return e.handshake == h; });
}

void add_checks(const LoadedProgram& loaded, const Listeners& l, bool finished, Cycle cycles,
                const std::optional<Comparison>& comparison, Report& r) {
  const SpatialProgram& p = loaded.program;
  const auto row = [&](Code code, const char* scope, bool applies, bool decided,
                       std::string expected = "0 violations") {
    const std::uint64_t n = l.violations.count(code);
    CheckRow c;
    c.code = code;
    c.scope = scope;
    c.status = n != 0               ? CheckRow::Status::fail
               : applies && decided ? CheckRow::Status::pass
                                    : CheckRow::Status::unchecked;
    c.observed = fmt::format("{} violations", n);
    c.expected = std::move(expected);
    r.checks.push_back(std::move(c));
  };
  const bool crossing =
      std::any_of(p.edges.begin(), p.edges.end(), [](const Edge& e) { return !is_local(e.handshake); });
  const bool sums = std::any_of(p.stages.begin(), p.stages.end(),
                                [](const Stage& s) { return std::holds_alternative<MatmulTiles>(s.kind); });
  const bool folds = std::any_of(p.stages.begin(), p.stages.end(),
                                 [](const Stage& s) { return std::holds_alternative<Generic>(s.kind); });
  const char* every = "every event";
  const char* end = "end of run";
  row(Code::RDU7001, every, true, true);
  row(Code::RDU7002, every, true, true);
  row(Code::RDU7003, every, true, true);
  row(Code::RDU7004, every, has_edge(p, Handshake::token), true);
  row(Code::RDU7005, every, has_edge(p, Handshake::semaphore), true);
  row(Code::RDU7006, every, has_edge(p, Handshake::barrier), true);
  row(Code::RDU7007, end, true, finished);
  row(Code::RDU7008, end, crossing, finished);
  row(Code::RDU7009, "every store", sums, finished);
  row(Code::RDU7010, "every fold and store", sums, true);
  row(Code::RDU7011, "every fold", folds, true);
  row(Code::RDU7012, "every matmul firing", sums, true);
  row(Code::RDU7013, "every store", true, true);
  row(Code::RDU7014, end, true, finished);

  const auto values = [&](Code code, bool applies) {
    CheckRow c;
    c.code = code;
    c.scope = "outputs";
    c.expected = "0 outputs that differ";
    std::uint64_t n = 0;
    if (comparison) {
      for (const Diagnostic& d : comparison->diagnostics.list()) n += d.code == code ? 1 : 0;
    }
    c.observed = comparison ? fmt::format("{} outputs that differ", n) : std::string("not compared");
    c.status = n != 0                  ? CheckRow::Status::fail
               : comparison && applies ? CheckRow::Status::pass
                                       : CheckRow::Status::unchecked;
    r.checks.push_back(std::move(c));
  };
  bool exact = false;
  bool bound = false;
  if (comparison) {
    for (const OutputCheck& o : comparison->outputs) {
      const bool floats = p.operators && o.checked != CheckLevel::none && !is_integer(o.dtype);
      exact = exact || o.checked == CheckLevel::exact;
      bound = bound || floats;
    }
  }
  values(Code::RDU7015, exact);
  values(Code::RDU7016, bound);
  values(Code::RDU7017, comparison && comparison->replicas_checked);

  const Cycles lower = p.certificate ? p.certificate->lower_bound_cycles : 0;
  row(Code::RDU7022, end, p.certificate.has_value(), finished, fmt::format("at least {} cycles", lower));
  if (finished) r.checks.back().observed = fmt::format("{} cycles", cycles);
  row(Code::RDU7023, end, p.certificate.has_value(), finished);
  row(Code::RDU7024, every, true, true);
  row(Code::RDU7025, every, true, true);
  row(Code::RDU7026, end, !p.collectives.empty(), finished);
  row(Code::RDU7029, "every page", true, true);
  row(Code::RDU7030, "every page", true, true);
}

void add_collectives(const LoadedProgram& loaded, const Listeners& l, const Costs& costs, bool finished, Report& r) {
  const SpatialProgram& p = loaded.program;
  for (const Collective& c : p.collectives) {
    CollectiveRow row;
    row.name = c.name;
    row.kind = name_of(c.kind);
    row.algorithm = name_of(c.algorithm);
    row.chips = static_cast<std::uint32_t>(c.members.size());
    for (Bytes b : c.bytes) row.bytes = std::max(row.bytes, b);
    const auto& seen = l.collectives.seen(c.id);
    row.sent = seen.sent;
    if (seen.first_sent && seen.last) row.cycles = *seen.last - *seen.first_sent;
    if (c.id.value < costs.collectives.size()) row.predicted = costs.collectives[c.id.value].cycles;
    if (row.cycles && *row.cycles > 0) {
      const double n = static_cast<double>(c.members.size());
      const bool gathers = c.kind == CollectiveKind::all_gather;
      // Of gathers, the size of the whole; of the others, of one member's contribution: so that the two bandwidths mean
      // what NCCL's mean.
      const double size = gathers ? static_cast<double>(std::accumulate(c.bytes.begin(), c.bytes.end(), Bytes{0}))
                                  : static_cast<double>(row.bytes);
      row.algorithm_gb_per_s = size / static_cast<double>(*row.cycles) * r.clock_ghz;
      double factor = 1;
      if (c.kind == CollectiveKind::all_reduce) factor = 2 * (n - 1) / n;
      if (c.kind == CollectiveKind::reduce_scatter || gathers || c.kind == CollectiveKind::all_to_all)
        factor = (n - 1) / n;
      row.bus_gb_per_s = *row.algorithm_gb_per_s * factor;
    }
    if (p.operators && c.op.value < p.operators->operators.size()) {
      const Operator& op = p.operators->operators[c.op.value];
      const auto& stored = l.provenance.stored(op.out);
      if (stored.pages != 0) row.contributions = stored.contributions;
      row.complete = finished && stored.pages != 0 && stored.complete == stored.pages &&
                     l.violations.count(Code::RDU7009) == 0 && l.violations.count(Code::RDU7010) == 0;
      // What is gathered of an operator without a contraction are values; every page's place is looked at as it is stored.
      if (op.kind != OperatorKind::matmul) row.complete = finished && !l.violations.any();
    }
    r.collectives.push_back(std::move(row));
  }
}

void add_stages(const LoadedProgram& loaded, const Listeners& l, const Costs& costs, Report& r) {
  const SpatialProgram& p = loaded.program;
  for (const Stage& s : p.stages) {
    const std::uint32_t slowest = l.statistics.slowest_instance(s.id);
    const StageAt at{s.id, slowest};
    const StageStatistics& n = l.statistics.stage(l.instances.of(at));
    const Cycle start = l.statistics.section_start(s.id);
    StageRow row;
    row.name = s.name;
    row.site = to_string(l.instances.site(at));
    row.instances = l.instances.instances(s.id);
    row.firings = n.firings;
    row.cycles = n.total(start);
    row.predicted = s.id.value < costs.stages.size() ? costs.stages[s.id.value].total_cycles : 0;
    row.busy = n.busy;
    row.stall = n.stall;
    row.idle = n.idle(start);
    r.stages.push_back(std::move(row));
  }
  for (const Buffer& b : p.buffers) {
    BufferRow row;
    row.name = b.name;
    row.site = sites_text(l.instances, b.id);
    row.instances = l.instances.instances(b.id);
    row.depth = b.depth_pages;
    for (std::uint32_t i = 0; i < row.instances; ++i) {
      const BufferCounts& c = l.handshakes.counts(l.instances.of(BufferAt{b.id, i}));
      row.peak = std::max(row.peak, c.peak_pages);
      row.reserved += c.reserved;
      row.pushed += c.pushed;
      row.popped += c.popped;
      row.bytes += c.bytes;
    }
    r.buffers.push_back(std::move(row));
  }
}

void add_resources(const LoadedProgram& loaded, const Listeners& l, Report& r) {
  const SpatialProgram& p = loaded.program;
  const Target& t = loaded.target;
  const double cycles = static_cast<double>(r.cycles);
  for (LinkId id : p.links) {
    if (id.value >= t.links.size()) continue;
    const LinkStatistics& n = l.statistics.link(id);
    LinkRow row;
    row.name = fmt::format("link{} chip{}->chip{}", id.value, t.links[id.value].from.value, t.links[id.value].to.value);
    row.bytes = n.bytes;
    row.busy = n.busy_until(r.cycles);
    row.utilisation = cycles > 0 ? static_cast<double>(row.busy) / cycles : 0;
    r.links.push_back(std::move(row));
  }
  for (std::uint32_t chip = 0; chip < p.header.plan.chips; ++chip) {
    for (MemorySpace space : {MemorySpace::hbm, MemorySpace::ddr}) {
      MemoryRow row;
      for (const Tensor& tensor : p.tensors) {
        if (tensor.chip.value != chip || tensor.space != space) continue;
        row.peak +=
            p.memory && tensor.id.value < p.memory->tensors.size() ? p.memory->tensors[tensor.id.value].bytes : 0;
      }
      const MemoryStatistics& n = l.statistics.memory(ChipId{chip}, space);
      if (space == MemorySpace::ddr && row.peak == 0 && n.busy == 0) continue;
      const MemoryParameters* parameters = space == MemorySpace::hbm ? &t.hbm : t.ddr ? &*t.ddr : nullptr;
      if (parameters == nullptr) continue;
      row.name = fmt::format("chip{}.{}", chip, name_of(space));
      row.read = n.read;
      row.written = n.written;
      row.capacity = parameters->capacity_bytes;
      row.first = n.first;
      if (n.first) row.last = n.last;
      const double peak = to_double(parameters->peak_bytes_per_cycle());
      row.utilisation = cycles > 0 && peak > 0 ? static_cast<double>(n.read + n.written) / (peak * cycles) : 0;
      r.memories.push_back(std::move(row));
    }
  }
}

void add_macs(const LoadedProgram& loaded, const Listeners& l, Report& r) {
  const SpatialProgram& p = loaded.program;
  const auto product = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return static_cast<std::uint64_t>(m) * static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(k);
  };
  std::uint64_t done = 0;
  std::uint64_t most = 0;
  for (const Work& w : p.work) {
    // Operators that contract nothing multiply without accumulating.
    const OperatorKind kind = p.operators ? p.operators->operators[w.op.value].kind : OperatorKind::matmul;
    if (kind != OperatorKind::matmul && kind != OperatorKind::attention) continue;
    // An attention multiplies by keys, and then by as many values.
    const std::uint64_t macs = (kind == OperatorKind::attention ? 2 : 1) * product(w.m, w.n, w.k);
    done += macs;
    if (macs <= most) continue;
    most = macs;
    r.rows = static_cast<std::uint64_t>(w.m);
  }
  std::uint64_t useful = done;
  if (p.operators) {
    useful = 0;
    for (const Operator& op : p.operators->operators) {
      const bool attends = op.kind == OperatorKind::attention;
      if ((op.kind != OperatorKind::matmul || op.in.size() != 2) && !attends) continue;
      const auto& a = p.operators->operand(op.in[0]).shape;
      const auto& b = p.operators->operand(op.in[1]).shape;
      const auto elements = element_count(a);
      if (attends && elements && b.size() > 1) {
        useful += 2 * static_cast<std::uint64_t>(*elements) * static_cast<std::uint64_t>(b[b.size() - 2]);
        continue;
      }
      if (!elements || b.size() < (op.attributes.transposed ? 2 : 1)) continue;
      const std::int64_t n = op.attributes.transposed ? b[b.size() - 2] : b.back();
      useful += static_cast<std::uint64_t>(*elements) * static_cast<std::uint64_t>(n);
    }
  }
  r.useful_macs = useful;
  r.padding_macs = done > useful ? done - useful : 0;
  r.tile_rows = p.header.native_tile;
  if (r.rows != 0 && r.tile_rows != 0) {
    r.tile_utilisation = static_cast<double>(r.rows) / static_cast<double>(ceil_div(r.rows, r.tile_rows) * r.tile_rows);
  }
  double capacity = 0;
  for (const Stage& s : p.stages) {
    const auto* m = std::get_if<MatmulTiles>(&s.kind);
    if (m == nullptr) continue;
    r.pcus += l.instances.instances(s.id);
    capacity += static_cast<double>(l.instances.instances(s.id)) * loaded.target.pcu.macs(m->operand);
  }
  if (capacity > 0 && r.cycles > 0)
    r.pcu_utilisation = static_cast<double>(useful) / (capacity * static_cast<double>(r.cycles));
}

std::string bound_by(const Costs& costs) {
  const auto sum = [&](auto member) {
    return std::accumulate(costs.sections.begin(), costs.sections.end(), Cycles{0},
                           [&](Cycles n, const SectionCost& c) { return n + c.*member; });
  };
  const Cycles memory = sum(&SectionCost::memory);
  const Cycles compute = sum(&SectionCost::compute);
  const Cycles network = sum(&SectionCost::network);
  const Cycles link = sum(&SectionCost::link);
  const Cycles most = std::max({memory, compute, network, link});
  if (most == 0) return "";
  if (most == link) return "link-bound";
  if (most == memory) return "memory-bound";
  return most == compute ? "compute-bound" : "network-bound";
}

Verdict verdict_of(StuckKind k) {
  switch (k) {
    case StuckKind::circular_wait:
      return Verdict::circular_wait;
    case StuckKind::starvation:
      return Verdict::starvation;
    case StuckKind::lost_token:
      return Verdict::lost_token;
    case StuckKind::missing_participant:
      return Verdict::missing_participant;
  }
  return Verdict::circular_wait;
}

// How a run with another depth went.
std::string told(const IsolatedRun& run) {
  if (!run.ended) return "does not come to an end";
  if (run.verdict == Verdict::pass) return fmt::format("passes in {} cycles", run.cycles);
  return fmt::format("ends as {} in cycle {}", name_of(run.verdict), run.cycles);
}

// The least depth that resolves a circular wait, instead of the guess that a look at its members gives.
void suggest_cure(const SpatialProgram& p, Understudy* understudy, Diagnosis& d) {
  const auto cure = find_cure(p, d.shallow);
  if (!cure) return;
  d.diagnostic.help.clear();
  d.diagnostic.suggest(
      "give buffer '{}' a depth of {} instead of {}: the least with which the program ends, all others as they are",
      p.buffer(cure->buffer).name, cure->needed, cure->given);
  const auto confirmed = understudy == nullptr ? std::nullopt : understudy->confirm(*cure);
  if (!confirmed) return;
  d.diagnostic.suggest("tried: with {} it {}, with {} it {}", cure->needed, told(confirmed->with), cure->needed - 1,
                       told(confirmed->one_less));
}

// Who asked for a fault takes a pass for 'harmless': so a fault that did not happen is said, and is no pass.
void report_idle_faults(const std::vector<std::string>& asked, bool finished, RunResult& result) {
  for (std::size_t n = 0; n < asked.size() && n < result.struck.size(); ++n) {
    if (result.struck[n] != 0) continue;
    const std::string where = "--inject " + asked[n];
    if (finished) {
      result.diagnostics.error(Code::RDU6008, where,
                               "the fault asked for never happened: the run ended before it could");
      if (result.status == ExitStatus::done) result.status = ExitStatus::request_fault;
    } else {
      result.diagnostics.warning(Code::RDU6008, where, "the fault asked for had not happened when the run ended");
    }
  }
}

std::uint64_t peak_rss() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

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

// Everything that is known of a run that is over. `sources`: null where there are no values to compare.
Result<RunResult> conclude(const LoadedProgram& loaded, const RunOptions& options, Listeners& l, const RunEnd& end,
                           const std::vector<OperandSource>* sources, RunResult result);

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
    } else {
      faults.push_back(std::move(fault).value());
    }
  }
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
  std::vector<EventSink*> sinks = l.sinks();
  if (!traced.empty()) sinks.push_back(&tracing);
  FanOut fan_out(sinks);

  MachineOptions machine_options;
  machine_options.values = options.values;
  machine_options.max_cycles = options.max_cycles;
  machine_options.shuffle_seed = options.shuffle_seed;
  if (options.jitter) machine_options.jitter_seed = *options.jitter * 2 + 1;
  machine_options.faults = faults;
  machine_options.stop = &stop;
  Machine machine(p, loaded.target, machine_options, result.images, fan_out);
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
  concluded->report.peak_rss_bytes = peak_rss();
  concluded->report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return concluded;
}

namespace {

Result<RunResult> conclude(const LoadedProgram& loaded, const RunOptions& options, Listeners& l, const RunEnd& end,
                           const std::vector<OperandSource>* sources, RunResult result) {
  const SpatialProgram& p = loaded.program;
  const MachineOutcome& outcome = end.outcome;
  Report& r = result.report;
  const bool compare = sources != nullptr && options.values && options.check != CheckLevel::none;
  const bool finished = outcome.end == MachineOutcome::End::finished;

  if (finished && !l.violations.stopped()) l.finish(outcome.cycles);
  if (p.certificate && !l.violations.stopped()) {
    check_claims(l.instances, *p.certificate, l.handshakes, l.tokens, l.semaphores, finished, outcome.cycles,
                 l.violations);
  }
  result.diagnostics.append(l.violations.diagnostics());

  r.version = version;
  r.program = p.header.name;
  r.program_sha256 = loaded.sha256;
  r.target = loaded.target.name;
  r.target_sha256 = loaded.target.sha256;
  r.chips = p.header.plan.chips;
  r.options = options.reported;
  r.decisions = decisions_of(p);
  if (p.certificate)
    r.proved = proved_and_observed(l.instances, *p.certificate, l.handshakes, l.tokens, l.semaphores, outcome.cycles);
  r.values = options.values;
  r.cycles = outcome.cycles;
  const Costs costs = rdusim::estimate(p, loaded.target);
  r.predicted = costs.predicted_cycles;
  r.lower_bound = p.certificate ? p.certificate->lower_bound_cycles : costs.lower_bound_cycles;
  r.clock_ghz = to_double(loaded.target.clock_ghz);
  r.microseconds = r.clock_ghz > 0 ? static_cast<double>(r.cycles) / (r.clock_ghz * 1000) : 0;
  if (p.operators && p.operators->tokens != 0 && outcome.end == MachineOutcome::End::finished && r.microseconds > 0)
    r.tokens_per_s = static_cast<double>(p.operators->tokens) * 1e6 / r.microseconds;

  if (l.violations.any()) {
    r.verdict = Verdict::check_failed;
    result.status = ExitStatus::program_fault;
  } else if (outcome.end == MachineOutcome::End::quiescent) {
    Diagnosis d =
        diagnose(outcome, {l.instances, l.handshakes, l.tokens, l.semaphores, l.barriers, l.collectives, l.statistics});
    if (d.kind == StuckKind::circular_wait && options.faults.empty()) suggest_cure(p, options.understudy, d);
    r.verdict = verdict_of(d.kind);
    result.status = ExitStatus::program_fault;
    result.dot = std::move(d.dot);
    result.diagnostics.add(std::move(d.diagnostic));
  } else if (outcome.end == MachineOutcome::End::max_cycles) {
    r.verdict = Verdict::limit;
    result.status = ExitStatus::limit;
    result.diagnostics.error(Code::RDU7027, fmt::format("cycle {}", outcome.cycles),
                             "the run reached the limit of {} cycles", options.max_cycles.value_or(0));
  } else if (outcome.end == MachineOutcome::End::stopped) {
    r.verdict = Verdict::limit;
    if (end.out_of_time) {
      result.status = ExitStatus::limit;
      result.diagnostics.error(Code::RDU7028, fmt::format("cycle {}", outcome.cycles),
                               "the run reached the limit of {} seconds", options.max_seconds.value_or(0));
    } else {
      result.status = ExitStatus::interrupted;
    }
  }

  result.struck = outcome.struck;
  report_idle_faults(options.faults, finished, result);

  std::optional<Comparison> comparison;
  if (finished && options.values && sources != nullptr) {
    OperandBytes whole;
    if (compare && p.operators) {
      auto filled = fill_whole(*sources);
      if (!filled) return filled.diagnostics();
      whole = std::move(filled).value();
    }
    auto compared = compare_outputs(p, result.images, std::move(whole), options.check);
    if (!compared) return compared.diagnostics();
    comparison = std::move(compared).value();
    result.diagnostics.append(comparison->diagnostics);
    if (comparison->diagnostics.has_errors()) {
      r.verdict = Verdict::check_failed;
      result.status = ExitStatus::program_fault;
    }
    r.outputs = comparison->outputs;
  } else {
    auto known = operand_sources(p, loaded.folder, {});
    if (!known) return known.diagnostics();
    for (const OperandSource& s : *known) {
      if (s.operand.role != TensorRole::output) continue;
      r.outputs.push_back(
          {s.operand.id, s.operand.name, s.operand.shape, s.operand.dtype, "", CheckLevel::none, std::nullopt});
    }
  }

  if (finished) r.residual = explain_difference(l.instances, l.statistics, l.collectives, costs, outcome.cycles);
  add_checks(loaded, l, finished, outcome.cycles, comparison, r);
  add_collectives(loaded, l, costs, finished, r);
  add_stages(loaded, l, costs, r);
  add_roofline(loaded, l.instances, l.handshakes, r);
  add_resources(loaded, l, r);
  add_macs(loaded, l, r);
  if (finished) r.bound_by = bound_by(costs);
  r.events = outcome.activations;
  return result;
}

}  // namespace

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
  const std::vector<EventSink*> sinks = l.sinks();
  FanOut fan_out(sinks);
  l.provenance.use(log.provenance());
  l.made.use(log.provenance());
  const auto read = log.read(fan_out);
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
  concluded->report.peak_rss_bytes = peak_rss();
  concluded->report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return concluded;
}

}  // namespace rdusim
