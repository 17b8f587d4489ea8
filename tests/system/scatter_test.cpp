// Results whose rows chips keep apart: a reduce-scatter gives the bits of the whole product, each chip has just its rows,
// and what breaks on the way is caught.
#include <doctest/doctest.h>

#include <iterator>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::scatter_test {
namespace {

Matmul scattered(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& dtype = "int8") {
  Matmul w = matmul(m, k, n, dtype);
  w.scattered = true;
  return w;
}

TEST_CASE("every number of chips from 2 to 16 keeps its rows of the exact product, by every algorithm") {
  const Folder folder;
  for (int chips = 2; chips <= 16; ++chips) {
    // Seven rows a chip: no whole tiles, and of up to four tiles a page.
    const Matmul workload = scattered(7 * chips, 32 * chips, 72);
    for (const std::string algorithm : {"through-one", "direct", "ring", "hierarchical", "auto"}) {
      if (algorithm == "hierarchical" && chips <= 8) continue;  // one node
      CAPTURE(chips);
      CAPTURE(algorithm);
      const Json report = run_exactly(folder, workload,
                                      {"--chips", std::to_string(chips), "--shard", "row", "--collective", algorithm});
      REQUIRE(list(report, "collectives").size() == 1);
      CHECK(text(report, "collectives", 0, "kind") == "reduce_scatter");
      CHECK(number(report, "collectives", 0, "contributions") == chips);
      CHECK(number(report, "collectives", 0, "bytes") == 7 * chips * 72 * 4);
      std::int64_t written = 0;
      for (const Json& memory : list(report, "memories")) written += number(memory, "write_bytes");
      CHECK(written == 7 * chips * 72 * 4);  // all chips together, once
    }
  }
}

TEST_CASE("a scattered product is the same in every dtype, on every machine, in pages of up to eight tiles of rows") {
  const Folder folder;
  for (const std::string dtype : {"int8", "int32", "int64", "bf16", "fp32", "fp8_e4m3"})
    for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()})
      for (const std::string chips : {"2", "4", "6"})
        for (const std::int64_t rows : {12, 240}) {
          CAPTURE(dtype);
          CAPTURE(target);
          CAPTURE(chips);
          CAPTURE(rows);
          const Matmul workload = scattered(rows, 32 * 12, 40, dtype);
          const Json report = run_exactly(
              folder, workload, {"--target", target, "--chips", chips, "--shard", "row", "--collective", "ring"});
        }
}

TEST_CASE("columns are exchanged for rows on every number of chips from 2 to 16, exactly, in every dtype") {
  const Folder folder;
  const std::vector<std::string> dtypes = {"int8", "int32", "int64", "bf16", "fp32", "fp8_e4m3"};
  for (std::int64_t chips = 2; chips <= 16; ++chips) {
    CAPTURE(chips);
    const Matmul workload = scattered(5 * chips, 64, 32 * chips, dtypes[static_cast<std::size_t>(chips) % 6]);
    for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
      CAPTURE(target);
      if (target == barrier_target() && chips > 8) continue;  // it has no more
      const std::vector<std::string> options = {"--target", target,  "--chips", std::to_string(chips),
                                                "--shard",  "column"};
      if (target == "wormhole" && chips > 5) {
        // Eight semaphores a core are too few: that is all there is.
        if (chips <= 8) refused(folder, workload, options, "RDU4114");
        continue;
      }
      const Json report = compile_and_run(folder, workload, options);
      check_exact_pass(report);
      CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
      REQUIRE(list(report, "collectives").size() == 1);
      CHECK(text(report, "collectives", 0, "kind") == "all_to_all");
      const std::int64_t element = workload.dtype == "int64" ? 8 : 4;
      CHECK(number(report, "collectives", 0, "bytes") == 5 * chips * 32 * element);
      CHECK(number(report, "collectives", 0, "sent_bytes") == 5 * (chips - 1) * chips * 32 * element);
    }
  }
}

TEST_CASE("uneven and padded contractions are scattered, too") {
  const Folder folder;
  for (const std::string option : {"--uneven", "--pad"})
    for (const std::string algorithm : {"direct", "ring"}) {
      const Matmul workload = scattered(33, 11 * 32 + 5, 40);
      const Json report =
          run_exactly(folder, workload, {"--chips", "3", "--shard", "row", option, "--collective", algorithm});
    }
}

