#include "sim/sweep/sensitivity.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/target/target.h"
#include "sim/sweep/run_sweep.h"

namespace rdusim::sensitivity_test {
namespace {

SweepPlan one_point() {
  SweepPlan plan;
  plan.name = "plan";
  plan.target = "sn40l";
  plan.metrics = {"cycles.simulated"};
  plan.points.emplace_back();
  return plan;
}

const MovedNumber* find(const SensitivityBase& base, std::string_view key) {
  const auto at = std::find_if(base.numbers.begin(), base.numbers.end(), [&](const auto& n) { return n.key == key; });
  return at == base.numbers.end() ? nullptr : &*at;
}

TEST_CASE("every assumed number is moved to both ends of its range, one at a time, and no published one") {
  const SensitivityPlan s = sensitivity_plan(one_point(), "cycles.simulated").value();
  const Target target = find_target("sn40l").value();
  REQUIRE(s.bases.size() == 1);
  std::size_t assumed = 0, machines = 0;
  for (const Provenance& n : target.numbers) {
    CAPTURE(n.key);
    CHECK((find(s.bases[0], n.key) != nullptr) == n.range.has_value());
    assumed += n.range ? 1 : 0;
  }
  CHECK(s.bases[0].numbers.size() == assumed);
  CHECK(assumed > 50);
  for (std::size_t p = 1; p < s.plan.points.size(); ++p) {
    const auto& values = s.plan.points[p].values;
    CHECK(std::count_if(values.begin(), values.end(), [](const Cell& c) { return c.index() != 0; }) == 1);
    // The machine that the point runs on says so itself, where there can be such a machine.
    const auto moved = read_target(target_of(s.plan, p).value().text, "moved");
    if (!moved) continue;
    ++machines;
    std::size_t differ = 0;
    for (std::size_t n = 0; n < target.numbers.size(); ++n)
      differ += moved->numbers[n].value != target.numbers[n].value;
    CHECK(differ == 1);
  }
  CHECK(machines > assumed);
}

TEST_CASE("time is cycles over the clock, also where the clock is what is moved") {
  SensitivityPlan s = sensitivity_plan(one_point(), simulated_time).value();
  CHECK(s.plan.metrics == std::vector<std::string>{"cycles.simulated"});
  std::vector<PointOutcome> outcomes;
  for (std::size_t p = 0; p < s.plan.points.size(); ++p)
    outcomes.push_back({p, "pass", "", {Cell(std::int64_t{3600})}});
  const auto tables = sensitivities(s, outcomes, simulated_time).value();
  CHECK(tables[0].base.metric == doctest::Approx(3.0));
  const SensitivityRow& clock = tables[0].rows[0];
  CHECK(clock.key == "machine.clock_ghz");
  CHECK(clock.least.metric == doctest::Approx(3.6));
  CHECK(clock.most.metric == doctest::Approx(2.0));
  CHECK(tables[0].rows[1].effect == 0.0);
}

TEST_CASE("an end at which a number stands already is the base's own point") {
  const SensitivityPlan s = sensitivity_plan(one_point(), "cycles.simulated").value();
  const MovedNumber* capacity = find(s.bases[0], "hbm.capacity_bytes");
  REQUIRE(capacity != nullptr);
  CHECK(capacity->most.point == s.bases[0].point);
  CHECK(capacity->least.point != s.bases[0].point);
}

TEST_CASE("only the numbers that are asked for are moved, and a name that begins none is refused") {
  const SensitivityPlan s = sensitivity_plan(one_point(), "cycles.simulated", {"hbm.", "links[1].gb"}).value();
  for (const MovedNumber& n : s.bases[0].numbers) CHECK((n.key.starts_with("hbm.") || n.key == "links[1].gb_per_s"));
  CHECK(find(s.bases[0], "hbm.latency_ns") != nullptr);
  CHECK(find(s.bases[0], "links[1].gb_per_s") != nullptr);
  CHECK(sensitivity_plan(one_point(), "cycles.simulated", {"hbm.", "dbm."}).diagnostics().contains(Code::RDU8063));
}

TEST_CASE("what a point sets itself is not moved, and each point has its own moves") {
  SweepPlan plan = one_point();
  plan.axes = {"chips", "target.hbm.latency_ns"};
  plan.points = {{{Cell(std::int64_t{2}), Cell()}}, {{Cell(std::int64_t{4}), Cell(std::int64_t{200})}}};
  const SensitivityPlan s = sensitivity_plan(plan, "tokens_per_s").value();
  CHECK(s.plan.metrics == std::vector<std::string>{"cycles.simulated", "tokens_per_s"});
  REQUIRE(s.bases.size() == 2);
  const MovedNumber* moved = find(s.bases[0], "hbm.latency_ns");
  REQUIRE(moved != nullptr);
  CHECK(s.plan.points[moved->least.point].values[0] == Cell(std::int64_t{2}));
  CHECK(s.plan.points[moved->least.point].values[1] == Cell(std::int64_t{100}));
  CHECK(find(s.bases[1], "hbm.latency_ns") == nullptr);
  CHECK(s.bases[1].numbers.size() + 1 == s.bases[0].numbers.size());
  CHECK(std::count(s.plan.axes.begin(), s.plan.axes.end(), "target.hbm.latency_ns") == 1);
}

// Three numbers: b moves both ways, c not at all, d is borne at one end only, e at none.
SensitivityPlan small_plan() {
  SensitivityPlan s;
  s.plan = one_point();
  s.plan.axes = {"target.b", "target.c", "target.d", "target.e"};
  SensitivityBase base;
  for (std::size_t n = 0; n < 4; ++n) {
    const auto end = [&](std::int64_t value, std::size_t point) { return RangeEnd{Cell(value), point}; };
    base.numbers.push_back(
        {std::string(1, static_cast<char>('b' + n)), "5", "why", end(1, 2 * n + 1), end(9, 2 * n + 2)});
  }
  s.plan.points.resize(9, SweepPoint{std::vector<Cell>(4)});
  s.bases = {base};
  return s;
}
std::vector<PointOutcome> small_outcomes() {
  std::vector<PointOutcome> all;
  const std::vector<std::int64_t> cycles = {100, 90, 130, 100, 100, 160, 0, 0, 0};
  for (std::size_t p = 0; p < cycles.size(); ++p) {
    if (p < 6)
      all.push_back({p, "pass", "", {Cell(cycles[p])}});
    else
      all.push_back({p, "refused", "RDU6003", {Cell()}});
  }
  return all;
}

TEST_CASE("the table is sorted by effect, and what a machine does not bear stays in it with what became of it") {
  const auto tables = sensitivities(small_plan(), small_outcomes(), "cycles.simulated").value();
  REQUIRE(tables.size() == 1);
  const auto& rows = tables[0].rows;
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].key == "d");
  CHECK(rows[0].effect == 60.0);
  CHECK(rows[0].most.verdict == "refused");
  CHECK_FALSE(rows[0].most.metric);
  CHECK(rows[1].key == "b");
  CHECK(rows[1].effect == 40.0);
  CHECK(rows[1].least.change == doctest::Approx(-0.1));
  CHECK(rows[2].key == "c");
  CHECK(rows[2].effect == 0.0);
  CHECK(rows[3].key == "e");
  CHECK_FALSE(rows[3].effect);
  const std::string text = to_text(tables, "plan");
  INFO(text);
  CHECK(text.find("refused RDU6003") != std::string::npos);
  CHECK(text.find("130 (+30.00 %)") != std::string::npos);
  CHECK(text.find("1 move nothing: c") != std::string::npos);
  CHECK(text.find("  e ") != std::string::npos);
}

TEST_CASE("a metric that the report of a run lacks is refused") {
  auto outcomes = small_outcomes();
  outcomes[0].metrics = {Cell()};
  CHECK(sensitivities(small_plan(), outcomes, "cycles.simulated").diagnostics().contains(Code::RDU8066));
}

TEST_CASE("where the base itself has no number, no end has an effect") {
  auto outcomes = small_outcomes();
  outcomes[0].verdict = "circular-wait";
  const auto tables = sensitivities(small_plan(), outcomes, "cycles.simulated").value();
  for (const SensitivityRow& r : tables[0].rows) CHECK_FALSE(r.effect);
  CHECK(to_text(tables, "plan").find("circular-wait as the target has it") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::sensitivity_test
