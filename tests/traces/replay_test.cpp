// A run and the replay of its log reach the same judgement.
#include <doctest/doctest.h>

#include "sim/trace_estimate.h"
#include "tests/traces/traced_run.h"
#include "traces/event_log.h"

namespace rdusim::replay_test {
namespace {

using namespace test;

RunResult replayed(const std::string& path) {
  auto log = EventLogReader::open(path);
  REQUIRE(log.ok());
  auto result = replay_run(*log, {});
  INFO(result.diagnostics().to_text());
  REQUIRE(result.ok());
  return std::move(result).value();
}

void check_same(const RunResult& run, const RunResult& again) {
  CHECK(again.diagnostics.to_text() == run.diagnostics.to_text());
  CHECK(without_host(again.report) == without_host(run.report));
  CHECK(again.status == run.status);
  CHECK(again.dot == run.dot);
}

RunOptions timing_only() {
  RunOptions o;
  o.values = false;
  return o;
}

TEST_CASE("a replay gives the report of the run") {
  const Scratch folder;
  const RunResult run = traced(small_matmul(), {folder / "a.rdulog"}, timing_only());
  CHECK(run.report.verdict == Verdict::pass);
  check_same(run, replayed(folder / "a.rdulog"));
}

TEST_CASE("a replay of a run with values differs from it in the values alone") {
  const Scratch folder;
  const RunResult run = traced(small_matmul(), {folder / "a.rdulog"});
  RunResult again = replayed(folder / "a.rdulog");
  CHECK(again.report.outputs.front().checked == CheckLevel::none);
  CHECK(again.report.outputs.front().sha256.empty());
  again.report.outputs = run.report.outputs;
  std::size_t values = 0;
  for (std::size_t i = 0; i < run.report.checks.size(); ++i) {
    const Code code = run.report.checks[i].code;
    if (code != Code::RDU7015 && code != Code::RDU7016 && code != Code::RDU7017) continue;
    ++values;
    CHECK(again.report.checks[i].status == CheckRow::Status::unchecked);
    again.report.checks[i] = run.report.checks[i];
  }
  CHECK(values == 3);
  check_same(run, again);
}

TEST_CASE("a replay finds the violation that the run found") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  RunOptions o = timing_only();
  std::string fold;
  for (const Stage& s : loaded.program.stages)
    if (std::holds_alternative<Generic>(s.kind) && fold.empty()) fold = s.name;
  o.faults = {"partial_skip@" + fold + ":1"};
  const RunResult run = traced(loaded, {folder / "a.rdulog"}, o);
  CHECK(run.report.verdict == Verdict::check_failed);
  CHECK(run.diagnostics.contains(Code::RDU7009));
  check_same(run, replayed(folder / "a.rdulog"));
}

TEST_CASE("a replay gives the diagnosis of a run that is stuck, and who waits for whom") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  RunOptions o = timing_only();
  for (const Edge& e : loaded.program.edges)
    if (e.handshake == Handshake::token && o.faults.empty())
      o.faults = {"page_drop@edge" + std::to_string(e.id.value) + ":" +
                  std::to_string(loaded.program.stage(e.to.front()).firings - 1)};
  const RunResult run = traced(loaded, {folder / "a.rdulog"}, o);
  INFO(run.diagnostics.to_text());
  CHECK(run.report.verdict == Verdict::lost_token);
  CHECK_FALSE(run.dot.empty());
  check_same(run, replayed(folder / "a.rdulog"));
}

TEST_CASE("a run that was cut by a limit is replayed as one") {
  const Scratch folder;
  RunOptions o = timing_only();
  o.max_cycles = 3000;
  const RunResult run = traced(small_matmul(), {folder / "a.rdulog"}, o);
  CHECK(run.report.verdict == Verdict::limit);
  check_same(run, replayed(folder / "a.rdulog"));
}

TEST_CASE("the 16-chip example takes fewer than 8 bytes an event, and its replay is the run's report") {
  const Scratch folder;
  const RunResult run = traced(compiled("llama-3.1-8b-down-proj.toml", 16), {folder / "a.rdulog"}, timing_only());
  const std::uint64_t bytes = file_bytes(folder / "a.rdulog").size();
  auto log = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(log.ok());
  const auto program = log->program();
  REQUIRE(program.ok());
  EventSink nobody;
  const auto end = log->read(nobody);
  REQUIRE(end.ok());
  MESSAGE(end->events << " events, " << bytes << " bytes, " << program->size() << " of them the program: "
                      << static_cast<double>(bytes) / static_cast<double>(end->events) << " an event");
  CHECK(end->events > 100000);
  CHECK(bytes < 8 * end->events);
  const LoadedProgram loaded = compiled("llama-3.1-8b-down-proj.toml", 16);
  const EventEstimate estimate = estimate_events(loaded.program, loaded.target);
  const double foretold = static_cast<double>(estimate.events());
  CHECK(foretold > 0.8 * static_cast<double>(end->events));
  CHECK(foretold < 1.2 * static_cast<double>(end->events));
  const double size = static_cast<double>(estimate_bytes(estimate, "event-log"));
  CHECK(size > 0.8 * static_cast<double>(bytes));
  CHECK(size < 1.2 * static_cast<double>(bytes));
  check_same(run, replayed(folder / "a.rdulog"));
}

TEST_CASE("a log that does not hold every event, or not the end, is not replayed") {
  const Scratch folder;
  traced(small_matmul(), {folder / "a.rdulog"}, timing_only());
  const std::string whole = file_bytes(folder / "a.rdulog");
  put_file(folder / "cut.rdulog", std::string_view(whole).substr(0, whole.size() - 300));
  auto log = EventLogReader::open(folder / "cut.rdulog");
  REQUIRE(log.ok());
  const auto result = replay_run(*log, {});
  REQUIRE_FALSE(result.ok());
  CHECK(result.diagnostics().contains(Code::RDU8015));
}

}  // namespace
}  // namespace rdusim::replay_test
