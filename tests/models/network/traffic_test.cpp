#include "models/network/traffic.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

namespace rdusim::traffic_test {

namespace {

// A row of tests/accuracy/network.csv, whose head says where it is from. latency 0: it saturates there.
struct Reference {
  TrafficPattern pattern{};
  std::uint32_t vcs = 0, buffer_flits = 0, packet_flits = 0;
  Fraction rate;
  double latency = 0, accepted = 0, routers = 0;
};

std::vector<Reference> references() {
  std::ifstream in(RDUSIM_SOURCE_DIR "/tests/accuracy/network.csv");
  std::vector<Reference> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#') || line.starts_with("pattern")) continue;
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    REQUIRE(cells.size() == 8);
    const auto whole = [](const std::string& cell) { return static_cast<std::uint32_t>(std::stoul(cell)); };
    const auto number = [](const std::string& cell) { return cell.empty() ? 0.0 : std::stod(cell); };
    rows.push_back({traffic_pattern(cells[0]).value(), whole(cells[1]), whole(cells[2]), whole(cells[3]),
                    parse_decimal(cells[4]).value(), number(cells[5]), number(cells[6]), number(cells[7])});
  }
  return rows;
}

double away(double value, double reference) {
  return std::abs(value / reference - 1);
}

}  // namespace

TEST_CASE("latency and accepted rate are those of BookSim 2 within five per cent") {
  // Measured at 20,000 cycles: within 0.7 %.
  const std::vector<Reference> rows = references();
  CHECK(rows.size() == 18);
  for (const Reference& r : rows) {
    FlitNetworkParameters network;
    network.vcs = r.vcs;
    network.buffer_flits = r.buffer_flits;
    TrafficOptions options;
    options.pattern = r.pattern;
    options.rate = r.rate;
    options.packet_flits = r.packet_flits;
    options.measure = 10'000;
    const TrafficResult result = run_traffic(network, options);
    CAPTURE(name(r.pattern));
    CAPTURE(r.vcs);
    CAPTURE(r.packet_flits);
    CAPTURE(to_double(r.rate));
    CHECK(away(result.accepted, r.accepted) < 0.05);
    CHECK(result.saturated == (r.latency == 0));
    if (r.latency == 0) continue;
    CHECK(away(result.mean_latency, r.latency) < 0.05);
    CHECK(away(result.mean_routers, r.routers) < 0.02);
  }
}

TEST_CASE("the same options give the same result, another seed another") {
  TrafficOptions options;
  options.measure = 2'000;
  const FlitNetworkParameters network;
  const TrafficResult a = run_traffic(network, options), b = run_traffic(network, options);
  CHECK(a.mean_latency == b.mean_latency);
  CHECK(a.traversals == b.traversals);
  options.seed = 2;
  CHECK(run_traffic(network, options).traversals != a.traversals);
}

TEST_CASE("what the sources make is what arrives, below saturation") {
  TrafficOptions options;
  options.pattern = TrafficPattern::tornado;
  options.rate = {15, 100};
  const TrafficResult r = run_traffic({}, options);
  CHECK_FALSE(r.saturated);
  CHECK(r.unfinished == 0);
  CHECK(away(r.accepted, r.generated) < 0.01);
  CHECK(away(r.generated, 0.15) < 0.02);
  CHECK(r.mean_latency >= r.unloaded_latency);
  CHECK(r.least_latency <= r.median_latency);
  CHECK(r.median_latency <= r.p99_latency);
  CHECK(r.p99_latency <= r.greatest_latency);
}

TEST_CASE("a hot node saturates at what its router can give its unit") {
  // 63 units and itself send a tenth of their packets to it, and a 64th of the rest: at a rate of r it is offered
  // 64 r (0.1 + 0.9 / 64) flits a cycle, so that at most 0.137 are carried.
  TrafficOptions options;
  options.pattern = TrafficPattern::hotspot;
  options.hot = {27};
  const Saturation s = find_saturation({}, options);
  REQUIRE(s.found);
  CHECK(to_double(s.below.offered) < 0.137);
  CHECK(to_double(s.below.offered) > 0.08);
  CHECK(to_double(s.beyond.offered) - to_double(s.below.offered) == doctest::Approx(1.0 / 256));
}

TEST_CASE("neighbours on a line without wrap carry a flit a cycle but for the edge") {
  FlitNetworkParameters network;
  network.width = 4;
  network.height = 1;
  TrafficOptions options;
  options.pattern = TrafficPattern::bit_complement;
  options.rate = {1, 2};
  // 0 <-> 3 and 1 <-> 2 share the middle link: together they offer it one flit a cycle.
  const TrafficResult r = run_traffic(network, options);
  CHECK(r.busiest_link <= 1.0);
  CHECK(r.busiest_link > 0.95);
}

TEST_CASE("traffic that does not suit its mesh is refused with the numbers") {
  FlitNetworkParameters network;
  network.width = 6;
  TrafficOptions options;
  options.pattern = TrafficPattern::transpose;
  CHECK(unsound(network, options) == "transpose needs a square mesh; this one is 6 x 8");
  options.pattern = TrafficPattern::shuffle;
  CHECK(unsound(network, options) == "shuffle needs a power of two units; this mesh has 48");
  options.pattern = TrafficPattern::hotspot;
  CHECK(unsound(network, options) == "hotspot needs at least one hot node");
  options.hot = {48};
  CHECK(unsound(network, options) == "hot node 48 is not one of the mesh's 48");
  options = {};
  options.rate = {3, 2};
  CHECK(unsound(network, options) == "a rate of 1.5 flits a unit and cycle; above 0 and at most 1 is allowed");
  options.rate = {0, 1};
  CHECK(unsound(network, options));
  options = {};
  network.switching = Switching::cut_through;
  options.packet_flits = 9;
  CHECK(unsound(network, options) == "packets of 9 flits do not fit a buffer of 8, as cut-through switching needs");
}

}  // namespace rdusim::traffic_test
