// Depths of buffers as users see them: sized by the minimum, and what was proved of them beside what a run needed.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::depths_test {
namespace {

TEST_CASE("a program sized by minimum depths computes the same, in less room and no fewer cycles") {
  const Folder folder;
  const Matmul shape = matmul(64, 1024, 64);
  const std::vector<std::string> options = {"--chips", "4", "--shard", "row", "--collective", "ring"};
  const Json roomy = compile_and_run(folder, shape, options);
  std::vector<std::string> least = options;
  least.insert(least.end(), {"--size-by", "minimum"});
  const Json tight = compile_and_run(folder, shape, least);
  check_exact_pass(tight);
  CHECK(text(tight, "outputs", 0, "sha256") == shape.sha256());
  CHECK(number(tight, "cycles", "simulated") >= number(roomy, "cycles", "simulated"));
  bool one_is_deeper = false;
  for (std::size_t i = 0; i < list(tight, "buffers").size(); ++i) {
    const int b = static_cast<int>(i);
    CHECK(number(tight, "buffers", b, "depth_pages") <= number(roomy, "buffers", b, "depth_pages"));
    one_is_deeper =
        one_is_deeper || number(roomy, "buffers", b, "depth_pages") > number(tight, "buffers", b, "depth_pages");
    // What each is, it must be.
    CHECK(number(tight, "proved", "depths", b, "minimum_pages") == number(tight, "buffers", b, "depth_pages"));
  }
  CHECK(one_is_deeper);
}

TEST_CASE("the report sets what was observed beside what was proved, with the slack of each") {
  const Folder folder;
  const Json report = compile_and_run(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  CHECK(list(report, "proved", "obligations").size() == 11);
  for (int i = 0; i < 11; ++i) CHECK(text(report, "proved", "obligations", i, "status") == "proved");
  CHECK(text(report, "proved", "obligations", 2, "kind") == "deadlock_freedom");
  CHECK(text(report, "proved", "obligations", 2, "scope") == "every_schedule");
  const auto agrees = [&](auto... path) {
    const auto proved = number(report, "proved", path..., "proved"),
               observed = number(report, "proved", path..., "observed");
    CHECK(number(report, "proved", path..., "slack") == std::abs(proved - observed));
    return std::pair(proved, observed);
  };
  const auto [least, cycles] = agrees("least_cycles");
  CHECK(least <= cycles);
  CHECK(cycles == number(report, "cycles", "simulated"));
  REQUIRE(list(report, "proved", "depths").size() == list(report, "buffers").size());
  for (std::size_t i = 0; i < list(report, "buffers").size(); ++i) {
    const auto [depth, peak] = agrees("depths", static_cast<int>(i));
    CHECK(depth == number(report, "buffers", static_cast<int>(i), "depth_pages"));
    CHECK(peak == number(report, "buffers", static_cast<int>(i), "peak_pages"));
  }
  REQUIRE_FALSE(list(report, "proved", "counters").empty());
  const auto [greatest, seen] = agrees("counters", 0);
  CHECK(seen <= greatest);
  CHECK(seen > 0);
}

TEST_CASE("a way of sizing that there is not is refused with those that there are") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  const Outcome outcome = rdusim({"compile", "workload.toml", "-o", "out.bin", "--size-by", "luck"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU6005");
  CHECK(outcome.err.find("throughput, minimum") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::depths_test
