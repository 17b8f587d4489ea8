#include "sim/conclude.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "sim/claims_checker.h"
#include "sim/decisions.h"
#include "sim/diagnose.h"
#include "sim/proved.h"
#include "sim/report_rows.h"
#include "sim/understudy.h"
#include "sim/version.h"

namespace rdusim {

namespace {

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
bool suggest_depth(const SpatialProgram& p, Understudy* understudy, Diagnosis& d) {
  const auto cure = find_cure(p, d.shallow);
  if (!cure) return false;
  d.diagnostic.help.clear();
  d.diagnostic.suggest(
      "give buffer '{}' a depth of {} instead of {}: the least with which the program ends, all others as they are",
      p.buffer(cure->buffer).name, cure->needed, cure->given);
  const auto confirmed = understudy == nullptr ? std::nullopt : understudy->confirm(*cure);
  if (confirmed)
    d.diagnostic.suggest("tried: with {} it {}, with {} it {}", cure->needed, told(confirmed->with), cure->needed - 1,
                         told(confirmed->one_less));
  return true;
}

// The order of what one of its members does that resolves a circular wait, with all depths as they are.
void suggest_order(const SpatialProgram& p, const MachineOutcome& outcome, bool or_depth, Understudy* understudy,
                   Diagnosis& d) {
  std::vector<StageId> members;
  for (const std::size_t i : d.chain)
    if (outcome.waiting[i].stage) members.push_back(outcome.waiting[i].stage->stage);
  const auto exchange = find_exchange(p, members);
  if (!exchange) return;
  if (!or_depth) d.diagnostic.help.clear();
  d.diagnostic.suggest("{}{}: then the program ends, with all depths as they are", or_depth ? "or " : "",
                       exchange_text(p, *exchange));
  const auto confirmed = understudy == nullptr ? std::nullopt : understudy->confirm(*exchange);
  if (confirmed)
    d.diagnostic.suggest("tried: in that order it {}, as it is it {}", told(confirmed->with), told(confirmed->without));
}

void suggest_cure(const SpatialProgram& p, const MachineOutcome& outcome, Understudy* understudy, Diagnosis& d) {
  const bool depth = suggest_depth(p, understudy, d);
  suggest_order(p, outcome, depth, understudy, d);
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

// What is known before a run begins.
void describe(const LoadedProgram& loaded, const RunOptions& options, const Costs& costs, Report& r) {
  const SpatialProgram& p = loaded.program;
  r.version = version;
  r.program = p.header.name;
  r.program_sha256 = loaded.sha256;
  r.target = loaded.target.name;
  r.target_sha256 = loaded.target.sha256;
  r.chips = p.header.plan.chips;
  r.options = options.reported;
  r.decisions = decisions_of(p);
  r.values = options.values;
  r.predicted = costs.predicted_cycles;
  r.lower_bound = p.certificate ? p.certificate->lower_bound_cycles : costs.lower_bound_cycles;
  r.clock_ghz = to_double(loaded.target.clock_ghz);
}

void report_limit(const RunOptions& options, const RunEnd& end, RunResult& result) {
  const std::string where = fmt::format("cycle {}", end.outcome.cycles);
  result.report.verdict = Verdict::limit;
  result.status = end.limit == Limit::none ? ExitStatus::interrupted : ExitStatus::limit;
  if (end.limit == Limit::seconds) {
    result.diagnostics.error(Code::RDU7028, where, "the run reached the limit of {} seconds",
                             options.max_seconds.value_or(0));
  } else if (end.limit == Limit::memory) {
    result.diagnostics.error(Code::RDU7075, where, "the run reached the limit of {}",
                             format_bytes(options.max_memory.value_or(0)));
  } else if (end.limit == Limit::computer) {
    result.diagnostics.error(Code::RDU7076, where,
                             "the run was ended when less than a thirty-second part of the computer's memory was left");
  }
}

}  // namespace

RunResult never_ran(const LoadedProgram& loaded, const RunOptions& options) {
  RunResult result;
  describe(loaded, options, rdusim::estimate(loaded.program, loaded.target), result.report);
  result.report.verdict = Verdict::limit;
  result.status = ExitStatus::limit;
  result.struck.resize(options.faults.size());
  return result;
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

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

  const Costs costs = rdusim::estimate(p, loaded.target);
  describe(loaded, options, costs, r);
  if (p.certificate)
    r.proved = proved_and_observed(l.instances, *p.certificate, l.handshakes, l.tokens, l.semaphores, outcome.cycles);
  r.cycles = outcome.cycles;
  r.microseconds = r.clock_ghz > 0 ? static_cast<double>(r.cycles) / (r.clock_ghz * 1000) : 0;
  if (p.operators && p.operators->tokens != 0 && outcome.end == MachineOutcome::End::finished && r.microseconds > 0)
    r.tokens_per_s = static_cast<double>(p.operators->tokens) * 1e6 / r.microseconds;

  if (l.violations.any()) {
    r.verdict = Verdict::check_failed;
    result.status = ExitStatus::program_fault;
  } else if (outcome.end == MachineOutcome::End::quiescent) {
    Diagnosis d = diagnose(outcome, {l.instances, l.handshakes, l.tokens, l.semaphores, l.barriers, l.collectives,
                                     l.statistics, l.flight});
    if (d.kind == StuckKind::circular_wait && options.faults.empty()) suggest_cure(p, outcome, options.understudy, d);
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
    report_limit(options, end, result);
  } else if (compare && end.limit != Limit::none) {
    report_limit(options, end, result);  // before its values were compared
  }

  result.struck = outcome.struck;
  report_idle_faults(options.faults, finished, result);

  std::optional<Comparison> comparison;
  if (finished && options.values && sources != nullptr && result.status != ExitStatus::limit) {
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
  if (r.verdict != Verdict::pass) r.flight = l.flight.to_json();
  add_rows(loaded, l, costs, finished, comparison, r);
  if (finished) r.bound_by = bound_by(costs);
  r.events = outcome.activations;
  return result;
}

}  // namespace rdusim
