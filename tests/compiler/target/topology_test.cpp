#include "compiler/target/topology.h"

#include <doctest/doctest.h>

#include <rapidcheck.h>
#include <algorithm>
#include <cstdlib>

namespace rdusim::topology_test {

namespace {

const bool pinned = setenv("RC_PARAMS", "seed=20240607 max_success=200", 0) == 0;

Target machine(std::uint32_t chips, std::uint32_t node_chips,
               const std::vector<std::pair<LinkScope, LinkShape>>& groups) {
  Target t;
  t.chips = chips;
  for (const auto& [scope, shape] : groups) {
    append_links({scope, shape, Fraction{1, 1}, 1, 1}, chips, node_chips, t.switches, t.links);
  }
  return t;
}

// The chips that a route passes, both ends included; empty where it is no path from `from` to `to`.
std::vector<std::uint32_t> chips_on(const Target& t, const std::vector<LinkId>& path, ChipId from, ChipId to) {
  std::vector<std::uint32_t> chips = {from.value};
  for (LinkId id : path) {
    const ChipLinkParameters& l = t.links.at(id.value);
    if (l.from.value != chips.back()) return {};
    chips.push_back(l.to.value);
  }
  return chips.back() == to.value ? chips : std::vector<std::uint32_t>{};
}

// All-pairs fewest hops by relaxation: slow, and shares nothing with the search.
std::vector<std::vector<std::uint32_t>> hops(const Target& t) {
  const std::uint32_t far = 1000, ends = t.chips + t.switches;
  std::vector<std::vector<std::uint32_t>> d(ends, std::vector<std::uint32_t>(ends, far));
  for (std::uint32_t c = 0; c < ends; ++c) d[c][c] = 0;
  for (std::uint32_t round = 0; round < ends; ++round) {
    for (const auto& l : t.links) {
      for (std::uint32_t c = 0; c < ends; ++c) {
        d[c][l.to.value] = std::min(d[c][l.to.value], d[c][l.from.value] + 1);
      }
    }
  }
  return d;
}

}  // namespace

TEST_CASE("a full mesh joins each to every other, a ring to two, a line to one at its ends") {
  CHECK(machine(8, 8, {{LinkScope::node, LinkShape::full_mesh}}).links.size() == 56);
  CHECK(machine(8, 8, {{LinkScope::node, LinkShape::ring}}).links.size() == 16);
  CHECK(machine(8, 8, {{LinkScope::node, LinkShape::line}}).links.size() == 14);
}

TEST_CASE("a ring or mesh of two has one link each way, and one chip has none") {
  for (LinkShape shape : {LinkShape::full_mesh, LinkShape::ring, LinkShape::line}) {
    CHECK(machine(2, 2, {{LinkScope::node, shape}}).links.size() == 2);
    CHECK(machine(1, 1, {{LinkScope::node, shape}}).links.empty());
    CHECK(machine(4, 4, {{LinkScope::counterparts, shape}}).links.empty());
  }
}

TEST_CASE("counterparts stand at the same place of every node") {
  const Target t = machine(16, 8, {{LinkScope::counterparts, LinkShape::full_mesh}});
  REQUIRE(t.links.size() == 16);
  for (const auto& l : t.links) CHECK((l.to.value + 8) % 16 == l.from.value);
}

TEST_CASE("links are numbered as they stand, by sender and then receiver") {
  const Target t = machine(12, 4, {{LinkScope::node, LinkShape::ring}, {LinkScope::counterparts, LinkShape::ring}});
  for (std::size_t i = 0; i < t.links.size(); ++i) CHECK(t.links[i].id == LinkId{i});
  CHECK(std::is_sorted(t.links.begin(), t.links.begin() + 24,
                       [](const auto& a, const auto& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); }));
}

