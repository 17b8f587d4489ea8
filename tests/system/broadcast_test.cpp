// Results that one chip works out alone and sends to all: each form gives every chip the bits of the product, what only that
// chip reads lies there alone, and what breaks on the way is caught.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::broadcast_test {
namespace {

Matmul on(const std::string& chip, std::int64_t m, std::int64_t k, std::int64_t n, const std::string& dtype = "int8") {
  Matmul w = matmul(m, k, n, dtype);
  w.alone = chip;
  return w;
}

TEST_CASE("every number of chips from 2 to 16 is sent the exact product of one of them, by every algorithm") {
  const Folder folder;
  for (int chips = 2; chips <= 16; ++chips) {
    // The first, the middle one, the last.
    const std::string roots[] = {"0, 1", "1, 2", std::to_string(chips - 1) + ", " + std::to_string(chips)};
    const Matmul workload = on(roots[chips % 3], 40, 75, 72);
    for (const std::string algorithm : {"through-one", "direct", "ring", "tree", "hierarchical", "auto"}) {
      if (algorithm == "hierarchical" && chips <= 8) continue;  // one node
      CAPTURE(chips);
      CAPTURE(algorithm);
      const Json report = run_exactly(folder, workload,
                                      {"--chips", std::to_string(chips), "--shard", "row", "--collective", algorithm});
      REQUIRE(list(report, "collectives").size() == 1);
      CHECK(text(report, "collectives", 0, "kind") == "broadcast");
      CHECK(number(report, "collectives", 0, "bytes") == 40 * 72 * 4);
      CHECK(number(report, "collectives", 0, "sent_bytes") == 40 * 72 * 4 * (chips - 1));
      CHECK(number(report, "macs", "useful") == 40 * 75 * 72);  // once, not by every chip
      std::int64_t read = 0, written = 0;
      for (const Json& memory : list(report, "memories")) {
        read += number(memory, "read_bytes");
        written += number(memory, "write_bytes");
      }
      CHECK(read == 40 * 75 + 75 * 72);
      CHECK(written == 40 * 72 * 4 * chips);
    }
  }
}

TEST_CASE("a product is sent in every dtype on every machine") {
  const Folder folder;
  for (const std::string dtype : {"int8", "int32", "int64", "bf16", "fp32", "fp8_e4m3"})
    for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()})
      for (const std::string chips : {"2", "3", "6"})
        for (const std::string algorithm : {"through-one", "direct", "ring", "tree"}) {
          CAPTURE(dtype);
          CAPTURE(target);
          CAPTURE(chips);
          CAPTURE(algorithm);
          const Matmul workload = on("1, 2", 33, 64, 200, dtype);
          const Json report = run_exactly(
              folder, workload, {"--target", target, "--chips", chips, "--shard", "tensor", "--collective", algorithm});
        }
}

// A table's rows and their norm, by a chip alone, then a pair of matmuls that all share.
std::string before_a_pair(const std::string& of_gather, const std::string& of_norm) {
  const auto tensor = [](const std::string& name, const std::string& role, const std::string& shape,
                         const std::string& dtype, const std::string& fill) {
    return "[tensors." + name + "]\nrole = \"" + role + "\"\nshape = [" + shape + "]\ndtype = \"" + dtype +
           "\"\nfill = { pattern = { modulus = " + fill + " } }\n";
  };
  const auto result = [](const std::string& name, const std::string& role) {
    return "[tensors." + name + "]\nrole = \"" + role + "\"\ndtype = \"bf16\"\n";
  };
  const auto op = [](const std::string& kind, const std::string& in, const std::string& out, const std::string& more) {
    return "[[ops]]\nkind = \"" + kind + "\"\nin = [" + in + "]\nout = \"" + out + "\"\n" + more;
  };
  return "name = \"pair\"\n" + tensor("table", "weight", "50, 96", "bf16", "11, shift = 3") +
         tensor("tokens", "input", "17", "int32", "41") + tensor("g", "weight", "96", "bf16", "7, shift = 2") +
         tensor("up", "weight", "96, 192", "bf16", "13, shift = 5") +
         tensor("down", "weight", "192, 96", "bf16", "19, shift = 8") + result("x", "intermediate") +
         result("n", "intermediate") + result("h", "intermediate") + result("y", "output") +
         op("gather", "\"table\", \"tokens\"", "x", of_gather) +
         op("rms_norm", "\"x\", \"g\"", "n", "epsilon = 1e-5\n" + of_norm) + op("matmul", "\"n\", \"up\"", "h", "") +
         op("matmul", "\"h\", \"down\"", "y", "");
}

