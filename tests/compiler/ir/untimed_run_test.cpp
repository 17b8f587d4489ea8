#include "compiler/ir/untimed_run.h"

#include <doctest/doctest.h>

#include "compiler/ir/clusters.h"
#include "tests/compiler/ir/rate_programs.h"

namespace rdusim::untimed_run_test {
namespace {

using sample::buffer;
using sample::crossed;
using sample::edge_of;
using sample::program;
using sample::stage;

sample::Shape over(std::uint32_t chips, Handshake crossing = Handshake::token) {
  sample::Shape s;
  s.chips = chips;
  s.crossing = crossing;
  return s;
}

TEST_CASE("hand-offs join the stages of all chips to one cluster, an instance of it for each site") {
  const SpatialProgram p = program(over(4));
  const auto clusters = clusters_of(p);
  REQUIRE(clusters.size() == 1);
  CHECK(clusters[0].stages.size() == p.stages.size());
  CHECK(clusters[0].crossing.size() == 3);
  CHECK(clusters[0].one_to_one);
  CHECK(clusters[0].instances == 2);
  CHECK(clusters[0].repeats == 1);
}

TEST_CASE("a part of a trip repeats as often as all phases come round together") {
  SpatialProgram p = program();
  for (Stage& s : p.stages) s.firings *= 6;
  std::get<Load>(p.stages[0].kind).pattern.loops[0] *= 6;
  CHECK(clusters_of(p)[0].repeats == 1);  // pages that cannot be moved do not repeat
  std::get<Load>(p.stages[0].kind).pattern = {{6, 4}, {{0, 0}, {0, 4}}, {{0, 0}, {0, 0}}, {1, 4}, {1, 16}};
  std::get<Load>(p.stages[1].kind).pattern = {{6, 4}, {{0, 0}, {4, 0}}, {{0, 0}, {0, 1}}, {4, 1}, {16, 2}};
  std::get<Store>(p.stages[3].kind).pattern.loops = {6, 1};
  std::get<Store>(p.stages[3].kind).pattern.stride[0] = {0, 0};
  CHECK(clusters_of(p)[0].repeats == 6);
}

TEST_CASE("a run that takes too many steps is not started, and says so") {
  const UntimedRun run = run_untimed(program(), 32, {10, 0});
  CHECK(run.undecided == StageId{0u});
  CHECK(run.undecided_steps > 10);
  CHECK(run.sums.empty());
  CHECK_FALSE(run_untimed(program(), 32, {1000, 0}).undecided.has_value());
}

TEST_CASE("what a run may take grows with the stages that it has") {
  CHECK(run_untimed(program(), 32, {0, 5}).undecided.has_value());
  CHECK_FALSE(run_untimed(program(), 32, {0, 40}).undecided.has_value());
}

TEST_CASE("where all instances would take too many steps, the first and the last are looked at") {
  SpatialProgram p = program();
  // One instance's run: 4 stages, 4 + 4 + 4 + 1 firings, 4 + 4 + 1 pages.
  CHECK(run_untimed(p, 32, {26, 0}).sums.empty());
  std::swap(std::get<Store>(stage(p, "down.store").kind).pattern.first[0],
            std::get<Store>(stage(p, "down.store").kind).pattern.first[1]);
  CHECK(run_untimed(p, 32, {26, 0}).sums.size() == 1);
  CHECK(run_untimed(p, 32, {25, 0}).undecided.has_value());
}

TEST_CASE("two stages that use two buffers in opposite order stop just where the first is too shallow") {
  CHECK(run_untimed(crossed(2), 32).stuck == 0);
  const UntimedRun run = run_untimed(crossed(1), 32);
  CHECK(run.stuck == 8);  // load, split, merge, sink of both instances
  REQUIRE(run.cycle.size() == 2);
  const SpatialProgram p = crossed(1);
  const auto is = [&](const UntimedWait& w, std::string_view stage_name, bool for_room, std::string_view buffer_name,
                      std::string_view on) {
    CHECK(p.stage(w.stage).name == stage_name);
    CHECK(w.for_room == for_room);
    CHECK(p.buffer(w.buffer).name == buffer_name);
    CHECK(p.stage(w.on).name == on);
  };
  is(run.cycle[0], "split", true, "first", "merge");
  is(run.cycle[1], "merge", false, "second", "split");
  CHECK(run.cycle[0].firing == 1);
}

TEST_CASE("a depth that has not been chosen never stops a stage") {
  CHECK(run_untimed(crossed(0), 32).stuck == 0);
}

TEST_CASE("a stage whose producer has finished is starved, not in a circle") {
  SpatialProgram p = program();
  stage(p, "down.load_b").firings = 3;
  std::get<Load>(stage(p, "down.load_b").kind).pattern.loops = {3};
  const UntimedRun run = run_untimed(p, 32);
  CHECK(run.cycle.empty());
  REQUIRE_FALSE(run.starved.empty());
  CHECK(p.stage(run.starved.back().stage).name == "down.matmul");
  CHECK(p.stage(run.starved.back().on).name == "down.load_b");
  CHECK(run.starved.back().firing == 3);
}

// Chip 0 sends its partials to Recvs on both sites of chip 1.
SpatialProgram multicast(Handshake crossing, std::uint64_t depth_of_second) {
  SpatialProgram p = program(over(2, crossing));
  Edge& e = edge_of(p, "down.partial_c1");
  e.map = {PageMapKind::multicast, {{0, 1}, {0, 1}}};
  buffer(p, "down.landing_c1").depth_pages = depth_of_second;
  stage(p, "down.recv_c1").firings = 2;
  // The fold must take both pages of its landing buffer: two adds.
  Stage& fold = stage(p, "down.fold");
  fold.ports[1].need = fold.ports[1].pop = {{1, 0}, {1, 2}};
  return p;
}

TEST_CASE("a receiver of two senders takes their pages in turn, and both columns meet in one sum") {
  const UntimedRun run = run_untimed(multicast(Handshake::token, 2), 32);
  CHECK(run.stuck == 0);
  // Instance 1 of the fold is given column 0 first: it adds what belongs to another block.
  REQUIRE_FALSE(run.sums.empty());
  CHECK(run.sums[0].code == Code::RDU3024);
  CHECK(run.sums[0].message == "'down.fold' combines [0,32)[32,64) with [0,32)[0,32)");
}

TEST_CASE("receivers of a semaphore edge land a page together, so that one without room stops all") {
  CHECK(run_untimed(multicast(Handshake::semaphore, 2), 32).stuck == 0);
  CHECK(run_untimed(multicast(Handshake::semaphore, 1), 32).stuck > 0);
}

TEST_CASE("collectives that are not expanded yet give every member the sum of all") {
  sample::Builder b(over(2));
  SpatialProgram& p = b.p;
  // In place of the fold: a part of the collective on each chip, the first of which hands the sum to the store.
  const BufferId sum = buffer(p, "down.sum").id;
  Stage& fold = stage(p, "down.fold");
  fold.kind = CollectiveStage{CollectiveId{0u}};
  fold.firings = 1;
  fold.ports = {b.input(buffer(p, "down.partial_c0").id), b.output(sum)};
  Stage& recv = stage(p, "down.recv_c1");
  recv.kind = CollectiveStage{CollectiveId{0u}};
  recv.group = GroupId{1u};
  recv.ports = {b.input(buffer(p, "down.partial_c1").id)};
  Edge& e = edge_of(p, "down.partial_c1");
  e.handshake = Handshake::fifo;
  e.routes.clear();
  UntimedRun run = run_untimed(p, 32);
  CHECK(run.stuck == 0);
  CHECK(run.sums.empty());
  // One member that does not contribute leaves the sum incomplete.
  p.collectives[0].members.pop_back();
  run = run_untimed(p, 32);
  REQUIRE(run.sums.size() == 1);
  CHECK(run.sums[0].code == Code::RDU3024);
}

}  // namespace
}  // namespace rdusim::untimed_run_test
