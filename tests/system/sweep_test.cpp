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

// tests/bench/sweep-200.toml over a workload of this folder: chips x collective x bandwidth of the links.
void write_plan_of_200(const Folder& folder) {
  folder.write("small.toml", Matmul{}.toml());
  std::string plan = source_text("tests/bench/sweep-200.toml");
  const std::string workload = "workload = \"../../examples/matmul-32x512x32.toml\"";
  REQUIRE(plan.find(workload) != std::string::npos);
  folder.write("plan.toml", plan.replace(plan.find(workload), workload.size(), "workload = \"small.toml\""));
}

TEST_CASE("a sweep of 200 points that is killed, three times, gives the table of one that was not") {
  const Folder folder;
  write_plan_of_200(folder);
  const std::string whole = rdusim_ok({"sweep", "plan.toml", "-o", "whole"}, folder).out;
  CHECK(std::count(whole.begin(), whole.end(), '\n') == 200 + 1);
  for (const std::size_t least : {7, 90, 150}) {
    {
      const Running killed({"sweep", "plan.toml", "-o", "killed"}, folder);
      for (int i = 0; i < 60000 && rows_in(folder.file("killed/rows")) < least; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }  // kill -9
    const std::size_t kept = rows_in(folder.file("killed/rows"));
    CHECK(kept >= least);
    CHECK(kept < 200);
    CHECK_FALSE(folder.has("killed/table.csv"));
  }
  const auto first = std::filesystem::last_write_time(folder.file("killed/rows/000000.json"));
  CHECK(rdusim_ok({"sweep", "plan.toml", "-o", "killed"}, folder).out == whole);
  CHECK(std::filesystem::last_write_time(folder.file("killed/rows/000000.json")) == first);
  CHECK(folder.read("killed/table.csv") == whole);
  CHECK(folder.read("killed/table.jsonl") == folder.read("whole/table.jsonl"));
  CHECK(std::filesystem::is_empty(folder.file("killed/work")));
}

// (points done, seconds left) of every line that a sweep wrote to its terminal.
std::vector<std::pair<int, int>> progress_in(const std::string& terminal, int of) {
  std::vector<std::pair<int, int>> lines;
  const std::string middle = " of " + std::to_string(of) + " points, about ";
  for (std::size_t at = 0; (at = terminal.find("\r\x1b[K", at)) != std::string::npos;) {
    at += 4;
    const std::size_t end = std::min(terminal.find('\r', at), terminal.size());
    const std::string line = terminal.substr(at, end - at);
    const std::size_t words = line.find(middle);
    if (words == std::string::npos) continue;
    CHECK(line.ends_with(" s left"));
    lines.emplace_back(std::stoi(line), std::stoi(line.substr(words + middle.size())));
  }
  return lines;
}

TEST_CASE("on a terminal a sweep says how far it is and how long it will take, and in a pipe nothing") {
  const Folder folder;
  write_plan(folder);
  CHECK(rdusim_ok({"sweep", "plan.toml", "-o", "pipe"}, folder).err.empty());
  // script(1) gives its command a terminal.
  const auto on_terminal = [&] {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome o = shell("script -qec \"$rdusim sweep plan.toml -o s --jobs 1 >table.csv\" /dev/null", folder);
    CHECK(o.status == 0);
    CHECK(o.out.ends_with("\r\x1b[K"));  // and then takes the line away
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::pair{progress_in(o.out, points), seconds};
  };
  const auto [lines, seconds] = on_terminal();
  REQUIRE(lines.size() >= 2);
  CHECK(std::is_sorted(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.first < b.first; }));
  CHECK(lines.back() == std::pair{points, 0});
  // One point of three is refused in no time, and one chip takes less than four: the estimate is of the right order.
  for (const auto& [done, left] : lines) CHECK(left <= 4 * seconds + 1);
  CHECK(folder.read("table.csv") == folder.read("pipe/table.csv"));
  // Gone on with, it counts what was there as done, and not as done in no time.
  for (int p = 0; p < 6; ++p) std::filesystem::remove(folder.file("s/rows/00000" + std::to_string(p) + ".json"));
  const auto again = on_terminal().first;
  REQUIRE_FALSE(again.empty());
  CHECK(again.front().first >= points - 5);
  CHECK(again.back() == std::pair{points, 0});
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
