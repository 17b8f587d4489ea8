// Laws that hold for every run: how time is counted, what costs nothing, what can only get better or worse.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::laws_test {
namespace {

const char* const algorithms[] = {"through-one", "direct", "ring", "halving-doubling", "tree"};

std::int64_t simulated(const Json& report) {
  return number(report, "cycles", "simulated");
}

// Stalls came out negative, and parts did not add up (https://github.com/scalesim-project/SCALE-Sim/issues/100).
TEST_CASE("for every stage, total = busy + stalls by cause + idle, and none is negative") {
  const Folder folder;
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    for (const std::string algorithm : {"through-one", "ring"}) {
      CAPTURE(target);
      CAPTURE(algorithm);
      const Json report =
          compile_and_run(folder, matmul(64, 192, 160),
                          {"--chips", "3", "--shard", "row", "--target", target, "--collective", algorithm});
      std::int64_t checked = 0;
      for (const Json& s : list(report, "stages")) {
        CAPTURE(text(s, "name"));
        const std::int64_t busy = number(s, "busy");
        const std::int64_t idle = number(s, "idle");
        std::int64_t total = busy + idle;
        CHECK(busy >= 0);
        CHECK(idle >= 0);
        for (const auto& [cause, cycles] : members(s, "stall")) {
          CAPTURE(cause);
          CHECK(number(cycles) >= 0);
          total += number(cycles);
        }
        CHECK(total == number(s, "cycles"));
        CHECK(number(s, "cycles") <= simulated(report));
        CHECK(busy > 0);
        ++checked;
      }
      CHECK(checked > 9);
      for (const Json& l : list(report, "links")) {
        CHECK(number(l, "busy_cycles") >= 0);
        CHECK(number(l, "busy_cycles") <= simulated(report));
      }
      for (const Json& m : list(report, "memories")) {
        CHECK(number(m, "peak_bytes") <= number(m, "capacity_bytes"));
        CHECK(number(m, "last_cycle") <= simulated(report));
        CHECK(real(m, "utilisation") <= 1);
      }
      for (const Json& b : list(report, "buffers")) {
        CHECK(number(b, "reserved") == number(b, "pushed"));
        CHECK(number(b, "pushed") == number(b, "popped"));
        CHECK(number(b, "peak_pages") <= number(b, "depth_pages"));
      }
    }
  }
}

// "1,000,000 cycles" that were ticks (https://github.com/gem5/gem5/issues/2654): the key says the unit, and cycles,
// time and clock agree.
TEST_CASE("cycles, microseconds and clock agree, in the report and on the screen") {
  const Folder folder;
  for (const auto& [target, ghz] : {std::pair{"sn40l", 1.2}, std::pair{"sn50", 1.8}, std::pair{"wormhole", 1.0}}) {
    CAPTURE(target);
    compile(folder, Matmul{}, {"--chips", "2", "--shard", "row", "--target", target});
    const Outcome outcome = rdusim_ok({"run", "prog.bin", "--report", "report.json"}, folder);
    const Json report = parsed(folder.read("report.json"));
    CHECK(real(report, "time", "clock_ghz") == ghz);
    CHECK(std::abs(real(report, "time", "simulated_us") - static_cast<double>(simulated(report)) / (ghz * 1000)) <
          1e-9);
    CHECK(outcome.out.find(" us at ") != std::string::npos);
    CHECK(outcome.out.find(" GHz") != std::string::npos);
  }
}

// 8 units in 8 groups of one waited for each other (https://github.com/casys-kaist/LLMServingSim/issues/11).
TEST_CASE("an all-reduce over one chip is the identity: no link bytes, no cycles, the same program") {
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    CAPTURE(target);
    const Folder folder;
    const Matmul workload;
    compile(folder, workload, {"--target", target}, "portable.bin");
    const Json alone = run(folder, {"--chips", "1"}, "portable.bin");
    for (const std::string algorithm : algorithms) {
      CAPTURE(algorithm);
      const Json report = compile_and_run(
          folder, workload, {"--chips", "1", "--shard", "row", "--target", target, "--collective", algorithm});
      check_exact_pass(report);
      CHECK(list(report, "collectives").empty());
      for (const Json& l : list(report, "links")) CHECK(number(l, "bytes") == 0);
      CHECK(number(report, "cycles", "residual", "link") == 0);
      CHECK(number(report, "cycles", "residual", "barrier_skew") == 0);
      CHECK(simulated(report) == simulated(alone));
      CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
    }
  }
}

