#include "sim/cli/faults_command.h"
#include "models/units/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/fault_matrix.h"
#include "sim/fault_text.h"

namespace rdusim::cli {

namespace {

constexpr std::uint32_t default_seeds = 5;

std::string list_of_kinds() {
  std::string out =
      fmt::format("{:<18} {:<19} {}\n", "kind", "place", "what happens, and the checks that are meant for it");
  for (const FaultLaw& l : fault_laws) {
    out += fmt::format("{:<18} {:<19} {} ({}{}{})\n", l.name, name_of(l.place), l.what, checks_of(l),
                       l.values ? "; needs values" : "", needs_flits(l.kind) ? "; needs --network flit" : "");
  }
  return out;
}

Result<std::vector<FaultKind>> kinds_of(const FaultsRequest& request) {
  std::vector<std::string> names;
  for (const std::string& list : request.kinds) {
    std::size_t at = 0;
    while (at <= list.size()) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      names.push_back(list.substr(at, end - at));
      std::replace(names.back().begin(), names.back().end(), '-', '_');
      at = end + 1;
    }
  }
  std::vector<FaultKind> kinds;
  for (const FaultLaw& l : fault_laws) {
    const bool named = std::find(names.begin(), names.end(), l.name) != names.end();
    if (request.timing_only && l.values && !named) continue;
    if (names.empty() || named) kinds.push_back(l.kind);
  }
  std::vector<std::string_view> known;
  for (const FaultLaw& l : fault_laws) known.push_back(l.name);
  Diagnostics d;
  for (const std::string& name : names) {
    const auto law =
        std::find_if(fault_laws.begin(), fault_laws.end(), [&](const FaultLaw& l) { return l.name == name; });
    if (law == fault_laws.end()) {
      Diagnostic& e = d.error(Code::RDU6007, "--kinds " + name, "'{}' is not a kind of fault", name);
      if (const auto near = nearest(name, known); !near.empty()) e.suggest("did you mean '{}'?", near);
      e.suggest("`rdusim faults --list` says which there are");
    } else if (law->values && request.timing_only) {
      d.error(Code::RDU6009, "--kinds " + name, "it changes values, and a timing-only run carries none")
          .suggest("run it without --timing-only");
    }
  }
  if (d.has_errors()) return d;
  return kinds;
}

RunOptions options_of(const FaultsRequest& request) {
  RunOptions o;
  o.check = check_level(request.check).value_or(CheckLevel::exact);
  o.values = !request.timing_only;
  return o;
}

}  // namespace

CommandWords words(FaultsRequest& r) {
  return {"faults",
          "breaks the machine in every way that it knows, and says what caught each fault",
          "rdusim faults prog.bin --seeds 20\n  rdusim faults prog.bin --kinds page_drop,credit_drop --json",
          {{"program", "prog.bin, or - for standard input", &r.program},
           {"--chips", "chips; a portable program is sharded as it is loaded", &r.chips},
           {"--target", "the same program on a changed machine", &r.target},
           {"--seeds", fmt::format("faults of each kind, drawn from the seeds 1 to this (default {})", default_seeds),
            &r.seeds},
           {"--kinds", "of these kinds only: KIND,KIND (repeatable)", &r.kinds},
           {"--list", "the kinds, where each strikes and the checks that are meant for it", &r.list},
           {"--timing-only", "provenance and no values; faults that change values alone are left out", &r.timing_only},
           {"--check", "exact, bound or none: how outputs are held to the reference, to see what a weaker check misses",
            &r.check},
           {"--jobs", "runs at a time (default: the computer's processors)", &r.jobs},
           {"--max-memory", "of each run: 8GB, 512MiB", &r.max_memory},
           {"--json", "as JSON", &r.json}}};
}

ExitStatus faults(const FaultsRequest& request, std::atomic<bool>& stop) {
  if (request.list) return print_result(list_of_kinds(), ExitStatus::done);
  const auto kinds = kinds_of(request);
  if (!kinds) return refuse(kinds.diagnostics());
  std::optional<Bytes> memory;
  if (!request.max_memory.empty()) memory = parse_size(request.max_memory);
  Diagnostics usage;
  if (request.program.empty()) usage.error(Code::RDU6005, "rdusim faults", "a program is needed");
  if (!request.max_memory.empty() && !memory)
    usage.error(Code::RDU6005, "--max-memory", "'{}' is not a size such as 8GB or 512MiB", request.max_memory);
  if (!check_level(request.check))
    usage.error(Code::RDU6005, "--check", "'{}' is not one of exact, bound, none", request.check);
  if (usage.has_errors()) return refuse(usage);
  auto loaded = load_program(request.program, {request.chips, request.target, false});
  if (!loaded) return fail(loaded.diagnostics());
  report(loaded->warnings);

  IsolationLimits limits;
  limits.jobs = request.jobs.value_or(std::max(1u, std::thread::hardware_concurrency()));
  limits.memory = memory;
  // The run that nothing breaks must pass: what is broken is held against it.
  const auto began = std::chrono::steady_clock::now();
  const IsolatedRun whole = run_isolated(*loaded, {options_of(request)}, limits, stop).front();
  if (stop) return ExitStatus::interrupted;
  if (!whole.ended || whole.status != ExitStatus::done) {
    write_err(whole.ended ? whole.message : fmt::format("the run was ended by signal {}\n", whole.signal));
    write_err("the program does not pass without a fault\n");
    return whole.ended ? whole.status : ExitStatus::internal;
  }
  // A fault may cost time, but not without end.
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  limits.seconds = 60 + 20 * seconds * limits.jobs;
  std::vector<FaultKind> possible = *kinds;
  if (no_flit_level(loaded->target)) std::erase_if(possible, needs_flits);
  std::vector<PlannedFault> planned = plan_faults(loaded->program, possible, request.seeds.value_or(default_seeds));
  std::vector<RunOptions> options;
  for (const PlannedFault& p : planned) {
    options.push_back(options_of(request));
    options.back().faults = {p.text};
    if (needs_flits(p.fault.kind)) options.back().network = NetworkLevel::flit;
    options.back().max_cycles = 4 * whole.cycles + 1'000'000;
  }
  std::vector<IsolatedRun> runs = run_isolated(*loaded, options, limits, stop);
  if (stop) return ExitStatus::interrupted;

  std::vector<FaultResult> results;
  bool missed = false;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const FaultFate fate = judge(planned[i].fault.kind, whole, runs[i]);
    missed = missed || fate == FaultFate::missed;
    results.push_back({std::move(planned[i]), std::move(runs[i]), fate});
  }
  Diagnostics d;
  for (const FaultResult& r : results) {
    if (r.fate == FaultFate::missed)
      d.error(Code::RDU6010, r.planned.text, "no check noticed it, and it is not harmless");
  }
  report(d);
  const std::string text = request.json ? to_text(matrix_json(*kinds, results)) : matrix_text(*kinds, results);
  return print_result(text, missed ? ExitStatus::program_fault : ExitStatus::done);
}

}  // namespace rdusim::cli
