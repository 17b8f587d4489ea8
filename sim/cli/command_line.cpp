#include "sim/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "compiler/support/file.h"
#include "compiler/support/units.h"
#include "compiler/workload/hf_config.h"
#include "sim/cli/command_tree.h"
#include "sim/cli/option_values.h"
#include "sim/version.h"

namespace rdusim::cli {

namespace {

// Options as they are written, before they are judged.
struct Raw {
  CompileRequest compile;
  std::optional<std::uint32_t> compile_chips;
  std::string shard, size_by = "throughput", collective = "auto", phase, dtype, routing, experts;
  std::optional<std::uint32_t> batch, context, layers;
  bool sequence_parallel = false;
  RunRequest run;
  std::string check = "exact", network = "fast", vcd, trace_from, trace_to, trace_limit, max_memory, max_seconds,
              jitter, max_cycles;
  std::vector<std::string> set, save;
  AssembleRequest assemble;
  CheckRequest check_request;
  ShowRequest show;
  TargetsRequest targets;
  ExplainRequest explain;
  bool list = false;
  CompareRequest compare;
  FaultsRequest faults;
  HistoryRequest history;
  DashboardRequest dashboard;
  SweepRequest sweep;
  ModelRequest model;
  NetRequest net;
  TraceRequest trace;
  ViewRequest view;
  std::string shell;
};

struct Commands {
  CLI::App *compile = nullptr, *run = nullptr, *assemble = nullptr, *check = nullptr, *show = nullptr,
           *targets = nullptr, *explain = nullptr, *compare = nullptr, *faults = nullptr, *history = nullptr,
           *dashboard = nullptr, *sweep = nullptr, *model = nullptr, *net = nullptr, *trace = nullptr, *view = nullptr,
           *completion = nullptr, *man = nullptr;
};

// A command whose words stand as data.
CLI::App* add(CLI::App& app, const CommandWords& words) {
  CLI::App* command = app.add_subcommand(words.name, words.summary);
  for (const OptionWords& o : words.options) {
    const auto option = [&](auto* to) {
      if constexpr (std::is_same_v<decltype(to), bool*>)
        return command->add_flag(o.names, *to, o.help);
      else
        return command->add_option(o.names, *to, o.help);
    };
    CLI::Option* made = std::visit(option, o.to);
    if (o.required) made->required();
    if (std::holds_alternative<std::vector<std::string>*>(o.to) && o.names.starts_with("-"))
      made->allow_extra_args(false);
  }
  for (const CommandWords& w : words.commands) {
    CLI::App* below = add(*command, w);
    if (words.chosen != nullptr) below->callback([to = words.chosen, name = w.name] { *to = name; });
  }
  if (!words.commands.empty()) command->require_subcommand(1);
  command->footer("Example:\n  " + words.example);
  return command;
}

Commands describe(CLI::App& app, Raw& raw) {
  app.description(
      "rdusim compiles a model for a multi-chip dataflow machine, executes the program on a SystemC model of it, and "
      "says whether it is "
      "right, whether it finishes, how long it takes and why.");
  app.set_version_flag("--version", std::string("rdusim ") + std::string(version));
  app.require_subcommand(1);
  app.footer(
      "Example:\n  rdusim compile examples/llama-3.1-8b-down-proj.toml --chips 16 -o prog.bin && rdusim run "
      "prog.bin\n\n"
      "Exit status: 0 done, 1 the program is at fault, 2 the request is, 3 stopped at a limit, 70 a fault of rdusim, "
      "130 interrupted.");
  Commands c;

  c.compile = app.add_subcommand("compile", "compiles a workload to a program");
  c.compile
      ->add_option("workload", raw.compile.workload,
                   "workload file (.toml), or - for standard input; an ONNX model (.onnx); a Hugging Face config.json, "
                   "or a folder that has one")
      ->required();
  c.compile->add_option("-o,--output", raw.compile.output, "the program, or - for standard output")->required();
  c.compile->add_option("--target", raw.compile.target, "a machine by name, or its file")->capture_default_str();
  c.compile->add_option("--chips", raw.compile_chips,
                        "chips to spread the model over (default: portable, decided when it is run)");
  c.compile->add_option("--shard", raw.shard, "row, column or tensor (default: what fits the workload)");
  c.compile
      ->add_option(
          "--collective", raw.collective,
          "auto, through-one, direct, ring, halving-doubling, tree, hierarchical (within nodes, then between them), "
          "or reduce (to one chip)")
      ->capture_default_str();
  c.compile->add_flag("--uneven", raw.compile.options.plan.uneven,
                      "accept slices of different sizes, in whole tiles or heads");
  c.compile->add_flag("--pad", raw.compile.options.plan.pad,
                      "cut within tiles and pad each slice to whole ones; the report counts the padding");
  c.compile->add_flag("--relaunch", raw.compile.options.plan.relaunch,
                      "have the host launch each repeated layer anew, instead of all as one stream");
  c.compile->add_option("--size-by", raw.size_by, "depths of buffers: throughput, or minimum (the least that end)")
      ->capture_default_str();
  c.compile->add_option("--stop-after", raw.compile.options.stop_after,
                        fmt::format("one of the passes {}", fmt::join(pass_names(), ", ")));
  c.compile->add_option("--phase", raw.phase, "of a Hugging Face model: decode (default) or prefill");
  c.compile->add_option("--batch", raw.batch, "sequences, of a Hugging Face model (default: 1)");
  c.compile->add_option("--context", raw.context,
                        "positions that attention sees, of a Hugging Face model (default: 4096, or all that it has)");
  c.compile->add_option("--routing", raw.routing,
                        "of a mixture of experts: a file with a line a token, its experts, as 6,2");
  c.compile->add_option(
      "--experts", raw.experts,
      "of a mixture of experts: sharded (default: each over all chips), parallel (each on one, results to all) or "
      "all-to-all (each on one, tokens to it and back)");
  c.compile->add_flag("--sequence-parallel", raw.sequence_parallel,
                      "spread norms and residuals of a Hugging Face model over the chips, by rows of tokens");
  c.compile->add_option("--layers", raw.layers, "only the first so many, of a Hugging Face model");
  c.compile->add_option("--dtype", raw.dtype, "bf16, fp32 or fp8, of a Hugging Face model (default: its weights')");
  c.compile->add_flag("--json", raw.compile.json, "what was chosen, as JSON");
  c.compile->footer(
      "Example:\n  rdusim compile examples/llama-3.1-8b-down-proj.toml --target sn40l --chips 16 --shard row -o "
      "prog.bin");

  c.run = app.add_subcommand("run", "executes a program on the machine and checks it");
  c.run->add_option("program", raw.run.program, "prog.bin, or - for standard input")->required();
  c.run->add_option("--chips", raw.run.chips, "chips; a portable program is sharded as it is loaded");
  c.run->add_option("--target", raw.run.target, "the same program on a changed machine");
  c.run->add_option("--report", raw.run.report, "writes the report (JSON), or - for standard output");
  c.run->add_flag("--explain", raw.run.explain,
                  "the difference between simulated and predicted cycles, cause by cause");
  c.run->add_option("--check", raw.check, "exact, bound or none")->capture_default_str();
  c.run->add_flag("--timing-only", raw.run.timing_only, "provenance and cycles, no values");
  c.run->add_option("--set", raw.set, "TENSOR=FILE: elements of an input from .npy or safetensors (repeatable)")
      ->allow_extra_args(false);
  c.run->add_option("--save", raw.save, "TENSOR=FILE: writes an output as .npy (repeatable)")->allow_extra_args(false);
  c.run
      ->add_option("--inject", raw.run.faults,
                   "KIND@PLACE[#INSTANCE][:NTH]: breaks the machine there (repeatable); see `rdusim faults --list`")
      ->allow_extra_args(false);
  c.run->add_flag("--collect-violations", raw.run.collect_violations, "goes on after a violation");
  c.run->add_flag("--allow-refuted", raw.run.allow_refuted, "runs a program with a refuted obligation");
  c.run->add_option("--dot", raw.run.dot, "writes who waits for whom (Graphviz), of a run that is stuck");
  c.run->add_option("--max-cycles", raw.max_cycles, "stops there, with status 3");
  c.run->add_option("--max-seconds", raw.max_seconds, "stops then, with status 3");
  c.run->add_option("--max-memory", raw.max_memory,
                    "begins nothing that needs more, and stops what comes to hold more, with status 3: 8GB, 512MiB");
  c.run->add_option("--network", raw.network, "the on-chip network: fast, or flit (cycle by cycle, slower)")
      ->capture_default_str();
  c.run
      ->add_option("--processes", raw.run.processes,
                   "of this computer, over which the chips are divided: the same results")
      ->capture_default_str();
  c.run
      ->add_option("--trace", raw.run.trace.files,
                   "writes what happens: .rdulog for `rdusim trace`, .pftrace for ui.perfetto.dev, .json (Chrome), "
                   ".vcd, .fst (repeatable)")
      ->allow_extra_args(false);
  c.run->add_option("--vcd", raw.vcd, "writes signals, for GTKWave and Surfer");
  c.run
      ->add_option("--trace-filter", raw.run.trace.filters,
                   "KEY=VALUE[,VALUE...]: chip=0..3, site=4:7, stage=down.fold*, kind=firing (repeatable)")
      ->allow_extra_args(false);
  c.run->add_option("--trace-from", raw.trace_from, "cycle at which traces begin");
  c.run->add_option("--trace-to", raw.trace_to, "last cycle of traces");
  c.run->add_option("--trace-limit", raw.trace_limit, "bytes of each trace: 100MB; the rest is counted");
  c.run->add_option("--jitter", raw.jitter, "SEED: links and stages are late at random; values must stay the same");
  c.run->add_flag("--no-reuse", raw.run.no_reuse,
                  "simulates each launch of a relaunched section, whether or not it could differ from the one before");
  c.run->add_flag("--json", raw.run.json, "the report on standard output instead of the summary");
  c.run->footer(
      "Example:\n  rdusim run prog.bin --chips 16 --report report.json\n"
      "  rdusim run prog.bin --timing-only --processes 2 --max-memory 8GB --explain");

  c.assemble = app.add_subcommand("assemble", "makes a program of its JSON; runs the passes whose part is absent");
  c.assemble->add_option("file", raw.assemble.file, "what `rdusim show --json` writes, or - for standard input")
      ->required();
  c.assemble->add_option("-o,--output", raw.assemble.output, "the program, or - for standard output")->required();
  c.assemble->add_flag("--allow-refuted", raw.assemble.allow_refuted,
                       "writes a program that hangs or sums wrongly, with a certificate that says so, to be run with "
                       "`run --allow-refuted`");
  c.assemble->footer("Example:\n  rdusim show prog.bin --json > prog.json && rdusim assemble prog.json -o again.bin");

  c.check = app.add_subcommand("check", "verifies a program and its certificate without running it");
  c.check->add_option("program", raw.check_request.program, "prog.bin, or - for standard input")->required();
  c.check->add_flag("--minimum-depths", raw.check_request.minimum_depths,
                    "a table of all buffers: how deep they are, and how deep they must be for the program to end");
  c.check->add_flag("--json", raw.check_request.json, "as JSON");
  c.check->footer("Example:\n  rdusim check prog.bin\n  rdusim check prog.bin --minimum-depths");

  c.show = app.add_subcommand("show", "the program as text");
  c.show->add_option("program", raw.show.program, "prog.bin, or - for standard input")->required();
  c.show->add_option("name", raw.show.name, "one stage, buffer, tensor, or 'edge N'");
  c.show->add_flag("--json", raw.show.json, "all of it, as `rdusim assemble` reads it");
  c.show->add_flag("--dot", raw.show.dot, "as a graph, for Graphviz");
  c.show->footer("Example:\n  rdusim show prog.bin\n  rdusim show prog.bin --dot | dot -Tsvg > prog.svg");

  c.targets = app.add_subcommand("targets", "describes the machines");
  c.targets->add_option("name", raw.targets.name, "a machine by name, or its file");
  c.targets->add_flag("--json", raw.targets.json, "as JSON");
  c.targets->footer("Example:\n  rdusim targets\n  rdusim targets sn40l");

  c.explain = app.add_subcommand("explain", "explains a diagnostic");
  c.explain->add_option("code", raw.explain.code, "RDU4102, 4102 or axis-not-divisible");
  c.explain->add_flag("--list", raw.list, "all of them");
  c.explain->add_flag("--json", raw.explain.json, "as JSON");
  c.explain->footer("Example:\n  rdusim explain RDU4102");

  c.compare = add(app, words(raw.compare));
  c.faults = add(app, words(raw.faults));
  c.history = add(app, words(raw.history));
  c.dashboard = add(app, words(raw.dashboard));
  c.sweep = add(app, words(raw.sweep));
  c.model = add(app, words(raw.model));
  c.net = add(app, words(raw.net));
  c.trace = add(app, words(raw.trace));
  c.view = add(app, words(raw.view));

  c.completion = app.add_subcommand("completion", "writes the script by which a shell completes the words of rdusim");
  c.completion->add_option("shell", raw.shell, completion_shells)->required();
  c.completion->footer("Example:\n  source <(rdusim completion bash)");

  c.man = app.add_subcommand("man", "writes the man page");
  c.man->footer("Example:\n  rdusim man | man -l -");
  return c;
}

TreeCommand tree_of(const CLI::App& app) {
  TreeCommand c{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* o : app.get_options()) {
    TreeOption option;
    for (const std::string& name : o->get_snames()) option.names.push_back("-" + name);
    for (const std::string& name : o->get_lnames()) option.names.push_back("--" + name);
    if (option.names.empty()) option.place = o->get_name(true);
    option.help = o->get_description();
    option.standard = o->get_default_str();
    option.value = option.place.empty() && o->get_type_size() > 0 && o->get_expected_max() > 0;
    option.required = o->get_required();
    option.repeats = o->get_expected_max() > 1;
    c.options.push_back(std::move(option));
  }
  for (const CLI::App* below : app.get_subcommands({})) c.commands.push_back(tree_of(*below));
  return c;
}

// What is asked of a Hugging Face model; nothing may be asked so of another workload.
Result<DecoderRequest> decoder_request(const Raw& raw) {
  if (!is_hf_model(raw.compile.workload)) {
    if (raw.phase.empty() && raw.dtype.empty() && raw.routing.empty() && raw.experts.empty() && !raw.batch &&
        !raw.context && !raw.layers && !raw.sequence_parallel)
      return DecoderRequest{};
    return usage(
        "--phase, --batch, --context, --layers, --dtype, --routing, --experts and --sequence-parallel belong to a "
        "Hugging Face model, a config.json or a folder that has one");
  }
  DecoderRequest r;
  Diagnostics wrong;
  if (!raw.phase.empty()) {
    const auto phase = decoder_phase(raw.phase);
    wrong.append(phase.diagnostics());
    if (phase) r.phase = *phase;
  }
  if (!raw.dtype.empty()) {
    const auto dtype = decoder_dtype(raw.dtype);
    wrong.append(dtype.diagnostics());
    if (dtype) r.dtype = *dtype;
  }
  if (wrong.has_errors()) return wrong;
  if (raw.batch) r.batch = *raw.batch;
  if (raw.context) r.context = *raw.context;
  if (raw.layers) r.layers = *raw.layers;
  r.sequence_parallel = raw.sequence_parallel;
  r.routing = raw.routing;
  if (raw.experts == "parallel") {
    r.experts = ExpertPlacement::parallel;
  } else if (raw.experts == "all-to-all") {
    if (!raw.compile_chips) return usage("--experts all-to-all deals tokens to chips: --chips says to how many");
    if (r.sequence_parallel)
      return usage("--experts all-to-all deals out tokens, and so does --sequence-parallel: one of the two");
    r.experts = ExpertPlacement::all_to_all;
  } else if (!raw.experts.empty() && raw.experts != "sharded") {
    return usage(fmt::format("--experts is sharded, parallel or all-to-all, not '{}'", raw.experts));
  }
  r.chips = std::max(raw.compile_chips.value_or(1), 1u);
  return r;
}

Result<Request> compile_request(Raw& raw) {
  CompileRequest& r = raw.compile;
  const auto decoder = decoder_request(raw);
  if (!decoder) return decoder.diagnostics();
  r.decoder = *decoder;
  ShardPlan& plan = r.options.plan;
  plan.portable = !raw.compile_chips;
  plan.chips = raw.compile_chips.value_or(1);
  if (plan.chips == 0) {
    Diagnostics d;
    d.error(Code::RDU4108, "--chips", "0 chips are asked for").suggest("ask for one chip or more");
    return d;
  }
  if (raw.shard == "row")
    plan.kind = ShardKind::row;
  else if (raw.shard == "column")
    plan.kind = ShardKind::column;
  else if (raw.shard == "tensor")
    plan.kind = ShardKind::tensor;
  else if (!raw.shard.empty())
    return usage(fmt::format("--shard: '{}' is not one of row, column, tensor", raw.shard));

  std::string algorithm = raw.collective;
  std::replace(algorithm.begin(), algorithm.end(), '_', '-');
  if (algorithm == "auto")
    plan.algorithm = CollectiveAlgorithm::automatic;
  else if (algorithm == "through-one")
    plan.algorithm = CollectiveAlgorithm::through_one;
  else if (algorithm == "direct")
    plan.algorithm = CollectiveAlgorithm::direct;
  else if (algorithm == "ring")
    plan.algorithm = CollectiveAlgorithm::ring;
  else if (algorithm == "reduce") {
    plan.algorithm = CollectiveAlgorithm::through_one;
    plan.collective = CollectiveKind::reduce;
  } else if (algorithm == "halving-doubling") {
    plan.algorithm = CollectiveAlgorithm::halving_doubling;
  } else if (algorithm == "tree") {
    plan.algorithm = CollectiveAlgorithm::tree;
  } else if (algorithm == "hierarchical") {
    plan.algorithm = CollectiveAlgorithm::hierarchical;
  } else {
    return usage(
        fmt::format("--collective: '{}' is not one of auto, through-one, direct, ring, halving-doubling, tree, "
                    "hierarchical, reduce",
                    raw.collective));
  }
  if (raw.size_by == "minimum")
    plan.least_depths = true;
  else if (raw.size_by != "throughput")
    return usage(fmt::format("--size-by: '{}' is not one of throughput, minimum", raw.size_by));
  if (plan.uneven && plan.pad) return usage("--uneven and --pad exclude each other");
  return Request(std::move(r));
}

Result<Request> run_request(Raw& raw) {
  RunRequest& r = raw.run;
  r.flit_network = raw.network == "flit";
  if (!r.flit_network && raw.network != "fast")
    return usage(fmt::format("--network: '{}' is not one of fast, flit", raw.network));
  if (!raw.vcd.empty()) {
    if (std::filesystem::path(raw.vcd).extension() != ".vcd") return usage("--vcd: its file ends in .vcd");
    r.trace.files.push_back(raw.vcd);
  }
  constexpr std::uint32_t most_processes = 256;
  if (r.processes == 0 || r.processes > most_processes)
    return usage(fmt::format("--processes: {} is not a number from 1 to {}", r.processes, most_processes));
  const auto level = check_level(raw.check);
  if (!level) return usage(fmt::format("--check: '{}' is not one of exact, bound, none", raw.check));
  r.check = *level;
  if (r.chips && *r.chips == 0) return usage("--chips: a program runs on at least one chip");
  for (const auto& [words, list, name] :
       {std::tuple{&raw.set, &r.set, "--set"}, std::tuple{&raw.save, &r.save, "--save"}}) {
    for (const std::string& word : *words) {
      auto a = assignment(word);
      if (!a) return usage(fmt::format("{}: '{}' is not TENSOR=FILE", name, word));
      list->push_back(*std::move(a));
    }
  }
  if (r.timing_only && !r.save.empty()) return usage("--save needs values, and --timing-only has none");
  if (!raw.max_cycles.empty()) {
    r.max_cycles = parse_count(raw.max_cycles);
    if (!r.max_cycles) return usage(fmt::format("--max-cycles: '{}' is not a number of cycles", raw.max_cycles));
  }
  if (!raw.jitter.empty()) {
    r.jitter = parse_count(raw.jitter);
    if (!r.jitter) return usage(fmt::format("--jitter: '{}' is not a seed, a number below 2^64", raw.jitter));
  }
  if (!raw.max_seconds.empty()) {
    const auto seconds = parse_decimal(raw.max_seconds);
    if (!seconds) return usage(fmt::format("--max-seconds: '{}' is not a number of seconds", raw.max_seconds));
    r.max_seconds = to_double(*seconds);
  }
  if (!raw.max_memory.empty()) {
    r.max_memory = parse_size(raw.max_memory);
    if (!r.max_memory)
      return usage(fmt::format("--max-memory: '{}' is not a size such as 8GB or 512MiB", raw.max_memory));
  }
  for (const auto& [name, text, to] : {std::tuple{"--trace-from", &raw.trace_from, &r.trace.from},
                                       std::tuple{"--trace-to", &raw.trace_to, &r.trace.to}}) {
    if (text->empty()) continue;
    *to = parse_count(*text);
    if (!*to) return usage(fmt::format("{}: '{}' is not a cycle", name, *text));
  }
  if (!raw.trace_limit.empty()) {
    r.trace.limit = parse_size(raw.trace_limit);
    if (!r.trace.limit)
      return usage(fmt::format("--trace-limit: '{}' is not a size such as 8GB or 512MiB", raw.trace_limit));
  }
  if (r.trace.files.empty() && (!r.trace.filters.empty() || r.trace.from || r.trace.to || r.trace.limit))
    return usage("--trace-filter, --trace-from, --trace-to and --trace-limit are of a --trace or --vcd");
  if (r.trace.from && r.trace.to && *r.trace.from > *r.trace.to)
    return usage(fmt::format("--trace-from {} comes after --trace-to {}", *r.trace.from, *r.trace.to));
  std::vector<std::string> written = r.trace.files;
  if (!r.report.empty()) written.push_back(r.report);
  std::sort(written.begin(), written.end());
  if (const auto twice = std::adjacent_find(written.begin(), written.end()); twice != written.end() && *twice != "-")
    return usage(fmt::format("'{}' would be written twice", *twice));
  if (r.json && r.report == "-") return usage("--json and --report - both write the report to standard output");
  return Request(std::move(r));
}

}  // namespace

namespace {

// The first option that the command does not have, and the one that may have been meant.
void suggest_option(const CLI::App& command, const std::vector<std::string>& arguments, Diagnostic& problem) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options()) {
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const std::string& word : arguments) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (const auto near = nearest(name, views); !near.empty()) problem.suggest("did you mean '{}'?", near);
    return;
  }
}

}  // namespace

