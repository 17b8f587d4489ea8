#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "compiler/passes/expand.h"
#include "compiler/passes/sites.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::tile_test {
using namespace rdusim::test;

namespace {

Result<SpatialProgram> tiled(const OperatorGraph& g, const Target& t) {
  return start(g, t, {}).then([&](SpatialProgram p) { return lower(std::move(p), t); }).then([&](SpatialProgram p) {
    return tile(std::move(p), t);
  });
}

std::uint64_t tiles(std::int64_t e) {
  return ceil_div(static_cast<std::uint64_t>(e), std::uint64_t{32});
}

void check_covers(const Work& w, const BlockPlan& p, const Target& t) {
  CHECK(p.sites_m * p.sites_n * p.sites_k <= t.sites());
  // Blocks cover each axis with none left over and none empty.
  CHECK(p.sites_m * p.rounds_m == ceil_div(tiles(w.m), p.block_m));
  CHECK(p.sites_n * p.rounds_n == ceil_div(tiles(w.n), p.block_n));
  CHECK(p.sites_k * p.k_pages == ceil_div(tiles(w.k), p.page_k));
}

}  // namespace

TEST_CASE("a plan's blocks cover every axis exactly, on every target, for odd and prime extents") {
  for (const char* name : {"sn40l", "sn50", "wormhole", "sn10"}) {
    const Target target = target_named(name);
    for (const auto& [m, k, n] : std::vector<std::tuple<int, int, int>>{{1, 4096, 6144},
                                                                        {32, 896, 4096},
                                                                        {960, 960, 960},
                                                                        {241, 241, 241},
                                                                        {32, 38809, 32},
                                                                        {16, 43264, 16},
                                                                        {1, 1, 1},
                                                                        {2053, 33, 65537}}) {
      CAPTURE(name);
      CAPTURE(m);
      CAPTURE(k);
      CAPTURE(n);
      for (const DType type : {DType::int8, DType::fp32, DType::int64}) {
        const auto p = tiled(one_matmul(m, k, n, type, accumulator_of(type)), target);
        REQUIRE(p.ok());
        check_covers(p->work[0], *p->work[0].plan, target);
      }
    }
  }
}

TEST_CASE("a chip is used: a decoder layer's slice is spread over sites enough for the memory's bandwidth") {
  const Target target = sn40l();
  const auto p = tiled(one_matmul(32, 896, 4096), target);
  REQUIRE(p.ok());
  const BlockPlan& plan = *p->work[0].plan;
  const double compute =
      double(plan.rounds_m * plan.rounds_n * plan.k_pages * plan.block_m * plan.block_n * plan.page_k) * 32 * 32 * 32 /
      target.pcu.macs(DType::int8);
  const double memory = 896.0 * 4096 / to_double(target.hbm.sustainable_bytes_per_cycle());
  CHECK(compute < 1.3 * memory);
}

TEST_CASE("a large matmul keeps most PCUs of a chip") {
  const Target target = sn40l();
  const auto p = tiled(one_matmul(4096, 4096, 4096, DType::bf16, DType::fp32), target);
  REQUIRE(p.ok());
  const BlockPlan& plan = *p->work[0].plan;
  CHECK(plan.sites_m * plan.sites_n * plan.sites_k * 10 >= target.sites() * 9);
}

TEST_CASE("pins are obeyed") {
  const Target target = sn40l();
  OperatorGraph g = one_matmul(64, 512, 256);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_m = 2;
  pin.unroll_n = 4;
  pin.unroll_k = 2;
  pin.page_k = 4;
  pin.block_n = 2;
  g.pins.push_back(pin);
  const auto p = tiled(g, target);
  REQUIRE(p.ok());
  CHECK(*p->work[0].plan == BlockPlan{1, 2, 4, 2, 4, 2, 1, 1, 2});
}

TEST_CASE("a unit that an operator cannot have is refused, and says why") {
  const auto why = [](UnitMode unit, std::optional<std::uint32_t> lanes, OperatorKind kind = OperatorKind::matmul) {
    OperatorGraph g = one_matmul(64, 64, 64, DType::fp32, DType::fp32);
    g.operators[0].kind = kind;
    SchedulePin pin;
    pin.op = OperatorId(0);
    pin.unit = unit;
    pin.lanes = lanes;
    g.pins.push_back(pin);
    const auto p = tiled(g, sn40l());
    if (p.ok()) return std::string();
    CHECK(p.diagnostics().contains(Code::RDU1026));
    return p.diagnostics().to_text();
  };
  CHECK(why(UnitMode::simd, std::nullopt) == "");
  CHECK(why(UnitMode::simd, 8) == "");
  CHECK(why(UnitMode::systolic, std::nullopt) == "");
  CHECK(why(UnitMode::systolic, 8).find("a systolic array has no lanes to choose") != std::string::npos);
  CHECK(why(UnitMode::simd, 3).find("asks for 3 lanes") != std::string::npos);
  CHECK(why(UnitMode::simd, 32).find("a unit of target 'sn40l' has 16") != std::string::npos);
  CHECK(why(UnitMode::simd, 8, OperatorKind::add) == "");
  CHECK(why(UnitMode::systolic, std::nullopt, OperatorKind::add).find("multiplies matrices only") != std::string::npos);
  CHECK(why(UnitMode::simd, 32, OperatorKind::add).find("asks for 32 lanes") != std::string::npos);
}

