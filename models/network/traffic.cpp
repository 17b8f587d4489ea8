#include "models/network/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "compiler/support/split_mix.h"

namespace rdusim {

namespace {

constexpr std::array<std::string_view, traffic_patterns> pattern_names{
    "uniform", "transpose", "tornado", "neighbour", "bit-complement", "bit-reverse", "shuffle", "hotspot"};

__extension__ typedef unsigned __int128 Wide;

// num / den of 2^64, for comparison with a random number: true with that probability. den >= num.
std::uint64_t threshold(std::uint64_t num, std::uint64_t den) {
  const Wide t = (static_cast<Wide>(num) << 64) / den;
  constexpr auto most = ~std::uint64_t{0};
  return t > most ? most : static_cast<std::uint64_t>(t);
}

class Destinations {
 public:
  Destinations(const FlitNetworkParameters& network, const TrafficOptions& options)
      : network_(network),
        options_(options),
        nodes_(network.width * network.height),
        hot_(threshold(options.hot_share.num, options.hot_share.den)) {}

  NodeId of(NodeId from, std::uint64_t& random) const {
    const std::uint32_t w = network_.width, h = network_.height;
    const std::uint32_t x = from % w, y = from / w;
    const auto bits = static_cast<std::uint32_t>(std::countr_zero(nodes_));
    switch (options_.pattern) {
      case TrafficPattern::uniform:
        return draw_below(random, nodes_);
      case TrafficPattern::transpose:
        return x * w + y;
      case TrafficPattern::tornado:
        return (y + (h + 1) / 2 - 1) % h * w + (x + (w + 1) / 2 - 1) % w;
      case TrafficPattern::neighbour:
        return (y + 1) % h * w + (x + 1) % w;
      case TrafficPattern::bit_complement:
        return nodes_ - 1 - from;
      case TrafficPattern::bit_reverse: {
        NodeId to = 0;
        for (std::uint32_t b = 0; b < bits; ++b) to |= (from >> b & 1U) << (bits - 1 - b);
        return to;
      }
      case TrafficPattern::shuffle:
        return bits == 0 ? from : (from << 1 | from >> (bits - 1)) & (nodes_ - 1);
      case TrafficPattern::hotspot:
        if (draw(random) < hot_) {
          return options_.hot[draw_below(random, static_cast<std::uint32_t>(options_.hot.size()))];
        }
        return draw_below(random, nodes_);
    }
    return from;
  }

