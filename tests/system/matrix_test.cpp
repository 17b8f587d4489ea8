// Every dtype, number of chips, way of sharding, algorithm and machine: the values of the result depend on none of
// them.
//
// The contraction (or the columns) is 6720 = 32 x 2 x 3 x 5 x 7 long, so that 1, 2, 3, 5, 6 and 7 chips divide it into
// whole tiles; 33 or 31 rows leave a ragged tile. Integers wrap around, and the patterns of floats are whole numbers
// whose sums fp32 holds exactly, so that every order of additions must give the same bits.
#include <doctest/doctest.h>

#include <iterator>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::matrix_test {
namespace {

constexpr const char* chip_counts[] = {"1", "2", "3", "5", "6", "7"};

// All counts and targets for one dtype and one way of sharding.
void check_all(const std::string& dtype, bool row, const std::vector<std::string>& algorithms) {
  const Folder folder;
  const Matmul workload = row ? matmul(33, 6720, 32, dtype) : matmul(31, 32, 6720, dtype);
  const std::string expected = workload.sha256();
  folder.write("workload.toml", workload.toml());
  int ran = 0;
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    for (const std::string& algorithm : algorithms) {
      for (const std::string chips : chip_counts) {
        CAPTURE(target);
        CAPTURE(algorithm);
        CAPTURE(chips);
        const Outcome compiled = rdusim({"compile", "workload.toml", "-o", "prog.bin", "--target", target, "--chips",
                                         chips, "--shard", row ? "row" : "column", "--collective", algorithm},
                                        folder);
        if (target == "wormhole" && algorithm != "ring" && compiled.status == 2) {
          // Eight semaphores a core are too few for many senders: said, with what would do.
          CHECK(errors_of(compiled) == "RDU4114");
          CHECK(compiled.err.find("semaphores and the target gives it 8") != std::string::npos);
          const auto help = compiled.err.find("what works here: ");
          REQUIRE(help != std::string::npos);
          CHECK(compiled.err.find("ring", help) != std::string::npos);
          continue;
        }
        INFO(compiled.err);
        REQUIRE(compiled.status == 0);
        const Json report = run(folder);
        check_exact_pass(report);
        CHECK(text(report, "outputs", 0, "sha256") == expected);
        CHECK(number(report, "macs", "useful") == workload.m * workload.k * workload.n);
        CHECK(list(report, "collectives").size() == (row && chips != "1" ? 1 : 0));
        if (row && chips != "1") CHECK(number(report, "collectives", 0, "contributions") == std::stoi(chips));
        ++ran;
      }
    }
  }
  // All but through-one and direct over several chips of wormhole.
  const int refused = algorithms.size() > 1 ? 10 : 0;
  CHECK(ran >= static_cast<int>(3 * algorithms.size() * std::size(chip_counts)) - refused);
}

const std::vector<std::string> all_algorithms = {"through-one", "direct", "ring", "halving-doubling", "tree"};

TEST_CASE("row-sharded int8 is the same on every number of chips, by every algorithm, on every machine") {
  check_all("int8", true, all_algorithms);
}
TEST_CASE("row-sharded int32 is the same on every number of chips, by every algorithm, on every machine") {
  check_all("int32", true, all_algorithms);
}
TEST_CASE("row-sharded int64 is the same on every number of chips, by every algorithm, on every machine") {
  check_all("int64", true, all_algorithms);
}
TEST_CASE("row-sharded bf16 is the same on every number of chips, by every algorithm, on every machine") {
  check_all("bf16", true, all_algorithms);
}
TEST_CASE("row-sharded fp32 is the same on every number of chips, by every algorithm, on every machine") {
  check_all("fp32", true, all_algorithms);
}
TEST_CASE("row-sharded fp8_e4m3 is the same on every number of chips, by every algorithm, on every machine") {
  check_all("fp8_e4m3", true, all_algorithms);
}

TEST_CASE("column-sharded results are the same in every dtype, on every number of chips, on every machine") {
  for (const std::string dtype : {"int8", "int32", "int64", "bf16", "fp32", "fp8_e4m3"}) {
    CAPTURE(dtype);
    check_all(dtype, false, {"auto"});
  }
}

