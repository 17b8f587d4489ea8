// What hangs on the numbers that a machine assumes: each moved by itself, as a run on the changed machine has it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::sensitivity_test {
namespace {

// sn40l with few numbers assumed: those of `keys`, as they stand there; all others count as published.
std::string machine(const std::vector<std::string>& keys) {
  std::string text = source_text("models/targets/sn40l.toml"), out, table;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    std::string line = text.substr(from, end - from);
    from = end + 1;
    if (line.starts_with("[")) table = line;
    const std::string key = table + line.substr(0, line.find(' '));
    const std::size_t assumed = line.find("assumed = "), range = line.find(", range = [");
    if (assumed != std::string::npos && range != std::string::npos &&
        std::find(keys.begin(), keys.end(), key) == keys.end())
      line = line.substr(0, assumed) + "published" + line.substr(assumed + 7, range - assumed - 7) + " }";
    out += line + "\n";
  }
  return out;
}

const std::vector<std::string> few = {"[hbm]latency_ns", "[mesh]height_sites", "[host]argument_load_ns",
                                      "[ddr]latency_ns"};

std::map<std::string, const Json*> by_key(const Json& table) {
  std::map<std::string, const Json*> all;
  for (const Json& n : *at(table, "points", 0, "numbers").as_array()) all[text(n, "key")] = &n;
  return all;
}

TEST_CASE("each end of the table is what a run on the machine with that number gives") {
  const Folder folder;
  folder.write("machine.toml", machine(few));
  compile(folder, matmul(64, 512, 64), {"--target", "machine.toml", "--chips", "1"});
  const Json table =
      parsed(rdusim_ok({"sweep", "prog.bin", "--sensitivity", "--metric", "cycles", "--json"}, folder).out);
  CHECK(text(table, "schema") == "rdusim.sensitivity/1");
  const auto rows = by_key(table);
  REQUIRE(rows.size() == 4);
  CHECK(at(table, "points", 0, "base").as_number() ==
        double(number(run(folder, {"--timing-only"}), "cycles", "simulated")));
  for (const auto& [key, section, name] : {std::tuple{"hbm.latency_ns", "[hbm]", "latency_ns"},
                                           std::tuple{"host.argument_load_ns", "[host]", "argument_load_ns"}}) {
    CAPTURE(key);
    for (const char* end : {"least", "most"}) {
      const auto value = std::to_string(number(*rows.at(key), end, "value"));
      folder.write("moved.toml", with_value(machine(few), section, name, value));
      const Json report = run(folder, {"--timing-only", "--target", "moved.toml"});
      CHECK(at(*rows.at(key), end, "metric").as_number() == double(number(report, "cycles", "simulated")));
      CHECK(text(*rows.at(key), end, "verdict") == "pass");
    }
    CHECK(at(*rows.at(key), "least", "metric").as_number() < at(*rows.at(key), "most", "metric").as_number());
  }
  // A mesh of 13 rows lacks places of the program, one of 52 has them; DDR is not used at all.
  const Json& mesh = *rows.at("mesh.height_sites");
  CHECK(text(mesh, "least", "verdict") == "refused");
  CHECK(text(mesh, "least", "error").starts_with("RDU"));
  CHECK(at(*rows.at("ddr.latency_ns"), "effect").as_number() == 0.0);
  double before = 1e18;
  for (const Json& n : *at(table, "points", 0, "numbers").as_array()) {
    const double effect = at(n, "effect").as_number().value_or(-1);
    CHECK(effect <= before);
    before = effect;
  }
}

TEST_CASE("a sensitivity is resumed, does not depend on the jobs, and is drawn") {
  const Folder folder;
  folder.write("machine.toml", machine(few));
  compile(folder, matmul(64, 512, 64), {"--target", "machine.toml"});  // portable
  const std::vector<std::string> words = {"sweep", "prog.bin", "--sensitivity", "--chips", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return rdusim_ok(more, folder).out;
  };
  const std::string whole = with({"-o", "one", "--jobs", "1", "--svg", "one.svg"});
  INFO(whole);
  CHECK(whole == with({"-o", "two", "--jobs", "3"}));
  CHECK(folder.read("one/sensitivity.json") == folder.read("two/sensitivity.json"));
  const auto first = std::filesystem::last_write_time(folder.file("one/rows/000000.json"));
  std::filesystem::remove(folder.file("one/rows/000002.json"));
  CHECK(with({"-o", "one"}) == whole);
  CHECK(std::filesystem::last_write_time(folder.file("one/rows/000000.json")) == first);
  CHECK(folder.read("one.svg").find(">hbm.latency_ns<") != std::string::npos);
  CHECK(whole.find("ddr.latency_ns") > whole.find("move nothing"));
  CHECK(whole.find("refused RDU") != std::string::npos);
}

TEST_CASE("the points of a plan have a table each, compiled for each machine anew, and as a job array too") {
  const Folder folder;
  folder.write("machine.toml", machine({"[hbm]latency_ns"}));
  folder.write("small.toml", matmul(32, 256, 32).toml());
  folder.write("plan.toml",
               "workload = \"small.toml\"\ntarget = \"machine.toml\"\n[compile]\nshard = \"row\"\n[run]\n"
               "timing-only = true\n[grid]\nchips = [1, 2, 3]\n");
  const std::string out =
      rdusim_ok({"sweep", "plan.toml", "--sensitivity", "--metric", "cycles.predicted"}, folder).out;
  INFO(out);
  CHECK(out.find("cycles.predicted of plan, chips = 1: ") != std::string::npos);
  CHECK(out.find("cycles.predicted of plan, chips = 3: refused RDU4102 as the target has it") != std::string::npos);
  rdusim_ok({"sweep", "plan.toml", "--sensitivity", "--metric", "cycles.predicted", "-o", "array", "--slurm"}, folder);
  const std::string script = folder.read("array/array.sh");
  CHECK(script.find("--sensitivity") != std::string::npos);
  const Outcome task = shell("SLURM_ARRAY_TASK_ID=0 bash array/array.sh && ls array/rows", folder);
  CHECK(task.status == 0);
  CHECK(task.out == "000000.json\n");
}

TEST_CASE("what a sensitivity cannot be asked is refused before anything runs") {
  const Folder folder;
  folder.write("small.toml", matmul(32, 256, 32).toml());
  folder.write("plan.toml", "workload = \"small.toml\"\n[grid]\nchips = [1, 2]\n");
  const auto refused = [&](std::vector<std::string> words, const std::string& code) {
    words.insert(words.begin(), "sweep");
    const Outcome outcome = rdusim(words, folder);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome) == code);
  };
  refused({"plan.toml", "--svg", "x.svg"}, "RDU6005");
  refused({"plan.toml", "--metric", "cycles"}, "RDU6005");
  refused({"plan.toml", "--sensitivity", "--svg", "x.svg"}, "RDU6005");
  refused({"plan.toml", "--sensitivity", "--pareto", "cycles"}, "RDU6005");
  refused({"plan.toml", "--sensitivity", "--chips", "2"}, "RDU6005");
  refused({"plan.toml", "--sensitivity", "--jobs", "0"}, "RDU6005");
  refused({"plan.toml", "--numbers", "hbm"}, "RDU6005");
  refused({"plan.toml", "--sensitivity", "--numbers", "dbm"}, "RDU8063");
  refused({"none.bin", "--sensitivity"}, "RDU1001");
  folder.write("no.bin", "no program");
  refused({"no.bin", "--sensitivity"}, "RDU5001");
}

}  // namespace
}  // namespace rdusim::test::sensitivity_test
