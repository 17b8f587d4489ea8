// Synthetic traffic on the flit-level network, as it is used to characterise networks: latency against offered rate,
// and where it saturates (Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapters 3,
// 23, 24).
//
//   source    of each unit: a Bernoulli process that makes a packet with probability rate / packet_flits a cycle, and
//   an
//             infinite queue; latency counts from the cycle in which the process made the packet to the arrival of its
//             last flit, waiting in the source included.
//   phases    warm-up; measurement, whose packets are measured and in which arriving flits are counted; drain, in which
//             the sources go on until the measured packets have arrived, for at most as long as warm-up and
//             measurement.
//   saturated the network does not carry what is offered: measured packets are left at the end of the drain, or the
//   mean
//             latency exceeds `saturation_latency_factor` times that of the empty network.
//
// Every number comes from the seed: same options, same result, on every computer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/units.h"
#include "models/network/flit_network.h"

namespace rdusim {

enum class TrafficPattern : std::uint8_t {
  uniform,         // every unit alike, itself included
  transpose,       // (x, y) to (y, x); square meshes
  tornado,         // ceil(k / 2) - 1 on in each axis of k, wrapped
  neighbour,       // 1 on in each axis, wrapped
  bit_complement,  // node number complemented; a power of two nodes
  bit_reverse,     // node number reversed; a power of two nodes
  shuffle,         // node number rotated left by one bit; a power of two nodes
  hotspot,         // a share of the packets to the hot nodes, the rest uniform
};
inline constexpr std::size_t traffic_patterns = 8;
std::string_view name(TrafficPattern pattern);
std::optional<TrafficPattern> traffic_pattern(std::string_view name);

struct TrafficOptions {
  TrafficPattern pattern = TrafficPattern::uniform;
  Fraction rate{1, 10};  // flits a unit and cycle, at most 1
  std::uint32_t packet_flits = 1;
  std::vector<NodeId> hot;    // of hotspot
  Fraction hot_share{1, 10};  // of hotspot: of all packets, spread over `hot` evenly
  Cycles warm_up = 5'000;
  Cycles measure = 20'000;
  std::uint64_t seed = 1;
};

// Latency beyond which a network counts as saturated, as a multiple of that of the empty network.
inline constexpr std::uint64_t saturation_latency_factor = 5;

struct TrafficResult {
  Fraction offered;      // as asked for
  double generated = 0;  // flits a unit and cycle that the sources made while measuring
  double accepted = 0;   // flits a unit and cycle that arrived while measuring
  bool saturated = false;
  std::uint64_t packets = 0;     // measured and arrived
  std::uint64_t unfinished = 0;  // measured, not arrived
  double mean_latency = 0;       // of those that arrived; 0 where none did
  Cycles least_latency = 0, greatest_latency = 0, median_latency = 0, p99_latency = 0;
  double mean_routers = 0;       // that a packet crossed
  double unloaded_latency = 0;   // mean of the same packets on an empty network
  double busiest_link = 0;       // flits a cycle
  std::uint64_t traversals = 0;  // over the whole run
  Cycles cycles = 0;             // of the whole run
};

// What is wrong with options on that network, in one line; nothing if they are sound.
std::optional<std::string> unsound(const FlitNetworkParameters& network, const TrafficOptions& options);

// Requires !unsound(network) and !unsound(network, options).
TrafficResult run_traffic(const FlitNetworkParameters& network, const TrafficOptions& options);

struct Saturation {
  TrafficResult below;   // the highest rate found that the network carries
  TrafficResult beyond;  // the lowest rate found that it does not; below.offered + resolution, or nothing saturates
  bool found = false;    // false: it carries a rate of 1
};

// Halves the interval between a carried and a saturated rate until it is 1/256 of a flit a unit and cycle.
Saturation find_saturation(const FlitNetworkParameters& network, TrafficOptions options);

}  // namespace rdusim
