// Runs whose on-chip network works flit by flit: the same values, the same verdicts, other cycles, and always the same
// ones.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::flit_run_test {
namespace {

std::int64_t simulated(const Json& report) {
  return number(report, "cycles", "simulated");
}

std::string sha_of(const Json& report) {
  return text(list(report, "outputs")[0], "sha256");
}

TEST_CASE("a program gives the same values at both levels, whatever its hand-offs") {
  const Folder folder;
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    for (const std::string algorithm : {"through-one", "direct", "ring"}) {
      CAPTURE(target);
      CAPTURE(algorithm);
      const Matmul m = matmul(64, 192, 160);
      const Json fast =
          compile_and_run(folder, m, {"--chips", "3", "--shard", "row", "--target", target, "--collective", algorithm});
      const Json flit = run(folder, {"--network", "flit"});
      check_exact_pass(flit);
      CHECK(sha_of(flit) == m.sha256());
      CHECK(sha_of(fast) == sha_of(flit));
      CHECK(text(fast, "options", "network") == "fast");
      CHECK(text(flit, "options", "network") == "flit");
      CHECK(list(fast, "checks").size() == list(flit, "checks").size());
      // Links between chips dominate, and they are the same.
      CHECK(static_cast<double>(simulated(flit)) ==
            doctest::Approx(static_cast<double>(simulated(fast))).epsilon(0.05));
    }
  }
}

TEST_CASE("a flit run is the same every time, with values and without") {
  const Folder folder;
  compile(folder, matmul(128, 256, 192), {"--chips", "2", "--shard", "row"});
  const Json first = run(folder, {"--network", "flit"});
  CHECK(without_host(first) == without_host(run(folder, {"--network", "flit"})));
  CHECK(simulated(run(folder, {"--network", "flit", "--timing-only"})) == simulated(first));
}

TEST_CASE("delays change no value of a flit run") {
  const Folder folder;
  const Matmul m = matmul(64, 192, 160);
  compile(folder, m, {"--chips", "3", "--shard", "row", "--collective", "ring"});
  const Json calm = run(folder, {"--network", "flit"});
  bool later = false;
  for (int seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    const Json late = run(folder, {"--network", "flit", "--jitter", std::to_string(seed)});
    check_exact_pass(late);
    CHECK(sha_of(late) == m.sha256());
    later = later || simulated(late) > simulated(calm);
  }
  CHECK(later);
}

TEST_CASE("faults are caught in a flit run as in any other") {
  const Folder folder;
  compile(folder, matmul(64, 192, 160), {"--chips", "3", "--shard", "row", "--collective", "direct"});
  for (const char* fault : {"page_drop@matmul0.a_c1:1", "page_chip@matmul0.partial_c1:0", "link_stall@0:1"}) {
    CAPTURE(fault);
    const Outcome fast = rdusim({"run", "prog.bin", "--inject", fault}, folder);
    const Outcome flit = rdusim({"run", "prog.bin", "--inject", fault, "--network", "flit"}, folder);
    CHECK(fast.status == flit.status);
    CHECK(fast.status != 2);
  }
}

TEST_CASE("a machine without a flit level is refused it, and says why") {
  const Folder folder;
  folder.write("wide.toml",
               with_value(source_text("models/targets/sn40l.toml"), "[network]", "link_bytes_per_cycle", "128"));
  compile(folder, matmul(32, 64, 32), {"--target", "wide.toml"});
  const Outcome refused = rdusim({"run", "prog.bin", "--network", "flit"}, folder);
  CHECK(refused.status == 2);
  CHECK(refused.err.find("RDU6006") != std::string::npos);
  CHECK(refused.err.find("128 bytes a cycle, more than a flit of 64") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::flit_run_test
