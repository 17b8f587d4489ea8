#include "models/units/elaborate.h"

#include <doctest/doctest.h>

#include <ctime>

#include "tests/models/systemc/hand_built.h"

namespace rdusim::elaborate_test {
namespace {

using namespace test;

// One site a chip: a load and a store.
SpatialProgram copies(const Target& t, std::uint32_t chips, std::uint64_t depth) {
  Builder b(t);
  for (std::uint32_t c = 0; c < chips; ++c) {
    const GroupId g = b.group(c, {{1, 2}});
    const TensorId x = b.tensor("x", {4, 16}, DType::int32, TensorRole::input, c);
    const TensorId y = b.tensor("y", {4, 16}, DType::int32, TensorRole::output, c);
    const BufferId buffer = b.buffer(g, depth, 64, DType::int32);
    const StageId load = b.stage("load", Load{x, b.walk(x, 1, 1), {}}, g, {Builder::out(buffer)}, 4, move(0));
    const StageId store = b.stage("store", Store{y, b.walk(y, 1, 1), {}}, g, {Builder::in(buffer)}, 4, move(1));
    b.local(load, buffer, {store});
  }
  return b.p;
}

TEST_CASE("only what the program uses comes to be") {
  Target t = small_target(4);
  t.mesh = {40, 26};
  const Elaboration e = elaborate(copies(t, 2, 2), t, true, {});
  REQUIRE(e.chips.size() == 4);
  CHECK(e.chips[0].used);
  CHECK(e.chips[1].used);
  CHECK(!e.chips[2].used);
  const ChipState& c = e.chips[0];
  CHECK(c.stages.size() == 2);
  CHECK(c.pmus.size() == 1);
  CHECK(c.engines.size() == 2);
  CHECK(c.agcus.size() == 1);
  CHECK(c.links.empty());
  CHECK(c.network.links() == 6);  // three hops there and three back
  CHECK(c.buffers.size() == 1);
  CHECK(c.pool_bytes == 2 * 64);
}

TEST_CASE("a buffer has no more slots than pages will ever be in it") {
  const Target t = small_target(1);
  const Elaboration e = elaborate(copies(t, 1, std::uint64_t{1} << 60), t, true, {});
  CHECK(e.chips[0].buffers[0].slots == 4);
  CHECK(e.chips[0].buffers[0].depth == std::uint64_t{1} << 60);
}

TEST_CASE("256 chips with one site each come to be in under a second") {
  Target t = small_target(256);
  t.mesh = {36, 24};
  const SpatialProgram p = copies(t, 256, 2);
  const std::clock_t start = std::clock();
  const Elaboration e = elaborate(p, t, true, {});
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1);
  CHECK(e.chips[255].stages.size() == 2);
}

TEST_CASE("a buffer that a fault strikes has a place beside it, others have not") {
  const Target t = small_target(1);
  const std::vector<Fault> faults = {
      {FaultKind::page_drop, BufferAt{BufferId{0}, 0}, std::nullopt, std::nullopt, 0, 1}};
  const Elaboration whole = elaborate(copies(t, 1, 2), t, true, {}),
                    broken = elaborate(copies(t, 1, 2), t, true, faults);
  CHECK(whole.chips[0].buffers[0].staged_values == whole.chips[0].buffers[0].values);
  CHECK(broken.chips[0].buffers[0].staged_values != broken.chips[0].buffers[0].values);
}

TEST_CASE("phases are looked up by firing, and their sums follow") {
  const Cyclic<std::uint32_t> c{{2, 0}, {1, 5}, {3, 1}};
  const Phases<std::uint32_t> p(c);
  std::uint64_t sum = 0;
  for (std::uint64_t f = 0; f < 40; ++f) {
    CHECK(p.total(f) == sum);
    CHECK(p.at(f) == at_phase(c, f));
    sum += p.at(f);
  }
  CHECK(Phases<std::uint32_t>({{4, 7}, {9, 7}}).length() == 1);
  CHECK(Phases<std::uint32_t>(Cyclic<std::uint32_t>{}).at(3) == 0);
}

}  // namespace
}  // namespace rdusim::elaborate_test
