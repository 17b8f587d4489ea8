// The cycles of a fixed set of programs are those that were accepted (scripts/regress).
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/system/scenario.h"

namespace rdusim::test::regress_test {
namespace {

int regress(const Folder& folder, const std::string& options) {
  const std::string line = "python3 " + source("scripts/regress") + " --binary '" + std::string(RDUSIM_BINARY) + "' " +
                           options + " >'" + folder.file("out.txt") + "' 2>&1";
  const int state = std::system(line.c_str());
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

TEST_CASE("the cycles of every program of the regression suite are those that were accepted") {
  const Folder folder;
  const int status = regress(folder, "");
  INFO("what differs is either a fault, or is accepted with scripts/regress --accept and explained in the commit:\n",
       folder.read("out.txt"));
  CHECK(status == 0);
}

TEST_CASE("a cycle more, a figure less and a program more are seen by the regression suite") {
  const Folder folder;
  const std::string accepted = "--only tile --accepted '" + folder.file("a.txt") + "'";
  const std::string text = source_text("tests/regress/accepted.txt");
  folder.write("a.txt", text);
  REQUIRE(regress(folder, accepted) == 0);
  const std::size_t line = text.find("tile ");
  const std::size_t figure = text.find("cycles.simulated", line);
  const std::size_t digit = text.find('\n', figure) - 1;
  std::string changed = text;
  changed[digit] = changed[digit] == '9' ? '8' : static_cast<char>(changed[digit] + 1);
  folder.write("a.txt", changed);
  CHECK(regress(folder, accepted) == 1);
  CHECK(folder.read("out.txt").find("cycles.simulated") != std::string::npos);
  folder.write("a.txt", text.substr(0, line) + text.substr(text.find("cycles.predicted", line) - 25));
  CHECK(regress(folder, accepted) == 1);
  folder.write("a.txt", "");
  CHECK(regress(folder, accepted) == 1);
}

TEST_CASE("scripts/bench takes the suite's programs into a history, which judges them") {
  const Folder folder;
  const std::string bench =
      "python3 " + source("scripts/bench") + " --binary $rdusim --only small-direct-4 --history h.db";
  const Outcome first = shell(bench, folder);
  INFO(first.out, first.err);
  REQUIRE(first.status == 0);
  rdusim_ok({"history", "accept", "--db", "h.db", "--reason", "first"}, folder);
  rdusim_ok({"history", "gate", "--db", "h.db"}, folder);
  const std::string list = rdusim_ok({"history", "list", "--db", "h.db"}, folder).out;
  CHECK(list.find("small-direct-4") != std::string::npos);
  CHECK(list.find("accepted: first") != std::string::npos);
  rdusim_ok({"dashboard", "--db", "h.db", "-o", "h.html"}, folder);
}

}  // namespace
}  // namespace rdusim::test::regress_test