TEST_CASE("what one chip looks up and normalises gives the bits that all would have, and is sent when others read it") {
  const Folder folder;
  const auto outcome = [&](const std::string& workload, const std::string& target) {
    folder.write("workload.toml", workload);
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--target", target, "--chips", "3", "--shard", "tensor",
               "--collective", "direct"},
              folder);
    const Json report = run(folder);
    check_exact_pass(report);
    return report;
  };
  const auto kinds = [](const Json& report) {
    std::string all;
    for (const Json& c : list(report, "collectives")) all += text(c, "name") + " ";
    return all;
  };
  for (const std::string& target : {std::string("sn40l"), barrier_target()}) {
    CAPTURE(target);
    const Json whole = outcome(before_a_pair("", ""), target);
    const std::string expected = text(whole, "outputs", 0, "sha256");
    CHECK(kinds(whole) == "matmul3.all_reduce ");
    const Json both = outcome(before_a_pair("alone = [2, 3]\n", "alone = [2, 3]\n"), target);
    CHECK(text(both, "outputs", 0, "sha256") == expected);
    CHECK(kinds(both) == "rms_norm1.broadcast matmul3.all_reduce ");
    const Json apart = outcome(before_a_pair("alone = [0, 3]\n", "alone = [1, 3]\n"), target);
    CHECK(text(apart, "outputs", 0, "sha256") == expected);
    CHECK(kinds(apart) == "gather0.broadcast rms_norm1.broadcast matmul3.all_reduce ");
    const Json gather = outcome(before_a_pair("alone = [1, 3]\n", ""), target);
    CHECK(text(gather, "outputs", 0, "sha256") == expected);
    CHECK(kinds(gather) == "gather0.broadcast matmul3.all_reduce ");
  }
  const std::string shown = rdusim_ok({"show", "prog.bin"}, folder).out;
  CHECK(shown.find("table_c1") != std::string::npos);
  CHECK(shown.find("table_c0") == std::string::npos);  // it lies where it is read
  CHECK(shown.find("table_c2") == std::string::npos);
}

// Six products of one operand by chips alone, four on the first of two, added up.
std::string unequal_shares(const std::string& of_each) {
  const auto tensor = [](const std::string& name, const std::string& role, const std::string& shape, int modulus) {
    return "[tensors." + name + "]\nrole = \"" + role + "\"\nshape = [" + shape +
           "]\ndtype = \"int8\"\nfill = { pattern = { modulus = " + std::to_string(modulus) + ", shift = 3 } }\n";
  };
  std::string out = "name = \"shares\"\n" + tensor("x", "input", "32, 96", 11), ops, sum = "p0";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    out += tensor("w" + n, "weight", "96, 64", 13 + 2 * i) + "[tensors.p" + n + "]\n";
    ops += "[[ops]]\nname = \"m" + n + "\"\nkind = \"matmul\"\nin = [\"x\", \"w" + n + "\"]\nout = \"p" + n + "\"\n";
    if (!of_each.empty()) ops += "alone = [" + std::string(i < 4 ? "0" : "1") + ", 2]\n";
    ops += "[schedule.m" + n + "]\n" + of_each;
    if (i == 0) continue;
    out += "[tensors.s" + n + "]\n" + (i == 5 ? "role = \"output\"\n" : "");
    ops += "[[ops]]\nkind = \"add\"\nin = [\"" + sum + "\", \"p" + n + "\"]\nout = \"s" + n + "\"\n";
    sum = "s" + n;
  }
  return out + ops;
}

TEST_CASE("chips that do unequal shares alone meet in the same sections, as many as the fullest of them asks for") {
  const Folder folder;
  folder.write("workload.toml", unequal_shares("unroll_m = 1\nunroll_n = 2\n"));
  const auto outcome = [&](const std::string& chips, const std::string& target) {
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--target", target, "--chips", chips, "--shard", "tensor"},
              folder);
    const Json report = run(folder);
    check_exact_pass(report);
    return report;
  };
  for (const std::string& target : {std::string("sn40l"), barrier_target()}) {
    CAPTURE(target);
    const std::string expected = text(outcome("1", target), "outputs", 0, "sha256");
    for (const std::string chips : {"2", "4"}) {
      const Json report = outcome(chips, target);
      CHECK(text(report, "outputs", 0, "sha256") == expected);
      CHECK(list(report, "collectives").size() == 6);
    }
  }
}

TEST_CASE("a result that nobody reads stays where it is, where results are to be on one chip only") {
  const Folder folder;
  const Matmul workload = on("1, 2", 33, 64, 96);
  const Json report = run_exactly(folder, workload, {"--chips", "4", "--shard", "row", "--collective", "reduce"});
  CHECK(list(report, "collectives").empty());
}

TEST_CASE("a portable program is sent to as many chips as it is loaded on") {
  const Folder folder;
  const Matmul workload = on("1, 2", 32, 64, 40);
  compile(folder, workload, {});
  for (const std::string chips : {"1", "2", "16"}) {
    const Json report = run(folder, {"--chips", chips});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
    CHECK(list(report, "collectives").size() == (chips == "1" ? 0 : 1));
  }
}

TEST_CASE("an algorithm that a broadcast has not is refused with those that it has") {
  const Folder folder;
  const Outcome outcome = refused(folder, on("0, 1", 32, 64, 40),
                                  {"--chips", "4", "--shard", "row", "--collective", "halving-doubling"}, "RDU4114");
  CHECK(outcome.err.find("--collective tree") != std::string::npos);
}

TEST_CASE("no fault of a broadcast is missed, with values and without") {
  for (const std::string algorithm : {"through-one", "direct", "ring", "tree"})
    for (const bool timing_only : {false, true}) {
      CAPTURE(algorithm);
      CAPTURE(timing_only);
      const Folder folder;
      Matmul workload = on("0, 1", 48, 64, 96);
      workload.schedule = "sites = 1";
      compile(folder, workload, {"--chips", "4", "--shard", "row", "--collective", algorithm});
      const Json m = matrix_of(folder, timing_only ? std::vector<std::string>{"--seeds", "3", "--timing-only"}
                                                   : std::vector<std::string>{"--seeds", "3"});
      CHECK(list(m, "faults").size() > 20);
      check_none_missed(m);
    }
}

}  // namespace
}  // namespace rdusim::test::broadcast_test
