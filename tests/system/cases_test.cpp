// Single operators on which other tools failed, each with its public report; the right answers are closed forms.
#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::cases_test {
namespace {

void check_says(const Outcome& outcome, std::vector<std::string> words) {
  INFO(outcome.err);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(outcome.err.find(word) != std::string::npos);
  }
}

// https://github.com/aws-neuron/aws-neuron-sdk/issues/822: 1024 columns over 24 chips became 25 pieces of 42 and less.
TEST_CASE("1024 columns over 24 chips are refused, not cut in 25 pieces") {
  const Folder folder;
  check_says(
      refused(folder, matmul(32, 64, 1024), {"--target", "sn50", "--chips", "24", "--shard", "column"}, "RDU4102"),
      {"1024", "24 chips", "1, 2, 4, 8, 16 or 32 chips"});
}

// https://github.com/aliyun/SimAI/issues/140: of sixteen chips and two switches, a ring over two of them took in the
// switches, and groups of nine of eighteen nodes were made. A machine here has chips; what joins its nodes is links.
TEST_CASE("a ring has chips for members and nothing else, as many as take part, and no more than there are") {
  const Folder folder;
  const std::vector<std::string> ring = {"--target", "sn40l", "--shard", "row", "--collective", "ring"};
  const auto with = [&](const std::string& chips) {
    std::vector<std::string> options = ring;
    options.insert(options.end(), {"--chips", chips});
    return options;
  };
  // The machine's two nodes of eight are sixteen chips, whatever stands between them.
  check_says(refused(folder, matmul(32, 1152, 64), with("18"), "RDU2009"), {"18 chips", "has 16"});
  // Two chips: a ring of these two, over the links between them.
  const Json two = compile_and_run(folder, matmul(32, 1152, 64), with("2"));
  check_exact_pass(two);
  CHECK(text(two, "decisions", "collectives", 0, "members") == "0..1");
  CHECK(list(two, "links").size() == 2);
  // Nine of sixteen are a ring of nine chips of both nodes. Of a program over two, a group of nine is refused.
  const Json nine = compile_and_run(folder, matmul(32, 1152, 64), with("9"));
  check_exact_pass(nine);
  const Json of_nine = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  CHECK(list(of_nine, "collectives", 0, "members").size() == 9);
  compile(folder, matmul(32, 1152, 64), with("2"));
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  std::string text = to_text(program);
  const std::size_t members = text.find("\"members\":");
  REQUIRE(members != std::string::npos);
  const std::size_t end = text.find(']', members);
  text.replace(members, end - members + 1, "\"members\": [0, 1, 2, 3, 4, 5, 6, 7, 8]");
  folder.write("program.json", text);
  const Outcome made = rdusim({"assemble", "program.json", "-o", "nine.bin"}, folder);
  CHECK(made.status != 0);
  check_says(made, {"RDU3002", "refers to chip 2, and there are 2", "refers to chip 8, and there are 2"});
}

// https://github.com/vllm-project/vllm/issues/52051: gpt-oss-120b's hidden size, padded to 3072 without a word.
TEST_CASE("2880 columns over 8 and 12 chips are refused with the slice that is no whole tiles") {
  const Folder folder;
  check_says(refused(folder, matmul(32, 64, 2880), {"--chips", "8", "--shard", "column"}, "RDU4103"),
             {"2880", "8 chips", "360", "32"});
  check_says(refused(folder, matmul(32, 64, 2880), {"--chips", "12", "--shard", "column"}, "RDU4103"),
             {"2880", "12 chips", "240", "32"});
  // What the message offers works, and pads nothing.
  const Matmul shape = matmul(32, 64, 2880);
  const Json report = compile_and_run(folder, shape, {"--chips", "10", "--shard", "column"});
  check_exact_pass(report);
  CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
  CHECK(number(report, "macs", "useful") == std::int64_t{32} * 64 * 2880);
  CHECK(number(report, "macs", "padding") == 0);
}

// https://github.com/tenstorrent/tt-metal/issues/21964: an all-gather along 31, 33 or 63 gave zeros.
TEST_CASE("31, 33 or 63 columns are refused where chips would gather them, and exact on one chip") {
  const Folder folder;
  for (const std::int64_t columns : {31, 33, 63}) {
    for (const std::string chips : {"2", "3"}) {
      CAPTURE(columns);
      CAPTURE(chips);
      const bool divides = columns % (chips == "2" ? 2 : 3) == 0;
      check_says(refused(folder, matmul(32, 64, columns), {"--chips", chips, "--shard", "column"},
                         divides ? "RDU4103" : "RDU4102"),
                 {std::to_string(columns), chips + " chips"});
    }
    const Matmul shape = matmul(32, 64, columns);
    const Json report = compile_and_run(folder, shape, {"--chips", "1"});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
  }
}