 private:
  const FlitNetworkParameters& network_;
  const TrafficOptions& options_;
  std::uint32_t nodes_;
  std::uint64_t hot_;
};

// One unit's Bernoulli process, run only as far as its queue is taken: what waits in an infinite queue need not be
// kept, since the process can be asked for it when its turn comes.
struct Process {
  std::uint64_t random = 0;  // state of its generator
  Cycle next = 0;            // cycle that the process has not been asked for
};

}  // namespace

std::string_view name(TrafficPattern pattern) {
  return pattern_names[static_cast<std::size_t>(pattern)];
}

std::optional<TrafficPattern> traffic_pattern(std::string_view text) {
  for (std::size_t i = 0; i < traffic_patterns; ++i) {
    if (pattern_names[i] == text) return static_cast<TrafficPattern>(i);
  }
  return std::nullopt;
}

std::optional<std::string> unsound(const FlitNetworkParameters& network, const TrafficOptions& options) {
  const std::uint32_t nodes = network.width * network.height;
  if (options.rate.num == 0 || options.rate.num > options.rate.den) {
    return fmt::format("a rate of {} flits a unit and cycle; above 0 and at most 1 is allowed",
                       to_double(options.rate));
  }
  if (options.packet_flits == 0 || options.packet_flits > 65535) {
    return fmt::format("packets of {} flits; 1 to 65535 are allowed", options.packet_flits);
  }
  if (network.switching == Switching::cut_through && options.packet_flits > network.buffer_flits) {
    return fmt::format("packets of {} flits do not fit a buffer of {}, as cut-through switching needs",
                       options.packet_flits, network.buffer_flits);
  }
  switch (options.pattern) {
    case TrafficPattern::transpose:
      if (network.width != network.height) {
        return fmt::format("transpose needs a square mesh; this one is {} x {}", network.width, network.height);
      }
      break;
    case TrafficPattern::bit_complement:
    case TrafficPattern::bit_reverse:
    case TrafficPattern::shuffle:
      if (!std::has_single_bit(nodes)) {
        return fmt::format("{} needs a power of two units; this mesh has {}", name(options.pattern), nodes);
      }
      break;
    case TrafficPattern::hotspot:
      if (options.hot.empty()) return "hotspot needs at least one hot node";
      for (const NodeId node : options.hot) {
        if (node >= nodes) return fmt::format("hot node {} is not one of the mesh's {}", node, nodes);
      }
      if (options.hot_share.num > options.hot_share.den) {
        return fmt::format("a hot share of {}; at most 1 is allowed", to_double(options.hot_share));
      }
      break;
    default:
      break;
  }
  constexpr Cycles most = 1'000'000'000;
  if (options.measure == 0 || options.measure > most || options.warm_up > most) {
    return fmt::format(
        "{} cycles of warm-up and {} of measurement; at most {} each are allowed, and at least 1 is measured",
        options.warm_up, options.measure, most);
  }
  return std::nullopt;
}

TrafficResult run_traffic(const FlitNetworkParameters& parameters, const TrafficOptions& options) {
  assert(!unsound(parameters) && !unsound(parameters, options));
  FlitNetwork network(parameters);
  const std::uint32_t nodes = parameters.width * parameters.height;
  const Destinations destinations(parameters, options);
  const std::uint64_t chance = threshold(options.rate.num, options.rate.den * options.packet_flits);
  std::vector<Process> processes(nodes);
  std::uint64_t seeds = options.seed;
  for (Process& p : processes) p.random = draw(seeds);

  const Cycle from = options.warm_up, to = options.warm_up + options.measure;
  const Cycle last = to + options.warm_up + options.measure;
  TrafficResult result;
  result.offered = options.rate;
  std::uint64_t outstanding = 0, latency_sum = 0, routers_sum = 0, unloaded_sum = 0, arrived_flits = 0, made_flits = 0;
  std::vector<std::uint64_t> by_latency;  // the last entry: that and above
  by_latency.resize(65536);
  std::uint64_t arrived_before = 0;
  std::vector<std::uint64_t> links_before(std::size_t{nodes} * 4);
  while (network.now() < to || (network.now() < last && outstanding != 0)) {
    const Cycle now = network.now();
    if (now == from) {
      arrived_before = network.flits_delivered();
      for (NodeId n = 0; n < nodes; ++n) {
        for (std::uint32_t d = 0; d < 4; ++d) links_before[n * 4 + d] = network.link_flits(n, d);
      }
    }
    for (NodeId n = 0; n < nodes; ++n) {
      if (!network.idle(n)) continue;
      Process& p = processes[n];
      while (p.next <= now) {
        const Cycle created = p.next++;
        if (draw(p.random) >= chance) continue;
        const bool measured = created >= from && created < to;
        if (measured) {
          ++outstanding;
          made_flits += options.packet_flits;
        }
        network.inject({n, destinations.of(n, p.random), options.packet_flits, created, measured ? 1U : 0U});
        break;
      }
    }
    network.advance();
    for (const FlitPacket& packet : network.delivered()) {
      if (packet.tag == 0) continue;
      --outstanding;
      ++result.packets;
      const Cycles latency = now - packet.created;
      latency_sum += latency;
      ++by_latency[std::min<std::size_t>(latency, by_latency.size() - 1)];
      result.least_latency = result.packets == 1 ? latency : std::min(result.least_latency, latency);
      result.greatest_latency = std::max(result.greatest_latency, latency);
      unloaded_sum += network.unloaded(packet.from, packet.to, packet.flits);
      routers_sum += network.routers(packet.from, packet.to);
    }
    if (network.now() == to) {
      arrived_flits = network.flits_delivered() - arrived_before;
      std::uint64_t busiest = 0;
      for (NodeId n = 0; n < nodes; ++n) {
        for (std::uint32_t d = 0; d < 4; ++d) {
          busiest = std::max(busiest, network.link_flits(n, d) - links_before[n * 4 + d]);
        }
      }
      result.busiest_link = static_cast<double>(busiest) / static_cast<double>(options.measure);
    }
  }
  // What the sources made and never got to put in was measured as well: ask the processes for it.
  for (Process& p : processes) {
    for (; p.next < to; ++p.next) {
      if (draw(p.random) >= chance) continue;
      (void)destinations.of(0, p.random);
      if (p.next < from) continue;
      ++outstanding;
      made_flits += options.packet_flits;
    }
  }
  const double per = static_cast<double>(nodes) * static_cast<double>(options.measure);
  result.generated = static_cast<double>(made_flits) / per;
  result.accepted = static_cast<double>(arrived_flits) / per;
  result.unfinished = outstanding;
  result.traversals = network.traversals();
  result.cycles = network.now();
  if (result.packets != 0) {
    const auto count = static_cast<double>(result.packets);
    result.mean_latency = static_cast<double>(latency_sum) / count;
    result.mean_routers = static_cast<double>(routers_sum) / count;
    result.unloaded_latency = static_cast<double>(unloaded_sum) / count;
    const auto at_share = [&](std::uint64_t num, std::uint64_t den) {
      std::uint64_t seen = 0;
      for (std::size_t i = 0; i + 1 < by_latency.size(); ++i) {
        seen += by_latency[i];
        if (seen * den >= result.packets * num) return static_cast<Cycles>(i);
      }
      return result.greatest_latency;
    };
    result.median_latency = at_share(1, 2);
    result.p99_latency = at_share(99, 100);
  }
  result.saturated = outstanding != 0 || latency_sum > saturation_latency_factor * unloaded_sum;
  return result;
}

Saturation find_saturation(const FlitNetworkParameters& network, TrafficOptions options) {
  constexpr std::uint64_t steps = 256;
  const auto at = [&](std::uint64_t step) {
    options.rate = make_fraction(step, steps);
    return run_traffic(network, options);
  };
  Saturation s;
  s.below = at(1);
  if (s.below.saturated) {
    s.beyond = s.below;
    s.found = true;
    return s;
  }
  s.beyond = at(steps);
  if (!s.beyond.saturated) {
    s.below = s.beyond;
    return s;
  }
  s.found = true;
  for (std::uint64_t low = 1, high = steps; high - low > 1;) {
    const std::uint64_t middle = (low + high) / 2;
    TrafficResult r = at(middle);
    if (r.saturated) {
      high = middle;
      s.beyond = r;
    } else {
      low = middle;
      s.below = r;
    }
  }
  return s;
}

}  // namespace rdusim
