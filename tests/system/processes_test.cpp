// A run divided over processes is the run of one process: report, traces, verdict and diagnosis, whatever their number.
#include <doctest/doctest.h>

#include <dirent.h>
#include <signal.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::processes_test {
namespace {

struct Kept {
  int status = 0;
  std::string report, trace, err, dot;
};

// Runs `program` over so many processes.
Kept over(const Folder& folder, std::uint32_t processes, std::vector<std::string> options,
          const std::string& program = "prog.bin") {
  const std::string p = std::to_string(processes);
  options.insert(options.begin(), {"run", program, "--report", "r" + p + ".json", "--trace", "t" + p + ".rdulog",
                                   "--dot", "d" + p + ".dot", "--processes", p});
  const Outcome o = rdusim(options, folder);
  Kept k;
  k.status = o.status;
  // The number of processes is told where fewer are taken, and the size of the trace by its name.
  for (std::size_t at = 0; at < o.err.size();) {
    const std::size_t end = std::min(o.err.find('\n', at), o.err.size() - 1) + 1;
    const std::string line = o.err.substr(at, end - at);
    if (line.find("RDU6030") == std::string::npos && !line.starts_with("help: leave --processes out") &&
        !line.starts_with("trace "))
      k.err += line;
    at = end;
  }
  const Json report = parsed(folder.read("r" + p + ".json"));
  const Json* rows = report.find("host")->find("processes");
  REQUIRE(rows != nullptr);
  if (processes > 1 && o.err.find("takes one process") == std::string::npos &&
      o.err.find("the run takes") == std::string::npos) {
    REQUIRE(rows->as_array() != nullptr);
    if (text(report, "verdict") != "limit" && text(report, "verdict") != "check-failed")
      CHECK(rows->as_array()->size() == processes);
  }
  k.report = without_host(report);
  k.trace = folder.read("t" + p + ".rdulog");
  if (folder.has("d" + p + ".dot")) k.dot = folder.read("d" + p + ".dot");
  return k;
}

// The same for 1, 2, 3, 4 and 8 processes.
Kept same_for_all(const Folder& folder, const std::vector<std::string>& options = {},
                  const std::string& program = "prog.bin") {
  Kept one = over(folder, 1, options, program);
  for (const std::uint32_t processes : {2, 3, 4, 8}) {
    CAPTURE(processes);
    const Kept many = over(folder, processes, options, program);
    CHECK(many.status == one.status);
    CHECK(many.report == one.report);
    CHECK(many.err == one.err);
    CHECK(many.dot == one.dot);
    CHECK(many.trace.size() == one.trace.size());
    CHECK((many.trace == one.trace));
  }
  return one;
}

TEST_CASE("a matmul over 16 chips is the same over any number of processes, whatever its collective") {
  for (const char* collective : {"direct", "ring", "halving-doubling", "tree", "through-one", "hierarchical"}) {
    CAPTURE(collective);
    const Folder folder;
    compile(folder, matmul(32, 32 * 16 * 4, 64), {"--chips", "16", "--shard", "row", "--collective", collective});
    const Kept k = same_for_all(folder);
    CHECK(k.status == 0);
    check_exact_pass(parsed(folder.read("r8.json")));
  }
}

TEST_CASE("so are barriers, and semaphores, and other machines") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "2", "--shard", "row", "--target", barrier_target()}, "barrier.bin");
  CHECK(same_for_all(folder, {}, "barrier.bin").status == 0);
  compile(folder, matmul(32, 1024, 64), {"--chips", "8", "--shard", "row", "--target", "wormhole"}, "wormhole.bin");
  CHECK(same_for_all(folder, {}, "wormhole.bin").status == 0);
  compile(folder, matmul(32, 1024, 64, "fp32"), {"--chips", "8", "--shard", "row", "--target", "sn30"}, "sn30.bin");
  CHECK(same_for_all(folder, {"--jitter", "3"}, "sn30.bin").status == 0);
}

