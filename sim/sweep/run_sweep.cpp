#include "sim/sweep/run_sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include "compiler/support/file.h"
#include "compiler/support/toml.h"
#include "compiler/target/target.h"
#include "sim/compare/read_report.h"
#include "sim/sweep/change_toml.h"
#include "sim/sweep/child.h"

namespace rdusim {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t row_bytes_limit = std::uint64_t{1} << 20;
constexpr std::uint64_t workload_bytes_limit = std::uint64_t{4} << 20;
constexpr std::size_t array_tasks = 1000;
constexpr std::uint64_t program_bytes_limit = std::uint64_t{1} << 40;
constexpr const char* default_target = "sn40l";

// Held for as long as this process works in the folder; the system lets go of it however the process ends.
class FolderLock {
 public:
  FolderLock(const std::string& folder, bool shared) {
    descriptor_ = open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    held_ = descriptor_ >= 0 && flock(descriptor_, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0;
  }
  ~FolderLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool opened() const { return descriptor_ >= 0; }
  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

// "--chips=4", "--pad"; a flag that is false, or what is absent, is nothing.
void add_option(std::vector<std::string>& words, const std::string& name, const Cell& value) {
  if (value.index() == 0) return;
  if (const bool* flag = std::get_if<bool>(&value)) {
    if (*flag) words.push_back("--" + name);
    return;
  }
  words.push_back(fmt::format("--{}={}", name, to_string(value)));
}

std::string base_target(const SweepPlan& plan) {
  return plan.target.empty() ? default_target : plan.target;
}

// An axis overrides what every point has.
void put(std::vector<std::pair<std::string, Cell>>& into, const std::string& name, const Cell& value) {
  std::erase_if(into, [&](const auto& o) { return o.first == name; });
  into.emplace_back(name, value);
}

Result<std::string> changed(const std::string& text, const std::string& from, Code code,
                            const std::vector<std::pair<std::string, Cell>>& values) {
  auto document = parse_toml(text, from, code);
  if (!document) return document.diagnostics();
  for (const auto& [path, value] : values) {
    const Diagnostics d = change(*document, *parse_path(path), value, fmt::format("{} of {}", path, from));
    if (d.has_errors()) return d;
  }
  make_files_absolute(*document, fs::path(from).parent_path().string());
  return to_toml(*document);
}

// The two commands of one point; compile is empty where the plan's program is compiled already, and the files that they need.
struct PointCommands {
  std::vector<std::string> compile, run;
  std::vector<std::pair<std::string, std::string>> files;  // path, contents
};

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const SweepOptions& options) : plan_(plan), options_(options) {}

  Diagnostics prepare() {
    std::error_code error;
    fs::create_directories(options_.folder + "/rows", error);
    Diagnostics d;
    if (error) {
      d.error(Code::RDU5008, options_.folder, "it cannot be made: {}", error.message());
      return d;
    }
    lock_.emplace(options_.folder, options_.task.has_value());
    if (!lock_->opened()) {
      d.error(Code::RDU5008, options_.folder, "it cannot be written to");
    } else if (!lock_->held()) {
      d.error(Code::RDU8068, options_.folder, "another sweep works in it");
    }
    if (d.has_errors()) return d;
    const auto first = commands(0);
    if (!first) return first.diagnostics();
    return claim();
  }

  std::string row_file(std::size_t point) const { return fmt::format("{}/rows/{:06}.json", options_.folder, point); }

