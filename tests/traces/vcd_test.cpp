// Waveforms, read back through GTKWave's own reader and held against the events, change by change.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/traces/signal_fold.h"
#include "tests/traces/traced_run.h"
#include "traces/event_log.h"
#include "traces/fst.h"
#include "traces/timebase.h"

namespace rdusim::vcd_test {
namespace {

using namespace test;

std::string through_gtkwave(const Scratch& folder, const std::string& wave) {
  const bool vcd = wave.ends_with(".vcd");
  const std::string fst = vcd ? folder / "back.fst" : wave, back = folder / "back.vcd";
  if (vcd) REQUIRE(std::system(("vcd2fst " + wave + " " + fst + " >/dev/null 2>&1").c_str()) == 0);
  REQUIRE(std::system(("fst2vcd " + fst + " > " + back + " 2>/dev/null").c_str()) == 0);
  return file_bytes(back);
}

void check_same(const Waveform& expected, const Waveform& shown) {
  std::size_t changes = 0;
  for (const auto& [name, values] : expected) {
    INFO(name);
    const auto it = shown.find(name);
    REQUIRE(it != shown.end());
    REQUIRE(it->second == values);
    changes += values.size();
  }
  for (const auto& [name, values] : shown) {
    INFO(name);
    REQUIRE(expected.count(name) == 1);
  }
  CHECK(changes > 200);
}

// Runs with a log and a waveform, and compares them; of a filtered run, the signals that it shows.
void check_run(const LoadedProgram& loaded, std::vector<std::string> filters = {}, const char* wave = "a.vcd") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  options.trace.filters = filters;
  const RunResult run = traced(loaded, {folder / wave, folder / "a.rdulog"}, options);
  CHECK(run.report.verdict == Verdict::pass);
  auto log = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(log.ok());
  SignalFold fold(log->roster());
  REQUIRE(log->read(fold).ok());
  Waveform expected = fold.finish(run.report.cycles);
  const Waveform shown =
      changes_of(read_vcd(through_gtkwave(folder, folder / wave), timebase_of(loaded.target.clock_ghz)));
  // A resource that nobody used is shown idle.
  for (const auto& [name, values] : shown)
    if (name.ends_with(".busy")) expected[name].emplace(0, 0);
  if (!filters.empty()) std::erase_if(expected, [&](const auto& e) { return shown.count(e.first) == 0; });
  check_same(changes_of(std::move(expected)), shown);
}

TEST_CASE("GTKWave reads every change of a run with tokens as the events have it") {
  check_run(small_matmul());
}

TEST_CASE("GTKWave reads every change of a run with semaphores as the events have it") {
  check_run(small_matmul(2, "wormhole"));
}

TEST_CASE("GTKWave reads every change of a run with barriers as the events have it") {
  check_run(small_matmul(2, std::string(RDUSIM_SOURCE_DIR) + "/tests/support/barrier.toml"));
}

TEST_CASE("GTKWave reads a site of the 16-chip example as the events have it") {
  check_run(compiled("llama-3.1-8b-down-proj.toml", 16), {"chip=5", "site=1:0"});
}

TEST_CASE("GTKWave reads every change of an FST with barriers as the events have it") {
  if (!fst_available()) return;
  check_run(small_matmul(2, std::string(RDUSIM_SOURCE_DIR) + "/tests/support/barrier.toml"), {}, "a.fst");
}

TEST_CASE("GTKWave reads every change of an FST with semaphores as the events have it") {
  if (fst_available()) check_run(small_matmul(2, "wormhole"), {}, "a.fst");
}

TEST_CASE("an FST is smaller than the VCD beside it, and the same again byte for byte") {
  if (!fst_available()) return;
  const Scratch folder;
  RunOptions options;
  options.values = false;
  traced(small_matmul(), {folder / "a.fst", folder / "b.fst", folder / "a.vcd"}, options);
  const std::string a = file_bytes(folder / "a.fst");
  CHECK(a == file_bytes(folder / "b.fst"));
  CHECK(a.size() * 3 < file_bytes(folder / "a.vcd").size());
}

TEST_CASE("an FST that cannot be written whole is refused") {
  if (!fst_available()) return;
  const LoadedProgram loaded = small_matmul();
  const auto refused = [&](const std::string& file) {
    TraceOptions options;
    options.files = {file};
    return RunTraces::open(loaded, options, "{}").diagnostics().contains(Code::RDU5008);
  };
  const Scratch folder;
  std::filesystem::create_symlink("/dev/null", folder / "null.fst");
  CHECK(refused(folder / "null.fst"));
  CHECK(refused("/nowhere/a.fst"));
}

TEST_CASE("a cycle takes its time: a whole number of a decimal unit, or right to the last digit, however late") {
  const auto of = [](std::uint64_t num, std::uint64_t den) { return timebase_of(make_fraction(num, den)); };
  CHECK(of(1, 1).unit == "1 ns");
  CHECK(of(1, 1).tick(7) == 7);
  CHECK(of(2, 1).unit == "100 ps");
  CHECK(of(2, 1).tick(7) == 35);
  CHECK(of(8, 5).unit == "1 ps");
  CHECK(of(8, 5).tick(7) == 7 * 625);
  CHECK(of(1, 2).unit == "1 ns");
  CHECK(of(1, 2).tick(7) == 14);
  // 5/6 ns: 6 cycles are 5 ns, at the start and after ten thousand seconds.
  const Timebase t = of(6, 5);
  CHECK(t.unit == "1 ps");
  for (const Cycle at : {Cycle{0}, Cycle{12'000'000'000'000}}) {
    const std::uint64_t from = at / 6 * 5'000;
    CHECK(t.tick(at) == from);
    CHECK(t.tick(at + 1) == from + 833);
    CHECK(t.tick(at + 2) == from + 1'666);
    CHECK(t.tick(at + 3) == from + 2'500);
    CHECK(t.tick(at + 6) == from + 5'000);
  }
  CHECK(of(12, 1).unit == "1 fs");
  CHECK(of(12, 1).tick(3) == 250'000);
  CHECK(t.note.find("5/6 ns") != std::string::npos);
}

TEST_CASE("a VCD of a machine at 1.2 GHz shows its times, not its cycles") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  const RunResult run = traced(small_matmul(), {folder / "a.vcd"}, options);
  const std::string vcd = file_bytes(folder / "a.vcd");
  CHECK(vcd.find("$timescale 1 ps $end") != std::string::npos);
  const std::string last = vcd.substr(vcd.rfind('#') + 1);
  CHECK(std::stoull(last) == run.report.cycles * 5'000 / 6);
}

TEST_CASE("a waveform of a window begins with the values at its first cycle") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  options.trace.from = 3000;
  options.trace.to = 6000;
  const LoadedProgram loaded = small_matmul();
  const RunResult run = traced(loaded, {folder / "a.vcd"}, options);
  REQUIRE(run.report.cycles > 6000);
  const std::string vcd = file_bytes(folder / "a.vcd");
  const Waveform shown = read_vcd(vcd, timebase_of(loaded.target.clock_ghz));
  std::size_t changes = 0;
  for (const auto& [name, values] : shown) {
    CHECK(values.begin()->first == 3000);
    CHECK(values.rbegin()->first <= 6000);
    changes += values.size() - 1;
  }
  CHECK(changes > 10);
}

TEST_CASE("the same run gives the same waveform, byte for byte, and it has no date") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  traced(small_matmul(), {folder / "a.vcd", folder / "b.vcd"}, options);
  const std::string a = file_bytes(folder / "a.vcd");
  CHECK(a == file_bytes(folder / "b.vcd"));
  CHECK(a.find("$date") == std::string::npos);
}

}  // namespace
}  // namespace rdusim::vcd_test