// https://github.com/NVlabs/timeloop/issues/300 and 328: what padding computes was counted as work.
TEST_CASE("7 over 8 chips is refused, and multiply-accumulates of ragged tiles are the true ones") {
  const Folder folder;
  check_says(refused(folder, matmul(32, 7, 32), {"--chips", "8", "--shard", "row"}, "RDU4102"), {"7", "8 chips"});
  const Matmul shape = matmul(7, 100, 9);
  const Json report = compile_and_run(folder, shape, {"--chips", "1"});
  check_exact_pass(report);
  CHECK(number(report, "macs", "useful") == 7 * 100 * 9);
  CHECK(number(report, "macs", "padding") == 0);
}

// A site of wormhole has eight semaphores: slices of a contraction that meet on it took seven, and a direct all-reduce
// over two chips wants four.
TEST_CASE(
    "a contraction that is split on a chip leaves what the collective asked for needs, on a target with few "
    "semaphores") {
  const Folder folder;
  const Matmul shape = matmul(33, 6720, 32, "int32");
  for (const std::string algorithm : {"direct", "ring", "through-one", "auto"}) {
    CAPTURE(algorithm);
    const Json report = compile_and_run(
        folder, shape, {"--target", "wormhole", "--chips", "2", "--shard", "row", "--collective", algorithm});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
  }
}

// The line of `key` in `table` becomes `key = value`, whatever was there.
std::string with_line(std::string toml, const std::string& table, const std::string& key, const std::string& value) {
  const std::size_t begin = toml.find("\n[" + table + "]\n");
  REQUIRE(begin != std::string::npos);
  std::size_t line = toml.find("\n" + key + " ", begin + 1);
  CAPTURE(key);
  REQUIRE(line != std::string::npos);
  ++line;
  return toml.replace(line, toml.find('\n', line) - line, key + " = { value = " + value + ", published = \"a test\" }");
}

// A chip with an array of 4 x 4 that keeps its sums in place: 16 multiply-accumulates a cycle; an operand takes
// rows - 1 cycles more to the last row, a result columns - 1 more to the last column.
std::string small_array(const std::string& fill, const std::string& drain) {
  std::string toml = source_text("models/targets/sn40l.toml");
  toml = with_line(toml, "machine", "native_tile_elements", "1");
  toml = with_line(toml, "pcu.macs_per_cycle", "int8", "16");
  toml = with_line(toml, "pcu", "systolic_fill_cycles", fill);
  return with_line(toml, "pcu", "systolic_drain_cycles", drain);
}

// https://github.com/scalesim-project/scale-sim-v2/issues/125: 9 or 10 cycles for a 4 x 4 array? rows + columns +
// contraction - 2: 9 for a contraction of 3, 10 for one of 4.
TEST_CASE("a 4 x 4 array takes rows + columns + contraction - 2 cycles, to the cycle") {
  const Folder folder;
  folder.write("array.toml", small_array("3", "3"));
  folder.write("bare.toml", small_array("0", "0"));
  const auto stage = [&](const std::string& target, std::int64_t k) {
    Matmul shape = matmul(4, k, 4);
    shape.schedule = "block_m = 4\nblock_n = 4\npage_k = " + std::to_string(k);
    compile(folder, shape, {"--target", "./" + target, "--chips", "1"});
    Json report = run(folder);
    check_exact_pass(report);
    return named(at(report, "stages"), "matmul0.matmul");
  };
  for (const std::int64_t k : {1, 3, 4, 17}) {
    CAPTURE(k);
    const Json array = stage("array.toml", k), bare = stage("bare.toml", k);
    CHECK(number(array, "firings") == 1);
    CHECK(number(array, "busy") == k);
    // All else that the stage does, it does without fill and drain as well.
    CHECK(number(array, "busy") + number(array, "cycles") - number(bare, "cycles") == 4 + 4 + k - 2);
  }
}

