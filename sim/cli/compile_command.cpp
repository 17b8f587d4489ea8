#include <fmt/format.h>

#include <filesystem>

#include "compiler/cost/cost.h"
#include "compiler/ir/memory_use.h"
#include "compiler/ir/print.h"
#include "compiler/program/prog_bin.h"
#include "compiler/support/file.h"
#include "compiler/support/json.h"
#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_graph.h"
#include "compiler/workload/read_workload.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/load.h"

namespace rdusim::cli {

namespace {

// A workload names files relative to itself, a program relative to itself.
void rebase_files(OperatorGraph& graph, const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path base = fs::weakly_canonical(fs::absolute(to.empty() ? "." : to, error), error);
  if (error) return;
  for (Operand& o : graph.operands) {
    auto* file = std::get_if<FileFill>(&o.fill);
    if (file == nullptr || fs::path(file->path).is_absolute()) continue;
    const fs::path now = fs::weakly_canonical(fs::absolute(fs::path(from) / file->path, error), error);
    const fs::path relative = error ? fs::path() : now.lexically_relative(base);
    if (!relative.empty()) file->path = relative.generic_string();
    error.clear();
  }
}

std::string choices(const SpatialProgram& p, const Target& target) {
  PrintOptions print_options;
  print_options.operators = print_options.tensors = print_options.stages = print_options.buffers = print_options.edges =
      false;
  print_options.placement = print_options.trees = print_options.certificate = false;
  std::string text = print(p, print_options) + print_memory_use(p, target);
  if (p.placement) {
    const Costs costs = estimate(p, target);
    text += fmt::format("predicted {} cycles, at least {}\n", with_commas(costs.predicted_cycles),
                        with_commas(costs.lower_bound_cycles));
  }
  return text;
}

Json choices_json(const SpatialProgram& p, const Target& target) {
  Json j;
  j.set("program",
        Json().set("name", p.header.name).set("chips", p.header.plan.chips).set("target", p.header.target_name));
  JsonArray collectives;
  for (const Collective& c : p.collectives) {
    collectives.push_back(Json()
                              .set("name", c.name)
                              .set("kind", name_of(c.kind))
                              .set("algorithm", name_of(c.algorithm))
                              .set("reason", c.reason));
  }
  j.set("collectives", std::move(collectives));
  JsonArray work;
  for (const Work& w : p.work) {
    Json item;
    item.set("operator", w.op.value).set("chip", w.chip.value).set("m", w.m).set("n", w.n).set("k", w.k);
    if (w.plan) {
      item.set("block_m", w.plan->block_m)
          .set("block_n", w.plan->block_n)
          .set("page_k", w.plan->page_k)
          .set("sites_m", w.plan->sites_m)
          .set("sites_n", w.plan->sites_n)
          .set("sites_k", w.plan->sites_k);
    }
    work.push_back(std::move(item));
  }
  j.set("work", std::move(work));
  Json memory;
  if (p.certificate) {
    const MemoryClaim& m = p.certificate->memory;
    memory.set("busiest_site_bytes", m.busiest_site_bytes)
        .set("site_capacity_bytes", m.site_capacity_bytes)
        .set("busiest_chip_bytes", m.busiest_chip_bytes)
        .set("chip_capacity_bytes", m.chip_capacity_bytes);
  }
  j.set("memory", std::move(memory));
  Json predicted;
  Json bound;
  if (p.placement) {
    const Costs costs = estimate(p, target);
    predicted = costs.predicted_cycles;
    bound = costs.lower_bound_cycles;
  }
  j.set("predicted_cycles", std::move(predicted)).set("lower_bound_cycles", std::move(bound));
  return j;
}

}  // namespace

ExitStatus compile(const CompileRequest& request) {
  auto target = find_target(request.target);
  const bool model = is_hf_model(request.workload);
  auto graph = model ? read_hf_model(request.workload, request.decoder) : read_workload(request.workload);
  // Both are read before either is refused, so that all that is wrong is told.
  Diagnostics wrong;
  if (!target) wrong.append(target.diagnostics());
  if (!graph) wrong.append(graph.diagnostics());
  if (wrong.has_errors()) return refuse(wrong);
  report(graph.diagnostics());

  const std::string file = model ? hf_config_path(request.workload) : request.workload;
  rebase_files(*graph, folder_of(file), folder_of(request.output));
  auto program = rdusim::compile(*graph, *target, request.options);
  if (!program) return refuse(program.diagnostics());
  report(program.diagnostics());

  const auto written = write_file(request.output, encode(*program));
  if (!written) return refuse(written.diagnostics());
  const std::string text = request.json ? to_text(choices_json(*program, *target)) : choices(*program, *target);
  if (request.output == "-") {
    write_err(text);
    return ExitStatus::done;
  }
  return print_result(text, ExitStatus::done);
}

}  // namespace rdusim::cli
