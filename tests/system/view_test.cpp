// The page of a run, as its data stands in it; how it is drawn is tested in a browser (scripts/view-test).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/system/command.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::view_test {
namespace {

Json page_data(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = html.find(open) + open.size();
  return parsed(html.substr(from, html.find("</script>", from) - from));
}

void traced_run(const Folder& folder) {
  compile(folder, matmul(32, 512, 64), {"--chips", "4", "--shard", "row"});
  rdusim_ok({"run", "prog.bin", "--trace", "run.rdulog", "--report", "report.json"}, folder);
}

// The instance of a stage that is at a site, as the report writes one; -1: none.
int instance_at(const Json& time, const Json& stage, const std::string& site) {
  const int group = static_cast<int>(number(stage, "group"));
  const auto places = static_cast<int>(list(time, "sites", group).size());
  for (int i = 0; 1 + 2 * i < places; ++i) {
    if (fmt::format("chip{}.site({},{})", number(time, "sites", group, 0), number(time, "sites", group, 1 + 2 * i),
                    number(time, "sites", group, 2 + 2 * i)) == site)
      return i;
  }
  return -1;
}

TEST_CASE("a page of an event log has every site, and of the slowest ones just what the report says") {
  const Folder folder;
  traced_run(folder);
  rdusim_ok({"view", "run.rdulog", "-o", "run.html"}, folder);
  const Json data = page_data(folder.read("run.html"));
  const Json report = parsed(folder.read("report.json"));
  CHECK(list(data, "notes").empty());
  CHECK(number(data, "cycles") == number(report, "cycles", "simulated"));
  const Json& time = at(data, "time");
  REQUIRE(list(time, "stages").size() == list(report, "stages").size());
  for (int s = 0; s < static_cast<int>(list(time, "stages").size()); ++s) {
    const Json& stage = at(time, "stages", s);
    const Json& row = at(report, "stages", s);
    CAPTURE(text(row, "name"));
    CHECK(text(stage, "name") == text(row, "name"));
    CHECK(static_cast<std::int64_t>(list(stage, "lives").size()) == number(row, "instances"));
    const int slowest = instance_at(time, stage, text(row, "site"));
    REQUIRE(slowest >= 0);
    const int life = static_cast<int>(number(stage, "lives", slowest));
    CHECK(number(time, "lives", life, 1) == number(row, "firings"));
    CHECK(number(time, "lives", life, 2) == number(row, "busy"));
    CHECK(number(time, "lives", life, 3) == number(row, "stall", "input_starvation"));
    CHECK(number(time, "lives", life, 9) == number(row, "stall", "engine"));
  }
  std::map<std::string, std::int64_t> busy;
  for (const Json& link : list(time, "links")) busy[text(link, 2)] = number(link, 4);
  for (const Json& link : list(report, "links")) CHECK(busy.at(text(link, "name")) == number(link, "busy_cycles"));
  CHECK(number(data, "path", "sum") == number(data, "cycles"));
}

TEST_CASE("the same log gives the same page") {
  const Folder folder;
  traced_run(folder);
  for (const char* page : {"a.html", "b.html"}) rdusim_ok({"view", "run.rdulog", "-o", page}, folder);
  CHECK(folder.read("a.html") == folder.read("b.html"));
}

TEST_CASE("a page of a report says what it lacks") {
  const Folder folder;
  traced_run(folder);
  rdusim_ok({"view", "report.json", "-o", "report.html"}, folder);
  const Json data = page_data(folder.read("report.html"));
  CHECK(at(data, "time").is_null());
  CHECK(at(data, "path").is_null());
  CHECK(text(data, "notes", 0).find("Made of a report") == 0);
  CHECK(text(data, "report", "verdict") == "pass");
  CHECK(at(data, "report").find("host") == nullptr);
}

TEST_CASE("a page of a log that was cut or filtered has what is there, and says what is not") {
  const Folder folder;
  traced_run(folder);
  const std::string log = folder.read("run.rdulog");
  folder.write("cut.rdulog", std::string_view(log).substr(0, log.size() * 9 / 10));
  rdusim_ok({"trace", "convert", "run.rdulog", "-o", "part.rdulog", "--filter", "kind=firing"}, folder);
  for (const std::string name : {"cut", "part"}) {
    CAPTURE(name);
    rdusim_ok({"view", name + ".rdulog", "-o", name + ".html"}, folder);
    const Json data = page_data(folder.read(name + ".html"));
    CHECK(at(data, "report").is_null());
    CHECK(list(data, "notes").size() == 2);
    CHECK(at(data, "path").is_null() == (name == "part"));
    CHECK(number(data, "cycles") > 0);
    CHECK_FALSE(list(data, "time", "stages").empty());
  }
}

TEST_CASE("what is neither a report nor a log is refused, and no page is left behind") {
  const Folder folder;
  folder.write("note.txt", "hello");
  folder.write("broken.json", "{\"schema\": \"rdusim.report/1\"}");
  CHECK(errors_of(rdusim({"view", "note.txt", "-o", "x.html"}, folder)) == "RDU8001");
  CHECK(rdusim({"view", "broken.json", "-o", "x.html"}, folder).status == 2);
  CHECK(errors_of(rdusim({"view", "none.rdulog", "-o", "x.html"}, folder)) == "RDU1001");
  CHECK_FALSE(folder.has("x.html"));
}

TEST_CASE("standard input may be a report, and a log, which is read more than once, is refused there") {
  const Folder folder;
  traced_run(folder);
  CHECK(errors_of(shell("cat run.rdulog | $rdusim view - -o x.html", folder)) == "RDU6005");
  CHECK_FALSE(folder.has("x.html"));
  CHECK(shell("cat report.json | $rdusim view - -o x.html", folder).status == 0);
  REQUIRE(rdusim({"view", "report.json", "-o", "y.html"}, folder).status == 0);
  CHECK(folder.read("x.html") == folder.read("y.html"));
}

TEST_CASE("a roofline has no load above its memory and no matmul above its peak") {
  const Folder folder;
  traced_run(folder);
  const Json report = parsed(folder.read("report.json"));
  int seen = 0;
  for (const Json& s : list(report, "stages")) {
    const std::string name = text(s, "name");
    const double cycles = real(s, "cycles"), moved = real(s, "moved_bytes");
    CAPTURE(name);
    CHECK(moved > 0);
    if (name.find("load_") != std::string::npos)
      CHECK(moved / cycles <= real(report, "roofline", "hbm_bytes_per_cycle"));
    if (name.find(".matmul") == std::string::npos) continue;
    ++seen;
    CHECK(number(s, "macs") == 32 * 512 * 64 / 4);
    CHECK(real(s, "macs") / cycles <= real(report, "roofline", "macs_per_cycle"));
  }
  CHECK(seen == 4);
}

}  // namespace
}  // namespace rdusim::test::view_test