  // The outcome of a point that was run before; nothing where there is none, or it is not whole.
  std::optional<PointOutcome> known(std::size_t point) const {
    const std::string path = row_file(point);
    std::error_code error;
    if (!fs::exists(path, error)) return std::nullopt;
    const auto text = read_file(path, row_bytes_limit);
    if (!text) return std::nullopt;
    const auto json = parse_json(*text, path, Code::RDU8067);
    if (!json) return std::nullopt;
    const Json* verdict = json->find("verdict");
    const Json* code = json->find("error");
    const Json* metrics = json->find("metrics");
    if (verdict == nullptr || verdict->as_string() == nullptr || metrics == nullptr || metrics->as_array() == nullptr ||
        metrics->as_array()->size() != plan_.metrics.size())
      return std::nullopt;
    PointOutcome o;
    o.point = point;
    o.verdict = *verdict->as_string();
    if (code != nullptr && code->as_string() != nullptr) o.error = *code->as_string();
    for (const Json& m : *metrics->as_array()) {
      if (const auto whole = m.as_int64())
        o.metrics.emplace_back(*whole);
      else if (const auto real = m.as_number())
        o.metrics.emplace_back(*real);
      else
        o.metrics.emplace_back();
    }
    return o;
  }

  // Runs one point and writes its row. Nothing where it was stopped. Errors: where the row cannot be written.
  Result<std::optional<PointOutcome>> run(std::size_t point) {
    const std::string work = fmt::format("{}/work/{:06}", options_.folder, point);
    std::error_code error;
    fs::remove_all(work, error);
    fs::create_directories(work, error);
    PointOutcome o;
    o.point = point;
    o.verdict = "refused";
    o.metrics.resize(plan_.metrics.size());
    const auto made = commands(point);
    if (!made) {
      o.error = fmt::format("RDU{}", static_cast<int>(made.diagnostics().list().front().code));
    } else if (!execute(*made, work, o)) {
      return std::optional<PointOutcome>();
    }
    fs::remove_all(work, error);
    Json row;
    row.set("point", static_cast<std::uint64_t>(point)).set("verdict", o.verdict);
    row.set("error", o.error.empty() ? Json() : Json(o.error));
    JsonArray metrics;
    for (const Cell& c : o.metrics) metrics.push_back(to_json(c));
    row.set("metrics", std::move(metrics));
    const auto written = write_file(row_file(point), to_text(row, true) + "\n");
    if (!written) return written.diagnostics();
    return std::optional(std::move(o));
  }

 private:
  // Says of which plan the folder is, or holds it to that.
  Diagnostics claim() {
    const std::string path = options_.folder + "/sweep.json";
    const std::string text = to_text(identity());
    std::error_code error;
    Diagnostics d;
    if (fs::exists(path, error)) {
      const auto there = read_file(path, row_bytes_limit);
      if (!there) return there.diagnostics();
      if (*there != text) {
        d.error(Code::RDU8067, options_.folder,
                "it holds the points of another plan, workload, target or version of rdusim");
      }
      return d;
    }
    const auto written = write_file(path, text);
    return written ? d : written.diagnostics();
  }

  Json identity() {
    std::string all;
    for (const SweepPoint& p : plan_.points) {
      for (const Cell& c : p.values) all += fmt::format("{}:{}\n", c.index(), to_string(c));
    }
    for (const auto* options : {&plan_.compile, &plan_.run}) {
      for (const auto& [name, value] : *options) all += fmt::format("{}={}\n", name, to_string(value));
    }
    for (const std::string& m : plan_.metrics) all += m + "\n";
    const auto workload = plan_.program.empty() ? read_file(plan_.workload, workload_bytes_limit)
                                                : read_file(plan_.program, program_bytes_limit);
    all += workload ? sha256(std::string_view(*workload)) : plan_.workload;  // of a folder its path has to do
    if (const auto target = find_target(base_target(plan_))) all += target->sha256;
    JsonArray axes;
    for (const std::string& a : plan_.axes) axes.emplace_back(a);
    return Json()
        .set("schema", "rdusim.sweep/1")
        .set("name", plan_.name)
        .set("points", static_cast<std::uint64_t>(plan_.points.size()))
        .set("axes", std::move(axes))
        .set("sha256", sha256(std::string_view(all)));
  }

