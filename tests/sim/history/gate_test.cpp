#include "sim/history/gate.h"

#include <sqlite3.h>

#include "tests/sim/history/fixture.h"

namespace rdusim::test::gate_test {
namespace {

GateResult judged(History& h, const std::string& commit = "") {
  auto r = judge(h, commit);
  INFO(r.diagnostics().to_text());
  REQUIRE(r);
  REQUIRE(h.mark(marks_of(*r)));
  return *std::move(r);
}

std::vector<std::string> kinds(const GateResult& r) {
  std::vector<std::string> all;
  for (const GateRow& row : r.rows) {
    for (const GateFinding& f : row.findings) all.push_back(std::string(name_of(f.kind)) + " " + f.metric);
  }
  return all;
}

using Kinds = std::vector<std::string>;

TEST_CASE("what was accepted passes, again and again") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  accept(h, add(h, {}, commit(0)));
  CHECK(judged(h).passed());
  add(h, {}, commit(1));
  CHECK(judged(h).passed());
  CHECK(h.runs().value()[1].gate == GateMark::passed);
}

TEST_CASE("an exact metric that moved fails until it is accepted, whether worse or better") {
  for (const char* cycles : {"1001", "999"}) {
    const TemporaryFolder folder;
    History h = opened(folder.file("h.db"));
    accept(h, add(h, {}, commit(0)));
    ReportText r;
    r.cycles = cycles;
    const auto run = add(h, r, commit(1));
    CHECK(kinds(judged(h)) == Kinds{"changed cycles.simulated"});
    CHECK(h.runs().value()[1].gate == GateMark::failed);
    accept(h, run, "cycles.simulated");
    CHECK(judged(h).passed());
    add(h, {}, commit(2));  // back to the old value: a change like any other
    CHECK(kinds(judged(h)) == Kinds{"changed cycles.simulated"});
  }
}

TEST_CASE("a metric accepted alone leaves the others as they were accepted") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  accept(h, add(h, {}, commit(0)));
  ReportText r;
  r.cycles = "1001", r.link_bytes = "5000";
  const auto run = add(h, r, commit(1));
  accept(h, run, "cycles.simulated");
  CHECK(kinds(judged(h)) == Kinds{"changed links.bytes"});
  accept(h, run);
  CHECK(judged(h).passed());
}

TEST_CASE("a series of which nothing was accepted does not pass") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  add(h, {}, commit(0));
  CHECK(kinds(judged(h)) == Kinds{"never-accepted "});
}

TEST_CASE("a metric that vanished fails, until the whole run is accepted") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  accept(h, add(h, {}, commit(0)));
  ReportText r;
  r.wall = "null";  // what a NaN is written as
  const auto run = add(h, r, commit(1));
  CHECK(kinds(judged(h)) == Kinds{"vanished host.wall_s"});
  accept(h, run);
  CHECK(judged(h).passed());
}

TEST_CASE("a NaN, an empty run and a verdict that is not pass fail") {
  const TemporaryFolder folder;
  const std::string path = folder.file("h.db");
  const auto execute = [&](const char* sql) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
  };
  History h = opened(path);
  accept(h, add(h, {}, commit(0)));
  add(h, {}, commit(1));
  execute(
      "UPDATE samples SET value = NULL WHERE run = 2 AND metric = "
      "(SELECT id FROM metrics WHERE name = 'cycles.simulated')");
  CHECK(kinds(judged(h)) == Kinds{"not-a-number cycles.simulated"});
  execute("DELETE FROM samples WHERE run = 2");
  CHECK(kinds(judged(h)) == Kinds{"empty "});
  ReportText r;
  r.verdict = "starvation";
  add(h, r, commit(2));
  CHECK(kinds(judged(h)) == Kinds{"verdict "});
}

TEST_CASE("a series that was accepted and is not run any more fails, until it is retired") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  const auto old = add(h, {}, commit(0), "old");
  accept(h, old);
  accept(h, add(h, {}, commit(0), "new"));
  add(h, {}, commit(1), "new");
  CHECK(kinds(judged(h)) == Kinds{"missing "});
  accept(h, old, retired);
  CHECK(judged(h).passed());
}

TEST_CASE("two runs of one commit that disagree on an exact metric fail") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  accept(h, add(h, {}, commit(0)));
  ReportText r;
  r.link_bytes = "1";
  add(h, r, commit(1));
  add(h, {}, commit(1));
  CHECK(kinds(judged(h)) == Kinds{"unstable links.bytes"});
}

TEST_CASE("a timed metric is held against runs of its own host") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  ReportText slow;
  slow.wall = "5.0";
  for (int n = 0; n < 6; ++n) {
    const auto run = add(h, slow, commit(n, "slow host"));
    if (n == 0) accept(h, run);
    CHECK(judged(h).passed());
  }
  for (int n = 6; n < 12; ++n) {
    add(h, {}, commit(n, "fast host"));
    CHECK(judged(h).passed());
  }
  ReportText now;
  now.wall = "0.6";
  add(h, now, commit(12, "fast host"));
  CHECK(kinds(judged(h)) == Kinds{"slower host.wall_s"});
  now.wall = "0.54";
  add(h, now, commit(13, "fast host"));
  CHECK(judged(h).passed());
}

TEST_CASE("a drift too slow for any one run to show is caught") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  double wall = 0.5;
  std::vector<std::string> found;
  for (int n = 0; n < 40 && found.empty(); ++n) {
    ReportText r;
    if (n >= 12) wall *= 1.01;
    r.wall = std::to_string(wall);
    const auto run = add(h, r, commit(n));
    if (n == 0) accept(h, run);
    found = kinds(judged(h));
  }
  CHECK(found == Kinds{"drifted host.wall_s"});
}

TEST_CASE("an empty history and a commit without runs are refused") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  CHECK(judge(h, "").diagnostics().contains(Code::RDU8041));
  add(h, {}, commit(0));
  CHECK(judge(h, "c9").diagnostics().contains(Code::RDU8039));
}

TEST_CASE("JUnit has a case for every metric that was judged, and escapes what it says") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  ReportText r;
  r.program = "a<b&c";
  accept(h, add(h, r, commit(0)));
  r.cycles = "1001";
  add(h, r, commit(1));
  const std::string xml = gate_junit(judged(h));
  INFO(xml);
  CHECK(xml.find("a&lt;b&amp;c on two, 2 chips") != std::string::npos);
  CHECK(xml.find("failures=\"1\"") != std::string::npos);
  CHECK(xml.find("<failure message=\"changed: 1000 -&gt; 1001 (+0.10 %)\"/>") != std::string::npos);
  CHECK(xml.find("name=\"links.bytes\"/>") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::gate_test
