// Shapes that broke other tools, with the figures of the public reports that are named at each.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::shapes_test {
namespace {

// One decoded token through a layer of Llama-3.1-8B (hidden 4096, intermediate 14336, 32 query and 2 x 8 key and value
// heads of 128: https://huggingface.co/meta-llama/Llama-3.1-8B, config.json): fused QKV, gate-up and down-projection,
// the shapes in which vLLM holds the weights.
const Matmul decode_shapes[] = {matmul(1, 4096, 6144), matmul(1, 4096, 28672), matmul(1, 14336, 4096)};

TEST_CASE("one token through Llama-3.1-8B is exact on 1 to 16 chips, and 1/32 of the tile is stated as 3.1 %") {
  for (const Matmul& shape : decode_shapes) {
    const Folder folder;
    const std::string expected = shape.sha256();
    folder.write("workload.toml", shape.toml());
    // All five counts for QKV, the ends and the middle for the larger two.
    const std::vector<std::string> counts =
        shape.n == 6144 ? std::vector<std::string>{"1", "2", "4", "8", "16"} : std::vector<std::string>{"1", "4", "16"};
    for (const std::string& chips : counts) {
      CAPTURE(shape.k);
      CAPTURE(shape.n);
      CAPTURE(chips);
      rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", chips, "--shard", "column"}, folder);
      const Outcome outcome = rdusim_ok({"run", "prog.bin", "--report", "report.json"}, folder);
      CHECK(outcome.out.find("utilisation of the tile 1/32 = 3.1 %") != std::string::npos);
      const Json report = parsed(folder.read("report.json"));
      check_exact_pass(report);
      CHECK(text(report, "outputs", 0, "sha256") == expected);
      CHECK(number(report, "macs", "useful") == shape.k * shape.n);
      CHECK(number(report, "macs", "padding") == 0);
    }
  }
}

TEST_CASE("one decoded token, row-sharded over 2 to 16 chips, is exact") {
  const Matmul shape = matmul(1, 4096, 6144);
  const Folder folder;
  const std::string expected = shape.sha256();
  for (const std::string chips : {"2", "4", "8", "16"}) {
    CAPTURE(chips);
    const Json report = compile_and_run(folder, shape, {"--chips", chips, "--shard", "row"});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == expected);
    CHECK(number(report, "collectives", 0, "bytes") == 6144 * 4);
  }
}

std::string label_of(const Folder& folder, const Matmul& shape, const std::string& chips) {
  compile(folder, shape, {"--chips", chips, "--shard", "column"});
  const std::string out = rdusim_ok({"run", "prog.bin", "--timing-only"}, folder).out;
  const auto end = out.find("-bound");
  REQUIRE(end != std::string::npos);
  const auto begin = out.rfind(' ', end) + 1;
  return out.substr(begin, end - begin);
}

// A byte of weights is used for one multiply-accumulate, or 32 on a tile of 32 rows; sn40l reads 1500 B a cycle and
// could do 512 in each of 1040 PCUs.
TEST_CASE("one decoded token on one chip is memory-bound") {
  const Folder folder;
  for (const Matmul& shape : decode_shapes) {
    CAPTURE(shape.k);
    CAPTURE(shape.n);
    CHECK(label_of(folder, shape, "1") == "memory");
  }
}

TEST_CASE("one decoded token stays memory-bound when its columns are spread over chips") {
  const Folder folder;
  for (const Matmul& shape : decode_shapes) {
    for (const std::string chips : {"2", "4", "8", "16"}) {
      CAPTURE(shape.k);
      CAPTURE(shape.n);
      CAPTURE(chips);
      CHECK(label_of(folder, shape, chips) == "memory");
    }
  }
}

// 8 key-value heads over 2 chips were refused as not divisible
// (https://github.com/aws-neuron/aws-neuron-sdk/issues/1222): the heads are divided by the chips, not the chips by the
// heads.
TEST_CASE("8 heads over 2 chips are 4 heads a chip, without a word about divisibility") {
  const Folder folder;
  const std::int64_t heads = 8, width = 128;
  for (const std::string shard : {"row", "column"}) {
    CAPTURE(shard);
    const Matmul shape = shard == "row" ? matmul(32, heads * width, 64) : matmul(32, 64, heads * width);
    const Outcome compiled = compile(folder, shape, {"--chips", "2", "--shard", shard});
    CHECK(compiled.err.empty());
    const Json report = run(folder);
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
    const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
    for (const Json& work : list(program, "work")) CHECK(number(work, shard == "row" ? "k" : "n") == 4 * width);
  }
}

TEST_CASE("2 chips' worth of a 3-tile axis is refused with axis, extent, chips and what would work") {
  const Folder folder;
  folder.write("workload.toml", matmul(32, 96, 64).toml());
  const Outcome outcome =
      rdusim({"compile", "workload.toml", "-o", "prog.bin", "--chips", "2", "--shard", "row"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU4103");
  CHECK(outcome.err.find("96") != std::string::npos);
  CHECK(outcome.err.find("48") != std::string::npos);
  CHECK(outcome.err.find("1 or 3 chips") != std::string::npos);
  CHECK_FALSE(folder.has("prog.bin"));
}

// The unbatched shapes of https://github.com/cornell-zhang/allo/issues/456 (960 cubed),
// https://github.com/tenstorrent/tt-metal/issues/34137 and https://github.com/tenstorrent/tt-metal/issues/22654 (241
// cubed, a prime; 16 x 43264), and https://github.com/tenstorrent/pytorch2.0_ttnn/issues/685 (38809 = 197 x 197).
TEST_CASE("960 cubed, 241 cubed, 16 x 43264 and a contraction of 38809 are exact") {
  const Folder folder;
  for (const Matmul& shape : {matmul(960, 960, 960), matmul(241, 241, 241), matmul(16, 64, 43264),
                              matmul(16, 43264, 32), matmul(32, 38809, 32), matmul(197, 197, 64)}) {
    CAPTURE(shape.m);
    CAPTURE(shape.k);
    CAPTURE(shape.n);
    const Json report = compile_and_run(folder, shape, {"--chips", "1"});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
    CHECK(number(report, "macs", "useful") == shape.m * shape.k * shape.n);
  }
}

TEST_CASE("960 cubed over 5 and 6 chips and a prime 241 x 241 result over 8 are exact") {
  const Folder folder;
  const Matmul cube = matmul(960, 960, 960);
  const std::string expected = cube.sha256();
  for (const std::string chips : {"5", "6"}) {
    CAPTURE(chips);
    const Json report = compile_and_run(folder, cube, {"--chips", chips, "--shard", "row"});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == expected);
  }
  const Matmul prime = matmul(241, 256, 241);
  const Json report = compile_and_run(folder, prime, {"--chips", "8", "--shard", "row"});
  check_exact_pass(report);
  CHECK(text(report, "outputs", 0, "sha256") == prime.sha256());
}

// Sizes that are no multiple of 32 came back as zeros (https://github.com/tenstorrent/tt-metal/issues/21964).
TEST_CASE("results of 31, 33 and 63 columns and rows are exact, reduced over 3 chips") {
  const Folder folder;
  for (const std::int64_t extent : {1, 31, 33, 63}) {
    CAPTURE(extent);
    const Matmul shape = matmul(extent, 96, extent);
    const Json report = compile_and_run(folder, shape, {"--chips", "3", "--shard", "row"});
    check_exact_pass(report);
    CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
  }
}

}  // namespace
}  // namespace rdusim::test::shapes_test