  Result<PointCommands> commands(std::size_t point) const {
    const SweepPoint& p = plan_.points[point];
    const std::string work = fmt::format("{}/work/{:06}", options_.folder, point);
    PointCommands c;
    if (plan_.program.empty()) c.compile = {options_.rdusim, "compile", "", "-o", work + "/prog.bin"};
    c.run = {options_.rdusim, "run", plan_.program.empty() ? work + "/prog.bin" : plan_.program, "--report",
             work + "/report.json"};
    std::string target = plan_.target;
    std::string workload = plan_.workload;
    std::vector<std::pair<std::string, Cell>> compile = plan_.compile;
    std::vector<std::pair<std::string, Cell>> run = plan_.run;
    std::vector<std::pair<std::string, Cell>> of_workload;
    bool changes_target = false;
    for (std::size_t a = 0; a < plan_.axes.size(); ++a) {
      const Cell& value = p.values[a];
      const std::string& name = plan_.axes[a];
      if (value.index() == 0) continue;
      if (name == "target")
        target = to_string(value);
      else if (name.starts_with("target."))
        changes_target = true;
      else if (name.starts_with("workload."))
        put(of_workload, name.substr(9), value);
      else if (name.starts_with("run."))
        put(run, name.substr(4), value);
      else
        put(compile, name, value);
    }
    if (changes_target) {
      auto made = target_of(plan_, point);
      if (!made) return made.diagnostics();
      target = work + "/target.toml";
      c.files.emplace_back(target, std::move(made->text));
    }
    if (!of_workload.empty()) {
      const auto original = read_file(workload, workload_bytes_limit);
      if (!original) return original.diagnostics();
      auto text = changed(*original, workload, Code::RDU1003, of_workload);
      if (!text) return text.diagnostics();
      workload = work + "/workload.toml";
      c.files.emplace_back(workload, *std::move(text));
    }
    if (!c.compile.empty()) c.compile[2] = workload;
    if (!target.empty()) (c.compile.empty() ? c.run : c.compile).push_back("--target=" + target);
    for (const auto& [name, value] : compile) add_option(c.compile, name, value);
    for (const auto& [name, value] : run) add_option(c.run, name, value);
    return c;
  }

  // False where it was stopped.
  bool execute(const PointCommands& c, const std::string& work, PointOutcome& o) const {
    for (const auto& [path, text] : c.files) {
      if (!write_file(path, text)) {
        o.error = "RDU5008";
        return true;
      }
    }
    const std::string errors = work + "/errors.txt";
    std::optional<int> status = 0;
    if (!c.compile.empty()) status = run_child(c.compile, errors, options_.stop);
    if (status == 0) status = run_child(c.run, errors, options_.stop);
    if (!status) return false;
    o.error = first_code(errors);
    const auto report = read_report(work + "/report.json");
    if (report) {
      o.verdict = report->verdict;
      const std::vector<Metric> folded = fold_chips(report->metrics);
      for (std::size_t i = 0; i < plan_.metrics.size(); ++i) {
        for (const Metric& m : folded) {
          if (m.name == plan_.metrics[i]) std::visit([&](auto v) { o.metrics[i] = v; }, m.value);
        }
      }
    }
    if (*status == 70 || *status >= 126) o.verdict = "crashed";
    return true;
  }

  static std::string first_code(const std::string& file) {
    const auto text = read_file(file, row_bytes_limit);
    if (!text) return "";
    const auto at = text->find("error RDU");
    return at == std::string::npos ? "" : text->substr(at + 6, 7);
  }

  const SweepPlan& plan_;
  const SweepOptions& options_;
  std::optional<FolderLock> lock_;
};

}  // namespace

Result<PointTarget> target_of(const SweepPlan& plan, std::size_t point) {
  std::string name = base_target(plan);
  std::vector<std::pair<std::string, Cell>> values;
  for (std::size_t a = 0; a < plan.points[point].values.size(); ++a) {
    const Cell& value = plan.points[point].values[a];
    if (value.index() == 0) continue;
    if (plan.axes[a] == "target") name = to_string(value);
    if (plan.axes[a].starts_with("target.")) put(values, plan.axes[a].substr(7), value);
  }
  auto found = find_target(name);
  if (!found) return found.diagnostics();
  if (values.empty()) return PointTarget{std::move(found->name), std::move(found->text)};
  auto text = changed(found->text, found->name, Code::RDU2002, values);
  if (!text) return text.diagnostics();
  return PointTarget{std::move(found->name), *std::move(text)};
}

