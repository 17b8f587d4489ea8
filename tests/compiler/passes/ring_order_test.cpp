#include "compiler/passes/ring_order.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "compiler/target/topology.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::ring_order_test {
using namespace rdusim::test;

namespace {

std::vector<std::uint32_t> ring(const Target& t, std::uint32_t chips) {
  std::vector<std::uint32_t> order;
  for (const ChipId c : ring_order(t, chips)) order.push_back(c.value);
  return order;
}

// Links of the longest step.
std::size_t longest_step(const Target& t, const std::vector<std::uint32_t>& order) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    longest = std::max(longest, route(t, ChipId(order[i]), ChipId(order[(i + 1) % order.size()])).size());
  return longest;
}

// A line of chips, linked both ways.
Target line(std::uint32_t chips) {
  Target t = full_mesh(sn40l(), chips);
  std::erase_if(t.links, [](const ChipLinkParameters& l) {
    return l.from.value + 1 != l.to.value && l.to.value + 1 != l.from.value;
  });
  for (std::size_t i = 0; i < t.links.size(); ++i) t.links[i].id = LinkId(i);
  return t;
}

}  // namespace

TEST_CASE("a full mesh goes round in order of ids") {
  CHECK(ring(full_mesh(sn40l(), 5), 5) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  CHECK(ring(sn40l(), 1) == std::vector<std::uint32_t>{0});
  CHECK(ring(sn40l(), 2) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("two nodes joined by counterparts: up the one and back by the other, one link a step") {
  const Target t = sn40l();
  CHECK(ring(t, 16) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 15, 9, 10, 11, 12, 13, 14, 8});
  CHECK(longest_step(t, ring(t, 16)) == 1);
  for (std::uint32_t n = 2; n <= 16; ++n) {
    const auto order = ring(t, n);
    CHECK(order.front() == 0);
    CHECK(std::set<std::uint32_t>(order.begin(), order.end()).size() == n);
    // A ninth chip hangs on its counterpart alone: there is no round of single links.
    CHECK(longest_step(t, order) == (n == 9 ? 2 : 1));
  }
}

TEST_CASE("chips that meet in a switch follow each other through it, whichever of them a program uses") {
  const auto switched = [](LinkScope scope, LinkShape within) {
    Target t = sn40l();
    t.links.clear();
    if (within != LinkShape::star) append_links({LinkScope::node, within, {32, 1}, 600, 8}, 16, 8, t.switches, t.links);
    append_links({scope, LinkShape::star, {32, 1}, 600, 8}, 16, 8, t.switches, t.links);
    return t;
  };
  const Target one = switched(LinkScope::machine, LinkShape::star);
  for (const std::uint32_t n : {2U, 5U, 16U}) {
    std::vector<std::uint32_t> rising(n);
    std::iota(rising.begin(), rising.end(), 0U);
    CHECK(ring(one, n) == rising);
    CHECK(longest_step(one, rising) == 2);
  }
  // Node by node, and from one to the other where chips are counterparts.
  const Target two = switched(LinkScope::counterparts, LinkShape::full_mesh);
  const auto order = ring(two, 16);
  CHECK(order == ring(sn40l(), 16));
  CHECK(longest_step(two, order) == 2);
}

TEST_CASE("where there is no round, chips stand in order of ids") {
  const Target t = line(5);
  CHECK(ring(t, 5) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  CHECK(longest_step(t, ring(t, 5)) == 4);
}

TEST_CASE("a chain of nodes goes out by all chips but one a node, and comes back by those") {
  const Target t = target_named("sn50");
  for (const std::uint32_t n : {16u, 56u, 112u, 256u}) {
    if (n > t.chips) continue;
    const auto order = ring(t, n);
    CHECK(std::set<std::uint32_t>(order.begin(), order.end()).size() == n);
    CHECK(longest_step(t, order) == 1);
  }
}

TEST_CASE("a large machine is answered in bounded time") {
  const Target t = line(256);
  CHECK(ring(t, 256).size() == 256);
  CHECK(ring(full_mesh(sn40l(), 64), 64).size() == 64);
}

}  // namespace rdusim::ring_order_test
