// The example workflows, run as far as they can be without their services: the script that both call, in a repository
// of two commits, as their jobs would.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::ci_examples_test {
namespace {

// Runs a command of a shell in the folder; standard output and error go to a file there.
int shell(const Folder& folder, const std::string& command) {
  const std::string line = "cd '" + folder.path() + "' && export RDUSIM='" + std::string(RDUSIM_BINARY) +
                           "' GIT_CONFIG_GLOBAL=/dev/null && { " + command + "; } >out.txt 2>&1";
  const int state = std::system(line.c_str());
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

TEST_CASE(
    "the workflows' script fails until its programs are accepted, passes then, and fails again where one is slower") {
  const Folder folder;
  folder.write("small.toml", Matmul{}.toml());
  const std::string track = "RDUSIM_OPTIONS='--chips 2 --shard row' " + source("examples/ci/track.sh") + " small.toml";
  const std::string git = "git -c user.name=t -c user.email=t@example.invalid ";
  REQUIRE(shell(folder, "git init -q . && git add small.toml && " + git + "commit -q -m first") == 0);
  CHECK(shell(folder, track) == 1);
  CHECK(folder.read("out.txt").find("never-accepted") != std::string::npos);
  rdusim_ok({"history", "accept", "--db", "rdusim-history.db", "--reason", "first"}, folder);
  CHECK(shell(folder, track) == 0);
  CHECK(folder.read("rdusim-out/gate.xml").find("failures=\"0\"") != std::string::npos);
  CHECK(folder.read("rdusim-out/dashboard.html").find("Content-Security-Policy") != std::string::npos);

  REQUIRE(shell(folder, "cp -r rdusim-out/reports before") == 0);
  Matmul larger;
  larger.k = 1024;
  folder.write("small.toml", larger.toml());
  REQUIRE(shell(folder, "git add small.toml && " + git + "commit -q -m second") == 0);
  CHECK(shell(folder, "RDUSIM_BEFORE=before " + track) == 1);
  CHECK(folder.read("rdusim-out/summary.md").find("**regression**") != std::string::npos);
  CHECK(folder.read("out.txt").find("changed        cycles.simulated") != std::string::npos);
  // git was asked for commit and parent.
  const Outcome blame = rdusim_ok({"history", "blame", "cycles", "--db", "rdusim-history.db", "--json"}, folder);
  const Json j = parsed(blame.out);
  REQUIRE(shell(folder, "git rev-parse HEAD") == 0);
  CHECK(text(j, "programs", 0, "moves", 0, "culprit") + "\n" == folder.read("out.txt"));
}

TEST_CASE("the workflow files call the script with workloads that are there") {
  for (const char* file : {"examples/ci/github-actions.yml", "examples/ci/gitlab-ci.yml"}) {
    CAPTURE(file);
    const std::string yaml = source_text(file);
    CHECK(yaml.find("\t") == std::string::npos);
    const std::string call = "examples/ci/track.sh ";
    const std::size_t at = yaml.find(call);
    REQUIRE(at != std::string::npos);
    const std::string workload = yaml.substr(at + call.size(), yaml.find('\n', at) - at - call.size());
    CHECK(!source_text(workload).empty());
    CHECK(yaml.find("scripts/setup") != std::string::npos);
    CHECK(yaml.find("rdusim-history.db") != std::string::npos);
  }
}

}  // namespace
}  // namespace rdusim::test::ci_examples_test