TreeCommand command_tree() {
  CLI::App app("", "rdusim");
  Raw raw;
  describe(app, raw);
  return tree_of(app);
}

Result<Request> parse_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("", "rdusim");
  Raw raw;
  const Commands commands = describe(app, raw);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return Request(TextRequest{app.help()});
  } catch (const CLI::CallForAllHelp&) {
    return Request(TextRequest{app.help("", CLI::AppFormatMode::All)});
  } catch (const CLI::CallForVersion& e) {
    return Request(TextRequest{std::string(e.what()) + "\n"});
  } catch (const CLI::ParseError& e) {
    Diagnostics d;
    Diagnostic& problem = d.error(Code::RDU6005, "rdusim", "{}", e.what());
    if (!arguments.empty() && app.get_subcommands().empty() && !arguments.front().starts_with("-")) {
      std::vector<std::string> names;
      for (const CLI::App* s : app.get_subcommands({})) names.push_back(s->get_name());
      const std::vector<std::string_view> views(names.begin(), names.end());
      problem.message = fmt::format("'{}' is not a command", arguments.front());
      if (const auto near = nearest(arguments.front(), views); !near.empty())
        problem.suggest("did you mean '{}'?", near);
      problem.suggest("the commands are {}", fmt::join(names, ", "));
    } else if (arguments.empty()) {
      problem.message = "a command is needed";
      problem.suggest("see `rdusim --help`");
    } else {
      const auto selected = app.get_subcommands();
      if (!selected.empty()) suggest_option(*selected.front(), arguments, problem);
      problem.suggest("see `rdusim {}{}--help`", selected.empty() ? "" : selected.front()->get_name(),
                      selected.empty() ? "" : " ");
    }
    return d;
  }
  if (commands.compile->parsed()) return compile_request(raw);
  if (commands.run->parsed()) return run_request(raw);
  if (commands.assemble->parsed()) return Request(raw.assemble);
  if (commands.check->parsed()) return Request(raw.check_request);
  if (commands.show->parsed()) {
    if (raw.show.json && raw.show.dot) return usage("--json and --dot exclude each other");
    if (!raw.show.name.empty() && (raw.show.json || raw.show.dot))
      return usage("one part by its name is shown as text only");
    return Request(raw.show);
  }
  if (commands.targets->parsed()) return Request(raw.targets);
  if (commands.compare->parsed()) return Request(raw.compare);
  if (commands.faults->parsed()) return Request(raw.faults);
  if (commands.history->parsed()) return Request(raw.history);
  if (commands.dashboard->parsed()) return Request(raw.dashboard);
  if (commands.sweep->parsed()) return Request(raw.sweep);
  if (commands.model->parsed()) return Request(raw.model);
  if (commands.net->parsed()) return Request(raw.net);
  if (commands.trace->parsed()) return Request(raw.trace);
  if (commands.view->parsed()) return Request(raw.view);
  if (commands.man->parsed()) return Request(TextRequest{man_page(tree_of(app))});
  if (commands.completion->parsed()) {
    std::string script = completion_script(tree_of(app), raw.shell);
    if (script.empty()) return usage(fmt::format("completion: '{}' is not one of {}", raw.shell, completion_shells));
    return Request(TextRequest{std::move(script)});
  }
  if (raw.explain.code.empty() && !raw.list) return usage("explain: a code is needed, or --list");
  if (raw.list) raw.explain.code.clear();
  return Request(raw.explain);
}

}  // namespace rdusim::cli