TEST_CASE(
    "a route is empty from a chip to itself, direct where there is a link, and through the counterpart otherwise") {
  const Target t =
      machine(16, 8, {{LinkScope::node, LinkShape::full_mesh}, {LinkScope::counterparts, LinkShape::full_mesh}});
  CHECK(route(t, ChipId{3}, ChipId{3}).empty());
  CHECK(route(t, ChipId{3}, ChipId{5}).size() == 1);
  CHECK(route(t, ChipId{3}, ChipId{11}).size() == 1);
  // Of the two routes of two hops the one whose first link has the least id: links of the node come first.
  CHECK(chips_on(t, route(t, ChipId{3}, ChipId{13}), ChipId{3}, ChipId{13}) == std::vector<std::uint32_t>{3, 5, 13});
}

TEST_CASE("chips meet in a switch of their node, in one of their counterparts, or all in one") {
  const Target nodes = machine(6, 3, {{LinkScope::node, LinkShape::star}});
  CHECK(nodes.switches == 2);
  CHECK(nodes.links.size() == 12);
  CHECK(chips_on(nodes, route(nodes, ChipId{3}, ChipId{5}), ChipId{3}, ChipId{5}) ==
        std::vector<std::uint32_t>{3, 6 + 1, 5});
  CHECK(unreachable_chip(6, 2, nodes.links) == ChipId{3});
  CHECK(link_end(nodes, ChipId{5}) == "chip5");
  CHECK(link_end(nodes, ChipId{7}) == "switch1");
  const Target two =
      machine(6, 3, {{LinkScope::node, LinkShape::full_mesh}, {LinkScope::counterparts, LinkShape::star}});
  CHECK(two.switches == 3);
  CHECK(chips_on(two, route(two, ChipId{2}, ChipId{5}), ChipId{2}, ChipId{5}) ==
        std::vector<std::uint32_t>{2, 6 + 2, 5});
  CHECK(route(two, ChipId{2}, ChipId{3}).size() == 3);
  const Target all = machine(6, 3, {{LinkScope::machine, LinkShape::star}});
  CHECK(all.switches == 1);
  CHECK(route(all, ChipId{0}, ChipId{5}).size() == 2);
  CHECK_FALSE(unreachable_chip(6, 1, all.links));
  // A direct link is shorter than the way through a switch.
  const Target both = machine(2, 2, {{LinkScope::node, LinkShape::star}, {LinkScope::node, LinkShape::ring}});
  CHECK(route(both, ChipId{0}, ChipId{1}).size() == 1);
}

TEST_CASE("the two directions of a link may have rates of their own") {
  for (const LinkShape shape : {LinkShape::full_mesh, LinkShape::ring, LinkShape::line, LinkShape::star}) {
    LinkGroup group{LinkScope::node, shape, Fraction{2, 1}, 10, 8};
    group.back_bytes_per_cycle = Fraction{1, 2};
    std::uint32_t switches = 0;
    std::vector<ChipLinkParameters> links;
    append_links(group, 4, 4, switches, links);
    for (const ChipLinkParameters& l : links)
      CHECK(l.bytes_per_cycle == (l.to.value < l.from.value ? Fraction{1, 2} : Fraction{2, 1}));
  }
}

TEST_CASE("the latency of a switch is on the way into it, and so is the room of its port") {
  LinkGroup group{LinkScope::node, LinkShape::star, Fraction{2, 1}, 10, 8};
  group.switch_cycles = 5;
  group.room_bytes = 64;
  std::uint32_t switches = 3;
  std::vector<ChipLinkParameters> links;
  append_links(group, 2, 2, switches, links);
  REQUIRE(links.size() == 4);
  CHECK(switches == 4);
  CHECK(links[0].to == ChipId{2 + 3});
  CHECK(links[0].latency_cycles == 15);
  CHECK(links[0].room_bytes == 64);
  CHECK(links[1].from == ChipId{2 + 3});
  CHECK(links[1].latency_cycles == 10);
  CHECK(links[1].room_bytes == 0);
}

