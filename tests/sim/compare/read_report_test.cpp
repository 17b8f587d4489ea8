#include "sim/compare/read_report.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/sim/compare/reports.h"

namespace rdusim::test::read_report_test {
namespace {

TEST_CASE("a report reads back as who ran what, its figures and its decisions") {
  const ReportFile f = ReportText{}.read();
  CHECK(f.program == "small_tp2");
  CHECK(f.target == "two");
  CHECK(f.target_sha256 == "aa");
  CHECK(f.chips == 2);
  CHECK(f.verdict == "pass");
  CHECK(f.options == R"({"check":"exact"})");
  const Metric* cycles = metric(f.metrics, "cycles.simulated");
  REQUIRE(cycles != nullptr);
  CHECK(cycles->value == Quantity{std::int64_t{1000}});
  CHECK(cycles->unit == "cycles");
  CHECK(cycles->exactness == Exactness::exact);
  REQUIRE(metric(f.metrics, "stages.fold_c1.stall.link") != nullptr);
  CHECK(metric(f.metrics, "stages.fold_c1.stall.link")->value == Quantity{std::int64_t{200}});
  REQUIRE(metric(f.metrics, "host.wall_s") != nullptr);
  CHECK(metric(f.metrics, "host.wall_s")->exactness == Exactness::timed);
  CHECK(metric(f.metrics, "host.events_per_s")->better == Better::higher);
  CHECK(metric(f.metrics, "tokens_per_s") == nullptr);  // null: it does not apply
  REQUIRE(f.decisions.size() == 2);
  CHECK(f.decisions[0] == std::pair<std::string, std::string>{"tile", "32"});
  CHECK(f.decisions[1] == std::pair<std::string, std::string>{"collectives.reduce.algorithm", "ring"});
}

TEST_CASE("pages handed on a second are worked out of buffers and the machine's time") {
  ReportText r;
  CHECK(metric(r.read().metrics, "host.page_handoffs_per_s") == nullptr);  // no machine_s
  r.peak = "2, \"pushed\": 300";
  r.wall = "0.5, \"machine_s\": 0.25";
  const auto metrics = r.read().metrics;
  const Metric* rate = metric(metrics, "host.page_handoffs_per_s");
  REQUIRE(rate != nullptr);
  CHECK(to_double(rate->value) == 1200);
  CHECK(rate->better == Better::higher);
  CHECK(rate->exactness == Exactness::timed);
}

TEST_CASE("a whole number beyond what a double holds stays exact") {
  ReportText r;
  r.cycles = "9007199254740993";
  CHECK(to_string(metric(r.read().metrics, "cycles.simulated")->value) == "9007199254740993");
}

TEST_CASE("folding chips keeps the longest time and the fullest buffer, and adds up the rest") {
  const auto folded = fold_chips(ReportText{}.read().metrics);
  const auto value = [&](std::string_view name) {
    CAPTURE(std::string(name));
    const Metric* m = metric(folded, name);
    REQUIRE(m != nullptr);
    return to_double(m->value);
  };
  CHECK(value("stages.fold.cycles") == 900);
  CHECK(value("stages.fold.stall.link") == 300);
  CHECK(value("buffers.a.peak_pages") == 2);
  CHECK(value("links.bytes") == 8192);
  CHECK(value("links.busy_cycles") == 64);
  CHECK(value("links.retries") == 5);
  CHECK(value("memories.hbm.read_bytes") == 21);
  CHECK(value("memories.hbm.peak_bytes") == 31);
  CHECK(value("cycles.simulated") == 1000);
  CHECK(value("collectives.reduce.cycles") == 640);
  CHECK(metric(folded, "stages.fold_c1.cycles") == nullptr);
}

TEST_CASE("a name that carries two chips folds over both") {
  CHECK(folded_name("stages.reduce.recv_c7_c3.cycles") == "stages.reduce.recv.cycles");
  CHECK(folded_name("stages.reduce.recv_c7_c3.stall.link") == "stages.reduce.recv.stall.link");
  CHECK(folded_name("stages.a_cx.cycles") == "stages.a_cx.cycles");
  CHECK(folded_name("memories.chip3.hbm.read_bytes") == "memories.hbm.read_bytes");
  CHECK(folded_name("links.link0 chip0->chip1.bytes") == "links.bytes");
  CHECK(folded_name("collectives.a_c1.cycles") == "collectives.a_c1.cycles");
}

TEST_CASE("what is no report is refused, one code, each file its own fault") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/reports")) {
    CAPTURE(entry.path().filename().string());
    const auto read = read_report(entry.path().string());
    REQUIRE_FALSE(read);
    CHECK(read.diagnostics().error_count() == 1);
    for (const Diagnostic& d : read.diagnostics().list()) CHECK(d.code == Code::RDU8001);
    ++files;
  }
  CHECK(files >= 12);
}

TEST_CASE("a report cut off anywhere is refused and nothing else happens") {
  const std::string whole = ReportText{}.text();
  for (std::size_t size = 0; size + 2 < whole.size(); size += 7) {
    CAPTURE(size);
    CHECK_FALSE(parse_report(std::string_view(whole).substr(0, size), "cut.json"));
  }
}

}  // namespace
}  // namespace rdusim::test::read_report_test
