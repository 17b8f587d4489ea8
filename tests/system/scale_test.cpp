// A machine of 256 chips costs what is used of it: one site a chip.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::scale_test {
namespace {

TEST_CASE("256 chips with one active site each, column-sharded, compile and run in seconds and little memory") {
  const Folder folder;
  const Outcome compiled =
      compile(folder, matmul(32, 32, 32 * 256), {"--target", "sn50", "--chips", "256", "--shard", "column"});
  CHECK(compiled.cpu_s < 5);
  const Outcome timed = rdusim_ok({"run", "prog.bin", "--timing-only", "--report", "report.json"}, folder);
  CHECK(timed.cpu_s < 3);
  const Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == "pass");
  CHECK(number(report, "program", "chips") == 256);
  CHECK(number(report, "host", "peak_rss_bytes") < std::int64_t{256} << 20);
  // With values it is the same, and exact.
  const Json valued = run(folder);
  check_exact_pass(valued);
  CHECK(to_text(at(valued, "cycles")) == to_text(at(report, "cycles")));
  CHECK(text(valued, "outputs", 0, "sha256") == matmul(32, 32, 32 * 256).sha256());
}

TEST_CASE("256 chips with one active site each reduce in a ring, in seconds and under a gibibyte") {
  const Folder folder;
  compile(folder, matmul(32, 32 * 256, 32), {"--target", "sn50", "--chips", "256", "--shard", "row"});
  const Outcome timed = rdusim_ok({"run", "prog.bin", "--timing-only", "--report", "report.json"}, folder);
  CHECK(timed.cpu_s < 10);
  const Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == "pass");
  CHECK(number(report, "collectives", 0, "contributions") == 256);
  CHECK(number(report, "host", "peak_rss_bytes") < std::int64_t{1} << 30);
}

// A landing for each of 127 others would be more buffers than a site has: they come in trains.
TEST_CASE("128 chips gather what all of them want whole, by levels and in a ring, exactly") {
  const Folder folder;
  folder.write("workload.toml", R"(name = "gathered"
[tensors.x]
role = "input"
shape = [1, 32]
dtype = "bf16"
fill = { pattern = { modulus = 13, shift = 6 } }
[tensors.w]
role = "weight"
shape = [32, 4096]
dtype = "bf16"
fill = { pattern = { modulus = 53, shift = 26 } }
[tensors.scale]
role = "weight"
shape = [4096]
dtype = "bf16"
fill = { random = { seed = 1 } }
[tensors.h]
dtype = "bf16"
[tensors.y]
role = "output"
[[ops]]
kind = "matmul"
in = ["x", "w"]
out = "h"
[[ops]]
kind = "rms_norm"
epsilon = 1e-5
in = ["h", "scale"]
out = "y"
)");
  const auto gathered = [&](const std::string& chips, const std::string& algorithm) {
    CAPTURE(algorithm);
    const Outcome compiled = rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--target", "sn50", "--chips",
                                        chips, "--shard", "column", "--collective", algorithm},
                                       folder);
    CHECK(compiled.cpu_s < 30);
    const Json report = run(folder);
    check_exact_pass(report);
    if (chips != "1") CHECK(text(report, "collectives", 0, "kind") == "all_gather");
    return report;
  };
  const std::string expected = text(gathered("1", "auto"), "outputs", 0, "sha256");
  std::int64_t ring = 0;
  for (const std::string algorithm : {"ring", "hierarchical"}) {
    const Json report = gathered("128", algorithm);
    CHECK(text(report, "outputs", 0, "sha256") == expected);
    if (algorithm == "ring") ring = number(report, "cycles", "simulated");
    if (algorithm != "ring") CHECK(number(report, "cycles", "simulated") < ring / 4);
  }
}

}  // namespace
}  // namespace rdusim::test::scale_test
