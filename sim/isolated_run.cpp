#include "sim/isolated_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "compiler/support/file.h"

namespace rdusim {

namespace {

using Clock = std::chrono::steady_clock;

IsolatedRun summary_of(const RunResult& r) {
  IsolatedRun s;
  s.ended = true;
  s.status = r.status;
  s.verdict = r.report.verdict;
  s.cycles = r.report.cycles;
  for (const Diagnostic& d : r.diagnostics.list()) {
    if (d.severity != Severity::error) continue;
    if (s.errors.empty()) s.message = to_text(d);
    s.errors.push_back(d.code);
  }
  std::string outputs, counts;
  for (const OutputCheck& o : r.report.outputs) outputs += o.name + " " + o.sha256 + "\n";
  for (const BufferRow& b : r.report.buffers)
    counts += fmt::format("{} {} {} {} {}\n", b.name, b.reserved, b.pushed, b.popped, b.bytes);
  for (const StageRow& stage : r.report.stages) counts += fmt::format("{} {}\n", stage.name, stage.firings);
  s.outputs = sha256(outputs);
  s.counts = sha256(counts);
  s.struck = r.struck;
  return s;
}

// What a run says on its way through the pipe.
Json to_json(const IsolatedRun& s) {
  Json j;
  j.set("status", static_cast<int>(s.status)).set("verdict", static_cast<int>(s.verdict)).set("cycles", s.cycles);
  JsonArray errors, struck;
  for (const Code c : s.errors) errors.emplace_back(static_cast<int>(c));
  for (const std::uint64_t n : s.struck) struck.emplace_back(n);
  j.set("errors", std::move(errors)).set("struck", std::move(struck)).set("message", s.message);
  return j.set("outputs", s.outputs).set("counts", s.counts);
}

IsolatedRun from_json(const std::string& text) {
  IsolatedRun s;
  const auto parsed = parse_json(text, "a run", Code::RDU9001);
  if (!parsed || parsed->as_object() == nullptr) return s;
  const auto number = [&](std::string_view key) { return parsed->find(key)->as_uint64().value_or(0); };
  s.ended = true;
  s.status = static_cast<ExitStatus>(number("status"));
  s.verdict = static_cast<Verdict>(number("verdict"));
  s.cycles = number("cycles");
  for (const Json& c : *parsed->find("errors")->as_array())
    s.errors.push_back(static_cast<Code>(c.as_uint64().value_or(0)));
  for (const Json& n : *parsed->find("struck")->as_array()) s.struck.push_back(n.as_uint64().value_or(0));
  s.message = *parsed->find("message")->as_string();
  s.outputs = *parsed->find("outputs")->as_string();
  s.counts = *parsed->find("counts")->as_string();
  return s;
}

[[noreturn]] void run_and_say(const LoadedProgram& loaded, RunOptions options, const IsolationLimits& limits, int to) {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (limits.memory) {
    const rlimit most{*limits.memory, *limits.memory};
    setrlimit(RLIMIT_AS, &most);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  options.stop = nullptr;
  options.reached = nullptr;
  options.pages = nullptr;
  options.processes = 1;
  options.mpi.reset();
  options.forecast = {};
  options.understudy = nullptr;
  options.trace = {};
  const auto result = run_program(loaded, options);
  IsolatedRun s;
  if (result) {
    s = summary_of(*result);
  } else {
    s.status = status_of(result.diagnostics());
    for (const Diagnostic& d : result.diagnostics().list()) s.errors.push_back(d.code);
    s.message = result.diagnostics().to_text();
  }
  const std::string text = to_text(to_json(s), true);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(to, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    at += static_cast<std::size_t>(n);
  }
  _exit(0);
}

struct Child {
  std::size_t number = 0;
  pid_t pid = -1;
  int from = -1;
  Clock::time_point deadline;
  std::string said;
};

std::optional<Child> start(const LoadedProgram& loaded, const RunOptions& options, const IsolationLimits& limits,
                           std::size_t number) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    run_and_say(loaded, options, limits, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return std::nullopt;
  }
  // Beyond what the clock can add up, the limit is never reached.
  const auto span = std::chrono::duration<double>(std::min(limits.seconds, 1e8));
  return Child{number, pid, ends[0], Clock::now() + std::chrono::duration_cast<Clock::duration>(span), {}};
}

IsolatedRun finish(Child& c) {
  close(c.from);
  int status = 0;
  while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {
  }
  IsolatedRun run;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) run = from_json(c.said);
  if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  return run;
}

// Whether the child has said all that it will.
bool listen(Child& c) {
  char buffer[4096];
  const ssize_t n = read(c.from, buffer, sizeof buffer);
  if (n < 0) return errno != EINTR && errno != EAGAIN;
  c.said.append(buffer, static_cast<std::size_t>(n));
  return n == 0;
}

}  // namespace

std::vector<IsolatedRun> run_isolated(const LoadedProgram& loaded, const std::vector<RunOptions>& options,
                                      const IsolationLimits& limits, const std::atomic<bool>& stop) {
  std::vector<IsolatedRun> runs(options.size());
  std::vector<Child> children;
  std::size_t next = 0;
  while (next < options.size() || !children.empty()) {
    while (!stop && next < options.size() && children.size() < std::max(limits.jobs, 1u)) {
      if (auto child = start(loaded, options[next], limits, next)) children.push_back(std::move(*child));
      ++next;
    }
    if (stop) next = options.size();
    std::vector<pollfd> wait;
    for (const Child& c : children) {
      if (stop || Clock::now() > c.deadline) kill(c.pid, SIGKILL);
      wait.push_back({c.from, POLLIN, 0});
    }
    if (!wait.empty()) poll(wait.data(), wait.size(), 100);
    for (std::size_t i = children.size(); i-- > 0;) {
      Child& c = children[i];
      if (wait[i].revents == 0 || !listen(c)) continue;
      runs[c.number] = finish(c);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return runs;
}

}  // namespace rdusim
