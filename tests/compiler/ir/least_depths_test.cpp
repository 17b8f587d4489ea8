#include "compiler/ir/least_depths.h"

#include <doctest/doctest.h>

#include "compiler/ir/repetition.h"
#include "compiler/ir/untimed_run.h"
#include "tests/compiler/ir/rate_programs.h"

namespace rdusim::least_depths_test {
namespace {

using sample::crossed;
using sample::pair_of;

TEST_CASE("a buffer is as deep as one firing needs, and no deeper unless something waits for it") {
  const SpatialProgram p = sample::program();
  for (const std::uint64_t d : least_depths(p)) CHECK(d == 1);
  SpatialProgram needs = p;
  sample::stage(needs, "down.matmul").ports[0].need = always(2u);
  CHECK(depth_floors(needs)[0] == 2);
}

TEST_CASE("the least depth is found whether the given one is more, just that, or less") {
  for (const std::uint64_t given : {1u, 2u, 3u, 100u}) {
    SpatialProgram p = crossed(given);
    const std::vector<std::uint64_t> least = least_depths(p);
    CAPTURE(given);
    CHECK(least[sample::buffer(p, "first").id.value] == 2);
    // With the first too shallow, no depth of the second alone helps.
    CHECK(least[sample::buffer(p, "second").id.value] == (given == 1 ? 0 : 1));
  }
}

TEST_CASE("what hangs elsewhere takes nothing from the depth of what is not joined to it") {
  // A second pair of stages, on the same sites and joined to the first by nothing, that hangs.
  SpatialProgram p = crossed(3);
  const SpatialProgram other = crossed(1);
  const std::size_t stages = p.stages.size(), buffers = p.buffers.size();
  for (Buffer b : other.buffers) {
    b.id = BufferId{b.id.value + buffers};
    p.buffers.push_back(b);
  }
  for (Stage s : other.stages) {
    s.id = StageId{s.id.value + stages};
    for (Port& port : s.ports) port.buffer = BufferId{port.buffer.value + buffers};
    p.stages.push_back(s);
  }
  for (Edge e : other.edges) {
    e.id = EdgeId{p.edges.size()};
    e.from = StageId{e.from.value + stages};
    e.buffer = BufferId{e.buffer.value + buffers};
    for (StageId& to : e.to) to = StageId{to.value + stages};
    p.edges.push_back(e);
  }
  const std::vector<std::uint64_t> least = least_depths(p);
  const std::size_t first = sample::buffer(p, "first").id.value;
  CHECK(least[first] == 2);
  CHECK(least[first + 1] == 1);
  CHECK(least[buffers + first] == 2);
  CHECK(least[buffers + first + 1] == 0);
}

TEST_CASE("a search that would take too long says so with nothing, not with a guess") {
  for (const std::uint64_t d : least_depths(sample::program(), 3)) CHECK(d == 0);
  CHECK_FALSE(depths_together(sample::program(), 3).has_value());
}

TEST_CASE("depths found together leave alone what has one, and let everything end") {
  SpatialProgram p = crossed(0);
  for (Buffer& b : p.buffers) b.depth_pages = 0;
  sample::buffer(p, "second").depth_pages = 5;
  const auto depths = depths_together(p);
  REQUIRE(depths.has_value());
  CHECK((*depths)[sample::buffer(p, "second").id.value] == 5);
  CHECK((*depths)[sample::buffer(p, "first").id.value] == 2);
  for (Buffer& b : p.buffers) b.depth_pages = (*depths)[b.id.value];
  CHECK(run_untimed(p, 32).stuck == 0);
}

TEST_CASE("a program that no depths let end has none") {
  SpatialProgram p = pair_of({2, 3, 2, 2});
  for (Buffer& b : p.buffers) b.depth_pages = 0;
  CHECK_FALSE(depths_together(p).has_value());
}

TEST_CASE("stages fire as their rates ask for, in the least whole numbers") {
  const SpatialProgram p = pair_of({2, 3, 4, 6});
  const auto clusters = clusters_of(p);
  REQUIRE(clusters.size() == 1);
  const Repetition r = repetition_of(p, clusters[0]);
  CHECK(r.circle.empty());
  REQUIRE(r.firings.size() == 3);
  CHECK(r.firings[1] == 3);  // the stage that pushes 2 and 4
  CHECK(r.firings[2] == 2);  // the one that pops 3 and 6
}

TEST_CASE("rates that no firings balance are named with the circle that they lie on") {
  const SpatialProgram p = pair_of({2, 3, 4, 5});
  const Repetition r = repetition_of(p, clusters_of(p)[0]);
  CHECK(r.firings.empty());
  REQUIRE(r.circle.size() == 2);
  CHECK(p.stage(r.circle[0]).name == "split");
  CHECK(p.stage(r.circle[1]).name == "merge");
  CHECK(p.buffer(r.buffers[0]).name != p.buffer(r.buffers[1]).name);
}

TEST_CASE("one who pushes what the other never pops is a circle of one buffer") {
  const SpatialProgram p = pair_of({1, 1, 1, 0});
  const Repetition r = repetition_of(p, clusters_of(p)[0]);
  REQUIRE(r.circle.size() == 2);
  CHECK(r.buffers[0] == r.buffers[1]);
}

TEST_CASE("firings that no number holds are said to be too large") {
  // Rates that double the firings of each next stage, more than 64 times.
  sample::Builder b({});
  SpatialProgram& p = b.p;
  p.stages.resize(1);
  p.edges.clear();
  BufferId from = p.stages[0].ports[0].buffer;
  StageId before{0u};
  for (int i = 0; i < 70; ++i) {
    const BufferId next = b.add_buffer("b" + std::to_string(i), BufferKind::fifo, DType::int8, 4, 0);
    Port out = b.output(next);
    out.reserve = out.push = always(3u);
    const StageId stage = b.add_stage("s" + std::to_string(i), sample::Builder::sum(1), 0, {StageRole::compute, 0}, 1,
                                      {b.input(from), out});
    b.add_edge(before, from, {stage});
    from = next;
    before = stage;
  }
  const Repetition r = repetition_of(p, clusters_of(p)[0]);
  CHECK(r.too_large);
  CHECK(r.firings.empty());
}

}  // namespace
}  // namespace rdusim::least_depths_test