// A residual, a norm and a matmul behind a scattered product.
std::string behind(const std::string& scattered) {
  const auto tensor = [](const std::string& name, const std::string& role, const std::string& shape, int modulus) {
    return "[tensors." + name + "]\nrole = \"" + role + "\"\nshape = [" + shape +
           "]\ndtype = \"bf16\"\nfill = { pattern = { modulus = " + std::to_string(modulus) + ", shift = 3 } }\n";
  };
  const auto result = [](const std::string& name, const std::string& role) {
    return "[tensors." + name + "]\nrole = \"" + role + "\"\ndtype = \"bf16\"\n";
  };
  const auto op = [](const std::string& kind, const std::string& in, const std::string& out, const std::string& more) {
    return "[[ops]]\nkind = \"" + kind + "\"\nin = [" + in + "]\nout = \"" + out + "\"\n" + more;
  };
  return "name = \"behind\"\n" + tensor("x", "input", "128, 256", 11) + tensor("w", "weight", "256, 96", 13) +
         tensor("r", "input", "128, 96", 17) + tensor("g", "weight", "96", 7) + tensor("v", "weight", "96, 128", 19) +
         result("h", "intermediate") + result("a", "output") + result("n", "intermediate") + result("y", "output") +
         op("matmul", "\"x\", \"w\"", "h", scattered) + op("add", "\"r\", \"h\"", "a", "") +
         op("rms_norm", "\"a\", \"g\"", "n", "epsilon = 1e-5\n") + op("matmul", "\"n\", \"v\"", "y", "");
}

TEST_CASE("residual and norm on each chip's rows give the bits of the form with an all-reduce, on every machine") {
  const Folder folder;
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()})
    for (const std::string chips : {"1", "2", "4"}) {
      CAPTURE(target);
      CAPTURE(chips);
      const bool few_semaphores = chips == "4" && target == "wormhole";
      Json reports[2];
      for (const bool scattered : {false, true}) {
        folder.write("workload.toml", behind(scattered ? "scattered = true\n" : ""));
        rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--target", target, "--chips", chips, "--shard",
                   "tensor", "--collective", few_semaphores ? "ring" : "direct"},
                  folder);
        reports[scattered] = run(folder);
        check_exact_pass(reports[scattered]);
      }
      for (const std::size_t output : {0, 1})  // those of a ring are sums of another order
        if (!few_semaphores)
          CHECK(text(reports[0], "outputs", output, "sha256") == text(reports[1], "outputs", output, "sha256"));
      if (chips == "1") continue;
      CHECK(text(reports[1], "collectives", 0, "kind") == "reduce_scatter");
      CHECK(text(reports[1], "collectives", 1, "kind") == "all_gather");
    }
}

TEST_CASE("no fault of rows that are scattered, worked on and gathered is missed") {
  const Folder folder;
  folder.write("workload.toml", behind("scattered = true\n"));
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "2", "--shard", "tensor"}, folder);
  check_none_missed(matrix_of(folder, {"--seeds", "2"}));
}

TEST_CASE("rows that chips do not divide are refused with the numbers that do") {
  const Folder folder;
  const Outcome outcome = refused(folder, scattered(30, 32 * 4, 40), {"--chips", "4", "--shard", "row"}, "RDU4102");
  CHECK(outcome.err.find("1, 2, 3, 5, 6, 10, 15") != std::string::npos);
}

TEST_CASE("more rows than a site can hold at once are refused") {
  const Folder folder;
  const Outcome outcome = refused(folder, scattered(4096, 32 * 4, 40), {"--chips", "4", "--shard", "row"}, "RDU4107");
  CHECK(outcome.err.find("all rows of a page together as they are scattered") != std::string::npos);
}

TEST_CASE("no fault of a reduce-scatter or an all-to-all is missed, with values and without") {
  for (const std::string algorithm : {"direct", "ring", "through-one", "of columns"})
    for (const bool timing_only : {false, true}) {
      CAPTURE(algorithm);
      CAPTURE(timing_only);
      const Folder folder;
      Matmul workload = scattered(48, 192, 96);
      workload.schedule = "sites = 1";
      if (algorithm == "of columns")  // an all-to-all
        compile(folder, workload, {"--chips", "3", "--shard", "column"});
      else
        compile(folder, workload, {"--chips", "3", "--shard", "row", "--collective", algorithm});
      const Json m = matrix_of(folder, timing_only ? std::vector<std::string>{"--seeds", "3", "--timing-only"}
                                                   : std::vector<std::string>{"--seeds", "3"});
      CHECK(list(m, "faults").size() > 20);
      check_none_missed(m);
    }
}

TEST_CASE("a portable program is scattered as it is loaded") {
  const Folder folder;
  const Matmul workload = scattered(32, 512, 40);
  compile(folder, workload, {});
  for (const std::string chips : {"1", "4", "16"}) {
    const Json report = run(folder, {"--chips", chips});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
    CHECK(list(report, "collectives").size() == (chips == "1" ? 0 : 1));
  }
}

}  // namespace
}  // namespace rdusim::test::scatter_test