// A very slow stage is no deadlock (https://github.com/Xilinx/XRT/issues/7064,
// https://github.com/tenstorrent/tt-metal/issues/55432): only quiescence is. 2^27 multiply-accumulates at one a cycle.
TEST_CASE("a compute stage of more than 10^8 cycles is slow, not stuck") {
  const Folder folder;
  folder.write("slow.toml", with_value(source_text("tests/support/barrier.toml"), "[pcu.macs_per_cycle]", "int8", "1"));
  Matmul workload = matmul(32, 2048, 4096);
  workload.schedule = "sites = 1";
  const Json report = compile_and_run(folder, workload, {"--chips", "2", "--shard", "row", "--target", "slow.toml"});
  check_exact_pass(report);
  CHECK(simulated(report) > 100'000'000);
  CHECK(simulated(report) >= number(report, "cycles", "lower_bound"));
  CHECK(number(report, "cycles", "lower_bound") > 100'000'000);
}

// "Ring no faster than line" was the complaint (https://github.com/tenstorrent/tt-metal/issues/37099): the closing link
// of a ring must help a ring all-reduce, and can never hurt.
TEST_CASE("chips on a line are never faster than chips on a ring, and a ring all-reduce is slower there") {
  const Folder folder;
  folder.write("line.toml", with_value(source_text("tests/support/barrier.toml"), "[[links]]", "shape", "\"line\""));
  for (const std::string chips : {"2", "3", "5", "8"}) {
    for (const std::string algorithm : algorithms) {
      CAPTURE(chips);
      CAPTURE(algorithm);
      const Matmul workload = matmul(32, 3840, 96);
      const std::vector<std::string> options = {"--chips",      chips,     "--shard", "row",
                                                "--collective", algorithm, "--target"};
      std::vector<std::string> on_ring = options, on_line = options;
      on_ring.push_back(barrier_target());
      on_line.push_back("line.toml");
      const Json ring = compile_and_run(folder, workload, on_ring);
      const Json line = compile_and_run(folder, workload, on_line);
      check_exact_pass(ring);
      check_exact_pass(line);
      CHECK(simulated(line) >= simulated(ring));
      CHECK(number(line, "cycles", "predicted") >= number(ring, "cycles", "predicted"));
      if (algorithm == "ring" && std::stoi(chips) == 8) CHECK(simulated(line) > simulated(ring));
    }
  }
}

// The program stays; only the machine changes.
std::string sn40l_with_links(std::string_view gb_per_s) {
  std::string toml = source_text("models/targets/sn40l.toml");
  std::size_t changed = 0;
  for (std::size_t at = 0; (at = toml.find("gb_per_s     = { value = 31.25", at)) != std::string::npos; ++changed) {
    at += 26;
    toml.replace(at - 1, 5, gb_per_s);
  }
  REQUIRE(changed == 2);
  return toml;
}

TEST_CASE("faster links never make an example slower, by any algorithm") {
  const Folder folder;
  folder.write("half.toml", sn40l_with_links("15.6"));
  folder.write("twice.toml", sn40l_with_links("62.5"));
  for (const Matmul& workload : {matmul(32, 512, 32), matmul(32, 2048, 1024)}) {
    for (const std::string algorithm : algorithms) {
      CAPTURE(workload.n);
      CAPTURE(algorithm);
      compile(folder, workload, {"--chips", "4", "--shard", "row", "--collective", algorithm});
      const auto cycles = [&](std::vector<std::string> options) {
        options.push_back("--timing-only");
        return simulated(run(folder, options));
      };
      const std::int64_t shipped = cycles({});
      CHECK(cycles({"--target", "half.toml"}) >= shipped);
      CHECK(cycles({"--target", "twice.toml"}) <= shipped);
      if (workload.n == 1024) {
        CHECK(cycles({"--target", "half.toml"}) > shipped);
        CHECK(cycles({"--target", "twice.toml"}) < shipped);
      }
    }
  }
}

