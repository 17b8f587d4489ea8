#include "models/network/flit_network.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

namespace rdusim::flit_network_test {

namespace {

FlitNetworkParameters small() {
  FlitNetworkParameters p;
  p.width = 5;
  p.height = 4;
  return p;
}

// Cycles from creation to delivery of one packet alone.
Cycles alone(FlitNetwork& network, NodeId from, NodeId to, std::uint32_t flits) {
  const Cycle created = network.now();
  network.inject({from, to, flits, created, 0});
  while (true) {
    const Cycle now = network.now();
    network.advance();
    if (!network.delivered().empty()) {
      CHECK(network.delivered().size() == 1);
      CHECK(network.empty());
      return now - created;
    }
    REQUIRE(now < created + 10'000);
  }
}

}  // namespace

TEST_CASE("a packet alone takes the unloaded latency, from every node to every other") {
  std::vector<FlitNetworkParameters> all(4, small());
  all[1].routing_cycles = 1;
  all[1].vc_allocation_cycles = 2;
  all[1].switch_allocation_cycles = 1;
  all[1].traversal_cycles = 2;
  all[1].link_cycles = 3;
  all[1].endpoint_cycles = 2;
  all[1].buffer_flits = 16;
  all[2].vc_allocation_cycles = all[2].traversal_cycles = all[2].link_cycles = all[2].endpoint_cycles = 0;
  all[2].credit_cycles = 0;
  all[3].switch_allocation_cycles = 3;
  all[3].wait_for_tail_credit = true;
  for (const FlitNetworkParameters& p : all) {
    FlitNetwork network(p);
    for (NodeId from = 0; from < 20; ++from) {
      for (NodeId to = 0; to < 20; ++to) {
        REQUIRE(alone(network, from, to, 1) == network.unloaded(from, to, 1));
      }
    }
  }
}

TEST_CASE("four cycles a router and two for the way in, with steps of one cycle") {
  FlitNetwork network(small());
  CHECK(alone(network, 7, 7, 1) == 6);
  CHECK(alone(network, 0, 4, 1) == 4 * 5 + 2);
  CHECK(alone(network, 0, 19, 1) == 4 * 8 + 2);
  CHECK(alone(network, 0, 19, 4) == 4 * 8 + 2 + 3);
}

TEST_CASE("with nothing but registers it keeps the fast network's law: two ends and a hop each") {
  FlitNetworkParameters p = small();
  p.vc_allocation_cycles = p.traversal_cycles = p.link_cycles = p.endpoint_cycles = p.credit_cycles = 0;
  FlitNetwork network(p);
  CHECK(alone(network, 0, 0, 1) == 2);
  CHECK(alone(network, 0, 19, 1) == 2 + 7);
  CHECK(alone(network, 0, 19, 6) == 2 + 7 + 5);
}

TEST_CASE("a long packet moves at the rate that the credits of one buffer allow") {
  // A flit's slot is free again after: to the next buffer 3, its credit back 2 and counted 1 later.
  constexpr Cycles loop = 6;
  for (std::uint32_t buffer : {1U, 2U, 3U, 6U, 8U}) {
    FlitNetworkParameters p = small();
    p.vcs = 1;
    p.buffer_flits = buffer;
    FlitNetwork network(p);
    const Cycles shorter = alone(network, 0, 4, 61), longer = alone(network, 0, 4, 121);
    CHECK(longer - shorter == (buffer >= loop ? 60 : 60 * loop / buffer));
  }
}

TEST_CASE("every packet arrives once, whole, and in the order of its virtual channel") {
  for (const Switching switching : {Switching::wormhole, Switching::cut_through}) {
    for (const bool wait : {false, true}) {
      FlitNetworkParameters p = small();
      p.vcs = 1;
      p.buffer_flits = 4;
      p.switching = switching;
      p.wait_for_tail_credit = wait;
      FlitNetwork network(p);
      std::uint64_t sent = 0, flits = 0, arrived = 0;
      std::map<std::pair<NodeId, NodeId>, std::uint64_t> last;
      while (sent < 4'000 || !network.empty()) {
        for (NodeId from = 0; from < 20 && sent < 4'000; ++from) {
          if (!network.idle(from)) continue;
          const auto to = static_cast<NodeId>((from * 7 + sent * 3) % 20);
          const auto size = static_cast<std::uint32_t>(1 + sent % 4);
          network.inject({from, to, size, network.now(), ++sent});
          flits += size;
        }
        network.advance();
        REQUIRE(network.now() < 1'000'000);
        for (const FlitPacket& packet : network.delivered()) {
          ++arrived;
          // One virtual channel and one route: a pair's packets cannot overtake.
          auto& before = last[{packet.from, packet.to}];
          REQUIRE(packet.tag > before);
          before = packet.tag;
        }
      }
      CHECK(arrived == sent);
      CHECK(network.flits_delivered() == flits);
    }
  }
}

TEST_CASE("two flows share a link evenly, and neither is faster than the link") {
  FlitNetworkParameters p = small();
  FlitNetwork network(p);
  std::map<NodeId, std::uint64_t> arrived;
  while (network.now() < 4'000) {
    // Both take the row's links from (1, 1) on.
    for (const NodeId source : {NodeId{5}, NodeId{6}}) {
      if (network.idle(source)) network.inject({source, 9, 1, network.now(), 0});
    }
    network.advance();
    for (const FlitPacket& packet : network.delivered()) ++arrived[packet.from];
  }
  CHECK(arrived[5] + arrived[6] <= 4'000);
  CHECK(arrived[5] + arrived[6] >= 3'900);
  CHECK(arrived[5] >= 1'900);
  CHECK(arrived[6] >= 1'900);
}

TEST_CASE("virtual channels let a packet pass one that is blocked") {
  // Two sources fill node 4 at twice its rate, so that (0,0) is blocked; node 0's packets to node 1 share only their
  // first link with that. With one virtual channel they wait behind, with several they pass.
  const auto passed = [](std::uint32_t vcs) {
    FlitNetworkParameters p = small();
    p.vcs = vcs;
    p.buffer_flits = 4;
    FlitNetwork network(p);
    std::uint64_t count = 0, turn = 0;
    while (network.now() < 3'000) {
      if (network.idle(0)) network.inject({0, turn++ % 2 == 0 ? NodeId{4} : NodeId{1}, 4, network.now(), 0});
      for (const NodeId from : {NodeId{2}, NodeId{3}, NodeId{9}}) {
        if (network.idle(from)) network.inject({from, 4, 4, network.now(), 0});
      }
      network.advance();
      for (const FlitPacket& packet : network.delivered()) count += packet.to == 1 ? 1 : 0;
    }
    return count;
  };
  CHECK(passed(4) > passed(1));
}

TEST_CASE("parameters beyond their limits are named with limit and value") {
  FlitNetworkParameters p;
  CHECK_FALSE(unsound(p));
  p.vcs = 17;
  CHECK(unsound(p) == "vcs is 17; 1 to 16 is allowed");
  p = {};
  p.buffer_flits = 0;
  CHECK(unsound(p) == "buffer_flits is 0; 1 to 4096 is allowed");
  p = {};
  p.width = p.height = 256;
  CHECK(unsound(p) == "the mesh has 256 x 256 routers; at most 65535 are allowed");
  p.height = 255;
  p.vcs = 16;
  p.buffer_flits = 4096;
  CHECK(unsound(p) == "the mesh has buffers for 21390950400 flits; at most 134217728 are allowed");
}

}  // namespace rdusim::flit_network_test
