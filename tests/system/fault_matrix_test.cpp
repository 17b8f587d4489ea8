// `rdusim faults`: the whole matrix, on programs with every kind of hand-off, with values and without.
#include <doctest/doctest.h>

#include <map>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "tests/system/stream_program.h"

namespace rdusim::test::fault_matrix_test {
namespace {

struct Program {
  std::string target, algorithm;
  Matmul workload;
  std::string chips = "3";
};

Matmul small(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& schedule,
             const std::string& dtype = "int8") {
  Matmul w = matmul(m, k, n, dtype);
  w.schedule = schedule;
  return w;
}

std::vector<Program> programs() {
  return {{"sn40l", "direct", small(64, 192, 96, "sites = 1")},
          {"sn40l", "ring", small(64, 384, 96, "sites = 2")},
          {"sn40l", "halving-doubling", small(64, 384, 96, "sites = 2")},
          {"wormhole", "ring", small(64, 192, 96, "sites = 1")},
          {"wormhole", "direct", small(64, 192, 96, "sites = 1"), "2"},
          {barrier_target(), "through-one", small(64, 192, 96, "sites = 1")},
          {"sn40l", "direct", small(50, 192, 70, "sites = 1"), "2"},
          {"sn40l", "through-one", small(64, 256, 64, "sites = 1", "int32"), "2"}};
}

Json matrix(const Program& p, std::vector<std::string> options) {
  const Folder folder;
  compile(folder, p.workload,
          {"--chips", p.chips, "--shard", "row", "--target", p.target, "--collective", p.algorithm});
  return matrix_of(folder, std::move(options));
}

TEST_CASE("no fault is missed, each is caught by a check meant for it, with values and without") {
  std::map<std::string, std::int64_t> caught;
  for (const Program& p : programs())
    for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--timing-only"}}) {
      CAPTURE(p.target);
      CAPTURE(p.algorithm);
      std::vector<std::string> all = {"--seeds", "3"};
      all.insert(all.end(), options.begin(), options.end());
      const Json m = matrix(p, all);
      check_none_missed(m);
      for (const auto& [kind, counts] : *at(m, "kinds").as_object()) caught[kind] += number(counts, "caught");
    }
  for (const auto& [kind, n] : caught) {
    CAPTURE(kind);
    const bool elsewhere = kind == "bias_again" || kind == "collective_order" || kind == "partial_trip" ||  // below
                           kind == "read_early" ||                                                          // below
                           kind == "flit_interleave";  // flit_run_test.cpp
    if (kind != "link_stall" && kind != "link_retry" && kind != "depth_less" && !elsewhere) CHECK(n > 0);
  }
}

// What no sharded product has: a bias by row, two collectives of one section, several trips.
void compile_text(const Folder& folder, const std::string& workload, std::vector<std::string> options) {
  folder.write("workload.toml", workload);
  options.insert(options.begin(), {"compile", "workload.toml", "-o", "prog.bin"});
  rdusim_ok(options, folder);
}

std::string operand(const std::string& name, const std::string& role, const std::string& shape,
                    const std::string& dtype, const std::string& modulus) {
  return "[tensors." + name + "]\nrole = \"" + role + "\"\nshape = " + shape + "\ndtype = \"" + dtype +
         "\"\nfill = { pattern = { modulus = " + modulus + ", shift = 20 } }\n";
}

// The kinds given are each caught at least once, and nothing else than caught, harmless and idle.
void check_caught(const Folder& folder, const std::string& kinds) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--timing-only"}}) {
    std::vector<std::string> options = {"faults", "prog.bin", "--json", "--seeds", "6", "--kinds", kinds};
    options.insert(options.end(), more.begin(), more.end());
    const Outcome outcome = rdusim(options, folder);
    INFO(outcome.out, outcome.err);
    CHECK(outcome.status == 0);
    const Json m = parsed(outcome.out);
    CHECK(number(m, "all", "elsewhere") == 0);
    for (const auto& [kind, counts] : *at(m, "kinds").as_object()) {
      CAPTURE(kind);
      CHECK(number(counts, "caught") > 0);
    }
  }
}

// A chain of two operators, the first of x and another operand, the second a relu of what it makes.
std::string chain(const std::string& name, const std::string& operands, const std::string& kind,
                  const std::string& other) {
  return "name = \"" + name + "\"\n" + operands + "[tensors.s]\n[tensors.y]\nrole = \"output\"\n[[ops]]\nkind = \"" +
         kind + "\"\nin = [\"x\", \"" + other +
         "\"]\nout = \"s\"\n[[ops]]\nkind = \"relu\"\nin = [\"s\"]\nout = \"y\"\n";
}