TEST_CASE("of parallel links a route takes the first") {
  const Target t = machine(2, 2, {{LinkScope::node, LinkShape::full_mesh}, {LinkScope::node, LinkShape::full_mesh}});
  CHECK(route(t, ChipId{1}, ChipId{0}) == std::vector{LinkId{1}});
}

TEST_CASE("a chip that cannot be reached, or cannot answer, is found") {
  CHECK(unreachable_chip(4, 0, machine(4, 2, {{LinkScope::node, LinkShape::ring}}).links) == ChipId{2});
  CHECK_FALSE(unreachable_chip(4, 0, machine(4, 4, {{LinkScope::node, LinkShape::line}}).links));
  CHECK_FALSE(unreachable_chip(1, 0, {}));
  std::vector<ChipLinkParameters> one_way(1);
  one_way[0].from = ChipId{0};
  one_way[0].to = ChipId{1};
  CHECK(unreachable_chip(2, 0, one_way) == ChipId{1});
}

TEST_CASE("every route is a path of fewest hops, and the least of those by its link ids") {
  REQUIRE(pinned);
  CHECK(rc::check([] {
    const auto nodes = *rc::gen::inRange<std::uint32_t>(1, 5);
    const auto node_chips = *rc::gen::inRange<std::uint32_t>(1, 5);
    const auto shape = rc::gen::element(LinkShape::full_mesh, LinkShape::ring, LinkShape::line, LinkShape::star);
    const Target t =
        machine(nodes * node_chips, node_chips, {{LinkScope::node, *shape}, {LinkScope::counterparts, *shape}});
    std::uint64_t expected = 0;
    RC_ASSERT(!unreachable_chip(t.chips, t.switches, t.links));
    const auto distance = hops(t);
    // Asked near and far in turn, they are the same as asked alone.
    Routes routes(t);
    const auto asked = *rc::gen::container<std::vector<std::uint32_t>>(8, rc::gen::inRange<std::uint32_t>(0, t.chips));
    for (std::size_t i = 0; i + 1 < asked.size(); ++i)
      RC_ASSERT(routes.between(ChipId{asked[i]}, ChipId{asked[i + 1]}) ==
                route(t, ChipId{asked[i]}, ChipId{asked[i + 1]}));
    for (std::uint32_t a = 0; a < t.chips; ++a) {
      for (std::uint32_t b = 0; b < t.chips; ++b) {
        const auto path = route(t, ChipId{a}, ChipId{b});
        RC_ASSERT(path.size() == distance[a][b]);
        RC_ASSERT(!chips_on(t, path, ChipId{a}, ChipId{b}).empty());
        std::uint32_t at = a;
        for (LinkId id : path) {
          for (const auto& other : t.links) {
            // No earlier link out of here comes as near.
            RC_ASSERT(!(other.from.value == at && other.id < id && distance[other.to.value][b] + 1 == distance[at][b]));
          }
          at = t.links[id.value].to.value;
        }
        ++expected;
      }
    }
    RC_ASSERT(expected == std::uint64_t{t.chips} * t.chips);
  }));
}

TEST_CASE("the number of links is known before they are made") {
  CHECK(rc::check([] {
    const auto nodes = *rc::gen::inRange<std::uint32_t>(1, 7);
    const auto node_chips = *rc::gen::inRange<std::uint32_t>(1, 7);
    for (LinkScope scope : {LinkScope::node, LinkScope::counterparts, LinkScope::machine}) {
      for (LinkShape shape : {LinkShape::full_mesh, LinkShape::ring, LinkShape::line, LinkShape::star}) {
        std::uint32_t switches = 0;
        std::vector<ChipLinkParameters> links;
        const LinkGroup group{scope, shape, Fraction{1, 1}, 1, 1};
        append_links(group, nodes * node_chips, node_chips, switches, links);
        RC_ASSERT(links.size() == link_count(group, nodes * node_chips, node_chips));
      }
    }
  }));
}

}  // namespace rdusim::topology_test
