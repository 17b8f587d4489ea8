#include "sim/history/store.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "compiler/support/file.h"
#include "tests/sim/history/fixture.h"

namespace rdusim::test::store_test {
namespace {

void execute(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  char* message = nullptr;
  const int code = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message);
  INFO(std::string(message == nullptr ? "" : message));
  CHECK(code == SQLITE_OK);
  sqlite3_free(message);
  sqlite3_close(db);
}

// What version 1 of the file looked like; it lacks decisions and the gate's marks.
const char* const version_1 = R"(
PRAGMA application_id = 1919186291; PRAGMA user_version = 1;
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, chips INTEGER NOT NULL,
  UNIQUE(name, target, chips));
CREATE TABLE metrics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, timed INTEGER NOT NULL,
  better INTEGER NOT NULL);
CREATE TABLE runs(id INTEGER PRIMARY KEY, series INTEGER NOT NULL REFERENCES series(id), time INTEGER NOT NULL,
  commit_id TEXT NOT NULL, parent TEXT NOT NULL, branch TEXT NOT NULL, host TEXT NOT NULL, version TEXT NOT NULL,
  program TEXT NOT NULL, program_sha256 TEXT NOT NULL, target_sha256 TEXT NOT NULL, options TEXT NOT NULL,
  verdict TEXT NOT NULL, report_sha256 TEXT NOT NULL, UNIQUE(series, commit_id, report_sha256));
CREATE TABLE samples(run INTEGER NOT NULL REFERENCES runs(id), metric INTEGER NOT NULL REFERENCES metrics(id), value,
  PRIMARY KEY(run, metric)) WITHOUT ROWID;
CREATE TABLE acceptances(id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), metric TEXT NOT NULL,
  reason TEXT NOT NULL, author TEXT NOT NULL, time INTEGER NOT NULL);
INSERT INTO series VALUES(1, 'down', 'sn40l', 16);
INSERT INTO metrics VALUES(1, 'cycles.simulated', 'cycles', 0, 0);
INSERT INTO runs VALUES(1, 1, 1700000000, 'c0', '', 'main', 'host1', '0.1.0', 'down_tp16', '01', '02', '{}', 'pass', '03');
INSERT INTO samples VALUES(1, 1, 32171);
INSERT INTO acceptances VALUES(1, 1, '', 'first', 'someone', 1700000000);
)";

TEST_CASE("a run comes back as it was added") {
  const TemporaryFolder folder;
  {
    History h = opened(folder.file("h.db"));
    CHECK(add(h, {}, commit(0)) == 1);
  }
  History h = opened(folder.file("h.db"), History::Open::read);
  const auto series = h.series().value();
  REQUIRE(series.size() == 1);
  CHECK(to_string(series[0]) == "small_tp2 on two, 2 chips");
  const auto runs = h.runs().value();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].origin.commit == "c0");
  CHECK(runs[0].origin.time == 1'700'000'000);
  CHECK(runs[0].verdict == "pass");
  CHECK(runs[0].target_sha256 == "aa");
  CHECK(h.metrics(1).value() == fold_chips(ReportText{}.read().metrics));
  CHECK(h.decisions(1).value() == ReportText{}.read().decisions);
}

TEST_CASE("the same report of the same commit is added once, of another commit again") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  CHECK(add(h, {}, commit(0)) == 1);
  auto again = h.add({{"", ReportText{}.read(), commit(0)}});
  REQUIRE(again);
  CHECK(again->at(0).run == 1);
  CHECK_FALSE(again->at(0).fresh);
  CHECK(add(h, {}, commit(1)) == 2);
}

TEST_CASE("a file of version 1 is brought to this version and keeps what it held") {
  for (const auto how : {History::Open::create, History::Open::write, History::Open::read}) {
    const TemporaryFolder folder;
    execute(folder.file("h.db"), version_1);
    History h = opened(folder.file("h.db"), how);
    REQUIRE(h.runs().value().size() == 1);
    CHECK(h.runs().value()[0].gate == GateMark::none);
    CHECK(h.metrics(1).value()[0].value == Quantity{std::int64_t{32171}});
    CHECK(h.acceptances().value()[0].reason == "first");
    CHECK(h.decisions(1).value().empty());
    if (how == History::Open::read) continue;
    add(h, {}, commit(1));
    CHECK(h.runs().value().size() == 2);
  }
}