TEST_CASE(
    "so is a decoder of several sections and layers, with values and without, and with the network flit by flit") {
  const Folder folder;
  rdusim_ok({"compile", source("examples/smollm2-135m"), "--phase", "decode", "--batch", "1", "--shard", "tensor",
             "--chips", "3", "--context", "64", "--layers", "2", "-o", "prog.bin"},
            folder);
  CHECK(same_for_all(folder, {"--timing-only"}).status == 0);
  const Kept one = over(folder, 1, {}), three = over(folder, 3, {});
  CHECK(one.status == 0);
  CHECK(three.report == one.report);
  CHECK((three.trace == one.trace));
  CHECK(over(folder, 2, {"--timing-only", "--network", "flit"}).report ==
        over(folder, 1, {"--timing-only", "--network", "flit"}).report);
}

// 32 x 512 by 512 x 32 over two chips by the direct all-reduce, with one stage changed, whatever the verifier says.
Folder& edited(Folder& folder, const std::string& stage, const std::string& key, const std::string& value) {
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row", "--collective", "direct"});
  Json p = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  Json& s = named(at(p, "stages"), "matmul0." + stage);
  (key == "bodies" ? at(s, "kind", "generic", "bodies") : at(s, key)) = parsed(value);
  remove(p, "certificate");
  folder.write("edited.json", to_text(p));
  rdusim_ok({"assemble", "edited.json", "-o", "edited.bin", "--allow-refuted"}, folder);
  return folder;
}

TEST_CASE("a check that fires stops all processes in the same cycle, and finds the same") {
  Folder folder;
  edited(folder, "all_reduce.fold_c0", "bodies", "[[1, \"port 0\"], [1, \"accumulator\"]]");
  CHECK(same_for_all(folder, {"--allow-refuted"}, "edited.bin").status == 1);
  const Kept all = same_for_all(folder, {"--allow-refuted", "--collect-violations"}, "edited.bin");
  CHECK(all.status == 1);
  CHECK(all.err.find("RDU7009") != std::string::npos);
}

TEST_CASE("a hang over two chips is diagnosed alike, whoever waits in which process") {
  for (const char* stage : {"all_reduce.recv_c1_c0", "matmul_c1"}) {
    CAPTURE(stage);
    Folder folder;
    edited(folder, stage, "firings", "0");
    const Kept k = same_for_all(folder, {"--allow-refuted"}, "edited.bin");
    CHECK(k.status == 1);
    CHECK(text(parsed(folder.read("r8.json")), "verdict") == "starvation");
    CHECK_FALSE(k.dot.empty());
  }
}

TEST_CASE("what is saved is what one process saves") {
  const Folder folder;
  compile(folder, matmul(64, 512, 64), {"--chips", "4"});
  rdusim_ok({"run", "prog.bin", "--save", "y=one.npy"}, folder);
  rdusim_ok({"run", "prog.bin", "--save", "y=three.npy", "--processes", "3"}, folder);
  CHECK(folder.read("one.npy") == folder.read("three.npy"));
}

TEST_CASE("a limit of cycles ends all processes in the same cycle") {
  const Folder folder;
  compile(folder, matmul(32, 1024, 64), {"--chips", "4", "--shard", "row"});
  const std::int64_t whole = number(run(folder), "cycles", "simulated");
  for (const std::int64_t most : {std::int64_t{1}, whole / 2, whole - 1, whole}) {
    CAPTURE(most);
    CHECK(same_for_all(folder, {"--max-cycles", std::to_string(most)}).status == (most < whole ? 3 : 0));
  }
}

TEST_CASE("one chip is simulated by one process, and listened to by another") {
  const Folder folder;
  compile(folder, matmul(256, 1024, 256), {"--chips", "1"});
  CHECK(same_for_all(folder).status == 0);
}

