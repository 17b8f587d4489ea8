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
  r.network.send(up, 0, 0, 64);  // shares (1,0)-(1,1), taken from 3 to 103
  CHECK(r.network.head(up, 0) == 103 + 2 + 1);
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

TEST_CASE("the source is free when the page has left it over its first links") {
  Rig r;
  const RouteRef route = r.route({0, 0}, {{2, 0}});
  CHECK(r.network.send(route, 100, 100, 640) == 111);
  CHECK(r.network.send(route, 100, 100, 640) == 121);
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