TEST_CASE("every number of chips from 1 to 16 is exact by every algorithm, with a tile of the contraction each") {
  const Folder folder;
  for (int chips = 1; chips <= 16; ++chips) {
    const Matmul workload = matmul(32, 32 * chips, 48);
    std::vector<std::string> algorithms = all_algorithms;
    if (chips > 8) algorithms.push_back("hierarchical");  // of more than one node
    for (const std::string& algorithm : algorithms) {
      CAPTURE(chips);
      CAPTURE(algorithm);
      const Json report = run_exactly(folder, workload,
                                      {"--chips", std::to_string(chips), "--shard", "row", "--collective", algorithm});
      if (chips > 1) CHECK(number(report, "collectives", 0, "contributions") == chips);
    }
  }
}

TEST_CASE("columns that are gathered are the same by every algorithm, over one node, two full ones and others") {
  const Folder folder;
  const auto chain = [](int columns) {
    const auto tensor = [](const std::string& name, const std::string& role, int rows, int cols, int modulus) {
      return "[tensors." + name + "]\nrole = \"" + role + "\"\nshape = [" + std::to_string(rows) + ", " +
             std::to_string(cols) + "]\ndtype = \"bf16\"\nfill = { pattern = { modulus = " + std::to_string(modulus) +
             ", shift = 3 } }\n";
    };
    return "name = \"chain\"\n" + tensor("x", "input", 33, 32, 11) + tensor("v", "weight", 32, columns, 13) +
           tensor("w", "weight", columns, columns, 17) +
           "[tensors.h]\ndtype = \"bf16\"\n[tensors.y]\nrole = \"output\"\n" +
           "[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"v\"]\nout = \"h\"\n" +
           "[[ops]]\nkind = \"matmul\"\nin = [\"h\", \"w\"]\nout = \"y\"\n";
  };
  for (const int chips : {2, 3, 8, 9, 12, 16}) {
    folder.write("workload.toml", chain(32 * chips));
    std::string expected;
    for (const std::string algorithm : {"direct", "ring", "hierarchical", "auto"}) {
      if (chips <= 8 && algorithm == "hierarchical") continue;
      CAPTURE(chips);
      CAPTURE(algorithm);
      const Outcome compiled = rdusim({"compile", "workload.toml", "-o", "prog.bin", "--chips", std::to_string(chips),
                                       "--shard", "column", "--collective", algorithm},
                                      folder);
      INFO(compiled.err);
      REQUIRE(compiled.status == 0);
      const Json report = run(folder);
      check_exact_pass(report);
      if (algorithm != "auto") CHECK(text(report, "collectives", 0, "algorithm") == algorithm);
      if (expected.empty()) expected = text(report, "outputs", 0, "sha256");
      CHECK(text(report, "outputs", 0, "sha256") == expected);
    }
  }
}

TEST_CASE("sn50 computes the same, by row and by column") {
  const Folder folder;
  for (const std::string dtype : {"int8", "bf16"}) {
    for (const std::string shard : {"row", "column"}) {
      const Matmul workload = shard == "row" ? matmul(33, 480, 64, dtype) : matmul(33, 64, 480, dtype);
      for (const std::string chips : {"1", "3", "5"}) {
        CAPTURE(dtype);
        CAPTURE(shard);
        CAPTURE(chips);
        const Json report = run_exactly(folder, workload, {"--chips", chips, "--shard", shard, "--target", "sn50"});
      }
    }
  }
}

TEST_CASE("a result that rounds is the same to the bit whenever it is computed again") {
  const Folder folder;
  for (const std::string dtype : {"bf16", "fp32", "fp8_e4m3", "fp8_e5m2"}) {
    for (const std::string& algorithm : all_algorithms) {
      CAPTURE(dtype);
      CAPTURE(algorithm);
      std::string workload = matmul(32, 480, 64, dtype).toml();
      for (std::size_t at = 0; (at = workload.find("pattern = {", at)) != std::string::npos;)
        workload.replace(at, workload.find('}', at) - at, "random = { seed = " + std::to_string(at));
      folder.write("workload.toml", workload);
      rdusim_ok(
          {"compile", "workload.toml", "-o", "prog.bin", "--chips", "5", "--shard", "row", "--collective", algorithm},
          folder);
      const Json once = run(folder);
      check_exact_pass(once);
      CHECK(without_host(run(folder)) == without_host(once));
    }
  }
}

}  // namespace
}  // namespace rdusim::test::matrix_test
