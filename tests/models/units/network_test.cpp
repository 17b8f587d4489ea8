#include "models/units/network.h"

#include <doctest/doctest.h>

#include <vector>

namespace rdusim::network_test {
namespace {

NetworkParameters parameters() {
  NetworkParameters p;
  p.link_bytes_per_cycle = {64, 1};
  p.hop_cycles = 2;
  p.endpoint_cycles = 1;
  p.control_hop_cycles = 3;
  p.flit_bytes = 64;
  return p;
}

struct Rig {
  Rig() : network(parameters()), builder(network, Mesh{8, 8}) {}
  RouteRef route(Position from, std::vector<Position> to) { return builder.route(from, to); }
  Network network;
  Network::Builder builder;
};

TEST_CASE("an unloaded page takes its hops, its endpoints and its flits, and not one cycle more") {
  Rig r;
  const RouteRef route = r.route({0, 0}, {{3, 2}});
  CHECK(route.count == 5);
  r.network.send(route, 100, 100, 640);
  CHECK(r.network.head(route, 0) == 100 + 1 + 5 * 2 + 1);
  CHECK(r.network.tail(route, 0) == 100 + 1 + 5 * 2 + 1 + 10);
}

TEST_CASE("pages are whole flits: one byte more costs a flit more") {
  Rig r;
  CHECK(r.network.duration(640) == 10);
  CHECK(r.network.duration(641) == 11);
  CHECK(r.network.duration(0) == 1);
}

TEST_CASE("a page waits for the link that another one takes, from the switch where they meet") {
  Rig r;
  const RouteRef a = r.route({0, 0}, {{4, 0}});
  const RouteRef b = r.route({2, 0}, {{4, 0}});
  const RouteRef c = r.route({0, 1}, {{4, 1}});
  r.network.send(a, 100, 100, 640);  // takes link (2,0)-(3,0) from 105 to 115
  r.network.send(b, 106, 106, 64);
  CHECK(r.network.head(b, 0) == 115 + 2 + 2 + 1);
  r.network.send(c, 100, 100, 64);  // another row: not delayed
  CHECK(r.network.head(c, 0) == 100 + 1 + 8 + 1);
  r.network.reset();
  r.network.send(b, 106, 106, 64);
  CHECK(r.network.head(b, 0) == 106 + 1 + 4 + 1);
}

TEST_CASE("routes go along x first") {
  Rig r;
  const RouteRef across = r.route({0, 0}, {{1, 1}});
  const RouteRef up = r.route({1, 0}, {{1, 1}});
  r.network.send(across, 0, 0, 6400);
  r.network.send(up, 4, 4, 64);  // shares (1,0)-(1,1), taken from 3 to 103
  CHECK(r.network.head(up, 0) == 103 + 2 + 1);
}

TEST_CASE("a page passes what was sent earlier and is not there yet, where it has crossed before that comes") {
  Rig r;
  const RouteRef far = r.route({0, 0}, {{4, 0}});
  const RouteRef near = r.route({3, 0}, {{4, 0}});
  r.network.send(far, 100, 100, 640);   // takes link (3,0)-(4,0) from 107 to 117
  r.network.send(near, 100, 100, 384);  // from 101 to 107
  CHECK(r.network.head(near, 0) == 101 + 2 + 1);
  r.network.send(near, 100, 100, 64);  // nothing is left before it
  CHECK(r.network.head(near, 0) == 117 + 2 + 1);
}

TEST_CASE("a page that would still be crossing when the other comes waits for it") {
  Rig r;
  const RouteRef far = r.route({0, 0}, {{4, 0}});
  const RouteRef near = r.route({3, 0}, {{4, 0}});
  r.network.send(far, 100, 100, 640);
  r.network.send(near, 100, 100, 448);  // seven cycles from 101 on, and six are free
  CHECK(r.network.head(near, 0) == 117 + 2 + 1);
}

TEST_CASE("a page that waits keeps its channel on the links behind it, as far as its buffers do not hold it") {
  Rig r;
  const RouteRef blocker = r.route({2, 0}, {{3, 0}});
  const RouteRef waits = r.route({0, 0}, {{3, 0}});
  const RouteRef same = r.route({1, 0}, {{2, 0}});  // a channel of its own
  for (int i = 0; i < 2; ++i) r.route({1, 0}, {{2, 0}});
  const RouteRef again = r.route({1, 0}, {{2, 0}});
  REQUIRE(waits.flow % 4 == again.flow % 4);
  r.network.send(blocker, 0, 0, 64000);  // link (2,0)-(3,0) from 1 to 1001
  const Cycle left = r.network.send(waits, 0, 0, 6400);
  CHECK(r.network.head(waits, 0) == 1001 + 2 + 1);
  // Its tail is over the last link at 1101; a buffer of 8 flits and a hop before that over the link behind, and so on.
  CHECK(left == 1101 - 3 * (8 + 2));
  r.network.send(same, 300, 300, 64);  // (1,0)-(2,0) carries nothing while `waits` stands
  CHECK(r.network.head(same, 0) == 301 + 2 + 1);
  r.network.send(again, 300, 300, 64);
  CHECK(r.network.head(again, 0) == 1101 - (8 + 2) + 2 + 1);
}

TEST_CASE("a multicast takes shared links once") {
  Rig r;
  const RouteRef tree = r.route({0, 0}, {{3, 0}, {3, 1}, {2, 0}, {0, 0}});
  CHECK(tree.count == 4);  // three along x, one up
  r.network.send(tree, 0, 0, 64);
  CHECK(r.network.head(tree, 0) == 1 + 6 + 1);
  CHECK(r.network.head(tree, 1) == 1 + 8 + 1);
  CHECK(r.network.head(tree, 2) == 1 + 4 + 1);
  CHECK(r.network.head(tree, 3) == 1 + 1);
  // One after the other they would take the first link four times.
  const RouteRef probe = r.route({0, 0}, {{1, 0}});
  r.network.send(probe, 0, 0, 64);
  CHECK(r.network.head(probe, 0) == 2 + 2 + 1);
}

TEST_CASE("a page is complete no earlier than its last byte has come") {
  Rig r;
  const RouteRef route = r.route({0, 0}, {{1, 0}});
  r.network.send(route, 100, 500, 640);
  CHECK(r.network.tail(route, 0) == 500 + 2 * 1 + 2);
}

TEST_CASE("the source is free when the page has left it, to the first link or the buffer before that") {
  Rig r;
  const RouteRef route = r.route({0, 0}, {{2, 0}});
  CHECK(r.network.send(route, 100, 100, 6400) == 201);
  CHECK(r.network.send(route, 100, 100, 6400) == 301 - (8 + 2));
}

TEST_CASE("control wires take their hops and at least one cycle") {
  Rig r;
  CHECK(r.network.control({0, 0}, {3, 2}) == 15);
  CHECK(r.network.control({1, 1}, {1, 1}) == 1);
}

TEST_CASE("only links that a route uses come to be, and places off the mesh are taken at its edge") {
  Rig r;
  CHECK(r.network.links() == 0);
  r.route({0, 0}, {{2, 0}});
  r.route({0, 0}, {{2, 0}});
  CHECK(r.network.links() == 2);
  const RouteRef far = r.route({6, 0}, {{100, 0}});
  CHECK(far.count == 1);
}

}  // namespace
}  // namespace rdusim::network_test
