#include <set>

#include "compiler/passes/sites.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::place_test {
using namespace rdusim::test;

namespace {

OperatorGraph pinned(OperatorGraph g, std::uint32_t m, std::uint32_t n, std::uint32_t k, std::uint32_t page) {
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_m = m;
  pin.unroll_n = n;
  pin.unroll_k = k;
  pin.page_k = page;
  g.pins.push_back(pin);
  return g;
}

const Stage& stage(const SpatialProgram& p, const std::string& name) {
  for (const Stage& s : p.stages)
    if (s.name == name) return s;
  FAIL("no stage ", name);
  return p.stages.front();
}

}  // namespace

TEST_CASE("a matmul becomes two loads, a matmul and a store on one group, joined by one-to-one hand-offs") {
  const Target target = sn40l();
  const SpatialProgram p = placed(pinned(one_matmul(64, 512, 256), 2, 4, 1, 8), target);
  REQUIRE(p.stages.size() == 4);
  CHECK(p.stages[0].name == "down.load_a");
  CHECK(p.stages[1].name == "down.load_b");
  CHECK(p.stages[2].name == "down.matmul");
  CHECK(p.stages[3].name == "down.store");
  for (const Stage& s : p.stages) CHECK(s.group == GroupId(0));
  CHECK(p.group(GroupId(0)).sites.size() == 8);
  for (const Edge& e : p.edges) {
    CHECK(e.handshake == Handshake::fifo);
    CHECK(e.map.kind == PageMapKind::one_to_one);
  }
  // Instances of a row of blocks share a; those of a column share b.
  CHECK(std::get<Load>(p.stages[0].kind).multicast_set == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(std::get<Load>(p.stages[1].kind).multicast_set == std::vector<std::uint32_t>{0, 1, 2, 3, 0, 1, 2, 3});
}

TEST_CASE("a 32 x 512 by 512 x 32 matmul has 16 contraction tiles of 32") {
  const SpatialProgram p = placed(one_matmul(32, 512, 32), sn40l());
  const auto& m = std::get<MatmulTiles>(stage(p, "down.matmul").kind);
  CHECK(m.k_tiles == 16);
  CHECK(m.k_pages * m.page_k == 16);
  CHECK(stage(p, "down.matmul").firings == m.k_pages);
}

TEST_CASE("of a transposed matmul pages of b are turned, and all else is as it is of a plain one") {
  const SpatialProgram plain = placed(pinned(one_matmul(64, 512, 256), 2, 4, 2, 4), sn40l());
  const SpatialProgram turned = placed(pinned(one_transposed_matmul(64, 512, 256), 2, 4, 2, 4), sn40l());
  CHECK(turned.work[0].plan == plain.work[0].plan);
  const AccessPattern& a = std::get<Load>(stage(plain, "down.load_b_k1").kind).pattern;
  const AccessPattern& b = std::get<Load>(stage(turned, "down.load_b_k1").kind).pattern;
  const auto swapped = [](std::vector<std::uint64_t> axes) { return std::vector{axes[1], axes[0]}; };
  CHECK(b.page_tiles == swapped(a.page_tiles));
  CHECK(b.extent_tiles == swapped(a.extent_tiles));
  REQUIRE(a.first.size() == b.first.size());
  for (std::size_t i = 0; i < a.first.size(); ++i) CHECK(b.first[i] == swapped(a.first[i]));
  for (std::size_t l = 0; l < a.stride.size(); ++l) CHECK(b.stride[l] == swapped(a.stride[l]));
  CHECK(std::get<MatmulTiles>(stage(turned, "down.matmul").kind).transposed);
  CHECK_FALSE(std::get<MatmulTiles>(stage(plain, "down.matmul").kind).transposed);
}

TEST_CASE("a contraction split over sites is folded on the first slice's sites, one port a phase") {
  const Target target = sn40l();
  const SpatialProgram p = placed(pinned(one_matmul(32, 512, 64), 1, 2, 4, 2), target);
  const Stage& fold = stage(p, "down.fold");
  CHECK(fold.group == stage(p, "down.matmul").group);
  CHECK(stage(p, "down.recv_k3").group == fold.group);
  CHECK(stage(p, "down.matmul_k3").group != fold.group);
  REQUIRE(fold.ports.size() == 5);
  for (std::uint64_t phase = 0; phase < 4; ++phase) {
    for (std::uint64_t port = 0; port < 4; ++port)
      CHECK(at_phase(fold.ports[port].pop, phase) == (port == phase ? 1 : 0));
    CHECK(at_phase(fold.ports[4].push, phase) == (phase == 3 ? 1 : 0));
  }
  // Sites of the slices are disjoint.
  std::set<Site> sites;
  for (const Group& g : p.placement->groups)
    for (const Site& s : g.sites) CHECK(sites.insert(s).second);
  // The tree adds the slices from the left.
  REQUIRE(p.trees.size() == 1);
  REQUIRE(p.trees[0].nodes.size() == 7);
  CHECK(p.trees[0].nodes[1].k_begin == 128);
  CHECK(p.trees[0].nodes[6].left == 4);
  CHECK(p.trees[0].nodes[6].right == 5);
  CHECK(p.trees[0].nodes[5].k_end == 512);
  for (const Edge& e : p.edges) CHECK(is_local(e.handshake) == (p.stage(e.from).group == p.stage(e.to[0]).group));
}

TEST_CASE("work items of the instances cover every block of every slice once") {
  const SpatialProgram p = placed(pinned(one_matmul(96, 512, 160), 3, 1, 2, 4), sn40l());
  std::set<std::uint64_t> items;
  std::size_t count = 0;
  for (const WorkAssignment& a : p.placement->work)
    for (const auto& list : a.items)
      for (const std::uint64_t item : list) {
        items.insert(item);
        ++count;
      }
  const BlockPlan& plan = *p.work[0].plan;
  CHECK(count == items.size());
  CHECK(count == plan.sites_m * plan.rounds_m * plan.sites_n * plan.rounds_n * plan.sites_k);
  CHECK(*items.rbegin() == count - 1);
}

TEST_CASE("placing refuses a split contraction where no hand-off crosses sites") {
  Target target = sn40l();
  target.crossing.clear();
  OperatorGraph g = one_matmul(32, 512, 64);
  auto p = *tile(*lower(*start(g, target, {}), target), target);
  p.work[0].plan = BlockPlan{1, 1, 2, 1, 2, 4, 1, 1, 2};
  const auto q = place(p, target);
  REQUIRE_FALSE(q.ok());
  CHECK(q.diagnostics().contains(Code::RDU4106));
}

TEST_CASE("sites are given out once, near the AGCUs in turn") {
  const Target target = sn40l();
  SiteAllocator sites(target, ChipId(3));
  const Group a = sites.near_agcus(target.agcu.at.size());
  const Group b = sites.near_agcus(target.sites() - target.agcu.at.size());
  CHECK(sites.free() == 0);
  std::set<Site> all(a.sites.begin(), a.sites.end());
  all.insert(b.sites.begin(), b.sites.end());
  CHECK(all.size() == target.sites());
  std::set<AgcuId> agcus(a.agcus.begin(), a.agcus.end());
  CHECK(agcus.size() == target.agcu.at.size());
  for (const Site& s : a.sites) CHECK(s.chip == ChipId(3));
}

TEST_CASE("a block of instances reads through AGCUs evenly") {
  const Target target = sn40l();
  SiteAllocator sites(target, ChipId(0));
  const Group g = sites.block(32, 32);
  std::vector<std::size_t> readers(target.agcu.at.size(), 0);
  for (std::size_t i = 0; i < g.sites.size(); ++i)
    if (i < 32 || i % 32 == 0) ++readers[g.agcus[i].value];
  const auto [least, most] = std::minmax_element(readers.begin(), readers.end());
  CHECK(*most - *least <= 1);
}

}  // namespace rdusim::place_test
