// Did it get worse, as a user asks it: one link of the machine made slower, and who notices.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::compare_and_history_test {
namespace {

// Reports of one program on sn40l, and on an sn40l whose links within a node are slower.
struct TwoMachines {
  Folder folder;
  TwoMachines() {
    Matmul workload;
    workload.n = 512;
    compile(folder, workload, {"--chips", "4", "--shard", "row"});
    folder.write("slow.toml", with_value(source_text("models/targets/sn40l.toml"), "[[links]]", "gb_per_s", "12.5"));
    run(folder, "before.json", {});
    run(folder, "after.json", {"--target", "slow.toml"});
  }
  static void run(const Folder& folder, const std::string& report, std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "prog.bin", "--report", report});
    rdusim_ok(options, folder);
  }
};

TEST_CASE("a slower link is a regression, and compare names the stage and the cause") {
  const TwoMachines two;
  const Outcome same = rdusim_ok({"compare", "before.json", "before.json"}, two.folder);
  CHECK(same.out.find("no regression") != std::string::npos);
  const Outcome outcome = rdusim({"compare", "before.json", "after.json"}, two.folder);
  INFO(outcome.out);
  CHECK(outcome.status == 1);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("cycles.simulated rose") != std::string::npos);
  CHECK(outcome.out.find("target file") != std::string::npos);
  // The receive waits for the link.
  const auto line = outcome.out.find("recv_");
  REQUIRE(line != std::string::npos);
  CHECK(outcome.out.substr(line, outcome.out.find('\n', line) - line).find("; link +") != std::string::npos);
  // Nothing was decided otherwise: the program is the same.
  const Json j = parsed(rdusim({"compare", "before.json", "after.json", "--json"}, two.folder).out);
  CHECK(list(j, "pairs", 0, "decisions").empty());
  CHECK(*at(j, "regressed").as_bool());
  // A threshold that allows it.
  rdusim_ok({"compare", "before.json", "after.json", "--fail-on", "cycles>1000%"}, two.folder);
  // And the other way round it is none.
  rdusim_ok({"compare", "after.json", "before.json"}, two.folder);
}

TEST_CASE("another collective shows as the decision behind the cycles") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "4", "--shard", "row", "--collective", "direct"});
  rdusim_ok({"run", "prog.bin", "--report", "direct.json"}, folder);
  compile(folder, Matmul{}, {"--chips", "4", "--shard", "row", "--collective", "ring"});
  rdusim_ok({"run", "prog.bin", "--report", "ring.json"}, folder);
  const Outcome outcome = rdusim({"compare", "direct.json", "ring.json"}, folder);
  INFO(outcome.out);
  CHECK(outcome.out.find(".algorithm: direct -> ring") != std::string::npos);
}

TEST_CASE("folders are compared file by file, and a report that is gone is a regression") {
  const TwoMachines two;
  std::filesystem::create_directories(two.folder.file("old/deep"));
  std::filesystem::create_directories(two.folder.file("new/deep"));
  two.folder.write("old/a.json", two.folder.read("before.json"));
  two.folder.write("new/a.json", two.folder.read("before.json"));
  two.folder.write("old/deep/b.json", two.folder.read("before.json"));
  two.folder.write("new/deep/b.json", two.folder.read("before.json"));
  rdusim_ok({"compare", "old", "new"}, two.folder);
  two.folder.write("new/deep/b.json", two.folder.read("after.json"));
  Outcome outcome = rdusim({"compare", "old", "new", "--markdown"}, two.folder);
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("| deep/b |") != std::string::npos);
  std::filesystem::remove(two.folder.file("new/deep/b.json"));
  outcome = rdusim({"compare", "old", "new"}, two.folder);
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("deep/b.json: only among the older reports: regression") != std::string::npos);
}