TEST_CASE("memory units and folds that an operator cannot have are refused, and what is left of the sites is shared") {
  Target target = sn40l();
  SchedulePin pin;
  pin.op = OperatorId(0);
  const auto with = [&](OperatorKind kind) {
    OperatorGraph g = one_matmul(64, 64, 64, DType::fp32, DType::fp32);
    g.operators[0].kind = kind;
    g.pins.push_back(pin);
    return tiled(g, target);
  };
  pin.pmus = 3;
  pin.unroll_m = pin.unroll_k = 2;
  pin.fold_apart = true;
  const auto p = with(OperatorKind::matmul);
  REQUIRE(p.ok());
  // Two slices and the fold of each block, and three memory units of each.
  CHECK(sites_wanted(*p->operators, p->work[0], target) == 2 * p->work[0].plan->sites_n * 3 * 3);
  pin.pmus = target.sites();
  CHECK(with(OperatorKind::matmul).diagnostics().contains(Code::RDU1026));
  pin = {};
  pin.op = OperatorId(0);
  pin.fold_apart = true;
  CHECK(with(OperatorKind::add).diagnostics().to_text().find("only a matmul has slices") != std::string::npos);
  pin.fold_apart = false;
  pin.pmus = 2;
  target.local = LocalHandshake::circular_buffer;
  CHECK(with(OperatorKind::matmul).diagnostics().to_text().find("no memory but its own") != std::string::npos);
}

TEST_CASE("a pin that cannot be is refused") {
  const Target target = sn40l();
  OperatorGraph g = one_matmul(64, 512, 256);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_m = 3;
  g.pins.push_back(pin);
  const auto p = tiled(g, target);
  REQUIRE_FALSE(p.ok());
  CHECK(p.diagnostics().contains(Code::RDU1026));
}

TEST_CASE("a matmul whose least block does not fit a site is refused with the site's memory") {
  Target target = sn40l();
  target.pmu.capacity_bytes = 1024;
  const auto p = tiled(one_matmul(64, 512, 256), target);
  REQUIRE_FALSE(p.ok());
  CHECK(p.diagnostics().contains(Code::RDU4112));
  CHECK(p.diagnostics().to_text().find("1.02 kB") != std::string::npos);
}

TEST_CASE("slices of one shape get one plan") {
  const Target target = sn40l();
  auto p = *lower(*start(one_matmul(32, 512, 256), target, {}), target);
  p.work.push_back(p.work[0]);
  p.work[1].id = WorkId(1);
  p.work[1].chip = ChipId(1);
  const auto q = tile(p, target);
  REQUIRE(q.ok());
  CHECK(q->work[0].plan == q->work[1].plan);
}

namespace {

double compute_cycles(const BlockPlan& p, DType type, const Target& t) {
  const double tiles = double(p.rounds_m * p.rounds_n * p.k_pages * p.block_m * p.block_n * p.page_k);
  return tiles * t.native_tile * t.native_tile * t.native_tile / t.pcu.macs(type);
}

}  // namespace

TEST_CASE(
    "one decoded token's operators get PCUs enough that the memory is the limit, on every slice of their columns") {
  const Target target = sn40l();
  for (const auto& [k, n] : {std::pair{4096, 6144}, {4096, 28672}, {14336, 4096}})
    for (const int chips : {1, 2, 4, 8, 16}) {
      CAPTURE(k);
      CAPTURE(n);
      CAPTURE(chips);
      const auto p = tiled(one_matmul(1, k, n / chips), target);
      REQUIRE(p.ok());
      const double memory = double(k) * (n / chips) / to_double(target.hbm.sustainable_bytes_per_cycle());
      CHECK(compute_cycles(*p->work[0].plan, DType::int8, target) <= 1.001 * memory);
    }
}

TEST_CASE("a split contraction leaves a site the semaphores and buffers that the collective will take") {
  const Target target = target_named("wormhole");
  for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::automatic, CollectiveAlgorithm::through_one,
                                              CollectiveAlgorithm::direct, CollectiveAlgorithm::ring})
    for (const std::uint32_t chips : {2u, 3u, 4u}) {
      CAPTURE(static_cast<int>(algorithm));
      CAPTURE(chips);
      const OperatorGraph g = one_matmul(33, 3360 * chips, 32, DType::int32, DType::int32);
      auto p = *start(g, target, over(chips, ShardKind::row, CollectiveKind::all_reduce, algorithm));
      p = *tile(*lower(std::move(p), target), target);
      const std::uint64_t landings = p.work[0].plan->sites_k - 1;
      const SiteDemand kept = counts_of(
          CollectiveKind::all_reduce,
          algorithm == CollectiveAlgorithm::automatic ? CollectiveAlgorithm::ring : algorithm, chips, false, target);
      if (kept.semaphores <= target.site.semaphores)
        CHECK(landings + kept.semaphores <= target.site.semaphores);
      else
        CHECK(landings == 0);
      if (kept.semaphores + 1 <= target.site.semaphores) CHECK(landings > 0);  // and no more than that
    }
}

TEST_CASE("operators that share sites share their semaphores") {
  const Target target = target_named("wormhole");
  const OperatorGraph g = two_matmuls(32, 4096, 512, 32);
  const auto p = tiled(g, target);
  REQUIRE(p.ok());
  std::uint64_t landings = 0;
  for (const Work& w : p->work) landings += w.plan->sites_k - 1;
  CHECK(landings > 0);
  CHECK(landings <= target.site.semaphores);
}

}  // namespace rdusim::tile_test
