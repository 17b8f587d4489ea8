#include <doctest/doctest.h>

#include "tests/models/systemc/hand_built.h"

namespace rdusim {
namespace {

using namespace test;

struct Recorder final : EventSink {
  std::uint64_t started = 0, stored = 0, loaded = 0;
  void on(const FiringStarted&) override { ++started; }
  void on(const PageStored&) override { ++stored; }
  void on(const PageLoaded&) override { ++loaded; }
};

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
  Recorder r;
  Machine machine(p, t, {}, images, r);
  const MachineOutcome out = machine.run();
  for (const Waiting& w : out.waiting)
    MESSAGE("stage " << (w.stage ? w.stage->stage.value : 99) << " what " << int(w.what) << " have " << w.have
                     << " want " << w.want << " firing " << w.firing << " since " << w.since);
  REQUIRE(out.end == MachineOutcome::End::finished);
  CHECK(out.waiting.empty());
  MESSAGE("cycles " << out.cycles << " activations " << out.activations << " pages " << out.page_handoffs);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += get<std::int8_t>(images[0], i * k + l) * get<std::int8_t>(images[1], l * n + j);
      CHECK(get<std::int32_t>(images[2], i * n + j) == sum);
    }
  CHECK(r.stored == 9);
  CHECK(r.loaded == 2 * 9 * 4);
}

}  // namespace
}  // namespace rdusim
