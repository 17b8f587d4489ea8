#include <doctest/doctest.h>

#include "tests/models/systemc/forked_run.h"

namespace rdusim::matmul_run_test {
namespace {

using namespace test;

// One site: loads of x (m x k) and w (k x n) by pages of one tile row and `page_k` tiles, a matmul, a store.
SpatialProgram one_matmul(const Target& t, std::int64_t m, std::int64_t k, std::int64_t n, std::uint64_t page_k) {
  Builder b(t);
  const GroupId g = b.group(0, {{2, 1}});
  const TensorId x = b.tensor("x", {m, k}, DType::int8, TensorRole::input);
  const TensorId w = b.tensor("w", {k, n}, DType::int8, TensorRole::weight);
  const TensorId y = b.tensor("y", {m, n}, DType::int32, TensorRole::output);
  const auto tiles = [&](TensorId id, int axis) { return b.p.tensor(id).tiles[axis]; };
  const std::uint64_t k_pages = ceil_div(tiles(x, 1), page_k);
  const std::uint64_t rounds = tiles(y, 0) * tiles(y, 1);

  const BufferId bx = b.buffer(g, 2, 16 * page_k, DType::int8);
  const BufferId bw = b.buffer(g, 2, 16 * page_k, DType::int8);
  const BufferId by = b.buffer(g, 2, 64, DType::int32);
  AccessPattern px, pw;
  px.loops = pw.loops = {tiles(y, 0), tiles(y, 1), k_pages};
  px.stride = {{1, 0}, {0, 0}, {0, page_k}};
  pw.stride = {{0, 0}, {0, 1}, {page_k, 0}};
  px.first = pw.first = {{0, 0}};
  px.page_tiles = {1, page_k};
  pw.page_tiles = {page_k, 1};
  px.extent_tiles = b.p.tensor(x).tiles;
  pw.extent_tiles = b.p.tensor(w).tiles;
  const StageId lx = b.stage("load_x", Load{x, px, {}}, g, {Builder::out(bx)}, rounds * k_pages, move(0));
  const StageId lw = b.stage("load_w", Load{w, pw, {}}, g, {Builder::out(bw)}, rounds * k_pages, move(1));
  MatmulTiles mm;
  mm.page_k = page_k;
  mm.k_tiles = tiles(x, 1);
  mm.k_pages = k_pages;
  mm.operand = DType::int8;
  mm.accumulator = mm.result = DType::int32;
  Cyclic<std::uint32_t> last{{1, 1}};
  if (k_pages > 1) last = {{static_cast<std::uint32_t>(k_pages - 1), 0}, {1, 1}};
  const StageId s =
      b.stage("matmul", mm, g, {Builder::in(bx), Builder::in(bw), Builder::out(by, last)}, rounds * k_pages, pcu0);
  const StageId st = b.stage("store", Store{y, b.walk(y, 1, 1), {}}, g, {Builder::in(by)}, rounds, move(2));
  b.local(lx, bx, {s});
  b.local(lw, bw, {s});
  b.local(s, by, {st});
  return b.p;
}

TEST_CASE("a matmul on one site gives what a naive loop gives, ragged edges included") {
  const Target t = small_target(1);
  const std::int64_t m = 10, k = 27, n = 9;
  const SpatialProgram p = one_matmul(t, m, k, n, 2);
  TensorImages images = blank_images(p);
  for (std::int64_t i = 0; i < m * k; ++i) set(images[0], i, static_cast<std::int8_t>(i % 61 - 30));
  for (std::int64_t i = 0; i < k * n; ++i) set(images[1], i, static_cast<std::int8_t>(i % 53 - 20));
  const Report r = run_forked(p, t, {}, images);
  REQUIRE(r.ran);
  REQUIRE(r.end == MachineOutcome::End::finished);
  CHECK(r.waiting.empty());
  CHECK(r.rising);
  CHECK(r.accounted);
  CHECK(r.within);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += get<std::int8_t>(images[0], i * k + l) * get<std::int8_t>(images[1], l * n + j);
      CHECK(get<std::int32_t>(r.images[2], i * n + j) == sum);
    }
  CHECK(r.count[Listener::kPageStored] == 9);
  CHECK(r.count[Listener::kPageLoaded] == 2 * 9 * 4);
  CHECK(r.count[Listener::kOperandsJoined] == 9 * 4);
  // All of the contraction, once, joined to one range.
  CHECK(r.stored == std::vector<Contribution>{{ChipId{0}, 0, 27}});
}

TEST_CASE("without values a run takes the same cycles and tells the same events") {
  const Target t = small_target(1);
  const SpatialProgram p = one_matmul(t, 12, 40, 8, 3);
  const Report with = run_forked(p, t);
  MachineOptions options;
  options.values = false;
  const Report without = run_forked(p, t, options);
  CHECK(with.cycles == without.cycles);
  CHECK(with.digest.exact == without.digest.exact);
  CHECK(without.stored == std::vector<Contribution>{{ChipId{0}, 0, 40}});
}

TEST_CASE("trips compute the whole again, and count it") {
  const Target t = small_target(1);
  SpatialProgram p = one_matmul(t, 8, 16, 8, 2);
  const Report one = run_forked(p, t);
  p.sections[0].trips = 3;
  const Report three = run_forked(p, t);
  CHECK(three.count[Listener::kPageStored] == 3 * one.count[Listener::kPageStored]);
  CHECK(three.images == one.images);
  CHECK(three.cycles > one.cycles);
}

TEST_CASE("a matmul that takes a page pair twice or not at all shows it in its contributions") {
  const Target t = small_target(1);
  const SpatialProgram p = one_matmul(t, 4, 32, 4, 2);  // four firings
  MachineOptions options;
  options.faults = {{FaultKind::partial_double, std::nullopt, std::nullopt, StageAt{StageId{2}, 0}, 0, 1}};
  const Report twice = run_forked(p, t, options);
  REQUIRE(twice.ran);
  std::uint64_t length = 0;
  for (const Contribution& c : twice.stored) length += c.k_end - c.k_begin;
  CHECK(length == 32 + 8);
  options.faults[0].kind = FaultKind::partial_skip;
  CHECK(run_forked(p, t, options).stored == std::vector<Contribution>{{ChipId{0}, 0, 8}, {ChipId{0}, 16, 32}});
}

TEST_CASE("a stage on its own is never beaten by what its units can do") {
  const Target t = small_target(1);
  const SpatialProgram p = one_matmul(t, 16, 64, 16, 4);
  const Report r = run_forked(p, t);
  const Cycles launch = t.host.section_launch_cycles + t.host.argument_load_cycles;
  // 4 x 4 x 16 tiles of 64 products at 16 a cycle.
  CHECK(r.cycles >= launch + 16 * 16 * 4);
  CHECK(r.cycles >= launch + t.hbm.latency_cycles);
}

TEST_CASE("a machine that is asked to stop stops, after the event time in which it was asked") {
  const Target t = small_target(1);
  const SpatialProgram p = one_matmul(t, 16, 64, 16, 4);
  const Report whole = run_forked(p, t);
  struct Stopper final : EventSink {
    std::atomic<bool> stop = false;
    Cycle at = 0, last = 0;
    std::uint64_t seen = 0;
    void on(const FiringStarted& e) override {
      last = e.at;
      if (++seen == 40) stop = true, at = e.at;
    }
  } stopper;
  TensorImages images = blank_images(p);
  MachineOptions options;
  options.stop = &stopper.stop;
  Machine machine(p, t, options, images, stopper);
  const MachineOutcome out = machine.run();
  CHECK(out.end == MachineOutcome::End::stopped);
  CHECK(out.cycles == stopper.at);
  CHECK(stopper.last == stopper.at);
  CHECK(out.cycles < whole.cycles);
}

}  // namespace
}  // namespace rdusim::matmul_run_test