TEST_CASE("the gate catches a slower link, blame names its commit, and an accepted reason lets it pass") {
  const TwoMachines two;
  const auto history = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "history");
    words.insert(words.end(), {"--db", "h.db"});
    return rdusim(words, two.folder);
  };
  const auto add = [&](const char* report, const char* commit, const char* parent, const char* time) {
    const Outcome o =
        history({"add", report, "--name", "small", "--commit", commit, "--parent", parent, "--time", time});
    INFO(o.err);
    REQUIRE(o.status == 0);
  };
  add("before.json", "c0", "", "1700000000");
  CHECK(history({"gate"}).status == 1);  // nothing was accepted yet
  CHECK(history({"accept", "--reason", "first"}).status == 0);
  CHECK(history({"gate"}).status == 0);
  add("before.json", "c1", "c0", "1700003600");
  CHECK(history({"gate"}).status == 0);
  add("after.json", "c2", "c1", "1700007200");
  const Outcome gate = history({"gate", "--junit", "gate.xml"});
  INFO(gate.out);
  CHECK(gate.status == 1);
  CHECK(gate.out.find("changed        cycles.simulated: ") != std::string::npos);
  CHECK(gate.out.find(".recv.stall.link: ") != std::string::npos);
  CHECK(two.folder.read("gate.xml").find("<failure message=\"changed: ") != std::string::npos);
  const Outcome blame = history({"blame", "cycles", "--program", "small"});
  CHECK(blame.out.find("  c2  ") != std::string::npos);
  CHECK(blame.out.find("c1  ") == std::string::npos);
  CHECK(history({"accept", "--reason", "slower links, as ordered"}).status == 0);
  CHECK(history({"gate"}).status == 0);
  CHECK(history({"list"}).out.find("accepted: slower links, as ordered") != std::string::npos);
  CHECK(history({"export", "--format", "openmetrics"}).out.ends_with("# EOF\n"));

  // And the page has it: three runs, of which the last took longer, and the reason.
  rdusim_ok({"dashboard", "--db", "h.db", "-o", "h.html"}, two.folder);
  const std::string page = two.folder.read("h.html");
  const auto cycles = [&](const char* report) {
    return std::to_string(number(parsed(two.folder.read(report)), "cycles", "simulated"));
  };
  const std::string before = cycles("before.json");
  CHECK(page.find("[" + before + "," + before + "," + cycles("after.json") + "]") != std::string::npos);
  CHECK(page.find("slower links, as ordered") != std::string::npos);
}

TEST_CASE("what cannot be compared or kept is refused, with its code") {
  const Folder folder;
  folder.write("bad.json", "{}");
  folder.write("note.txt", "this is no database, and too short to be one");
  std::filesystem::create_directories(folder.file("empty"));
  const auto refused = [&](std::vector<std::string> words, const std::string& code) {
    const Outcome outcome = rdusim(words, folder);
    INFO(words[0], " ", words[1], "\n", outcome.err);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome).substr(0, 7) == code);
    CHECK(outcome.out.empty());
  };
  refused({"compare", "bad.json", "bad.json"}, "RDU8001");
  refused({"compare", "none.json", "bad.json"}, "RDU1001");
  refused({"compare", "empty", "bad.json"}, "RDU8033");
  refused({"compare", "empty", "empty"}, "RDU8033");
  refused({"compare", "bad.json", "bad.json", "--fail-on", "cycles"}, "RDU8030");
  refused({"compare", "bad.json", "bad.json", "--json", "--markdown"}, "RDU6005");
  refused({"history", "list", "--db", "note.txt"}, "RDU8035");
  refused({"history", "list", "--db", "none.db"}, "RDU1001");
  refused({"history", "add", "bad.json", "--db", "h.db"}, "RDU8001");
  refused({"history", "add", "empty", "--db", "h.db"}, "RDU8033");
  refused({"history", "accept", "--db", "note.txt", "--reason", " "}, "RDU8035");
  refused({"history"}, "RDU6005");
  refused({"dashboard", "--db", "note.txt", "-o", "d.html"}, "RDU8035");
  refused({"dashboard", "--db", "note.txt", "-o", "d.html", "--echarts", "bad.json"}, "RDU8042");
  refused({"dashboard", "--db", "note.txt", "-o", "d.html", "--sweep", "bad.json"}, "RDU8055");
  refused({"dashboard", "--db", "note.txt", "-o", "d.html", "--accuracy", "bad.json"}, "RDU8055");
  CHECK_FALSE(folder.has("h.db"));
  compile(folder, Matmul{}, {"--chips", "1"});
  rdusim_ok({"run", "prog.bin", "--report", "r.json", "--timing-only"}, folder);
  rdusim_ok({"history", "add", "r.json", "--db", "h.db"}, folder);
  refused({"history", "accept", "--db", "h.db", "--reason", " "}, "RDU8040");
  refused({"history", "accept", "--db", "h.db", "--reason", "x", "--program", "y"}, "RDU8039");
  refused({"history", "accept", "--db", "h.db", "--reason", "x", "--metric", "y"}, "RDU8031");
  refused({"history", "blame", "nothing", "--db", "h.db"}, "RDU8031");
  refused({"history", "export", "--db", "h.db", "--format", "tape"}, "RDU6005");
  refused({"compare", "r.json", "r.json", "--fail-on", "cycels>0%"}, "RDU8031");
  refused({"compare", "r.json", "r.json", "--fail-on", "cycles>5KiB"}, "RDU8032");
}

}  // namespace
}  // namespace rdusim::test::compare_and_history_test
