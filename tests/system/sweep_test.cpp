// Many points from one plan: killed and gone on with, as a job array, and what is refused.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::sweep_test {
namespace {

// 1, 2, 3 (which no contraction here divides) and 4 chips, two collectives, three bandwidths.
constexpr int points = 24;
void write_plan(const Folder& folder) {
  folder.write("small.toml", Matmul{}.toml());
  folder.write("plan.toml",
               "workload = \"small.toml\"\ntarget = \"sn40l\"\n[compile]\nshard = \"row\"\n[run]\ntiming-only = true\n"
               "[grid]\nchips = [1, 2, 3, 4]\ncollective = [\"ring\", \"direct\"]\n"
               "\"target.links[0].gb_per_s\" = [15.625, 31.25, 62.5]\n");
}

std::size_t rows_in(const std::string& folder) {
  std::error_code error;
  std::size_t n = 0;
  for (auto at = std::filesystem::directory_iterator(folder, error); at != std::filesystem::directory_iterator(); ++at)
    n += at->path().extension() == ".json" ? 1 : 0;
  return n;
}

TEST_CASE("a sweep that is killed goes on where it was, and gives the table of one that was not") {
  const Folder folder;
  write_plan(folder);
  const std::string whole = rdusim_ok({"sweep", "plan.toml", "-o", "whole"}, folder).out;
  CHECK(std::count(whole.begin(), whole.end(), '\n') == points + 1);
  CHECK(whole.find("3,ring,15.625,refused,RDU4102,") != std::string::npos);
  {
    const Running killed({"sweep", "plan.toml", "-o", "killed"}, folder);
    for (int i = 0; i < 20000 && rows_in(folder.file("killed/rows")) < 7; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }  // kill -9
  const std::size_t kept = rows_in(folder.file("killed/rows"));
  CHECK(kept >= 7);
  CHECK(kept < points);
  const auto first = std::filesystem::last_write_time(folder.file("killed/rows/000000.json"));
  CHECK(rdusim_ok({"sweep", "plan.toml", "-o", "killed"}, folder).out == whole);
  CHECK(std::filesystem::last_write_time(folder.file("killed/rows/000000.json")) == first);
  CHECK(folder.read("killed/table.csv") == whole);
  CHECK(folder.read("killed/table.jsonl") == folder.read("whole/table.jsonl"));
  CHECK(std::filesystem::is_empty(folder.file("killed/work")));
}

TEST_CASE("a faster link is never slower, one chip has no use of it, and a plan's front is what none beats") {
  const Folder folder;
  write_plan(folder);
  const std::string lines = rdusim_ok({"sweep", "plan.toml", "-o", "s", "--json"}, folder).out;
  std::map<std::string, std::vector<std::int64_t>> cycles;  // by chips and collective, in rising bandwidth
  for (std::size_t from = 0; from < lines.size();) {
    const std::size_t end = lines.find('\n', from);
    const Json row = parsed(lines.substr(from, end - from));
    from = end + 1;
    if (text(row, "verdict") == "pass")
      cycles[std::to_string(number(row, "chips")) + text(row, "collective")].push_back(number(row, "cycles"));
  }
  REQUIRE(cycles.size() == 6);
  for (const auto& [name, list] : cycles) {
    CAPTURE(name);
    REQUIRE(list.size() == 3);
    CHECK(list[0] >= list[1]);
    CHECK(list[1] >= list[2]);
    if (name[0] == '1') CHECK(list[0] == list[2]);
  }
  const std::string front = rdusim_ok({"sweep", "plan.toml", "-o", "s", "--where", "chips > 1 and verdict == 'pass'",
                                       "--pareto", "chips,cycles"},
                                      folder)
                                .out;
  CHECK(front.find(",refused,") == std::string::npos);
  CHECK(front.find(",62.5,") != std::string::npos);
}

TEST_CASE("a job array, run task by task, merges to the same table") {
  const Folder folder;
  write_plan(folder);
  const std::string whole = rdusim_ok({"sweep", "plan.toml", "-o", "whole"}, folder).out;
  rdusim_ok({"sweep", "plan.toml", "-o", "array", "--slurm"}, folder);
  const std::string script = folder.read("array/array.sh");
  INFO(script);
  CHECK(script.find("#SBATCH --array=0-23\n") != std::string::npos);
  // A stand-in for Slurm: the tasks, in an order of its own, some at once; the last fails to be scheduled.
  const std::string tasks = "cd / && for i in $(seq 22 -1 0); do SLURM_ARRAY_TASK_ID=$i bash " +
                            folder.file("array/array.sh") + " & [ $((i % 2)) -eq 0 ] || wait; done; wait";
  REQUIRE(std::system(("bash -c '" + tasks + "'").c_str()) == 0);
  const Outcome missing = rdusim({"sweep", "plan.toml", "-o", "array", "--merge"}, folder);
  CHECK(missing.status == 2);
  CHECK(errors_of(missing) == "RDU8069");
  CHECK(missing.err.find("array task 23") != std::string::npos);
  rdusim_ok({"sweep", "plan.toml", "-o", "array", "--task", "23/24"}, folder);
  CHECK(rdusim_ok({"sweep", "plan.toml", "-o", "array", "--merge"}, folder).out == whole);
}

TEST_CASE("a sweep that cannot be done as asked is refused before anything runs") {
  const Folder folder;
  write_plan(folder);
  const auto refused = [&](std::vector<std::string> words, const std::string& code) {
    words.insert(words.begin(), "sweep");
    const Outcome outcome = rdusim(words, folder);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome) == code);
    CHECK(outcome.out.empty());
  };
  refused({"none.toml"}, "RDU1001");
  refused({"plan.toml", "--where", "chip == 1"}, "RDU8066");
  refused({"plan.toml", "--where", "chips =="}, "RDU8065");
  refused({"plan.toml", "--pareto", "speed"}, "RDU8066");
  refused({"plan.toml", "--task", "3"}, "RDU6005");
  refused({"plan.toml", "--jobs", "0"}, "RDU6005");
  folder.write("bad.toml", "workload = \"small.toml\"\n[grid]\n\"target.hbm.gb_per_sec\" = [1]\n");
  refused({"bad.toml"}, "RDU8063");
  folder.write("bad2.toml", "workload = \"small.toml\"\n[grid]\n\"workload.tensors.q.shape[0]\" = [1]\n");
  refused({"bad2.toml"}, "RDU8063");
  folder.write("one.toml", "workload = \"small.toml\"\n[run]\ntiming-only = true\n[grid]\nchips = [1]\n");
  folder.write("two.toml", "workload = \"small.toml\"\n[run]\ntiming-only = true\n[grid]\nchips = [2]\n");
  rdusim_ok({"sweep", "one.toml", "-o", "s"}, folder);
  refused({"two.toml", "-o", "s"}, "RDU8067");
}

TEST_CASE("two sweeps in one folder at a time are refused") {
  const Folder folder;
  write_plan(folder);
  Running first({"sweep", "plan.toml", "-o", "s", "--jobs", "1"}, folder);
  for (int i = 0; i < 20000 && rows_in(folder.file("s/rows")) < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Outcome second = rdusim({"sweep", "plan.toml", "-o", "s"}, folder);
  CHECK(second.status == 2);
  CHECK(errors_of(second) == "RDU8068");
  first.send(SIGINT);
  const Outcome stopped = first.finish();
  CHECK(stopped.status == 130);
  CHECK(stopped.err.find("the same command goes on") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::sweep_test