TEST_CASE("faults take one process, a chip no more than one, and it is said") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "2", "--shard", "row"});
  const Outcome broken =
      rdusim({"run", "prog.bin", "--processes", "2", "--inject", "page_drop@matmul0.partial_c0"}, folder);
  CHECK(broken.status == 1);
  CHECK(broken.err.find("warning RDU6030") != std::string::npos);
  CHECK(broken.err.find("the run takes one process: with faults") != std::string::npos);
  const Outcome eight = rdusim_ok({"run", "prog.bin", "--processes", "8"}, folder);
  CHECK(eight.err.find("the run takes 3: one for each chip") != std::string::npos);
  CHECK(rdusim({"run", "prog.bin", "--processes", "0"}, folder).status == 2);
  CHECK(rdusim({"run", "prog.bin", "--processes", "257"}, folder).status == 2);
}

TEST_CASE("without its module for MPI, what mpirun starts several times is refused once, before anything is written") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "2", "--shard", "row"});
  const std::string copy = "cp $rdusim alone && OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=";
  const Outcome first = shell(copy + "0 ./alone run prog.bin --report report.json", folder);
  CHECK(first.status == 2);
  CHECK(errors_of(first) == "RDU6032");
  const Outcome second = shell(copy + "1 ./alone run prog.bin", folder);
  CHECK(second.status == 2);
  CHECK(second.err.empty());
  CHECK_FALSE(folder.has("report.json"));
  CHECK(shell("OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 $rdusim run prog.bin", folder).status == 0);
}

// Processes of which `parent` is the parent.
std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    std::FILE* f = std::fopen(("/proc/" + std::string(entry->d_name) + "/stat").c_str(), "r");
    if (f == nullptr) continue;
    int pid = 0, ppid = 0;
    if (std::fscanf(f, "%d %*s %*c %d", &pid, &ppid) == 2 && ppid == parent) found.insert(pid);
    std::fclose(f);
  }
  closedir(proc);
  return found;
}

// Seventeen million pages, which two quick processors take seventeen seconds for: nobody is done when he is to be stopped.
Matmul long_run() {
  return matmul(1024, 524288, 65536);
}

// The processes of a long run over three, once they are there.
std::set<pid_t> await_children(const Running& running) {
  std::set<pid_t> children;
  for (int i = 0; i < 1000 && children.size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    children = children_of(running.pid());
  }
  return children;
}

