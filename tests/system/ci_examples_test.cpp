// The example workflows, run as far as they can be without their services: the script that both call, in a repository
// of two commits, as their jobs would.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
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

// What stands behind `key` on its line, without quotes; fails the test where there is no such line.
std::string value_of(const std::string& yaml, const std::string& key) {
  INFO(key);
  const std::size_t at = yaml.find(key);
  REQUIRE(at != std::string::npos);
  std::string value = yaml.substr(at + key.size(), yaml.find('\n', at) - at - key.size());
  std::erase(value, '"');
  return value;
}

TEST_CASE("the workflow files' steps run as their services would run them, from a first push to an accepted change") {
  struct Service {
    const char *file, *track, *keep;
  };
  for (const Service& service :
       {Service{"examples/ci/github-actions.yml", "        run: examples/ci/track.sh ",
                "        run: rm -rf rdusim-before"},
        Service{"examples/ci/gitlab-ci.yml", "    - examples/ci/track.sh ", "    - if [ \"$CI_COMMIT_BRANCH\""}}) {
    CAPTURE(service.file);
    const std::string yaml = source_text(service.file);
    CHECK(yaml.find('\t') == std::string::npos);
    CHECK(yaml.find("scripts/setup") != std::string::npos);
    CHECK(yaml.find("rdusim-history.db") != std::string::npos);
    const Folder folder;
    const auto push = [&] {
      return shell(folder, "git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m push") == 0;
    };
    REQUIRE(shell(folder, "git init -q . && ln -s '" + source("examples") + "' examples") == 0);
    REQUIRE(push());
    const std::string track = "RDUSIM_BEFORE=" + value_of(yaml, "RDUSIM_BEFORE: ") + " RDUSIM_OPTIONS='" +
                              value_of(yaml, "RDUSIM_OPTIONS: ") + "' examples/ci/track.sh " +
                              value_of(yaml, service.track);
    const std::size_t at = yaml.find(service.keep);
    REQUIRE(at != std::string::npos);
    const std::string line = yaml.substr(at, yaml.find('\n', at) - at);
    const std::size_t command = std::min(line.find("rm -rf"), line.find("if ["));
    const std::string keep = "CI_COMMIT_BRANCH=main; CI_DEFAULT_BRANCH=main; " + line.substr(command);
    // A first push: nothing was accepted yet, and there is nothing to compare with.
    CHECK(shell(folder, track) == 1);
    CHECK_FALSE(folder.has("rdusim-out/summary.md"));
    rdusim_ok({"history", "accept", "--db", "rdusim-history.db", "--reason", "first"}, folder);
    CHECK(shell(folder, track) == 0);
    CHECK(shell(folder, keep) == 0);
    CHECK(folder.has("rdusim-before/llama-3.1-8b-down-proj.json"));
    // A change: the summary has what it is, and the gate fails until it is accepted.
    const std::string other = "RDUSIM_OPTIONS='--chips 16 --shard row --collective through-one' ";
    const std::string changed =
        track.substr(0, track.find("RDUSIM_OPTIONS")) + other + track.substr(track.find("examples/ci/track.sh"));
    REQUIRE(push());
    CHECK(shell(folder, changed) == 1);
    CHECK(folder.read("rdusim-out/summary.md").find("through\\_one") != std::string::npos);
    rdusim_ok({"history", "accept", "--db", "rdusim-history.db", "--reason", "as ordered"}, folder);
    CHECK(shell(folder, changed) == 0);  // compared with what was, it is slower all the same
    for (const char* left : {"rdusim-out/gate.xml", "rdusim-out/dashboard.html", "rdusim-out/benchmark.json"})
      CHECK(folder.has(left));
  }
  // GitHub's summary.
  const std::string yaml = source_text("examples/ci/github-actions.yml");
  const Folder folder;
  REQUIRE(shell(folder, "mkdir rdusim-out && echo told >rdusim-out/summary.md") == 0);
  const std::size_t at = yaml.find("if [ -f rdusim-out/summary.md ]");
  REQUIRE(at != std::string::npos);
  const std::string step = yaml.substr(at, yaml.find('\n', at) - at);
  CHECK(shell(folder, "export GITHUB_STEP_SUMMARY=step.md; " + step) == 0);
  CHECK(folder.read("step.md") == "told\n");
}

}  // namespace
}  // namespace rdusim::test::ci_examples_test
