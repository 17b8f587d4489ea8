// The two levels of the on-chip network agree where nothing is in a page's way.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "models/units/network.h"

namespace rdusim::network_levels_test {
namespace {

Target machine(const char* name) {
  auto t = find_target(name);
  REQUIRE(t.ok());
  return std::move(t).value();
}

struct Came {
  Cycle head = 0, tail = 0;
};

// What the flit level makes of one page alone; when it has left stands in `left`.
std::vector<Came> alone(Network& n, const RouteRef& route, std::size_t leaves, Cycle from, Cycle ready, Bytes bytes,
                        Cycle& left) {
  FlowNetwork& flits = *n.flits();
  n.post(route, 0, from, ready, bytes);
  std::vector<Came> out(leaves);
  while (flits.next() != FlowNetwork::never) {
    flits.advance(flits.next());
    for (const auto& l : flits.left()) left = l.at;
    for (const auto& a : flits.arrivals()) out[a.leaf] = {a.head, a.tail};
  }
  return out;
}

TEST_CASE("an unloaded page comes at the same cycles at both levels, and at none before") {
  for (const char* name : {"sn10", "sn40l", "sn50"}) {
    const Target t = machine(name);
    REQUIRE_FALSE(no_flit_level(t));
    Network fast(t, NetworkLevel::fast), flit(t, NetworkLevel::flit);
    Network::Builder to_fast(fast, t.mesh), to_flit(flit, t.mesh);
    const Position from{3, 4};
    const std::vector<Position> to = {{3, 4}, {4, 4}, {0, 0}, {t.mesh.width - 1, t.mesh.height - 1}, {3, 9}, {9, 4}};
    const RouteRef a = to_fast.route(from, to), b = to_flit.route(from, to);
    Cycle start = 1000;
    for (const Bytes bytes : {Bytes{1}, Bytes{64}, Bytes{65}, Bytes{2048}, Bytes{4096}}) {
      const Cycle ready = start + (bytes + 127) / 128;
      const Cycle left = fast.send(a, start, ready, bytes);
      Cycle flits_left = 0;
      const auto came = alone(flit, b, to.size(), start, ready, bytes, flits_left);
      CHECK(flits_left == left);
      CHECK(flits_left == flit.left_unhindered(start, ready, bytes));
      for (std::uint32_t leaf = 0; leaf < to.size(); ++leaf) {
        CAPTURE(leaf);
        const auto apart = [](std::uint32_t x, std::uint32_t y) { return x > y ? x - y : y - x; };
        const Cycles hops = apart(to[leaf].x, from.x) + apart(to[leaf].y, from.y);
        const Cycle ends = 2 * t.network.endpoint_cycles + hops * t.network.hop_cycles;
        const Cycles flits = (bytes + t.network.flit_bytes - 1) / t.network.flit_bytes;
        CHECK(came[leaf].head == start + ends);
        CHECK(came[leaf].tail == start + ends + flits);
        CHECK(fast.head(a, leaf) == came[leaf].head);
        CHECK(fast.tail(a, leaf) == came[leaf].tail);
      }
      start += 10'000;
    }
  }
}

TEST_CASE("where links carry less than a flit a cycle, both levels keep their rate") {
  const Target t = machine("wormhole");
  REQUIRE_FALSE(no_flit_level(t));
  Network fast(t, NetworkLevel::fast), flit(t, NetworkLevel::flit);
  Network::Builder to_fast(fast, t.mesh), to_flit(flit, t.mesh);
  const std::vector<Position> to = {{5, 6}};
  const RouteRef a = to_fast.route({1, 1}, to), b = to_flit.route({1, 1}, to);
  fast.send(a, 100, 100, 48'000);
  Cycle left = 0;
  const auto came = alone(flit, b, 1, 100, 100, 48'000, left);
  CHECK(came[0].head == fast.head(a, 0));
  CHECK(came[0].tail >= fast.tail(a, 0) - 1);
  CHECK(came[0].tail <= fast.tail(a, 0) + 2);
}

TEST_CASE("a target whose links carry more than a flit a cycle has no flit level") {
  Target t = machine("sn40l");
  t.network.link_bytes_per_cycle = {128, 1};
  const auto why = no_flit_level(t);
  REQUIRE(why);
  CHECK(why->find("128 bytes a cycle, more than a flit of 64") != std::string::npos);
  t.network.flit_bytes = 128;
  CHECK_FALSE(no_flit_level(t));
  t.network.hop_cycles = 0;
  CHECK(no_flit_level(t));
}

}  // namespace
}  // namespace rdusim::network_levels_test
