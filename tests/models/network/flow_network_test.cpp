#include "models/network/flow_network.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "compiler/support/split_mix.h"
#include "models/network/traffic.h"

namespace rdusim::flow_network_test {
namespace {

struct Times {
  Cycle left = 0;
  std::map<std::uint32_t, std::pair<Cycle, Cycle>> came;  // by leaf: first and last byte
};

// Runs until nothing is left; what became of each page.
std::map<std::uint32_t, Times> drain(FlowNetwork& n) {
  std::map<std::uint32_t, Times> all;
  Cycle last = 0;
  while (n.next() != FlowNetwork::never) {
    const Cycle now = n.next();
    REQUIRE(now >= last);
    REQUIRE(now < 1'000'000);
    last = now;
    n.advance(now);
    for (const auto& l : n.left()) all[l.page].left = l.at;
    for (const auto& h : n.heads()) CHECK(h.at > now);
    for (const auto& a : n.arrivals()) {
      CHECK(a.tail > now);
      CHECK(all[a.page].came.emplace(a.leaf, std::pair{a.head, a.tail}).second);
    }
  }
  CHECK(n.empty());
  return all;
}

FlowNetworkParameters small() {
  FlowNetworkParameters p;
  p.width = 5;
  p.height = 4;
  p.locals = 2;
  return p;
}

TEST_CASE("an empty network takes two ends and the hops, and a cycle a flit") {
  for (const std::uint32_t hop : {1u, 3u, 9u})
    for (const std::uint32_t endpoint : {1u, 5u})
      for (const std::uint32_t flits : {1u, 2u, 40u}) {
        FlowNetworkParameters p = small();
        p.hop_cycles = hop;
        p.endpoint_cycles = endpoint;
        p.buffer_flits = 2 * std::max(hop, endpoint) + 1;  // covers the way of a credit
        FlowNetwork n(p);
        const FlowNetwork::End to[] = {{19, 1}};
        const std::uint32_t corner = n.add_flow({0, 0}, to);
        const FlowNetwork::End here[] = {{7, 1}};
        const std::uint32_t self = n.add_flow({7, 0}, here);
        n.send(corner, 0, flits, 100, 0);
        n.send(self, 1, flits, 100, 0);
        const auto all = drain(n);
        CHECK(all.at(0).came.at(0) ==
              std::pair<Cycle, Cycle>{100 + 2 * endpoint + 7 * hop, 100 + 2 * endpoint + 7 * hop + flits});
        CHECK(all.at(0).left == 100 + endpoint + flits);
        CHECK(all.at(1).came.at(0).first == 100 + 2 * endpoint);
      }
}

TEST_CASE("the last flit waits until its bytes are there") {
  FlowNetwork n(small());
  const FlowNetwork::End to[] = {{3, 0}};
  n.send(n.add_flow({0, 0}, to), 0, 4, 10, 50);
  CHECK(drain(n).at(0).came.at(0) == std::pair<Cycle, Cycle>{10 + 2 + 3, 50 + 2 + 3});
}

TEST_CASE("a multicast page is copied where routes part, and takes as long to each place as alone") {
  FlowNetwork n(small());
  std::vector<FlowNetwork::End> to;
  for (std::uint32_t node = 0; node < 20; ++node) to.push_back({node, node % 2});
  to.push_back({13, 1});  // twice at one port
  n.send(n.add_flow({6, 0}, to), 0, 10, 5, 0);
  const auto all = drain(n);
  REQUIRE(all.at(0).came.size() == 21);
  for (std::uint32_t node = 0; node < 20; ++node) {
    const auto apart = [](std::uint32_t a, std::uint32_t b) { return a > b ? a - b : b - a; };
    const Cycles hops = apart(node % 5, 6 % 5) + apart(node / 5, 6 / 5);
    CHECK(all.at(0).came.at(node) == std::pair<Cycle, Cycle>{5 + 2 + hops, 5 + 2 + hops + 10});
  }
  CHECK(all.at(0).came.at(20) == all.at(0).came.at(13));
  // 10 flits over the 19 links of the tree and out at 20 ports.
  CHECK(n.traversals() == 10 * (19 + 20));
}

TEST_CASE("two pages that share a link take twice as long, others are not in their way") {
  FlowNetwork n(small());
  const FlowNetwork::End a[] = {{4, 0}}, b[] = {{9, 0}}, c[] = {{15, 0}};
  n.send(n.add_flow({0, 0}, a), 0, 100, 0, 0);
  n.send(n.add_flow({1, 0}, b), 1, 100, 0, 0);
  n.send(n.add_flow({10, 0}, c), 2, 100, 0, 0);
  const auto all = drain(n);
  const Cycle last = std::max(all.at(0).came.at(0).second, all.at(1).came.at(0).second);
  CHECK(last >= 200);
  CHECK(last <= 215);
  CHECK(all.at(2).came.at(0).second == 0 + 2 + 1 + 100);
}

TEST_CASE("a link that carries fifteen flits in sixteen cycles does so") {
  FlowNetworkParameters p = small();
  p.period = {16, 15};
  FlowNetwork n(p);
  const FlowNetwork::End to[] = {{2, 0}};
  n.send(n.add_flow({0, 0}, to), 0, 1500, 0, 0);
  const Cycle last = drain(n).at(0).came.at(0).second;
  CHECK(last >= 1600 + 2 + 2 - 1);
  CHECK(last <= 1600 + 2 + 2 + 2);
}

TEST_CASE("small buffers throttle a flow to what their credits bring, and lose nothing") {
  FlowNetworkParameters p = small();
  p.hop_cycles = 4;
  p.buffer_flits = 2;
  FlowNetwork n(p);
  const FlowNetwork::End to[] = {{4, 0}};
  n.send(n.add_flow({0, 0}, to), 0, 200, 0, 0);
  // A credit is back after 8 cycles: two flits in eight.
  const Cycle last = drain(n).at(0).came.at(0).second;
  CHECK(last >= 200 * 4 - 10);
  CHECK(last <= 200 * 4 + 40);
}

TEST_CASE("pages of a flow come in the order in which they were sent, whatever else is under way") {
  FlowNetwork n(small());
  std::uint64_t state = 7;
  std::vector<std::uint32_t> flows;
  for (int i = 0; i < 40; ++i) {
    std::vector<FlowNetwork::End> to;
    for (std::uint32_t k = 0; k <= draw_below(state, 4); ++k)
      to.push_back({draw_below(state, 20), draw_below(state, 2)});
    flows.push_back(n.add_flow({draw_below(state, 20), draw_below(state, 2)}, to));
  }
  for (std::uint32_t page = 0; page < 400; ++page)
    n.send(flows[page % 40], page, 1 + draw_below(state, 30), page / 40 * 10, 0);
  const auto all = drain(n);
  CHECK(all.size() == 400);
  for (std::uint32_t page = 40; page < 400; ++page)
    for (const auto& [leaf, times] : all.at(page).came) CHECK(all.at(page - 40).came.at(leaf).second < times.second);
}

TEST_CASE("a flit that goes astray is dropped, its page comes without it, and nothing is left behind") {
  FlowNetwork n(small());
  const FlowNetwork::End to[] = {{8, 0}, {16, 1}};
  const std::uint32_t flow = n.add_flow({6, 0}, to);
  n.send(flow, 0, 20, 0, 0, true);
  n.send(flow, 1, 20, 0, 0);
  n.send(flow, 2, 1, 0, 0, true);  // a page of one flit has none to spare
  const auto all = drain(n);
  REQUIRE(all.size() == 3);
  for (const auto& [page, times] : all) CHECK(times.came.size() == 2);
  CHECK(all.at(0).came.at(0).first == 1 + 2 + 2);  // the second flit is the first to come
  CHECK(all.at(1).came.at(0).second == 40 + 2 + 2);
  // A switch fewer at the source, none behind the neighbour: 20 + 19 + 1 whole ones over 4 links and out at 2 ports.
  CHECK(n.traversals() == 40 * (2 + 2 + 2) + 1);
}

TEST_CASE("two runs are alike, and a network that is reset is as new") {
  const auto run = [](FlowNetwork& n, bool fresh) {
    std::vector<std::uint32_t> flows;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const FlowNetwork::End to[] = {{(i * 7 + 3) % 20, 0}, {(i * 3 + 1) % 20, 1}};
      flows.push_back(fresh ? n.add_flow({i, i % 2}, to) : i);
    }
    for (std::uint32_t i = 0; i < 100; ++i) n.send(flows[i % 20], i, 25, i, 0);
    std::vector<Cycle> times;
    for (const auto& [page, t] : drain(n))
      for (const auto& [leaf, pair] : t.came) times.push_back(pair.second);
    return times;
  };
  FlowNetwork a(small()), b(small());
  const auto first = run(a, true);
  CHECK(first == run(b, true));
  b.send(3, 1000, 500, 100'000, 0);
  b.advance(b.next());
  b.reset();
  CHECK(b.empty());
  CHECK(first == run(b, false));
}

// Mean latency of single flits between units drawn at random.
double mean_latency(std::uint32_t extent, double rate) {
  FlowNetworkParameters p;
  p.width = p.height = extent;
  FlowNetwork n(p);
  const std::uint32_t nodes = extent * extent;
  for (std::uint32_t from = 0; from < nodes; ++from)
    for (std::uint32_t to = 0; to < nodes; ++to) {
      const FlowNetwork::End end[] = {{to, 0}};
      n.add_flow({from, 0}, end);
    }
  std::uint64_t state = 3;
  std::vector<Cycle> made;
  double sum = 0;
  std::uint64_t count = 0;
  for (Cycle now = 0; now < 12'000; ++now) {
    for (std::uint32_t from = 0; from < nodes && now < 10'000; ++from) {
      if (static_cast<double>(draw(state) >> 11) * 0x1p-53 >= rate) continue;
      n.send(from * nodes + draw_below(state, nodes), static_cast<std::uint32_t>(made.size()), 1, now, 0);
      made.push_back(now);
    }
    if (n.next() > now) continue;
    n.advance(now);
    for (const auto& a : n.arrivals())
      if (made[a.page] >= 2'000) sum += static_cast<double>(a.head - made[a.page]), ++count;
  }
  CHECK(n.empty());
  return sum / static_cast<double>(count);
}

// Nearer to saturation they take longer, since a flow keeps to its virtual channel (at half a flit a unit, by a half).
TEST_CASE("single flits at random take as long as in the network that is held to BookSim") {
  FlitNetworkParameters same;
  same.width = same.height = 6;
  same.vc_allocation_cycles = same.traversal_cycles = same.link_cycles = same.endpoint_cycles = same.credit_cycles = 0;
  for (const std::uint32_t percent : {10u, 20u, 30u}) {
    CAPTURE(percent);
    TrafficOptions t;
    t.rate = make_fraction(percent, 100);
    t.warm_up = 2'000;
    t.measure = 8'000;
    const double reference = run_traffic(same, t).mean_latency;
    CHECK(mean_latency(6, percent / 100.0) == doctest::Approx(reference).epsilon(0.04));
  }
}

}  // namespace
}  // namespace rdusim::flow_network_test
