// Hangs, and what was taken for one, that other tools met, as programs. Each comes from a public report or source; the
// right answers are closed forms.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "tests/system/stream_program.h"

namespace rdusim::test::deadlock_cases_test {
namespace {

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

// Where each of `words` stands in `text`, one after the other; fails the test where one does not.
void check_in_order(const std::string& text, const std::vector<std::string>& words) {
  INFO(text);
  std::size_t at = 0;
  for (const std::string& word : words) {
    CAPTURE(word);
    at = text.find(word, at);
    REQUIRE(at != std::string::npos);
    at += word.size();
  }
}

Json passes(const Folder& folder, const StreamProgram& program) {
  const Outcome made = assemble(folder, program);
  INFO(made.err);
  REQUIRE(made.status == 0);
  const Json report = run(folder, {"--save", "y=y.npy"});
  CHECK(text(report, "verdict") == "pass");
  return report;
}

// Element i of the int32 result that was saved.
std::int32_t result(const Folder& folder, std::size_t i = 0) {
  const std::string npy = folder.read("y.npy");
  const std::size_t begin = npy.find('\n') + 1;  // after the header
  std::int32_t value = 0;
  REQUIRE(begin + 4 * (i + 1) <= npy.size());
  std::memcpy(&value, npy.data() + begin + 4 * i, 4);
  return value;
}

Json hangs(const Folder& folder, const StreamProgram& program, const std::string& verdict) {
  const Outcome made = assemble(folder, program, true);
  INFO(made.err);
  REQUIRE(made.status == 0);
  const Outcome ran = rdusim({"run", "prog.bin", "--allow-refuted", "--report", "report.json"}, folder);
  CHECK(ran.status == 1);
  folder.write("run.err", ran.err);
  Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == verdict);
  return report;
}

// github.com/stanford-ppl/pir, regression/BreakTest.scala, Deadlock2: one producer fills two FIFOs. The first is folded
// whole before the second is begun, to whose every item the first's result is added.
StreamProgram deadlock2(std::uint64_t second_depth) {
  StreamProgram s("deadlock2");
  const GroupId g = s.group();
  const BufferId in = s.buffer("in", g, 2), first = s.buffer("fifo1", g, 2),
                 second = s.buffer("fifo2", g, second_depth), accum = s.buffer("accum", g, 1),
                 out = s.buffer("out", g, 1);
  const TensorId x = s.tensor("x", TensorRole::input, 1000, 1000), y = s.tensor("y", TensorRole::output, 1);
  const StageId load = s.load("load", x, g, in, 1000);
  const StageId producer = s.copy("producer", g, in, {first, second}, 1000);
  const StageId reduce1 = s.fold("reduce1", g, first, {}, accum, 1000);
  const StageId reduce2 = s.fold("reduce2", g, second, {accum}, out, 1000);
  const StageId store = s.store("store", y, g, out, 1);
  s.join(load, in, {producer});
  s.join(producer, first, {reduce1});
  s.join(producer, second, {reduce2});
  s.join(reduce1, accum, {reduce2});
  s.join(reduce2, out, {store});
  return s;
}

TEST_CASE("Deadlock2 is refused before it runs, with the depth that cures it") {
  const Folder folder;
  const Outcome made = assemble(folder, deadlock2(16));
  INFO(made.err);
  CHECK(made.status == 1);
  CHECK(errors_of(made) == "RDU3039");
  CHECK(says(made.err, "'producer' waits for room in 'fifo2' (depth 16) until 'reduce2' takes a page"));
  CHECK(says(made.err, "help: deepen 'fifo2' to 1000 pages (it has 16); one less still hangs"));
  CHECK_FALSE(folder.has("prog.bin"));
}

TEST_CASE("Deadlock2, run all the same, stops with fifo2 full and its wait cycle in order") {
  const Folder folder;
  const Json report = hangs(folder, deadlock2(16), "circular-wait");
  const std::string err = folder.read("run.err");
  CHECK(says(err, "RDU7018"));
  check_in_order(err + err, {"'producer' waits for room in 'fifo2' (reserved 16, pushed 16, popped 0, depth 16)",
                             "'reduce2' waits for a page in 'accum'", "'reduce1' waits for a page in 'fifo1'",
                             "'producer' waits for room in 'fifo2'"});
}

TEST_CASE("Deadlock2 needs 1000 pages: with them it gives 499,500 x 1,001, with 999 it hangs") {
  const Folder folder;
  passes(folder, deadlock2(1000));
  CHECK(result(folder) == 499'999'500);
  const Outcome one_less = assemble(folder, deadlock2(999));
  CHECK(errors_of(one_less) == "RDU3039");
  hangs(folder, deadlock2(999), "circular-wait");
}

TEST_CASE("check prints how deep each buffer of Deadlock2 must be, whether it hangs or not") {
  const Folder folder;
  REQUIRE(assemble(folder, deadlock2(1234)).status == 0);
  const Json deep = parsed(rdusim_ok({"check", "prog.bin", "--minimum-depths", "--json"}, folder).out);
  const auto minimum = [](const Json& j, int buffer) { return number(j, "buffers", buffer, "minimum_pages"); };
  for (const auto& [buffer, pages] : {std::pair{0, 1}, {1, 1}, {2, 1000}, {3, 1}, {4, 1}}) {
    CAPTURE(buffer);
    CHECK(minimum(deep, buffer) == pages);
  }
  CHECK(number(deep, "buffers", 2, "depth_pages") == 1234);
  // It must hold all of a trip, so that it is never what the next trip waits for.
  CHECK(number(deep, "buffers", 2, "full_rate_pages") >= 1000);
  const Outcome table = rdusim_ok({"check", "prog.bin", "--minimum-depths"}, folder);
  check_in_order(table.out, {"buffer", "depth", "minimum", "full rate", "fifo2", "1,234", "1,000", "936 B", "held by"});
  REQUIRE(assemble(folder, deadlock2(16), true).status == 0);
  const Outcome shallow = rdusim({"check", "prog.bin", "--minimum-depths", "--json"}, folder);
  CHECK(shallow.status == 1);
  CHECK(errors_of(shallow) == "RDU3039");
  CHECK(minimum(parsed(shallow.out), 2) == 1000);
}

// The same file's Deadlock: ten flags, none of them true, for a consumer that goes on until it sees one; and
// BreakTest2, where the last of the ten is. The flags are known, and so is how many the consumer takes: eleven of ten,
// or ten.
StreamProgram flags(std::uint64_t taken) {
  StreamProgram s("flags");
  const GroupId g = s.group();
  const BufferId flag = s.buffer("flag", g, 2), out = s.buffer("out", g, 1);
  const TensorId x = s.tensor("x", TensorRole::input, 10, 10), y = s.tensor("y", TensorRole::output, 1);
  const StageId producer = s.load("producer", x, g, flag, 10);
  const StageId consumer = s.fold("consumer", g, flag, {}, out, taken, ExprOp::maximum);
  const StageId store = s.store("store", y, g, out, 1);
  s.join(producer, flag, {consumer});
  s.join(consumer, out, {store});
  return s;
}

TEST_CASE("a consumer that wants item 11 of 10 starves, and is in no circle") {
  const Folder folder;
  CHECK(errors_of(assemble(folder, flags(11))) == "RDU3008");
  hangs(folder, flags(11), "starvation");
  const std::string err = folder.read("run.err");
  INFO(err);
  CHECK(says(err, "RDU7019"));
  CHECK_FALSE(says(err, "RDU7018"));
  CHECK(says(err, "'consumer' wants page 11 of 'flag', and stage 'producer' at chip0.site(0,0) finished after 10"));
}

TEST_CASE("a consumer that is done with the tenth of ten passes, with 9 as its result") {
  const Folder folder;
  const Json report = passes(folder, flags(10));
  CHECK(result(folder) == 9);
  CHECK(number(report, "buffers", 0, "pushed") == 10);
  CHECK(number(report, "buffers", 0, "popped") == 10);
}

TEST_CASE("a consumer that is marked to stop at a flag is proved for this input only, and says for which") {
  const Folder folder;
  StreamProgram marked = flags(10);
  for (Stage& s : marked.p.stages)
    if (s.name == "consumer") s.assumes = "the flag comes with item 10";
  passes(folder, marked);
  CHECK(result(folder) == 9);
  const Outcome checked = rdusim_ok({"check", "prog.bin"}, folder);
  INFO(checked.out);
  CHECK(says(checked.out,
             "scope: this input only: the rates of stage 'consumer' depend on data, and are those of: the "
             "flag comes with item 10"));
  CHECK_FALSE(says(checked.out, "every schedule"));
  const Json report = parsed(folder.read("report.json"));
  for (int i = 0; i < 11; ++i) CHECK(text(report, "proved", "obligations", i, "scope") == "this_input_only");
  // The mark is part of the program, and comes back as it was given.
  const std::string shown = rdusim_ok({"show", "prog.bin", "--json"}, folder).out;
  CHECK(says(shown, "\"assumes\": \"the flag comes with item 10\""));
  CHECK(says(rdusim_ok({"show", "prog.bin"}, folder).out, "(of this input only: the flag comes with item 10)"));
  // Without it the same rates are static, and proved of every schedule.
  passes(folder, flags(10));
  CHECK(says(rdusim_ok({"check", "prog.bin"}, folder).out, "scope: every schedule"));
}

TEST_CASE("a program that is marked and claims every schedule is refused") {
  const Folder folder;
  REQUIRE(assemble(folder, flags(10)).status == 0);
  std::string json = rdusim_ok({"show", "prog.bin", "--json"}, folder).out;
  const std::string name = "\"name\": \"consumer\",";
  const auto at = json.find(name);
  REQUIRE(at != std::string::npos);
  json.insert(at + name.size(), "\n      \"assumes\": \"the flag comes with item 10\",");
  folder.write("claims.json", json);
  const Outcome made = rdusim({"assemble", "claims.json", "-o", "claims.bin"}, folder);
  INFO(made.err);
  const Outcome checked = made.status == 0 ? rdusim({"check", "claims.bin"}, folder) : made;
  CHECK(checked.status != 0);
  CHECK(says(checked.err, "RDU5012"));
}

TEST_CASE("no run of Deadlock2 beats the circle of its firings, and its own is near") {
  const Folder folder;
  const Json report = passes(folder, deadlock2(1000));
  const std::int64_t cycles = number(report, "cycles", "simulated"), least = number(report, "cycles", "lower_bound");
  CHECK(least <= cycles);
  CHECK(2 * least > cycles);
  REQUIRE(list(report, "proved", "circles").size() == 1);
  CHECK(number(report, "proved", "circles", 0, "least_cycles") <= least);
  CHECK(2 * number(report, "proved", "circles", 0, "least_cycles") > cycles);
  CHECK(says(rdusim_ok({"check", "prog.bin"}, folder).out, "section 'main' takes "));
}

// github.com/Xilinx/mlir-aie/issues/3257: sixteen cores, two stages each that both read weights which are broadcast to
// all and replayed: the first goes through all replays before the second begins, and a page of the broadcast is free
// only when both have had it.
StreamProgram replayed(std::uint32_t tiles, std::uint32_t trips, bool fan_out) {
  StreamProgram s("replayed");  // on a mesh of sixteen sites
  const GroupId g = s.group(16);
  const std::uint64_t all = std::uint64_t{tiles} * trips;
  const std::uint64_t depth = std::max(tiles, 2u);
  const TensorId w = s.tensor("w", TensorRole::weight, tiles, 61), y = s.tensor("y", TensorRole::output, 16);
  const auto replay = [&](const std::string& name, BufferId out) {
    const StageId load = s.load(name, w, g, out, all, true);
    std::get<Load>(s.p.stages[load.value].kind).pattern.loops = {trips, tiles};
    std::get<Load>(s.p.stages[load.value].kind).pattern.stride = {{0}, {1}};
    return load;
  };
  const BufferId weights = s.buffer("weights", g, depth);
  const BufferId again = fan_out ? weights : s.buffer("weights_again", g, depth);
  const BufferId sum = s.buffer("sum", g, 1), out = s.buffer("out", g, 1);
  const StageId load = replay("broadcast", weights);
  const StageId first = s.fold("gemm1", g, weights, {}, sum, all);
  const StageId second = s.fold("gemm2", g, again, {sum}, out, all);
  const StageId store = s.store("store", y, g, out, 1);
  if (fan_out) {
    s.join(load, weights, {first, second});
  } else {
    s.join(load, weights, {first});
    s.join(replay("broadcast_again", again), again, {second});
  }
  s.join(first, sum, {second});
  s.join(second, out, {store});
  return s;
}

TEST_CASE("replayed broadcast weights hang at 8 tiles and 2 trips, and at nothing less") {
  const Folder folder;
  const Outcome made = assemble(folder, replayed(8, 2, true));
  INFO(made.err);
  CHECK(errors_of(made) == "RDU3039");
  CHECK(says(made.err, "deepen 'weights' to 16 pages (it has 8)"));
  hangs(folder, replayed(8, 2, true), "circular-wait");
  passes(folder, replayed(1, 2, true));
  passes(folder, replayed(8, 1, true));
  passes(folder, replayed(8, 2, false));
  // 0 + ... + 7, twice; and to each of the sixteen, that sum.
  for (std::size_t core = 0; core < 16; ++core) CHECK(result(folder, core) == 56 + 16 * 56);
}

// github.com/tenstorrent/tt-metal/issues/26452: the counters of a circular buffer's pages have 16 bits and wrap around.
StreamProgram long_stream(std::uint64_t pages, std::uint64_t depth) {
  StreamProgram s("long", single_element_target("wormhole"));
  const GroupId g = s.group();
  const BufferId in = s.buffer("in", g, depth), out = s.buffer("out", g, 1);
  const TensorId x = s.tensor("x", TensorRole::input, pages, 7), y = s.tensor("y", TensorRole::output, 1);
  const StageId load = s.load("load", x, g, in, pages);
  const StageId fold = s.fold("fold", g, in, {}, out, pages);
  const StageId store = s.store("store", y, g, out, 1);
  s.join(load, in, {fold});
  s.join(fold, out, {store});
  return s;
}

TEST_CASE("a circular buffer passes 65,535, 65,536 and 65,537 pages, and is full when it is full") {
  for (const std::uint64_t pages : {65'535u, 65'536u, 65'537u}) {
    CAPTURE(pages);
    const Folder folder;
    const Json report = passes(folder, long_stream(pages, 4));
    CHECK(number(report, "buffers", 0, "pushed") == static_cast<std::int64_t>(pages));
    CHECK(number(report, "buffers", 0, "popped") == static_cast<std::int64_t>(pages));
    CHECK(number(report, "buffers", 0, "peak_pages") == 4);
    std::int32_t sum = 0;
    for (std::uint64_t i = 0; i < pages; ++i) sum += static_cast<std::int32_t>(i % 7);
    CHECK(result(folder) == sum);
    // The certificate says how wide the counters are and how far apart they come.
    const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
    CHECK(number(program, "certificate", "counters", 0, "width_bits") == 16);
    CHECK(number(program, "certificate", "counters", 0, "greatest") == 4);
  }
}

TEST_CASE("a circular buffer of more pages than its counters tell apart is refused") {
  const Folder folder;
  CHECK(assemble(folder, long_stream(70'000, 65'535)).status == 0);
  const Outcome made = assemble(folder, long_stream(70'000, 65'536));
  INFO(made.err);
  CHECK(errors_of(made) == "RDU3021");
  CHECK(says(made.err, "have 16 bits, which tell 65535 apart"));
}

// github.com/mlcommons/chakra/pull/189: a graph whose nodes depend on themselves.
StreamProgram loop(std::uint64_t initial) {
  StreamProgram s("loop");
  const GroupId g = s.group();
  const BufferId in = s.buffer("in", g, 2), there = s.buffer("there", g, 2), back = s.buffer("back", g, 2),
                 out = s.buffer("out", g, 2);
  s.p.buffers[back.value].initial_pages = initial;
  const TensorId x = s.tensor("x", TensorRole::input, 8, 61), y = s.tensor("y", TensorRole::output, 1);
  const StageId load = s.load("load", x, g, in, 8);
  Generic add{{IteratorKind::parallel},
              {{{1, 0}}, {{1, 0}}, {{1, 0}}},
              {{1, {{ExprOp::operand, 0, 0}, {ExprOp::operand, 1, 0}, {ExprOp::maximum, 0, 0}}}},
              {},
              {},
              {}};
  const StageId one = s.generic(
      "one", g,
      {s.input(in, always(1u), always(1u)), s.input(back, always(1u), always(1u)), s.output(there, always(1u))}, add,
      8);
  const StageId other = s.fold("other", g, there, {}, out, 8);
  s.p.stages[other.value].ports.push_back(
      s.output(back, initial == 0 ? always(1u) : Cyclic<std::uint32_t>{{7, 1}, {1, 0}}));
  const StageId store = s.store("store", y, g, out, 1);
  s.join(load, in, {one});
  s.join(one, there, {other});
  s.join(other, back, {one});
  s.join(other, out, {store});
  return s;
}

TEST_CASE("stages that depend on themselves are an error that names the cycle") {
  const Folder folder;
  const Outcome made = assemble(folder, loop(0));
  INFO(made.err);
  CHECK(made.status == 1);
  CHECK(errors_of(made) == "RDU3039");
  check_in_order(made.err,
                 {"2 stages wait for each other in a circle", "'one' waits for a page of 'back' from 'other'",
                  "'other' waits for a page of 'there' from 'one'", "help: give one of the hand-offs initial"});
}

// github.com/Xilinx/Vitis-Tutorials/issues/210: a program that does not say how often it runs.
TEST_CASE("a program without a number of iterations is refused, never run for ever") {
  const Folder folder;
  StreamProgram none = flags(10);
  none.p.sections[0].trips = 0;
  CHECK(says(errors_of(assemble(folder, none)), "RDU3037"));
  std::string without = flags(10).json();
  const auto at = without.find("\"firings\"");
  without.erase(at, without.find('\n', at) - at);
  folder.write("program.json", without);
  const Outcome made = rdusim({"assemble", "program.json", "-o", "prog.bin"}, folder);
  CHECK(made.status == 2);
  CHECK(errors_of(made) == "RDU5007");
  CHECK(says(made.err, "'firings' is missing"));
}

// github.com/tenstorrent/tt-lang/issues/290 and 326: many cores that are stuck at one line of one kernel.
TEST_CASE("sixty-four sites that are stuck alike are one line with their range") {
  const Folder folder;
  const std::string wide = with_value(single_element_target(), "[mesh]", "width_sites", "8");
  StreamProgram s("many", with_value(wide, "[mesh]", "height_sites", "8"));
  const GroupId g = s.group(64);
  const BufferId flag = s.buffer("flag", g, 2), out = s.buffer("out", g, 1);
  const TensorId x = s.tensor("x", TensorRole::input, 640, 61), y = s.tensor("y", TensorRole::output, 64);
  const StageId producer = s.load("producer", x, g, flag, 10);
  const StageId consumer = s.fold("consumer", g, flag, {}, out, 11);
  const StageId store = s.store("store", y, g, out, 1);
  s.join(producer, flag, {consumer});
  s.join(consumer, out, {store});
  hangs(folder, s, "starvation");
  const std::string err = folder.read("run.err");
  INFO(err);
  CHECK(says(err, "64 instances at chip0.site(0..7,0..7)"));
  // One line a stage that waits, not one a site.
  CHECK(std::count(err.begin(), err.end(), '\n') < 12);
}

}  // namespace
}  // namespace rdusim::test::deadlock_cases_test