TEST_CASE("a bias that is added twice is caught, with values and without") {
  const Folder folder;
  compile_text(
      folder,
      chain("biased", operand("x", "input", "[64, 64]", "bf16", "61") + operand("b", "weight", "[1, 64]", "bf16", "53"),
            "add", "b"),
      {"--chips", "1"});
  check_caught(folder, "bias_again");
}

TEST_CASE("a page that is read before it is written is caught, with values and without") {
  const Folder folder;
  compile_text(
      folder,
      chain("chain",
            operand("x", "input", "[192, 64]", "bf16", "61") + operand("w", "weight", "[64, 64]", "bf16", "53"),
            "matmul", "w"),
      {"--chips", "1"});
  check_caught(folder, "read_early");
}

// The second collective's partial sums are made of the first one's result. Of two that have nothing of each other's,
// either may come first, and such a fault is harmless.
TEST_CASE("a chip that takes part in its collectives in another order is caught, with values and without") {
  const Folder folder;
  compile_text(folder,
               "name = \"two\"\n" + operand("x", "input", "[64, 128]", "bf16", "61") +
                   operand("v", "weight", "[128, 128]", "bf16", "53") +
                   operand("w", "weight", "[128, 96]", "bf16", "59") +
                   "[tensors.y]\ndtype = \"bf16\"\n[tensors.z]\nrole = \"output\"\n[[ops]]\nkind = \"matmul\"\nin = "
                   "[\"x\", \"v\"]\nout = \"y\"\n[[ops]]\nkind = \"matmul\"\nin = [\"y\", \"w\"]\nout = \"z\"\n",
               {"--chips", "2", "--shard", "row"});
  check_caught(folder, "collective_order");
}

TEST_CASE("a partial sum of the trip before is caught, and several trips alone raise nothing") {
  const Folder folder;
  compile(folder, small(64, 192, 96, "sites = 1"), {"--chips", "3", "--shard", "row", "--collective", "direct"});
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  Json edited;
  for (const auto& [key, value] : *program.as_object()) {
    if (key == "certificate") continue;  // assembling proves it again
    if (key != "sections") {
      edited.set(key, value);
      continue;
    }
    Json section;
    for (const auto& [name, what] : *value.as_array()->front().as_object())
      section.set(name, name == "trips" ? Json(std::int64_t{3}) : what);
    edited.set(key, Json(JsonArray{section}));
  }
  folder.write("program.json", to_text(edited));
  rdusim_ok({"assemble", "program.json", "-o", "prog.bin"}, folder);
  check_exact_pass(run(folder));
  check_caught(folder, "partial_trip,partial_block,sum_order");
}

TEST_CASE("a buffer of a page less than it must have is caught where it hangs, with values and without") {
  const Folder folder;
  StreamProgram s("whole");  // 'second' waits for what 'first' makes of all eight
  const GroupId g = s.group();
  const BufferId in = s.buffer("in", g, 1), a = s.buffer("a", g, 1), b = s.buffer("b", g, 8),
                 sum = s.buffer("sum", g, 1), out = s.buffer("out", g, 1);
  const TensorId x = s.tensor("x", TensorRole::input, 8, 7), y = s.tensor("y", TensorRole::output, 1);
  const StageId load = s.load("load", x, g, in, 8);
  const StageId both = s.copy("both", g, in, {a, b}, 8);
  const StageId first = s.fold("first", g, a, {}, sum, 8), second = s.fold("second", g, b, {sum}, out, 8);
  const StageId store = s.store("store", y, g, out, 1);
  s.join(load, in, {both});
  s.join(both, a, {first});
  s.join(both, b, {second});
  s.join(first, sum, {second});
  s.join(second, out, {store});
  REQUIRE(assemble(folder, s).status == 0);
  check_caught(folder, "depth_less");
  const Outcome hung = rdusim({"run", "prog.bin", "--inject", "depth_less@b"}, folder);
  CHECK(hung.status == 1);
  CHECK(errors_of(hung) == "RDU7018");
}

