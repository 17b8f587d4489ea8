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

}  // namespace
}  // namespace rdusim::test::scale_test
