#include "models/units/network.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {
namespace {

std::uint32_t distance(std::uint32_t a, std::uint32_t b) {
  return a > b ? a - b : b - a;
}

}  // namespace

Network::Network(const NetworkParameters& p)
    : rate_(p.link_bytes_per_cycle),
      flit_(std::max<Bytes>(p.flit_bytes, 1)),
      hop_(p.hop_cycles),
      endpoint_(p.endpoint_cycles),
      control_hop_(p.control_hop_cycles),
      channels_(std::max(p.virtual_channels, 1u)),
      buffered_(rate_.span(Bytes{p.buffer_flits} * flit_).ceil() + hop_) {}

std::optional<std::string> no_flit_level(const Target& target) {
  const NetworkParameters& p = target.network;
  if (Fraction{p.flit_bytes, 1} < p.link_bytes_per_cycle)
    return fmt::format("its links carry {} bytes a cycle, more than a flit of {}", to_string(p.link_bytes_per_cycle),
                       p.flit_bytes);
  if (p.hop_cycles == 0 || p.endpoint_cycles == 0)
    return fmt::format("a hop takes {} cycles and an end {}, where flits take at least one", p.hop_cycles,
                       p.endpoint_cycles);
  return std::nullopt;
}

Network::Network(const Target& t, NetworkLevel level) : Network(t.network) {
  if (level == NetworkLevel::fast) return;
  const NetworkParameters& p = t.network;
  const Fraction pmu = std::max(t.pmu.read_bytes_per_cycle, t.pmu.write_bytes_per_cycle);
  const Fraction links = divide(pmu, p.link_bytes_per_cycle).value_or(Fraction{1, 1});
  constexpr std::uint64_t most = FlowNetwork::most_locals - 1;
  pmu_ports_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>((links.num + links.den - 1) / links.den, 1, most));
  FlowNetworkParameters f;
  f.width = t.mesh.width;
  f.height = t.mesh.height;
  f.locals = pmu_ports_ + 1;
  f.vcs = p.virtual_channels;
  f.buffer_flits = p.buffer_flits;
  f.hop_cycles = static_cast<std::uint32_t>(p.hop_cycles);
  f.endpoint_cycles = static_cast<std::uint32_t>(p.endpoint_cycles);
  f.period = divide(Fraction{p.flit_bytes, 1}, p.link_bytes_per_cycle).value_or(Fraction{1, 1});
  flits_ = std::make_unique<FlowNetwork>(f);
}

Cycles Network::control(Position a, Position b) const {
  return std::max<Cycles>(1, control_hop_ * (Cycles{distance(a.x, b.x)} + distance(a.y, b.y)));
}

void Network::reset() {
  std::fill(links_.begin(), links_.end(), Link{});
  std::fill(tails_.begin(), tails_.end(), Cycle{0});
  if (flits_) flits_->reset();
}

Cycle Network::send(const RouteRef& route, Cycle now, Cycle ready, Bytes bytes) {
  const Span s = span(bytes);
  duration_ = s.ceil();
  ready_ = ready;
  head_[0] = now + endpoint_;
  Cycle* const channel = tails_.data() + route.flow % channels_;
  for (std::uint32_t i = 0; i < route.count; ++i) {
    const Hop& hop = hops_[route.hops + i];
    const Cycle from = std::max(head_[hop.parent], channel[std::size_t{hop.link} * channels_]);
    const Slot taken = links_[hop.link].take(from, s, rate_.parts());
    head_[i + 1] = taken.begin + hop_;
    tail_[i + 1] = taken.end;
  }
  // Parents come before their children: the last hops first.
  Cycle left = std::max(ready, head_[0] + duration_);
  for (std::uint32_t i = route.count; i-- > 0;) {
    const Hop& hop = hops_[route.hops + i];
    channel[std::size_t{hop.link} * channels_] = tail_[i + 1];
    Cycle& behind = hop.parent == 0 ? left : tail_[hop.parent];
    behind = std::max(behind, tail_[i + 1] - std::min(tail_[i + 1], buffered_));
  }
  return left;
}

Network::Builder::Builder(Network& network, const Mesh& mesh) : network_(network), mesh_(mesh) {
  mesh_.width = std::max(mesh_.width, 1u);
  mesh_.height = std::max(mesh_.height, 1u);
  const std::size_t sites = std::size_t{mesh_.width} * mesh_.height;
  link_at_.resize(sites * 4);
  node_at_.resize(sites);
}

Position Network::Builder::clamp(Position p) const {
  return {std::min(p.x, mesh_.width - 1), std::min(p.y, mesh_.height - 1)};
}

std::uint32_t Network::Builder::link(Position at, std::uint32_t direction) {
  std::uint32_t& known = link_at_[(std::size_t{at.y} * mesh_.width + at.x) * 4 + direction];
  if (known == 0) {
    network_.links_.emplace_back();
    network_.tails_.resize(network_.links_.size() * network_.channels_);
    known = static_cast<std::uint32_t>(network_.links_.size());
  }
  return known - 1;
}

// A unit's port: those of the PMUs of a site come first, then the AGCU's. Routes take them in turn.
FlowNetwork::End Network::Builder::unit(Position at, bool agcu, std::vector<std::uint32_t>& taken) {
  const Position p = clamp(at);
  const std::uint32_t node = p.y * mesh_.width + p.x;
  if (agcu) return {node, network_.pmu_ports_};
  taken.resize(std::size_t{mesh_.width} * mesh_.height);
  return {node, taken[node]++ % network_.pmu_ports_};
}

RouteRef Network::Builder::route(Position from, std::span<const Position> to, Agcus agcus) {
  RouteRef r;
  r.hops = static_cast<std::uint32_t>(network_.hops_.size());
  r.leaves = static_cast<std::uint32_t>(network_.leaf_.size());
  const Position source = clamp(from);
  const auto site = [&](Position p) { return p.y * mesh_.width + p.x; };
  for (const Position& end : to) {
    const Position destination = clamp(end);
    Position at = source;
    std::uint32_t node = 0;
    std::uint16_t depth = 0;
    while (!(at == destination)) {
      Position next = at;
      std::uint32_t direction = 0;
      if (at.x != destination.x) {
        direction = at.x < destination.x ? 0 : 1;
        next.x = direction == 0 ? at.x + 1 : at.x - 1;
      } else {
        direction = at.y < destination.y ? 2 : 3;
        next.y = direction == 2 ? at.y + 1 : at.y - 1;
      }
      ++depth;
      std::uint32_t& known = node_at_[site(next)];
      if (known == 0) {
        network_.hops_.push_back({link(at, direction), static_cast<std::uint16_t>(node), depth});
        known = static_cast<std::uint32_t>(network_.hops_.size()) - r.hops + 1;
        touched_.push_back(site(next));
      }
      node = known - 1;
      at = next;
    }
    network_.leaf_.push_back(node);
  }
  for (const std::uint32_t s : touched_) node_at_[s] = 0;
  touched_.clear();
  r.count = static_cast<std::uint32_t>(network_.hops_.size()) - r.hops;
  if (network_.head_.size() <= r.count) {
    network_.head_.resize(r.count + std::size_t{1});
    network_.tail_.resize(r.count + std::size_t{1});
  }
  r.flow = network_.routes_++;
  if (network_.flits_) {
    std::vector<FlowNetwork::End> ends;
    for (std::size_t i = 0; i < to.size(); ++i) ends.push_back(unit(to[i], agcus.to == i, sinks_));
    r.flow = network_.flits_->add_flow(unit(from, agcus.from, sources_), ends);
  }
  return r;
}

}  // namespace rdusim