// https://github.com/verilator/verilator/issues/62, https://github.com/enjoy-digital/litex/issues/1483: a cycle was not
// as long as the clock says.
TEST_CASE("a cycle at f GHz is 1/f ns: latencies become whole cycles upwards, and cycles become microseconds") {
  const Folder folder;
  for (const auto& [ghz, launch, arguments] : {std::tuple{"1.2", 3600, 600}, std::tuple{"1.0", 3000, 500},
                                               std::tuple{"1.37", 4110, 685}, std::tuple{"0.333", 999, 167}}) {
    CAPTURE(ghz);
    folder.write("clock.toml", with_line(source_text("models/targets/sn40l.toml"), "machine", "clock_ghz", ghz));
    compile(folder, Matmul{}, {"--target", "./clock.toml", "--chips", "1"});
    const Json report = run(folder);
    // Section launch 3000 ns, argument load 500 ns; then the first read.
    CHECK(number(report, "memories", 0, "first_cycle") == launch + arguments);
    CHECK(real(report, "time", "clock_ghz") == std::stod(ghz));
    const double us = static_cast<double>(number(report, "cycles", "simulated")) / (std::stod(ghz) * 1000);
    CHECK(std::abs(real(report, "time", "simulated_us") - us) < 1e-9 * us);
  }
}

// https://github.com/astra-sim/astra-sim/issues/318 and 1: a file that could not be read was replaced by a default.
TEST_CASE("a machine, workload, operand or program that cannot be read is one line, never a default") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  std::string with_file = Matmul{}.toml();
  const std::string fill = "fill = { pattern = { modulus = 61, shift = 30 } }";
  with_file.replace(with_file.find(fill), fill.size(), "fill = { file = \"x.npy\" }");
  folder.write("operand.toml", with_file);
  folder.write("empty.toml", "");
  const auto check = [&](std::vector<std::string> command, const std::string& code) {
    CAPTURE(command.back());
    const Outcome outcome = rdusim(command, folder);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome) == code);
    CHECK(outcome.out.empty());
    CHECK_FALSE(folder.has("prog.bin"));
  };
  check({"compile", "workload.toml", "-o", "prog.bin", "--target", "./missing.toml"}, "RDU1001");
  check({"compile", "workload.toml", "-o", "prog.bin", "--target", "./."}, "RDU1001");
  check({"compile", "missing.toml", "-o", "prog.bin"}, "RDU1001");
  check({"compile", "operand.toml", "-o", "prog.bin"}, "RDU1001");
  check({"run", "missing.bin"}, "RDU1001");
  const Outcome empty = rdusim({"compile", "workload.toml", "-o", "prog.bin", "--target", "./empty.toml"}, folder);
  CHECK(empty.status == 2);
  CHECK_FALSE(folder.has("prog.bin"));
}

// https://github.com/tenstorrent/tt-mlir/issues/3714: a binary of another compiler version was run all the same.
TEST_CASE("a program of another format version, or with one byte changed, is refused before anything runs") {
  const Folder folder;
  folder.write("newer.bin", source_text("tests/errors/files/RDU5002-newer.bin"));
  const Outcome newer = rdusim({"run", "newer.bin", "--report", "report.json"}, folder);
  CHECK(newer.status == 2);
  CHECK(errors_of(newer) == "RDU5002");
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  std::string bytes = folder.read("prog.bin");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  folder.write("changed.bin", bytes);
  const Outcome changed = rdusim({"run", "changed.bin", "--report", "report.json"}, folder);
  CHECK(changed.status == 2);
  CHECK(errors_of(changed) == "RDU5004");
  CHECK_FALSE(folder.has("report.json"));
}

// https://github.com/Xilinx/Vitis-Tutorials/issues/210: a graph without an iteration count ran for ever.
TEST_CASE(
    "a program without a count of firings is refused, without one of trips makes one, and with none does not run") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "1"});
  const Json whole = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  const auto assemble = [&](Json program, const std::string& output) {
    remove(program, "certificate");
    folder.write("changed.json", to_text(program));
    return rdusim({"assemble", "changed.json", "-o", output}, folder);
  };
  Json program = whole;
  remove(at(program, "stages", 0), "firings");
  const Outcome without = assemble(program, "changed.bin");
  CHECK(without.status == 2);
  CHECK(errors_of(without) == "RDU5007");
  for (const std::string key : {"sections", "stages"}) {
    CAPTURE(key);
    program = whole;
    at(program, key, 0, key == "sections" ? "trips" : "firings") = std::int64_t{0};
    const Outcome none = assemble(program, "changed.bin");
    CHECK(none.status != 0);
    CHECK(errors_of(none).substr(0, 4) == "RDU3");
  }
  CHECK_FALSE(folder.has("changed.bin"));
  program = whole;
  remove(at(program, "sections", 0), "trips");
  CHECK(assemble(program, "once.bin").status == 0);
  CHECK(to_text(at(run(folder, {}, "once.bin"), "cycles")) == to_text(at(run(folder), "cycles")));
}

}  // namespace
}  // namespace rdusim::test::cases_test