TEST_CASE("what is no history is refused with one line, and left as it is") {
  const TemporaryFolder folder;
  const std::string path = folder.file("h.db");
  const auto refused = [&](Code code) {
    const std::string before = read_file(path, 1 << 24).value();
    for (const auto how : {History::Open::create, History::Open::write, History::Open::read}) {
      if (before.empty() && how == History::Open::create) continue;
      const auto h = History::open(path, how);
      REQUIRE_FALSE(h);
      CHECK(h.diagnostics().error_count() == 1);
      CHECK(h.diagnostics().contains(code));
    }
    CHECK(read_file(path, 1 << 24).value() == before);
  };
  std::ofstream(path) << "a text of some length that is no database at all, whatever its name may say\n";
  refused(Code::RDU8035);
  std::ofstream(path, std::ios::trunc) << "";
  refused(Code::RDU8035);
  std::filesystem::remove(path);
  execute(path, "CREATE TABLE accounts(id INTEGER); PRAGMA user_version = 2;");
  refused(Code::RDU8035);
  std::filesystem::remove(path);
  execute(path, std::string(version_1) + "PRAGMA user_version = 99;");
  refused(Code::RDU8036);
  CHECK(History::open(folder.file("none.db"), History::Open::read).diagnostics().contains(Code::RDU1001));
  CHECK(History::open(folder.file(""), History::Open::create).diagnostics().contains(Code::RDU1001));
}

TEST_CASE("a damaged file is refused, wherever the damage is") {
  const TemporaryFolder folder;
  const std::string path = folder.file("h.db");
  {
    History h = opened(path);
    for (int n = 0; n < 30; ++n) {
      ReportText r;
      r.cycles = std::to_string(1000 + n);
      add(h, r, commit(n));
    }
  }
  const std::string sound = read_file(path, 1 << 24).value();
  REQUIRE(sound.size() > 16384);
  std::size_t refusals = 0;
  for (std::size_t at = 0; at + 512 < sound.size(); at += 1024) {
    CAPTURE(at);
    std::string damaged = sound;
    for (std::size_t i = at; i < at + 512; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    auto h = History::open(path, History::Open::read);
    if (!h) {
      CHECK(h.diagnostics().contains(Code::RDU8035));
      ++refusals;
      continue;
    }
    // What was damaged may be free space or a value: then it reads, or the query says so.
    for (const Diagnostics& d : {h->runs().diagnostics(), h->metrics(7).diagnostics(), h->decisions(7).diagnostics()}) {
      for (const Diagnostic& p : d.list()) CHECK(p.code == Code::RDU8035);
    }
  }
  CHECK(refusals > 5);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << sound.substr(0, sound.size() / 2);
  CHECK(History::open(path, History::Open::read).diagnostics().contains(Code::RDU8035));
}

TEST_CASE("a sample that is no number reads as NaN, and a text with an escape is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.file("h.db");
  {
    History h = opened(path);
    add(h, {}, commit(0));
  }
  execute(path, "UPDATE samples SET value = NULL WHERE metric = (SELECT id FROM metrics WHERE name = 'host.wall_s')");
  {
    History h = opened(path);
    const auto metrics = h.metrics(1).value();
    CHECK(std::isnan(to_double(metric(metrics, "host.wall_s")->value)));
  }
  execute(path, "UPDATE runs SET branch = 'a' || char(27) || '[31m'");
  CHECK(opened(path).runs().diagnostics().contains(Code::RDU8035));
}

TEST_CASE("two writers at once leave all their runs") {
  const TemporaryFolder folder;
  const std::string path = folder.file("h.db");
  constexpr int runs = 20;
  std::vector<pid_t> children;
  for (int writer = 0; writer < 2; ++writer) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int failures = 0;
      for (int n = 0; n < runs; ++n) {
        // Opened anew each time: both also race to create the file.
        auto h = History::open(path, History::Open::create);
        ReportText r;
        auto report = parse_report(r.text(), "r");
        if (!h || !h->add({{"writer" + std::to_string(writer), *report, commit(n)}})) ++failures;
      }
      _exit(failures);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    REQUIRE(waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state));
    CHECK(WEXITSTATUS(state) == 0);
  }
  History h = opened(path, History::Open::read);
  CHECK(h.series().value().size() == 2);
  CHECK(h.runs().value().size() == 2 * runs);
}

TEST_CASE("a history that another writer holds for too long is left alone") {
  const TemporaryFolder folder;
  const std::string path = folder.file("h.db");
  {
    History h = opened(path);
    add(h, {}, commit(0));
  }
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  {
    auto h = History::open(path, History::Open::write, 20);
    REQUIRE(h);
    CHECK(h->add({{"", ReportText{}.read(), commit(1)}}).diagnostics().contains(Code::RDU8037));
    CHECK(h->runs().value().size() == 1);  // who only reads is not held up
  }
  REQUIRE(sqlite3_exec(other, "COMMIT; BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(History::open(path, History::Open::read, 20).diagnostics().contains(Code::RDU8037));
  sqlite3_close(other);
  History h = opened(path);
  CHECK(add(h, {}, commit(1)) == 2);
}

TEST_CASE("who may only read writes nothing") {
  const TemporaryFolder folder;
  {
    History h = opened(folder.file("h.db"));
    add(h, {}, commit(0));
  }
  History h = opened(folder.file("h.db"), History::Open::read);
  CHECK(h.accept({1}, "", "because", "someone", 0).diagnostics().contains(Code::RDU8038));
  CHECK(h.acceptances().value().empty());
}

}  // namespace
}  // namespace rdusim::test::store_test
