#include "sim/cli/sweep_command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <thread>

#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/cli/tornado.h"
#include "sim/sweep/run_sweep.h"
#include "sim/sweep/sensitivity.h"

namespace rdusim::cli {

CommandWords words(SweepRequest& r) {
  return {"sweep",
          "runs many compile-and-run points from one plan, in parallel and resumable, to one table",
          "rdusim sweep examples/sweep-links.toml -o links.sweep --where 'verdict == \"pass\"' --pareto chips,cycles\n"
          "  rdusim sweep prog.bin --sensitivity --svg tornado.svg",
          {{"plan", "a sweep plan (.toml); with --sensitivity also a program (prog.bin)", &r.plan, true},
           {"-o,--output",
            "the folder that keeps the points; run again with it, a sweep goes on (default: PLAN's name "
            "with .sweep, or .sensitivity)",
            &r.folder},
           {"--jobs", "points at a time (default: the processors of this computer)", &r.jobs},
           {"--where", "only rows of which this holds: 'chips <= 8 and cycles < 40000'", &r.where},
           {"--pareto", "only rows that none beats in these columns, less being better ('-' before a name: more)",
            &r.pareto},
           {"--sensitivity",
            "moves each assumed number of the target over its range, one at a time, and prints what hangs on it, the "
            "most first (a tornado table)",
            &r.sensitivity},
           {"--metric", "of the reports, whose moves --sensitivity shows (default: time.simulated_us)", &r.metric},
           {"--numbers", "with --sensitivity, only numbers whose names begin so: hbm, links[0].latency_ns (repeatable)",
            &r.numbers},
           {"--svg", "with --sensitivity, of one point: draws the table there", &r.svg},
           {"--chips", "with --sensitivity, of a portable program: the chips that it is run on", &r.chips},
           {"--json", "JSON lines instead of CSV; with --sensitivity one JSON document", &r.json},
           {"--slurm", "runs nothing: writes array.sh, a Slurm job array, into the folder", &r.slurm},
           {"--task", "T/N: runs task T of N of a job array", &r.task},
           {"--merge", "runs nothing: makes the table of what the array's tasks left", &r.merge}}};
}

namespace {

// "3/1000".
std::optional<std::pair<std::size_t, std::size_t>> task_of(std::string_view text) {
  std::size_t task = 0;
  std::size_t of = 0;
  const char* end = text.data() + text.size();
  const auto a = std::from_chars(text.data(), end, task);
  if (a.ec != std::errc() || a.ptr == end || *a.ptr != '/') return std::nullopt;
  const auto b = std::from_chars(a.ptr + 1, end, of);
  if (b.ec != std::errc() || b.ptr != end || task >= of) return std::nullopt;
  return std::pair{task, of};
}

// The table whole into the folder, and what was asked of it on standard output.
ExitStatus finish(const SweepRequest& r, const SweepPlan& plan, const std::string& folder,
                  const std::vector<PointOutcome>& outcomes) {
  SweepTable table = table_of(plan, outcomes);
  for (const auto& [name, text] :
       {std::pair{"table.csv", to_csv(table)}, std::pair{"table.jsonl", to_json_lines(table)}}) {
    const auto written = write_file(fmt::format("{}/{}", folder, name), text);
    if (!written) return fail(written.diagnostics());
  }
  if (!r.where.empty()) {
    auto kept = where(std::move(table), r.where);
    if (!kept) return fail(kept.diagnostics());
    table = *std::move(kept);
  }
  if (!r.pareto.empty()) {
    auto kept = pareto(std::move(table), r.pareto);
    if (!kept) return fail(kept.diagnostics());
    table = *std::move(kept);
  }
  return print_result(r.json ? to_json_lines(table) : to_csv(table), ExitStatus::done);
}

// What is asked for: a plan's points, and with --sensitivity those that move the numbers of each.
struct Asked {
  SweepPlan plan;
  std::optional<SensitivityPlan> moves;  // of which `plan` is the plan
  std::string metric;
};

// A program as a plan of one point without axes. Its values have no part in its cycles.
Result<SweepPlan> plan_of_program(const SweepRequest& r, const std::string& folder) {
  auto target = machine_of_program(r.plan, folder);
  if (!target) return target.diagnostics();
  SweepPlan plan;
  plan.name = std::filesystem::path(r.plan).filename().string();
  plan.program = r.plan;
  plan.target = *std::move(target);
  plan.run = {{"timing-only", Cell(true)}};
  if (r.chips) plan.run.emplace_back("chips", Cell(std::int64_t{*r.chips}));
  plan.points.emplace_back();
  return plan;
}

Result<Asked> asked_of(const SweepRequest& r, const std::string& folder) {
  const bool program = r.sensitivity && !r.plan.ends_with(".toml");
  if (r.chips && !program) return usage("--chips: a plan says itself how many");
  auto plan = program ? plan_of_program(r, folder) : read_plan(r.plan);
  if (!plan) return plan.diagnostics();
  Asked a{*std::move(plan), std::nullopt,
          r.metric.empty()       ? simulated_time
          : r.metric == "cycles" ? "cycles.simulated"
                                 : r.metric};
  if (!r.sensitivity) return a;
  if (!r.svg.empty() && a.plan.points.size() > 1)
    return usage(fmt::format("--svg: one point is drawn, and the plan has {}", a.plan.points.size()));
  auto moves = sensitivity_plan(a.plan, a.metric, r.numbers);
  if (!moves) return moves.diagnostics();
  a.plan = moves->plan;
  a.moves = *std::move(moves);
  return a;
}

// The tornado table, beside the table of its points.
ExitStatus finish(const SweepRequest& r, const Asked& asked, const std::string& folder,
                  const std::vector<PointOutcome>& outcomes) {
  if (!asked.moves) return finish(r, asked.plan, folder, outcomes);
  const auto tables = sensitivities(*asked.moves, outcomes, asked.metric);
  if (!tables) return fail(tables.diagnostics());
  const Json json = to_json(*tables, asked.plan.name);
  std::vector<std::pair<std::string, std::string>> files = {
      {folder + "/table.csv", to_csv(table_of(asked.plan, outcomes))},
      {folder + "/sensitivity.json", to_text(json)},
  };
  if (!r.svg.empty()) files.emplace_back(r.svg, to_svg(tornado_of(tables->front(), asked.plan.name)));
  for (const auto& [path, text] : files) {
    const auto written = write_file(path, text);
    if (!written) return fail(written.diagnostics());
  }
  return print_result(r.json ? to_text(json) : to_text(*tables, asked.plan.name), ExitStatus::done);
}

// How far a sweep is, on a terminal.
class SweepProgress {
 public:
  SweepProgress() = default;
  void show(std::size_t done, std::size_t of) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (done < of && now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    if (!before_) before_ = done - 1;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double left = seconds / static_cast<double>(done - *before_) * static_cast<double>(of - done);
    write_err(fmt::format("\r\x1b[K{} of {} points, about {:.0f} s left", done, of, left));
  }
  ~SweepProgress() {
    if (shown_) write_err("\r\x1b[K");
  }
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

