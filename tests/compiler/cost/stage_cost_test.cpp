// Closed forms of the costs of single stages, on the sample machine of tests/compiler/ir: 64 multiply-accumulates and
// 32 element-wise operations a cycle, ports, mesh links and AGCUs of 64 bytes a cycle.
#include <doctest/doctest.h>

#include "compiler/cost/cost.h"
#include "tests/compiler/ir/sample_program.h"

namespace rdusim::stage_cost_test {
namespace {

Target machine() {
  Target t = sample::target();
  t.pcu.systolic_fill_cycles = 40;
  t.pcu.systolic_drain_cycles = 8;
  t.pcu.simd_latency_cycles = 12;
  t.pmu.access_latency_cycles = 5;
  t.agcu.latency_cycles = 20;
  t.hbm.latency_cycles = 100;
  t.network.link_bytes_per_cycle = {64, 1};
  t.network.hop_cycles = 2;
  t.network.endpoint_cycles = 1;
  return t;
}

const StageCost& cost_of(const Costs& costs, const SpatialProgram& p, const std::string& name) {
  for (const Stage& s : p.stages)
    if (s.name == name) return costs.stages[s.id.value];
  FAIL("no stage " << name);
  return costs.stages.front();
}

TEST_CASE("a matmul firing takes whole tiles at the PCU's rate") {
  const SpatialProgram p = sample::program();
  const StageCost c = cost_of(estimate(p, machine()), p, "down.matmul");
  // Pages of 1 x 4 tiles by 4 x 1: 4 * 32^3 multiply-accumulates, 64 a cycle.
  CHECK(c.initiation_interval_cycles == 4 * 32 * 32 * 32 / 64);
  CHECK(c.busy_cycles == 4 * c.initiation_interval_cycles);
  CHECK(c.latency_cycles == c.initiation_interval_cycles + 5 + 40 + 8);
  CHECK(c.total_cycles == c.busy_cycles + c.latency_cycles);
}

TEST_CASE("a rate that does not divide is rounded up once a firing") {
  const SpatialProgram p = sample::program();
  Target t = machine();
  t.pcu.macs_per_cycle.fill(100);
  CHECK(cost_of(estimate(p, t), p, "down.matmul").initiation_interval_cycles == 1311);  // 131072 / 100 = 1310.72
}

TEST_CASE("a fast PCU waits for the PMU's read port") {
  const SpatialProgram p = sample::program();
  Target t = machine();
  t.pcu.macs_per_cycle.fill(1u << 20);
  CHECK(cost_of(estimate(p, t), p, "down.matmul").initiation_interval_cycles == 2 * 4 * 32 * 32 / 64);
}

TEST_CASE("a fold takes elements times operations at the SIMD rate") {
  const SpatialProgram p = sample::program({.chips = 2});
  const StageCost c = cost_of(estimate(p, machine()), p, "down.fold");
  CHECK(c.initiation_interval_cycles == 32 * 32 * 4 / 64);  // 4 KiB through the read port takes longer than 1024 / 32
  Target t = machine();
  t.pmu.read_bytes_per_cycle = {1024, 1};
  CHECK(cost_of(estimate(p, t), p, "down.fold").initiation_interval_cycles == 1024 / 32);
}

TEST_CASE("a load has its share of its AGCU and of the memory") {
  const SpatialProgram p = sample::program();
  const StageCost c = cost_of(estimate(p, machine()), p, "down.load_b");
  CHECK(c.busy_cycles == 4 * 4096 / 64);
  // Three streams on one AGCU: the multicast of x, and a column of w at each of two sites.
  CHECK(c.initiation_interval_cycles == 4096 * 3 / 64);
  // Memory, AGCU, both ends of the mesh and one hop, PMU, and the page itself.
  CHECK(c.latency_cycles == 100 + 20 + 2 + 2 + 5 + 4096 / 64);
}

TEST_CASE("a multicast set is one stream") {
  SpatialProgram p = sample::program();
  for (Stage& s : p.stages)
    if (auto* load = std::get_if<Load>(&s.kind)) load->multicast_set.clear();
  const StageCost c = cost_of(estimate(p, machine()), p, "down.load_b");
  CHECK(c.initiation_interval_cycles == 4096 * 4 / 64);
}

TEST_CASE("a receive takes the links' latency and its share of them") {
  const SpatialProgram p = sample::program({.chips = 2});
  const StageCost c = cost_of(estimate(p, machine()), p, "down.recv_c1");
  CHECK(c.busy_cycles == 4096 / 32);
  CHECK(c.initiation_interval_cycles == 2 * 4096 / 32);  // two instances on one link of 32 bytes a cycle
  CHECK(c.latency_cycles >= 100 + 4096 / 32);
}

TEST_CASE("a ragged tensor loads what exists") {
  SpatialProgram p = sample::program();
  Tensor& w = p.tensors[1];
  w.shape[1] = w.whole[1] = 40;  // the second site's column has 8 elements
  const StageCost c = cost_of(estimate(p, machine()), p, "down.load_b");
  CHECK(c.busy_cycles == 4 * 4096 / 64);  // the slowest instance
  const Costs whole = estimate(sample::program(), machine()), ragged = estimate(p, machine());
  CHECK(ragged.predicted_cycles <= whole.predicted_cycles);
}

}  // namespace
}  // namespace rdusim::stage_cost_test
