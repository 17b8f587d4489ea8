// The job that rdusim is for, on a real layer: the MLP down-projection of Llama-3.1-8B (hidden size 4096, intermediate
// size 14336: https://huggingface.co/meta-llama/Llama-3.1-8B, config.json) over 16 chips.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/support/file.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::main_job_test {
namespace {

using Keys = std::vector<std::string>;

// All of `keys` are members of `value`.
void check_keys(const Json& value, const Keys& keys) {
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(value.find(key) != nullptr);
  }
}

void check_rows(const Json& report, const std::string& list_name, const Keys& keys) {
  CAPTURE(list_name);
  REQUIRE_FALSE(list(report, list_name).empty());
  for (const Json& row : list(report, list_name)) check_keys(row, keys);
}

// What users' scripts rely on.
void check_stable_keys(const Json& report) {
  CHECK(text(report, "schema") == "rdusim.report/1");
  check_keys(report, {"schema", "rdusim", "program", "options", "verdict", "cycles", "time", "tokens_per_s", "macs",
                      "checks", "collectives", "stages", "buffers", "links", "memories", "outputs", "host"});
  check_keys(at(report, "rdusim"), {"version"});
  check_keys(at(report, "program"), {"name", "sha256", "chips", "target"});
  check_keys(at(report, "cycles"), {"simulated", "predicted", "lower_bound", "residual"});
  check_keys(at(report, "cycles", "residual"),
             {"compute", "fill", "drain", "input_starvation", "back_pressure", "bank_conflict", "network_contention",
              "memory", "link", "barrier_skew", "launch", "schedule"});
  check_keys(at(report, "time"), {"clock_ghz", "simulated_us"});
  check_keys(at(report, "macs"), {"useful", "padding"});
  check_rows(report, "checks", {"code", "name", "scope", "status", "observed", "expected"});
  check_rows(report, "collectives",
             {"name", "kind", "algorithm", "chips", "bytes", "cycles", "predicted_cycles", "algbw_gb_per_s",
              "busbw_gb_per_s", "contributions"});
  check_rows(report, "stages", {"name", "site", "firings", "cycles", "predicted_cycles", "busy", "stall", "idle"});
  check_rows(report, "buffers", {"name", "site", "depth_pages", "peak_pages", "reserved", "pushed", "popped", "bytes"});
  check_rows(report, "links", {"name", "bytes", "busy_cycles", "utilisation"});
  check_rows(report, "memories",
             {"name", "read_bytes", "write_bytes", "peak_bytes", "capacity_bytes", "first_cycle", "last_cycle",
              "utilisation"});
  check_rows(report, "outputs", {"name", "shape", "dtype", "sha256", "checked", "max_abs_error"});
  check_keys(at(report, "host"), {"wall_s", "events", "events_per_s", "simulated_cycles_per_s", "peak_rss_bytes"});
}

void check_residuals(const Json& report) {
  std::int64_t sum = 0;
  for (const auto& [cause, cycles] : members(report, "cycles", "residual")) sum += number(cycles);
  CHECK(sum == number(report, "cycles", "simulated") - number(report, "cycles", "predicted"));
}

void check_all_reduce(const Json& report, std::int64_t chips, std::int64_t bytes) {
  REQUIRE(list(report, "collectives").size() == 1);
  const Json& c = at(report, "collectives", 0);
  CHECK(text(c, "kind") == "all_reduce");
  CHECK(number(c, "chips") == chips);
  CHECK(number(c, "contributions") == chips);
  CHECK(number(c, "bytes") == bytes);
  CHECK(number(c, "cycles") > 0);
}