Result<SweepResult> run_sweep(const SweepPlan& plan, const SweepOptions& options) {
  Sweep sweep(plan, options);
  const Diagnostics wrong = sweep.prepare();
  if (wrong.has_errors()) return wrong;
  const std::size_t first = options.task ? options.task->first : 0;
  const std::size_t step = options.task ? options.task->second : 1;
  SweepResult result;
  std::vector<std::size_t> left;
  for (std::size_t p = first; p < plan.points.size(); p += step) {
    if (auto o = sweep.known(p))
      result.outcomes.push_back(*std::move(o));
    else
      left.push_back(p);
  }
  const std::size_t total = result.outcomes.size() + left.size();
  std::mutex mutex;
  Diagnostics problems;
  std::size_t next = 0;
  const auto work = [&] {
    for (;;) {
      std::size_t point = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == left.size() || problems.has_errors() || (options.stop != nullptr && options.stop->load())) return;
        point = left[next++];
      }
      auto outcome = sweep.run(point);
      const std::lock_guard lock(mutex);
      problems.append(outcome.diagnostics());
      if (!outcome || !*outcome) continue;
      result.outcomes.push_back(**std::move(outcome));
      if (options.progress) options.progress(result.outcomes.size(), total);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min<std::size_t>(options.jobs, left.size()); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  if (problems.has_errors()) return problems;
  result.stopped = result.outcomes.size() != total;
  std::sort(result.outcomes.begin(), result.outcomes.end(),
            [](const PointOutcome& a, const PointOutcome& b) { return a.point < b.point; });
  return result;
}

Result<std::vector<PointOutcome>> collect(const SweepPlan& plan, const SweepOptions& options) {
  Sweep sweep(plan, options);
  const Diagnostics wrong = sweep.prepare();
  if (wrong.has_errors()) return wrong;
  std::vector<PointOutcome> all;
  std::size_t missing = 0;
  std::size_t first_missing = 0;
  for (std::size_t p = 0; p < plan.points.size(); ++p) {
    if (auto o = sweep.known(p))
      all.push_back(*std::move(o));
    else if (missing++ == 0)
      first_missing = p;
  }
  if (missing == 0) return all;
  Diagnostics d;
  const std::size_t tasks = std::min(plan.points.size(), array_tasks);
  d.error(Code::RDU8069, options.folder, "{} of {} points were not run, the first of them {} (array task {})", missing,
          plan.points.size(), first_missing, first_missing % tasks);
  return d;
}

namespace {

std::string shell(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string slurm_script(const SweepPlan& plan, const SweepOptions& options, const std::string& plan_path) {
  const std::size_t tasks = std::min(plan.points.size(), array_tasks);
  std::error_code error;
  const std::string folder = fs::absolute(options.folder, error).lexically_normal().string();
  const std::string plan_file = fs::absolute(plan_path, error).lexically_normal().string();
  std::string words;
  for (const std::string& w : options.words) words += " " + shell(w);
  std::string name;
  for (const char c : plan.name) name += (c >= '!' && c <= '~' && c != '%') ? c : '_';
  return fmt::format(
      "#!/bin/bash\n"
      "# The {} points of {} as a job array of {} tasks. When all have ended:\n"
      "#   {} sweep {}{} -o {} --merge\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --array=0-{}\n"
      "#SBATCH --ntasks=1\n"
      "#SBATCH --cpus-per-task=1\n"
      "#SBATCH --output=slurm-%A_%a.log\n"
      "cd {} && exec {} sweep {}{} -o {} --jobs 1 --task \"$SLURM_ARRAY_TASK_ID/{}\"\n",
      plan.points.size(), shell(plan.name), tasks, shell(options.rdusim), shell(plan_file), words, shell(folder), name,
      tasks - 1, shell(fs::current_path(error).string()), shell(options.rdusim), shell(plan_file), words, shell(folder),
      tasks);
}

}  // namespace rdusim
