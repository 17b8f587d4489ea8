#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "compiler/compile.h"
#include "compiler/cost/cost.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::schedule_test {
namespace {

SpatialProgram scheduled(const OperatorGraph& graph, const Target& target, const ShardPlan& plan) {
  CompileOptions options;
  options.plan = plan;
  options.stop_after = "schedule";
  auto p = compile(graph, target, options);
  INFO(p.diagnostics().to_text());
  REQUIRE(p.ok());
  REQUIRE(p->schedule.has_value());
  return std::move(p).value();
}

TEST_CASE("every stage has a place of its own in its section, after those that feed it") {
  const SpatialProgram p =
      scheduled(test::two_matmuls(32, 256, 512, 128), test::sn40l(),
                test::over(2, ShardKind::row, CollectiveKind::reduce, CollectiveAlgorithm::through_one));
  REQUIRE(p.schedule->slots.size() == p.stages.size());
  std::set<std::pair<SectionId, std::uint32_t>> places;
  std::vector<std::uint32_t> stages(p.sections.size(), 0);
  for (const Stage& s : p.stages) {
    places.insert({s.section, p.schedule->slots[s.id.value].order});
    ++stages[s.section.value];
  }
  CHECK(places.size() == p.stages.size());
  for (const auto& [section, order] : places) CHECK(order < stages[section.value]);
  for (const Edge& e : p.edges)
    for (const StageId to : e.to) CHECK(p.schedule->slots[e.from.value].order < p.schedule->slots[to.value].order);
}

TEST_CASE("a ring's stages have an order though they wait for each other") {
  const SpatialProgram p =
      scheduled(test::one_matmul(32, 512, 64), test::sn40l(),
                test::over(4, ShardKind::row, CollectiveKind::all_reduce, CollectiveAlgorithm::ring));
  std::set<std::uint32_t> places;
  for (const StageSlot& slot : p.schedule->slots) places.insert(slot.order);
  CHECK(places.size() == p.stages.size());
}

TEST_CASE("the initiation interval is the cost model's") {
  const Target t = test::sn40l();
  const SpatialProgram p = scheduled(test::one_matmul(32, 512, 64), t, ShardPlan{});
  const Costs costs = estimate(p, t);
  for (const Stage& s : p.stages) {
    CHECK(p.schedule->slots[s.id.value].initiation_interval_cycles ==
          costs.stages[s.id.value].initiation_interval_cycles);
    CHECK(p.schedule->slots[s.id.value].initiation_interval_cycles > 0);
  }
}

// Stages that share an engine of a site, with the engine orders that name both.
void check_engine_orders(const SpatialProgram& p) {
  std::size_t shared = 0;
  for (const Stage& a : p.stages)
    for (const Stage& b : p.stages) {
      if (a.id >= b.id || a.section != b.section || a.role != StageRole::movement || b.role != StageRole::movement ||
          !(a.engine == b.engine))
        continue;
      const auto& sites = p.sites_of(b).sites;
      if (std::none_of(p.sites_of(a).sites.begin(), p.sites_of(a).sites.end(),
                       [&](const Site& s) { return std::find(sites.begin(), sites.end(), s) != sites.end(); }))
        continue;
      ++shared;
      const auto orders =
          std::count_if(p.schedule->engine_orders.begin(), p.schedule->engine_orders.end(), [&](const EngineOrder& o) {
            return std::count(o.stages.begin(), o.stages.end(), a.id) == 1 &&
                   std::count(o.stages.begin(), o.stages.end(), b.id) == 1;
          });
      CHECK(orders == 1);
    }
  if (shared == 0) CHECK(p.schedule->engine_orders.empty());
  for (const EngineOrder& o : p.schedule->engine_orders) {
    CHECK(o.stages.size() > 1);
    CHECK(std::is_sorted(o.stages.begin(), o.stages.end(), [&](StageId x, StageId y) {
      return p.schedule->slots[x.value].order < p.schedule->slots[y.value].order;
    }));
  }
}

TEST_CASE("movement stages that share an engine of a site are ordered, others are not") {
  check_engine_orders(scheduled(test::one_matmul(32, 512, 64), test::sn40l(), ShardPlan{}));
  check_engine_orders(
      scheduled(test::one_matmul(32, 4096, 64), test::sn40l(),
                test::over(8, ShardKind::row, CollectiveKind::all_reduce, CollectiveAlgorithm::direct)));
  Target few = test::sn40l();
  few.site.movement_engines = 1;
  const SpatialProgram p = scheduled(test::one_matmul(32, 512, 64), few, ShardPlan{});
  CHECK(!p.schedule->engine_orders.empty());
  check_engine_orders(p);
}

TEST_CASE("a schedule that is there is left alone") {
  const Target t = test::sn40l();
  SpatialProgram p = scheduled(test::one_matmul(32, 512, 64), t, ShardPlan{});
  p.schedule->slots[0].order = 17;
  const auto again = schedule(p, t);
  REQUIRE(again.ok());
  CHECK(*again == p);
}

}  // namespace
}  // namespace rdusim::schedule_test