// Whether it still runs, after five seconds at the latest. One that nobody has waited for is there, and does not.
bool lives(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    std::FILE* f = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
    char state = 'X';
    if (f != nullptr) {
      if (std::fscanf(f, "%*d %*s %c", &state) != 1) state = 'X';
      std::fclose(f);
    }
    if (state == 'X' || state == 'Z') return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

TEST_CASE("a process that is killed ends the run with one line and status 70, its trace is kept, and none is left") {
  const Folder folder;
  compile(folder, long_run(), {"--chips", "4"});
  Running running(
      {"run", "prog.bin", "--timing-only", "--processes", "3", "--report", "report.json", "--trace", "run.rdulog"},
      folder);
  const std::set<pid_t> children = await_children(running);
  REQUIRE(children.size() == 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(*children.rbegin(), SIGKILL);
  const Outcome outcome = running.finish();
  CHECK(outcome.status == 70);
  CHECK(errors_of(outcome) == "RDU9003");
  CHECK(outcome.err.find("was killed by signal 9") != std::string::npos);
  CHECK_FALSE(folder.has("report.json"));
  const Json summary = parsed(rdusim_ok({"trace", "summary", "run.rdulog", "--json"}, folder).out);
  CHECK(text(summary, "end") == "stopped");
  CHECK(outcome.err.find(fmt::format("in or after cycle {}", number(summary, "cycles"))) != std::string::npos);
  for (const pid_t pid : children) CHECK_FALSE(lives(pid));
}

TEST_CASE("Ctrl-C ends all processes of a run, and what was learnt so far is reported") {
  const Folder folder;
  compile(folder, long_run(), {"--chips", "4"});
  Running running({"run", "prog.bin", "--timing-only", "--processes", "3", "--report", "report.json"}, folder);
  const std::set<pid_t> children = await_children(running);
  REQUIRE(children.size() == 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  running.send(SIGINT);
  const Outcome outcome = running.finish();
  CHECK(outcome.status == 130);
  CHECK(text(parsed(folder.read("report.json")), "verdict") == "limit");
  for (const pid_t pid : children) CHECK_FALSE(lives(pid));
}

// Whenever it comes: once the listener had seen it, a window was begun nonetheless where the others' mail was there.
TEST_CASE("Ctrl-C at any moment ends a divided run with a report and a trace that can be read") {
  const Folder folder;
  compile(folder, long_run(), {"--chips", "4"});
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    Running running(
        {"run", "prog.bin", "--timing-only", "--processes", "2", "--report", "report.json", "--trace", "run.rdulog"},
        folder);
    REQUIRE(await_children(running).size() == 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(40 + 17 * i));
    running.send(SIGINT);
    const Outcome outcome = running.finish();
    INFO(outcome.err);
    REQUIRE(outcome.status == 130);
    const Json summary = parsed(rdusim_ok({"trace", "summary", "run.rdulog", "--json"}, folder).out);
    CHECK(text(summary, "end") == "stopped");
    CHECK(number(summary, "cycles") == number(parsed(folder.read("report.json")), "cycles", "simulated"));
  }
}

bool with_mpi(const Folder& folder) {
  const bool there = shell("command -v mpirun && ls $(dirname $rdusim)/librdusim_mpi.so", folder).status == 0;
  if (!there) MESSAGE("not run: without Open MPI");
  return there;
}

// As over(), by mpirun.
Kept by_mpirun(const Folder& folder, std::uint32_t processes, const std::string& options,
               const std::string& program = "prog.bin") {
  const Outcome o =
      shell("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n " +
                std::to_string(processes) + " $rdusim run " + program + " --report m.json --trace m.rdulog " + options,
            folder);
  INFO(o.err);
  REQUIRE(folder.has("m.json"));
  Kept k;
  k.status = o.status;
  const Json report = parsed(folder.read("m.json"));
  if (text(report, "verdict") == "pass") CHECK(report.find("host")->find("processes")->as_array()->size() == processes);
  k.report = without_host(report);
  k.trace = folder.read("m.rdulog");
  shell("rm m.json m.rdulog", folder);
  return k;
}

TEST_CASE("a run over the processes of mpirun is the run of one: what passes, what fails, and what is limited") {
  const Folder folder;
  if (!with_mpi(folder)) return;
  compile(folder, matmul(32, 2048, 64), {"--chips", "4", "--shard", "row", "--collective", "ring"});
  const Kept one = over(folder, 1, {});
  Folder broken;
  edited(broken, "all_reduce.fold_c0", "bodies", "[[1, \"port 0\"], [1, \"accumulator\"]]");
  const Kept failing = over(broken, 1, {"--allow-refuted"}, "edited.bin");
  for (const std::uint32_t processes : {2, 3}) {
    CAPTURE(processes);
    const Kept many = by_mpirun(folder, processes, "");
    CHECK(many.status == 0);
    CHECK(many.report == one.report);
    CHECK((many.trace == one.trace));
  }
  const Kept fails = by_mpirun(broken, 3, "--allow-refuted", "edited.bin");
  CHECK(fails.status == 1);
  CHECK(fails.report == failing.report);
  CHECK((fails.trace == failing.trace));
  CHECK(by_mpirun(folder, 2, "--max-cycles 5000").status == 3);
}

TEST_CASE("a process of mpirun that is killed ends the others") {
  const Folder folder;
  if (!with_mpi(folder)) return;
  compile(folder, long_run(), {"--chips", "4"});
  Running running({"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "--oversubscribe", "-n",
                   "3", RDUSIM_BINARY, "run", "prog.bin", "--timing-only", "--report", "report.json"},
                  folder, {}, "/usr/bin/env");
  std::set<pid_t> ranks;
  for (int i = 0; i < 1000 && ranks.size() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ranks = children_of(running.pid());
  }
  REQUIRE(ranks.size() == 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  kill(*ranks.rbegin(), SIGKILL);
  CHECK(running.finish().status != 0);
  CHECK_FALSE(folder.has("report.json"));
  for (const pid_t pid : ranks) CHECK_FALSE(lives(pid));
}

}  // namespace
}  // namespace rdusim::test::processes_test
