#include <doctest/doctest.h>

#include "compiler/compile.h"
#include "compiler/cost/cost.h"
#include "tests/compiler/ir/sample_program.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::estimate_test {
namespace {

SpatialProgram compiled(const OperatorGraph& graph, const Target& target, const ShardPlan& plan) {
  CompileOptions options;
  options.plan = plan;
  auto p = compile(graph, target, options);
  INFO(p.diagnostics().to_text());
  REQUIRE(p.ok());
  return std::move(p).value();
}

void check_sums(const SpatialProgram& p, const Target& t) {
  const Costs costs = estimate(p, t);
  Cycles all = 0;
  for (const SectionCost& s : costs.sections) {
    all += s.total();
    CHECK((s.compute != 0) + (s.memory != 0) + (s.network != 0) == 1);
  }
  CHECK(all == costs.predicted_cycles);
  CHECK(costs.lower_bound_cycles > 0);
  CHECK(costs.predicted_cycles >= costs.lower_bound_cycles);
}

TEST_CASE("a section's causes add up and the prediction is above the bound, on every machine") {
  for (const std::string name : {"sn10", "sn30", "sn40l", "sn50", "wormhole"}) {
    CAPTURE(name);
    const Target t = test::target_named(name);
    check_sums(compiled(test::one_matmul(32, 512, 256), t, ShardPlan{}), t);
    check_sums(compiled(test::one_matmul(32, 512, 256), t, test::over(2)), t);
    check_sums(compiled(test::one_matmul(40, 512, 300), t, ShardPlan{}), t);
    check_sums(compiled(test::two_matmuls(32, 256, 512, 128, DType::bf16), t, test::over(2)), t);
  }
}

TEST_CASE("every algorithm's prediction is above the bound") {
  const Target t = test::sn40l();
  for (const auto algorithm :
       {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct, CollectiveAlgorithm::ring})
    for (const std::uint32_t chips : {2u, 3u, 4u}) {
      CAPTURE(chips);
      check_sums(compiled(test::one_matmul(32, 768, 128), t,
                          test::over(chips, ShardKind::row, CollectiveKind::all_reduce, algorithm)),
                 t);
    }
}

TEST_CASE("the bound is the busiest resource's least time") {
  Target t = sample::target();
  const SpatialProgram p = sample::program();
  // One site: 32 x 512 x 32 multiply-accumulates, 64 a cycle. HBM: (32 x 512 + 512 x 64) + 32 x 64 x 4 bytes, 64 a
  // cycle.
  CHECK(estimate(p, t).lower_bound_cycles == 32 * 512 * 32 / 64);
  t.pcu.macs_per_cycle.fill(1u << 20);
  CHECK(estimate(p, t).lower_bound_cycles == (32 * 512 + 512 * 64 + 32 * 64 * 4) / 64);
  t.host.section_launch_cycles = 1000;
  CHECK(estimate(p, t).lower_bound_cycles == 1000 + 896);
}

TEST_CASE("a link bounds what crosses it") {
  Target t = sample::target();
  t.pcu.macs_per_cycle.fill(1u << 20);
  t.hbm.channels = 1000;
  for (ChipLinkParameters& link : t.links) link.bytes_per_cycle = {1, 1};
  // Chip 1's partial: 32 x 64 int32.
  CHECK(estimate(sample::program({.chips = 2}), t).lower_bound_cycles == 32 * 64 * 4 + 100);
}

TEST_CASE("a bound counts only elements that exist") {
  Target t = sample::target();
  SpatialProgram p = sample::program();
  const Cycles whole = estimate(p, t).lower_bound_cycles;
  // Five rows of 32: the PCU takes as long, but a faster one need not.
  for (const std::size_t tensor : {0u, 2u}) p.tensors[tensor].shape[0] = p.tensors[tensor].whole[0] = 5;
  CHECK(estimate(p, t).lower_bound_cycles < whole);
  CHECK(estimate(p, t).predicted_cycles >= estimate(p, t).lower_bound_cycles);
}

// With the contraction split a firing is most of the work, and was counted again after itself.
TEST_CASE("what follows the busiest matmul is its latency without the firing, then the fold, then the store") {
  const Target t = test::target_named("wormhole");
  const SpatialProgram p = compiled(test::one_matmul(17, 96, 200, DType::int64, DType::int64), t, ShardPlan{});
  const Costs costs = estimate(p, t);
  const auto cost_of = [&](const std::string& name) -> const StageCost& {
    for (const Stage& s : p.stages)
      if (s.name == name) return costs.stages[s.id.value];
    FAIL("no stage ", name);
    return costs.stages.front();
  };
  const StageCost& matmul = cost_of("down.matmul");
  REQUIRE(costs.sections[0].compute >= matmul.busy_cycles);
  CHECK(costs.sections[0].drain == matmul.latency_cycles - matmul.initiation_interval_cycles +
                                       cost_of("down.fold").latency_cycles + cost_of("down.store").latency_cycles);
}

TEST_CASE("the stages' costs alone are those of the whole estimate") {
  const Target t = test::sn40l();
  const SpatialProgram p = compiled(test::one_matmul(32, 768, 128), t, test::over(3));
  const std::vector<StageCost> alone = estimate_stages(p, t);
  const Costs whole = estimate(p, t);
  REQUIRE(alone.size() == whole.stages.size());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].total_cycles == whole.stages[i].total_cycles);
}

TEST_CASE("more of any bandwidth never predicts more cycles") {
  const Target base = test::sn40l();
  const SpatialProgram p = compiled(test::one_matmul(32, 1024, 512), base, test::over(4));
  const Cycles before = estimate(p, base).predicted_cycles;
  const auto with = [&](auto&& change) {
    Target t = base;
    change(t);
    return estimate(p, t).predicted_cycles;
  };
  const auto twice = [](Fraction& f) { f = *multiply(f, Fraction{2, 1}); };
  CHECK(with([&](Target& t) { twice(t.hbm.channel_bytes_per_cycle); }) <= before);
  CHECK(with([&](Target& t) { twice(t.agcu.bytes_per_cycle); }) <= before);
  CHECK(with([&](Target& t) { twice(t.network.link_bytes_per_cycle); }) <= before);
  CHECK(with([&](Target& t) { twice(t.pmu.read_bytes_per_cycle); }) <= before);
  CHECK(with([&](Target& t) {
          for (auto& m : t.pcu.macs_per_cycle) m *= 2;
        }) <= before);
  CHECK(with([&](Target& t) {
          for (auto& l : t.links) twice(l.bytes_per_cycle);
        }) < before);
  CHECK(with([&](Target& t) {
          for (auto& l : t.links) l.latency_cycles /= 2;
        }) < before);
  CHECK(with([&](Target& t) { t.host.section_launch_cycles += 7; }) == before + 7);
}

TEST_CASE("nothing crosses on one chip") {
  const Target t = test::sn40l();
  const Costs costs = estimate(compiled(test::one_matmul(32, 512, 256), t, ShardPlan{}), t);
  for (const SectionCost& s : costs.sections) CHECK(s.link == 0);
  CHECK(costs.collectives.empty());
}

}  // namespace
}  // namespace rdusim::estimate_test