 private:
  bool shown_ = isatty(STDERR_FILENO) == 1;
  std::optional<std::size_t> before_;  // points that were there before
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace

ExitStatus sweep(const SweepRequest& r, std::atomic<bool>& stop) {
  if (static_cast<int>(r.slurm) + static_cast<int>(r.merge) + static_cast<int>(!r.task.empty()) > 1)
    return fail(usage("--slurm, --task and --merge exclude each other"));
  if (r.jobs && *r.jobs == 0) return fail(usage("--jobs: at least one point at a time is needed"));
  if (r.sensitivity && !(r.where + r.pareto).empty())
    return fail(usage("--where and --pareto are of a sweep's table, which --sensitivity does not print"));
  if (!r.sensitivity && (!(r.metric + r.svg).empty() || !r.numbers.empty()))
    return fail(usage("--metric, --numbers and --svg belong to --sensitivity"));
  const std::string folder =
      !r.folder.empty()
          ? r.folder
          : std::filesystem::path(r.plan).replace_extension(r.sensitivity ? ".sensitivity" : ".sweep").string();
  const auto asked = asked_of(r, folder);
  if (!asked) return fail(asked.diagnostics());
  const SweepPlan& plan = asked->plan;
  // Before anything is run: what is asked of the table must be there.
  Diagnostics wrong;
  const SweepTable empty = table_of(plan, {});
  if (!r.where.empty()) wrong.append(where(empty, r.where).diagnostics());
  if (!r.pareto.empty()) wrong.append(pareto(empty, r.pareto).diagnostics());
  if (wrong.has_errors()) return fail(wrong);

  SweepOptions options;
  options.folder = folder;
  std::error_code error;
  options.rdusim = std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.jobs = r.jobs.value_or(std::max(1u, std::thread::hardware_concurrency()));
  options.stop = &stop;
  if (!r.task.empty()) {
    options.task = task_of(r.task);
    if (!options.task) return fail(usage(fmt::format("--task: '{}' is not such as 3/1000", r.task)));
  }
  if (r.slurm) {
    if (r.sensitivity) options.words = {"--sensitivity", "--metric=" + asked->metric};
    for (const std::string& n : r.numbers) options.words.push_back("--numbers=" + n);
    if (r.chips) options.words.push_back(fmt::format("--chips={}", *r.chips));
    std::filesystem::create_directories(options.folder, error);
    const std::string script = options.folder + "/array.sh";
    const auto written = write_file(script, slurm_script(plan, options, r.plan));
    if (!written) return fail(written.diagnostics());
    chmod(script.c_str(), 0755);
    return print_result(fmt::format("{}\n", script), ExitStatus::done);
  }
  if (r.merge) {
    const auto outcomes = collect(plan, options);
    return outcomes ? finish(r, *asked, options.folder, *outcomes) : fail(outcomes.diagnostics());
  }
  auto result = [&] {
    SweepProgress progress;
    options.progress = [&](std::size_t done, std::size_t of) { progress.show(done, of); };
    return run_sweep(plan, options);
  }();
  if (!result) return fail(result.diagnostics());
  if (result->stopped) {
    write_err(fmt::format("interrupted: {} points are kept in {}; the same command goes on\n", result->outcomes.size(),
                          options.folder));
    return ExitStatus::interrupted;
  }
  if (options.task) return ExitStatus::done;
  return finish(r, *asked, options.folder, result->outcomes);
}

}  // namespace rdusim::cli
