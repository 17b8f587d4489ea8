#include "sim/history/blame.h"

#include <algorithm>

#include "sim/history/export.h"
#include "tests/sim/history/fixture.h"

namespace rdusim::test::blame_test {
namespace {

TEST_CASE("the commit at which an exact metric moved is named") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  ReportText r;
  for (int n = 0; n < 6; ++n) {
    if (n == 3) r.cycles = "1100";
    add(h, r, commit(n));
  }
  const auto list = blame(h, "cycles", "").value();
  REQUIRE(list.size() == 1);
  REQUIRE(list[0].moves.size() == 1);
  CHECK(list[0].moves[0].culprit == "c3");
  CHECK(list[0].moves[0].old == Quantity{std::int64_t{1000}});
  CHECK(blame_text(list).find("c3  1000 -> 1100 (+10.00 %)  run 4") != std::string::npos);
  CHECK(blame(h, "links.bytes", "").value()[0].moves.empty());
}

TEST_CASE("where commits between were not run, both ends are named") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  ReportText r;
  add(h, r, commit(0));
  r.cycles = "1100";
  add(h, r, commit(5));
  const auto list = blame(h, "cycles.simulated", "small_tp2").value();
  CHECK_FALSE(list[0].moves[0].culprit);
  CHECK(blame_text(list).find("between c0 and c5") != std::string::npos);
}

TEST_CASE("a step of a noisy metric is found at its commit, and noise alone is none") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  const double noise[] = {0.00, 0.02, -0.01, 0.015, -0.02, 0.01, -0.015, 0.005, 0.0, 0.012};
  for (int n = 0; n < 10; ++n) {
    ReportText r;
    r.wall = std::to_string((n < 6 ? 0.5 : 0.7) + noise[n]);
    add(h, r, commit(n));
    r.wall = std::to_string(0.5 + noise[n]);
    add(h, r, commit(n), "steady");
  }
  const auto list = blame(h, "host.wall_s", "").value();
  REQUIRE(list.size() == 2);
  REQUIRE(list[0].moves.size() == 1);
  CHECK(list[0].moves[0].culprit == "c6");
  CHECK(list[1].series.name == "steady");
  CHECK(list[1].moves.empty());
}

TEST_CASE("a metric or a program that is not there is refused, the nearest named") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  add(h, {}, commit(0));
  const auto d = blame(h, "cycles.simulatd", "").diagnostics();
  CHECK(d.contains(Code::RDU8031));
  CHECK(d.to_text().find("'cycles.simulated'") != std::string::npos);
  CHECK(blame(h, "cycles", "nobody").diagnostics().contains(Code::RDU8039));
}

TEST_CASE("times are read and written as UTC") {
  CHECK(utc_text(0) == "1970-01-01T00:00:00Z");
  CHECK(utc_text(1'700'000'000) == "2023-11-14T22:13:20Z");
  CHECK(utc_seconds("2023-11-14T22:13:20Z") == 1'700'000'000);
  CHECK(utc_seconds("1700000000") == 1'700'000'000);
  for (const char* text : {"", "x", "-1", "2023-13-01T00:00:00Z", "2023-02-29T00:00:00Z", "2023-11-14T24:00:00Z",
                           "2023-11-14 22:13:20Z", "999999999999999", "2023-1-14T22:13:200Z"}) {
    CAPTURE(text);
    CHECK_FALSE(utc_seconds(text));
  }
}

TEST_CASE(
    "a history is exported whole as JSON lines, and its newest runs as OpenMetrics and for the benchmark action") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  CHECK(export_history(h, ExportForm::json_lines, "*").diagnostics().contains(Code::RDU8041));
  ReportText r;
  r.program = "a\"b";
  r.program = "small";
  add(h, r, commit(0));
  r.cycles = "1100";
  add(h, r, commit(1));
  const std::string lines = export_history(h, ExportForm::json_lines, "*").value();
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  const auto first = parse_json(lines.substr(0, lines.find('\n')), "line", Code::RDU8001).value();
  CHECK(first.find("metrics")->find("cycles.simulated")->as_int64() == 1000);
  CHECK(*first.find("time")->as_string() == "2023-11-14T22:13:20Z");

  const std::string metrics = export_history(h, ExportForm::openmetrics, "*").value();
  INFO(metrics);
  CHECK(metrics.ends_with("# EOF\n"));
  CHECK(metrics.find("# TYPE rdusim_cycles_simulated gauge\n"
                     "rdusim_cycles_simulated{program=\"small\",target=\"two\",chips=\"2\"} 1100\n") !=
        std::string::npos);
  CHECK(metrics.find("rdusim_stages_stall_link{program=\"small\",target=\"two\",chips=\"2\",part=\"fold\"} 300\n") !=
        std::string::npos);

  const auto bench =
      parse_json(export_history(h, ExportForm::benchmark, "cycles.*").value(), "b", Code::RDU8001).value();
  REQUIRE(bench.as_array()->size() == 1);
  CHECK(*bench.as_array()->at(0).find("name")->as_string() == "small on two, 2 chips: cycles.simulated");
  CHECK(bench.as_array()->at(0).find("value")->as_int64() == 1100);
  CHECK(export_history(h, ExportForm::benchmark, "nothing.*").diagnostics().contains(Code::RDU8031));
}

}  // namespace
}  // namespace rdusim::test::blame_test
