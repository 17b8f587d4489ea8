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
  std::string edge;
  const Json shown = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  for (const Json& e : list(shown, "edges"))
    if (text(e, "handshake") == "token") edge = "@edge" + std::to_string(number(e, "id"));
  for (const std::string& fault :
       {"page_drop" + edge, "page_chip" + edge, "credit_duplicate" + edge, std::string("link_stall@link0:1")}) {
    CAPTURE(fault);
    const Outcome fast = rdusim({"run", "prog.bin", "--inject", fault}, folder);
    const Outcome flit = rdusim({"run", "prog.bin", "--inject", fault, "--network", "flit"}, folder);
    CHECK(fast.status == (fault.starts_with("link") ? 0 : 1));
    CHECK(fast.status == flit.status);
    CHECK(errors_of(fast) == errors_of(flit));
  }
}

TEST_CASE("a flit that goes astray, and flits that mix, are caught by the checks meant for them") {
  const Folder folder;
  // Several pages of a channel are under way at once.
  Matmul m = matmul(256, 192, 256);
  m.schedule = "sites = 4\n";
  compile(folder, m, {"--chips", "3", "--shard", "row", "--collective", "direct"});
  for (const bool values : {true, false}) {
    CAPTURE(values);
    std::vector<std::string> command = {
        "faults", "prog.bin", "--json", "--seeds", "12", "--kinds", "flit_misroute,flit_interleave"};
    if (!values) command.push_back("--timing-only");
    const Json matrix = parsed(rdusim_ok(command, folder).out);
    for (const char* kind : {"flit_misroute", "flit_interleave"}) {
      CAPTURE(kind);
      CHECK(number(matrix, "kinds", kind, "caught") > 0);
      CHECK(number(matrix, "kinds", kind, "elsewhere") == 0);
      CHECK(number(matrix, "kinds", kind, "missed") == 0);
    }
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
