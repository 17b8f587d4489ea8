#include <doctest/doctest.h>

#include "sim/residual.h"
#include "sim/statistics.h"
#include "tests/sim/small_program.h"

namespace rdusim::statistics_test {
namespace {

using namespace test;

Target two_chips() {
  Target t;
  t.name = "two";
  t.chips = 2;
  t.links.resize(2);
  t.hbm.channels = 1;
  return t;
}

TEST_CASE("of every stage total = busy + stalled + idle, none negative") {
  const SpatialProgram p = small_program();
  const Instances instances(p);
  ProvenanceTable table;
  Statistics s(instances, two_chips(), nullptr);
  replay(good_run(p, table), s);
  for (std::uint32_t n = 0; n < instances.stages(); ++n) {
    CAPTURE(n);
    const StageStatistics& stage = s.stage(n);
    const Cycle start = s.section_start(instances.stage_at(n).stage);
    CHECK(stage.firings == 1);
    CHECK(stage.busy == 4);
    CHECK(stage.busy + stage.stalled() + stage.idle(start) == stage.total(start));
    CHECK(stage.busy + stage.stalled() <= stage.total(start));
  }
}

TEST_CASE("a stage that never fired has no cycles") {
  const SpatialProgram p = small_program();
  const Instances instances(p);
  const Statistics s(instances, two_chips(), nullptr);
  CHECK(s.stage(0).total(0) == 0);
  CHECK(s.stage(0).idle(0) == 0);
}

TEST_CASE("links and memories count their bytes and cycles") {
  const SpatialProgram p = small_program();
  const Instances instances(p);
  ProvenanceTable table;
  Statistics s(instances, two_chips(), nullptr);
  replay(good_run(p, table), s);
  CHECK(s.link(LinkId{0u}).bytes == 4096);
  CHECK(s.link(LinkId{0u}).busy_until(10000) == 64);
  CHECK(s.link(LinkId{1u}).bytes == 0);
  CHECK(s.memory(ChipId{0u}, MemorySpace::hbm).written == 4096);
  CHECK(s.memory(ChipId{0u}, MemorySpace::hbm).read == 0);
  CHECK(s.memory(ChipId{1u}, MemorySpace::hbm).busy == 0);
}

TEST_CASE("a link is taken for no more cycles than pass, whatever is rounded and wherever the run is cut") {
  const SpatialProgram p = small_program();
  const Instances instances(p);
  Statistics s(instances, two_chips(), nullptr);
  const LinkId link{0u};
  // Three signals within a cycle and a half, then two pages: one that is on its way at cycle 100, one that waits for
  // it.
  for (const Cycle begin : {10, 10, 11}) s.on(LinkUsed{10, link, begin, begin + 1, 8, true});
  CHECK(s.link(link).busy_until(10000) == 2);
  s.on(LinkUsed{80, link, 80, 140, 4096, false});
  s.on(LinkUsed{90, link, 140, 200, 4096, false});
  s.on(LinkUsed{91, link, 250, 260, 4096, false});
  CHECK(s.link(link).busy_until(100) == 2 + 20);
  CHECK(s.link(link).busy_until(150) == 2 + 70);
  CHECK(s.link(link).busy_until(10000) == 2 + 120 + 10);
  s.on(LinkUsed{300, link, 300, 301, 8, true});
  CHECK(s.link(link).busy_until(10000) == 2 + 120 + 10 + 1);
}

TEST_CASE("a memory's first and last cycle are those of its reads, or of its writes where nothing is read") {
  const SpatialProgram p = small_program();
  const Instances instances(p);
  Statistics s(instances, two_chips(), nullptr);
  const auto used = [&](Cycle begin, Cycle end, bool write) {
    constexpr auto hbm = static_cast<std::uint8_t>(MemorySpace::hbm);
    s.on(MemoryUsed{begin, ChipId{0u}, hbm, 0, begin, end, 64, write});
  };
  const MemoryStatistics& m = s.memory(ChipId{0u}, MemorySpace::hbm);
  used(10, 20, true);
  CHECK(m.first == 10);
  CHECK(m.last == 20);
  used(30, 40, false);
  used(35, 50, false);
  used(5, 90, true);
  CHECK(m.first == 30);
  CHECK(m.last == 50);
  CHECK(m.read == 128);
  CHECK(m.written == 128);
}

TEST_CASE("the residuals add up to simulated - predicted, whatever was simulated and predicted") {
  const SpatialProgram p = small_program();
  const Instances instances(p);
  std::atomic<bool> stop{false};
  for (Cycles factor : {Cycles{0}, Cycles{1}, Cycles{1000}}) {
    ProvenanceTable table;
    Violations violations(stop, true);
    Statistics s(instances, two_chips(), nullptr);
    CollectiveChecker collectives(instances, violations);
    const auto events = good_run(p, table);
    replay(events, s);
    replay(events, collectives);
    Costs costs;
    costs.sections = {SectionCost{1 * factor, 2 * factor, 3 * factor, 0, 5 * factor, 0, 7 * factor}};
    costs.predicted_cycles = costs.sections.front().total();
    const Cycle cycles = *s.sections().front().end;
    const Residual r = explain_difference(instances, s, collectives, costs, cycles);
    CHECK(total(r.simulated) == static_cast<std::int64_t>(cycles));
    CHECK(total(r.predicted) == static_cast<std::int64_t>(costs.predicted_cycles));
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < causes; ++c) sum += r.of(static_cast<Cause>(c));
    CHECK(sum == static_cast<std::int64_t>(cycles) - static_cast<std::int64_t>(costs.predicted_cycles));
    // The hundred cycles before the section are the launch.
    CHECK(r.simulated[static_cast<std::size_t>(Cause::launch)] == 100);
    CHECK(r.bottlenecks.size() == 1);
  }
}

}  // namespace
}  // namespace rdusim::statistics_test
