// How well a chip is used, in cycles, which are exact: what share of the memory's bandwidth and of the PCUs' peak the
// compiler's placement reaches.
#include <doctest/doctest.h>

#include "compiler/target/target.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::chip_use_test {
namespace {

Target sn40l() {
  const auto target = find_target("sn40l");
  REQUIRE(target.ok());
  return *target;
}

double sustainable() {
  return to_double(sn40l().hbm.sustainable_bytes_per_cycle());
}
double peak() {
  return to_double(sn40l().hbm.peak_bytes_per_cycle());
}

// Of the stage of that name (its slowest instance), from the start of its section to its last completion.
std::int64_t cycles_of(const Json& report, const std::string& stage) {
  for (const Json& s : list(report, "stages"))
    if (text(s, "name") == stage) return number(s, "cycles");
  FAIL("no stage ", stage);
  return 0;
}

struct Reads {
  double bytes = 0;
  double cycles = 0;  // from the first to the last
};

Reads reads_of(const Json& report, const std::string& memory) {
  for (const Json& m : list(report, "memories"))
    if (text(m, "name") == memory)
      return {static_cast<double>(number(m, "read_bytes")),
              static_cast<double>(number(m, "last_cycle") - number(m, "first_cycle"))};
  FAIL("no memory ", memory);
  return {};
}

Json timed(const Folder& folder, const std::string& workload, std::vector<std::string> options) {
  options.insert(options.begin(), {"compile", source(workload), "-o", "prog.bin"});
  rdusim_ok(options, folder);
  return run(folder, {"--timing-only"});
}

TEST_CASE(
    "the example's weights stream at three quarters of the sustainable bandwidth, and compute adds little to that") {
  const Folder folder;
  const Json report = timed(folder, "examples/llama-3.1-8b-down-proj.toml", {"--chips", "16", "--shard", "row"});
  for (int chip = 0; chip < 16; ++chip) {
    CAPTURE(chip);
    const std::string c = std::to_string(chip);
    const Reads reads = reads_of(report, "chip" + c + ".hbm");
    CHECK(reads.bytes / reads.cycles >= 0.75 * sustainable());
    CHECK(reads.bytes / reads.cycles <= peak());
    CHECK(static_cast<double>(cycles_of(report, "down.matmul_c" + c)) <= 1.35 * reads.bytes / sustainable());
  }
}

TEST_CASE("a 4096 cubed bf16 matmul keeps 70 % of all PCUs' peak of a chip over the whole run") {
  const Folder folder;
  const Json report = timed(folder, "tests/bench/square-4096-bf16.toml", {"--chips", "1"});
  const Target t = sn40l();
  const double most =
      double(t.sites()) * t.pcu.macs(DType::bf16) * static_cast<double>(number(report, "cycles", "simulated"));
  CHECK(number(report, "macs", "useful") == std::int64_t{4096} * 4096 * 4096);
  CHECK(static_cast<double>(number(report, "macs", "useful")) >= 0.70 * most);
}

TEST_CASE(
    "a decode matmul of 1 x 8192 x 8192 reads at 80 % of the peak bandwidth, and at 85 % of what it sustains from "
    "launch to end") {
  const Folder folder;
  const Json report = timed(folder, "tests/bench/decode-1x8192x8192-bf16.toml", {"--chips", "1"});
  const Reads reads = reads_of(report, "chip0.hbm");
  CHECK(reads.bytes >= 8192.0 * 8192 * 2);
  CHECK(reads.bytes / reads.cycles >= 0.80 * peak());
  CHECK(reads.bytes / static_cast<double>(number(report, "cycles", "simulated")) >= 0.85 * sustainable());
}

}  // namespace
}  // namespace rdusim::test::chip_use_test