TEST_CASE("faster memory never makes a memory-bound matmul slower") {
  const Folder folder;
  const std::string shipped_toml = source_text("models/targets/sn40l.toml");
  folder.write("twice.toml", with_value(shipped_toml, "[hbm]", "gb_per_s", "3600"));
  folder.write("half.toml", with_value(shipped_toml, "[hbm]", "gb_per_s", "900"));
  compile(folder, matmul(1, 4096, 2048), {"--chips", "1"});
  const std::int64_t shipped = simulated(run(folder));
  CHECK(simulated(run(folder, {"--target", "twice.toml"})) <= shipped);
  CHECK(simulated(run(folder, {"--target", "half.toml"})) > shipped);
}

TEST_CASE("no run beats the certificate's lower bound, and the residuals add up") {
  const Folder folder;
  for (const std::string& target :
       {std::string("sn40l"), std::string("sn50"), std::string("wormhole"), barrier_target()}) {
    for (const Matmul& workload : {matmul(1, 1024, 256), matmul(33, 192, 95), matmul(128, 1536, 128)}) {
      for (const std::string chips : {"1", "2"}) {
        CAPTURE(target);
        CAPTURE(workload.m);
        CAPTURE(chips);
        const Json report = compile_and_run(folder, workload, {"--chips", chips, "--shard", "row", "--target", target});
        check_exact_pass(report);
        CHECK(number(report, "cycles", "lower_bound") > 0);
        CHECK(number(report, "cycles", "lower_bound") <= simulated(report));
        CHECK(number(report, "cycles", "lower_bound") <= number(report, "cycles", "predicted"));
        std::int64_t sum = 0;
        for (const auto& [cause, cycles] : members(report, "cycles", "residual")) sum += number(cycles);
        CHECK(sum == simulated(report) - number(report, "cycles", "predicted"));
      }
    }
  }
}

TEST_CASE("a timing-only run has the cycles, stages, buffers, links and memories of the run with values") {
  const Folder folder;
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    for (const std::string algorithm : {"through-one", "ring"}) {
      CAPTURE(target);
      CAPTURE(algorithm);
      compile(folder, matmul(64, 480, 96, "bf16"),
              {"--chips", "5", "--shard", "row", "--target", target, "--collective", algorithm});
      const Json valued = run(folder);
      const Json timed = run(folder, {"--timing-only"});
      for (const std::string key :
           {"program", "verdict", "cycles", "time", "macs", "collectives", "stages", "buffers", "links", "memories"}) {
        CAPTURE(key);
        CHECK(to_text(at(timed, key)) == to_text(at(valued, key)));
      }
      CHECK(text(timed, "outputs", 0, "checked") == "none");
      CHECK(at(timed, "outputs", 0, "sha256").is_null());
      for (const Json& c : list(timed, "checks"))
        if (text(c, "code") == "RDU7009") CHECK(text(c, "status") == "pass");  // provenance needs no values
    }
  }
}

TEST_CASE("cycles do not depend on the values of the operands") {
  const Folder folder;
  std::int64_t cycles = 0;
  for (const Pattern& x : {Pattern{61, 30}, Pattern{17, 3}}) {
    Matmul workload = matmul(32, 480, 64);
    workload.x = x;
    const Json report = compile_and_run(folder, workload, {"--chips", "5", "--shard", "row"});
    CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
    if (cycles == 0) cycles = simulated(report);
    CHECK(simulated(report) == cycles);
  }
}

}  // namespace
}  // namespace rdusim::test::laws_test