TEST_CASE("the down-projection of Llama-3.1-8B over 16 chips passes, exactly, with a whole report") {
  const Folder folder;
  const std::string workload = source("examples/llama-3.1-8b-down-proj.toml");
  rdusim_ok({"compile", workload, "--target", "sn40l", "--chips", "16", "--shard", "row", "-o", "prog.bin"}, folder);
  const Outcome checked = rdusim_ok({"check", "prog.bin"}, folder);
  CHECK(checked.err.empty());
  CHECK(checked.out.find("refuted") == std::string::npos);

  const Outcome first = rdusim_ok({"run", "prog.bin", "--chips", "16", "--report", "report.json"}, folder);
  const Json report = parsed(folder.read("report.json"));
  check_exact_pass(report);
  check_stable_keys(report);
  check_residuals(report);
  check_all_reduce(report, 16, 32 * 4096 * 4);
  CHECK(text(report, "program", "sha256") == sha256(folder.read("prog.bin")));
  CHECK(number(report, "program", "chips") == 16);
  CHECK(text(report, "program", "target") == "sn40l");
  CHECK(at(report, "tokens_per_s").is_null());
  CHECK(number(report, "macs", "useful") == std::int64_t{32} * 14336 * 4096);
  CHECK(number(report, "macs", "padding") == 0);
  CHECK(real(report, "outputs", 0, "max_abs_error") == 0);
  CHECK(number(report, "host", "peak_rss_bytes") < std::int64_t{1} << 30);
  CHECK(text(report, "outputs", 0, "sha256") == matmul(32, 14336, 4096).sha256());

  CHECK(first.out.find("verdict     pass") != std::string::npos);
  CHECK(first.out.find("every contribution present") != std::string::npos);
  CHECK(first.out.find("simulated") != std::string::npos);
  CHECK(first.out.find("predicted") != std::string::npos);
  CHECK(first.out.find("utilisation") != std::string::npos);
  CHECK(first.err.empty());

  // Flags that only observe change nothing: the same report but for `host`, and the same summary before the
  // explanation.
  const Outcome again = rdusim_ok({"run", "prog.bin", "--chips", "16", "--explain", "--report", "again.json"}, folder);
  CHECK(without_host(parsed(folder.read("again.json"))) == without_host(report));
  CHECK(again.out.substr(0, first.out.size()) == first.out);
  CHECK(again.out.size() > first.out.size());
}

TEST_CASE("the down-projection in bf16 over 16 chips passes to the bit and within the error bound") {
  const Folder folder;
  const std::string workload = source("examples/llama-3.1-8b-down-proj-bf16.toml");
  rdusim_ok({"compile", workload, "--chips", "16", "--shard", "row", "-o", "prog.bin"}, folder);
  const Json report = run(folder);
  check_exact_pass(report);
  check_residuals(report);
  check_all_reduce(report, 16, 32 * 4096 * 4);
  CHECK(number(report, "host", "peak_rss_bytes") < std::int64_t{1} << 30);
  for (const std::string code : {"RDU7015", "RDU7016", "RDU7017"}) {
    CAPTURE(code);
    const auto& checks = list(report, "checks");
    const auto row = std::find_if(checks.begin(), checks.end(), [&](const Json& c) { return text(c, "code") == code; });
    REQUIRE(row != checks.end());
    CHECK(text(*row, "status") == "pass");
  }
  CHECK(text(report, "outputs", 0, "dtype") == "fp32");
  CHECK(text(report, "outputs", 0, "sha256") == matmul(32, 14336, 4096, "bf16").sha256());
}

TEST_CASE("a run without --report, with it, and with --explain says the same cycles") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "4", "--shard", "row"});
  const Outcome plain = rdusim_ok({"run", "prog.bin"}, folder);
  const Outcome reported = rdusim_ok({"run", "prog.bin", "--report", "a.json"}, folder);
  const Outcome explained = rdusim_ok({"run", "prog.bin", "--explain"}, folder);
  const Outcome json = rdusim_ok({"run", "prog.bin", "--json"}, folder);
  CHECK(plain.out == reported.out);
  CHECK(explained.out.substr(0, plain.out.size()) == plain.out);
  CHECK(without_host(parsed(json.out)) == without_host(parsed(folder.read("a.json"))));
}

TEST_CASE("the two matmuls of an MLP, one behind the other, are exact however they are sharded") {
  const Folder folder;
  std::string expected;
  for (const std::string shard : {"row", "column"}) {
    for (const std::string chips : {"1", "2", "4"}) {
      CAPTURE(shard);
      CAPTURE(chips);
      rdusim_ok({"compile", source("examples/mlp-chain.toml"), "--chips", chips, "--shard", shard, "-o", "prog.bin"},
                folder);
      const Json report = run(folder);
      check_exact_pass(report);
      check_residuals(report);
      const std::string bits = text(report, "outputs", 0, "sha256");
      if (expected.empty()) expected = bits;
      CHECK(bits == expected);
      for (const Json& c : list(report, "collectives"))
        CHECK(text(c, "kind") == (shard == "row" ? "all_reduce" : "all_gather"));
      CHECK(list(report, "collectives").size() == (chips == "1" ? 0 : shard == "row" ? 2 : 1));
    }
  }
}

}  // namespace
}  // namespace rdusim::test::main_job_test