TEST_CASE("what a link brings twice after a lost acknowledgement is caught, whatever it was") {
  std::map<std::string, std::int64_t> caught;  // by target: tokens, semaphores, barriers
  for (const Program& p : programs()) {
    CAPTURE(p.target);
    CAPTURE(p.algorithm);
    const Json m = matrix(p, {"--seeds", "8", "--kinds", "link_duplicate"});
    CHECK(number(m, "all", "missed") == 0);
    CHECK(number(m, "all", "elsewhere") == 0);
    caught[p.target] += number(m, "all", "caught");
  }
  CHECK(caught.size() == 3);
  for (const auto& [target, n] : caught) CHECK(n > 0);
}

// A bit within the bound, which a check of the bound alone cannot see: the matrix says so.
TEST_CASE("a fault that no check notices and that is not harmless is missed, with status 1") {
  const Folder folder;
  Matmul floats = matmul(64, 128, 64, "fp32");
  floats.schedule = "sites = 1";
  compile(folder, floats, {"--chips", "1"});
  const std::vector<std::string> options = {"faults", "prog.bin", "--kinds", "page_bit_flip", "--seeds", "8"};
  CHECK(rdusim(options, folder).status == 0);
  std::vector<std::string> weak = options;
  weak.insert(weak.end(), {"--check", "bound"});
  const Outcome outcome = rdusim(weak, folder);
  INFO(outcome.out, outcome.err);
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("RDU6010") != std::string::npos);
  CHECK(outcome.out.find("missed  page_bit_flip@") != std::string::npos);
  weak.back() = "loose";
  CHECK(rdusim(weak, folder).status == 2);
}

TEST_CASE("the matrix is the same however many runs go on at a time") {
  const Program p = programs().front();
  const std::vector<std::string> options = {"--seeds", "2", "--kinds", "page_drop,credit_drop,link_stall"};
  std::vector<std::string> one = options, three = options;
  one.insert(one.end(), {"--jobs", "1"});
  three.insert(three.end(), {"--jobs", "3"});
  CHECK(to_text(matrix(p, one)) == to_text(matrix(p, three)));
}

TEST_CASE("faults of unknown kinds, and of values in a run that has none, are refused") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  Outcome outcome = rdusim({"faults", "prog.bin", "--kinds", "page_dorp"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU6007");
  CHECK(outcome.err.find("page_drop") != std::string::npos);
  outcome = rdusim({"faults", "prog.bin", "--timing-only", "--kinds", "page_bit_flip"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU6009");
  outcome = rdusim({"run", "prog.bin", "--inject", "flit_interleave@edge0"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome).find("RDU600") == 0);
  outcome = rdusim({"run", "prog.bin", "--timing-only", "--inject", "page_bit_flip@edge0"}, folder);
  CHECK(outcome.status == 2);
}

TEST_CASE("with links and stages late at random, values and verdicts stay as they are") {
  // A hundred seeds and more between them.
  int next = 0;
  for (const Program& p : programs()) {
    CAPTURE(p.target);
    CAPTURE(p.algorithm);
    const Folder folder;
    compile(folder, p.workload,
            {"--chips", p.chips, "--shard", "row", "--target", p.target, "--collective", p.algorithm});
    const Json calm = run(folder);
    std::int64_t later = 0;
    for (int i = 0; i < 13; ++i) {
      const std::string seed = std::to_string(++next);
      CAPTURE(seed);
      const Json late = run(folder, {"--jitter", seed});
      check_exact_pass(late);
      CHECK(text(late, "outputs", 0, "sha256") == text(calm, "outputs", 0, "sha256"));
      later += number(late, "cycles", "simulated") > number(calm, "cycles", "simulated");
      // The same seed delays the same things.
      if (i == 0) CHECK(without_host(run(folder, {"--jitter", seed})) == without_host(late));
    }
    CHECK(later > 10);  // now and then nothing that counts is late
  }
}

TEST_CASE("jitter does not hide a fault") {
  const Program p = programs().front();
  const Folder folder;
  compile(folder, p.workload,
          {"--chips", p.chips, "--shard", "row", "--target", p.target, "--collective", p.algorithm});
  for (const std::string seed : {"1", "2", "3"}) {
    const Outcome outcome =
        rdusim({"run", "prog.bin", "--jitter", seed, "--inject", "partial_skip@matmul0.all_reduce.fold_c0:1"}, folder);
    CHECK(outcome.status == 1);
    CHECK(errors_of(outcome) == "RDU7009");
  }
}

}  // namespace
}  // namespace rdusim::test::fault_matrix_test
