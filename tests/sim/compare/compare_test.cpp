#include "sim/compare/compare.h"

#include <doctest/doctest.h>

#include "tests/sim/compare/reports.h"

namespace rdusim::test::compare_test {
namespace {

Threshold threshold(std::string_view text) {
  auto t = parse_threshold(text);
  INFO(t.diagnostics().to_text());
  REQUIRE(t);
  return *std::move(t);
}

ReportComparison compared(const ReportText& old, const ReportText& now, std::vector<Threshold> thresholds = {}) {
  return compare_reports(old.read(), now.read(), thresholds);
}

SetComparison one(ReportComparison c) {
  SetComparison set;
  set.pairs.push_back(std::move(c));
  return set;
}

TEST_CASE("a report against itself: nothing moved") {
  const auto c = compared({}, {}, {threshold("cycles>0%")});
  CHECK(c.changes.empty());
  CHECK(c.decisions.empty());
  CHECK(c.regressions.empty());
  CHECK(c.same > 20);
  CHECK(comparison_text(one(c), false, false).find("no regression") != std::string::npos);
}

TEST_CASE("a change is named down to the stage and its cause, with the decision behind it") {
  ReportText now;
  now.cycles = "1300", now.link = "600", now.stage = "1200", now.stall = "500", now.algorithm = "direct";
  const auto c = compared({}, now, {threshold("cycles>0%")});
  CHECK(c.regressions.size() == 1);
  CHECK(c.regressions[0].metric == "cycles.simulated");
  REQUIRE(c.decisions.size() == 1);
  CHECK(c.decisions[0].name == "collectives.reduce.algorithm");
  CHECK(c.decisions[0].old == "ring");
  CHECK(c.decisions[0].now == "direct");
  const std::string text = comparison_text(one(c), false, false);
  INFO(text);
  CHECK(text.find("collectives.reduce.algorithm: ring -> direct") != std::string::npos);
  CHECK(text.find("fold_c1.cycles") != std::string::npos);
  CHECK(text.find("1 of 2 moved; link +300") != std::string::npos);
  CHECK(text.find("+30.0 %") != std::string::npos);
  CHECK(text.find("1 regression\n") != std::string::npos);
}

TEST_CASE("an option that was given otherwise is named, and no other") {
  auto old = ReportText{}.read();
  auto now = old;
  old.options = R"({"check":"exact","target":null,"gone":1})";
  now.options = R"({"check":"exact","target":"slow.toml","new":[2]})";
  const std::string text = comparison_text(one(compare_reports(old, now, {})), false, false);
  INFO(text);
  CHECK(text.find("option target null -> \"slow.toml\"") != std::string::npos);
  CHECK(text.find("option gone 1 -> -") != std::string::npos);
  CHECK(text.find("option new - -> [2]") != std::string::npos);
  CHECK(text.find("option check") == std::string::npos);
}

TEST_CASE("a verdict that was pass and is no more is a regression whatever the thresholds") {
  ReportText now;
  now.verdict = "starvation";
  CHECK(compared({}, now).regressions.size() == 1);
  CHECK(compared(now, now).regressions.empty());
  CHECK(compared(now, {}).regressions.empty());
}

TEST_CASE("a metric that a threshold holds and that is gone is a regression") {
  auto now = ReportText{}.read();
  std::erase_if(now.metrics, [](const Metric& m) { return m.name.starts_with("links.link0"); });
  const auto c = compare_reports(ReportText{}.read(), std::move(now), {threshold("links.*.bytes>5%")});
  REQUIRE(c.regressions.size() == 1);
  CHECK(c.regressions[0].text.find("is gone") != std::string::npos);
}

TEST_CASE("a threshold holds at its edge and not beyond") {
  const auto regressed = [](const char* limit, const char* cycles) {
    ReportText now;
    now.cycles = cycles;
    return !compared({}, now, {threshold(limit)}).regressions.empty();
  };
  CHECK_FALSE(regressed("cycles>0%", "1000"));
  CHECK(regressed("cycles>0%", "1001"));
  CHECK_FALSE(regressed("cycles>0%", "999"));
  CHECK_FALSE(regressed("cycles>10%", "1100"));
  CHECK(regressed("cycles>10%", "1101"));
  CHECK_FALSE(regressed("cycles > 5 cycles", "1005"));
  CHECK(regressed("cycles > 5 cycles", "1006"));
  CHECK_FALSE(regressed("cycles<1%", "990"));
  CHECK(regressed("cycles<1%", "989"));
  // Two neighbours that a double cannot tell apart.
  CHECK(exceeds(threshold("cycles>0%"), Quantity{std::int64_t{9007199254740992}},
                Quantity{std::int64_t{9007199254740993}}));
  // From zero any rise is more than any percentage.
  CHECK(exceeds(threshold("macs.padding>50%"), Quantity{std::int64_t{0}}, Quantity{std::int64_t{1}}));
}

TEST_CASE("a threshold may name one chip's metric, the folded one, or a pattern") {
  ReportText now;
  now.link_bytes = "8192";
  CHECK(compared({}, now, {threshold("links.link0 chip0->chip1.bytes>0%")}).regressions.size() == 1);
  CHECK(compared({}, now, {threshold("links.link1 chip1->chip0.bytes>0%")}).regressions.empty());
  CHECK(compared({}, now, {threshold("links.bytes>4KiB")}).regressions.empty());
  CHECK(compared({}, now, {threshold("links.bytes>4KB")}).regressions.size() == 1);
  CHECK(compared({}, now, {threshold("links.link0*bytes>4095 bytes")}).regressions.size() == 1);
}

TEST_CASE("thresholds that say nothing are refused, with the code of what is wrong") {
  for (const char* text : {"", "cycles", ">5%", "cycles>", "cycles>x", "cycles>5 parsecs", "cycles>-5%", "cycles>5%%",
                           "cycles>nan", "cycles>1e999%"}) {
    CAPTURE(text);
    const auto t = parse_threshold(text);
    REQUIRE_FALSE(t);
    CHECK(t.diagnostics().contains(Code::RDU8030));
    CHECK(t.diagnostics().error_count() == 1);
  }
  const ReportFile file = ReportText{}.read();
  std::vector<const Metric*> metrics;
  for (const Metric& m : file.metrics) metrics.push_back(&m);
  CHECK(check_threshold(threshold("cycle.simulated>0%"), metrics).contains(Code::RDU8031));
  CHECK(check_threshold(threshold("cycle.simulated>0%"), metrics).to_text().find("cycles.simulated") !=
        std::string::npos);
  CHECK(check_threshold(threshold("cycles>5KiB"), metrics).contains(Code::RDU8032));
  CHECK(check_threshold(threshold("links.bytes>5cycles"), metrics).contains(Code::RDU8032));
  CHECK_FALSE(check_threshold(threshold("links.bytes>5"), metrics).has_errors());
  CHECK_FALSE(check_threshold(threshold("stages.*.cycles>5%"), metrics).has_errors());
}

TEST_CASE("Markdown holds nothing that a name could turn into a link or a tag") {
  ReportText old, now;
  old.program = now.program = "<img src=x>|[a](b)";
  now.cycles = "2000";
  const std::string text = comparison_markdown(one(compared(old, now, {threshold("cycles>0%")})));
  INFO(text);
  CHECK(text.find("<img") == std::string::npos);
  CHECK(text.find("[a]") == std::string::npos);
  CHECK(text.find("\\|\\[a\\]") != std::string::npos);
  CHECK(text.find("| 1,000 | 2,000 | +1,000 (+100.0 %) | **regression** |") != std::string::npos);
}

TEST_CASE("JSON says what moved, exactly") {
  ReportText now;
  now.cycles = "9007199254740993";
  const Json j = comparison_json(one(compared({}, now, {threshold("cycles>0%")})));
  CHECK(*j.find("regressed")->as_bool());
  const Json& pair = j.find("pairs")->as_array()->at(0);
  const Json& metric = pair.find("metrics")->as_array()->at(0);
  CHECK(*metric.find("name")->as_string() == "cycles.simulated");
  CHECK(metric.find("new")->as_int64() == 9007199254740993);
  CHECK(pair.find("regressions")->as_array()->size() == 1);
}

}  // namespace
}  // namespace rdusim::test::compare_test
