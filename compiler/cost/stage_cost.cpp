#include "compiler/cost/stage_cost.h"

#include <algorithm>
#include <map>
#include <span>

#include "compiler/cost/crossing_trips.h"
#include "compiler/cost/exact.h"
#include "compiler/cost/link_rate.h"
#include "compiler/ir/host_results.h"

namespace rdusim::cost {

namespace {

std::uint64_t all_firings(const SpatialProgram& p, const Stage& s) {
  return times(s.firings, p.sections[s.section.value].trips);
}

// The least of several rates; one of 0 is no limit.
Fraction least(std::initializer_list<Fraction> rates) {
  Fraction best{0, 1};
  for (const Fraction& r : rates)
    if (r.num != 0 && (best.num == 0 || r < best)) best = r;
  return best;
}

Fraction shared(const Fraction& rate, std::uint64_t streams) {
  return {rate.num, times(rate.den, std::max<std::uint64_t>(streams, 1))};
}

// Bytes a cycle that a Load's or Store's lanes move; of one that moves as fast as its ports, no limit.
Fraction lane_rate(const SpatialProgram& p, const Stage& s) {
  const auto rate = [&](const auto& access) {
    return Fraction{times(access.lanes, bytes_of(p.tensor(access.tensor).dtype)), 1};
  };
  if (const auto* load = std::get_if<Load>(&s.kind)) return rate(*load);
  if (const auto* store = std::get_if<Store>(&s.kind)) return rate(*store);
  return {0, 1};
}

struct Latencies {
  const Target& t;
  Cycles mesh(std::uint32_t n) const { return 2 * t.network.endpoint_cycles + n * t.network.hop_cycles; }
};

StageCost matmul_cost(const SpatialProgram& p, const Target& t, const Stage& s, const MatmulTiles& m) {
  const std::uint64_t tile = t.native_tile;
  const std::uint32_t peak = t.pcu.macs(m.operand);
  // Memory units are read side by side.
  std::map<std::uint32_t, Bytes> read;
  for (const Port& port : s.ports)
    if (port.direction == Direction::input) {
      const Buffer& b = p.buffer(port.buffer);
      read[b.pmu] = plus(read[b.pmu], page_bytes(b, p.header.native_tile));
    }
  Bytes operands = 0;
  for (const auto& [pmu, bytes] : read) operands = std::max(operands, bytes);
  // Rows of a page of the left operand, as far as it has any.
  const Buffer& left = p.buffer(s.ports.front().buffer);
  const Bytes row_bytes = times(times(std::min(m.page_k, m.k_tiles), tile), bytes_of(left.dtype));
  const std::uint64_t rows = std::clamp<std::uint64_t>(
      ceil_div(page_bytes(left, p.header.native_tile), std::max<Bytes>(row_bytes, 1)), 1, times(m.block_m, tile));
  StageCost cost;
  Cycles computing = 0;
  if (m.lanes != 0) {
    // As many columns as a page of the right operand has, in vectors along the contraction.
    const Buffer& right = p.buffer(s.ports[1].buffer);
    const std::uint64_t cols = std::clamp<std::uint64_t>(
        ceil_div(page_bytes(right, p.header.native_tile), std::max<Bytes>(row_bytes, 1)), 1, times(m.block_n, tile));
    const std::uint64_t depth = times(std::min(m.page_k, m.k_tiles), tile);
    computing = ceil_div(times(times(rows, cols), times(ceil_div(depth, std::uint64_t{m.lanes}), m.lanes)),
                         t.pcu.simd_rate(m.accumulator, m.lanes));
  } else if (peak != 0) {
    computing = ceil_div(times(t.pcu.rows_taken(rows, tile), times(times(m.block_n, tile), times(m.page_k, tile))),
                         std::uint64_t{peak});
  }
  cost.initiation_interval_cycles = std::max<Cycles>({computing, time_of(operands, t.pmu.read_bytes_per_cycle), 1});
  cost.busy_cycles = times(cost.initiation_interval_cycles, all_firings(p, s));
  cost.latency_cycles = cost.initiation_interval_cycles + t.pmu.access_latency_cycles + t.pcu.product_latency(m.lanes);
  return cost;
}

StageCost generic_cost(const SpatialProgram& p, const Target& t, const Stage& s, const Generic& g) {
  // Elements and bytes that one phase of the body's cycle takes, averaged over the cycle: phases read different ports.
  const std::uint64_t cycle = std::max<std::uint64_t>(cycle_length(g.bodies), 1);
  std::uint64_t element_ops = 0;
  Bytes read = 0;
  std::uint64_t phase = 0;
  for (const auto& run : g.bodies) {
    std::uint64_t ops = joins_rows(g) ? 1 : 0;
    for (const ExprNode& node : run.value)
      if (arity(node.op) != 0) ++ops;
    std::uint64_t elements = 0;
    for (const Port& port : s.ports) {
      const Buffer& b = p.buffer(port.buffer);
      const bool in = port.direction == Direction::input;
      if (cycle_length(port.need) == 0 || cycle_length(port.push) == 0 || cycle_length(port.chunk) == 0) continue;
      if (at_phase(in ? port.need : port.push, phase) == 0) continue;
      const Bytes bytes = chunk_bytes(b, in ? at_phase(port.chunk, phase) : Chunk{}, p.header.native_tile);
      if (in) read = plus(read, times(bytes, run.repeat));
      elements = std::max(elements, bytes / std::max<std::uint32_t>(bytes_of(b.dtype), 1));
    }
    element_ops = plus(element_ops, times(times(elements, std::max<std::uint64_t>(ops, 1)), run.repeat));
    phase += run.repeat;
  }
  StageCost cost;
  const std::uint32_t peak = t.pcu.simd(g.accumulator);
  const Cycles a_cycle = std::max(peak == 0 ? 0 : ceil_div(element_ops, t.pcu.simd_rate(g.accumulator, g.lanes)),
                                  time_of(read, t.pmu.read_bytes_per_cycle));
  cost.initiation_interval_cycles = std::max<Cycles>(ceil_div(a_cycle, cycle), 1);
  cost.busy_cycles = share_of(a_cycle, all_firings(p, s), cycle);
  cost.latency_cycles = cost.initiation_interval_cycles + t.pmu.access_latency_cycles + t.pcu.simd_latency_cycles;
  return cost;
}

}  // namespace

std::uint32_t hops(Position a, Position b) {
  return (a.x > b.x ? a.x - b.x : b.x - a.x) + (a.y > b.y ? a.y - b.y : b.y - a.y);
}

std::uint32_t hops(const SpatialProgram& program, const Target& target, const MemoryFlow& flow) {
  if (flow.agcu.value >= target.agcu.at.size()) return 0;
  const Group& group = program.sites_of(program.stage(flow.stage));
  std::uint32_t most = 0;
  for (const std::uint32_t i : flow.sites)
    most = std::max(most, hops(target.agcu.at[flow.agcu.value], group.sites[i].at));
  return most;
}

Cycles crossing_latency(const SpatialProgram& program, const Target& target, const CrossingFlow& flow) {
  const Edge& edge = program.edge(flow.edge);
  const Group& from = program.sites_of(program.stage(edge.from));
  const Group& to = program.sites_of(program.stage(edge.to[flow.to]));
  if (flow.sender >= from.sites.size() || flow.receiver >= to.sites.size()) return 0;
  const Site& a = from.sites[flow.sender];
  const Site& b = to.sites[flow.receiver];
  const Latencies l{target};
  if (a.chip == b.chip) return l.mesh(hops(a.at, b.at));
  const auto to_agcu = [&](const Group& g, std::uint32_t i) {
    if (i >= g.agcus.size() || g.agcus[i].value >= target.agcu.at.size()) return Cycles{0};
    return l.mesh(hops(g.sites[i].at, target.agcu.at[g.agcus[i].value]));
  };
  Cycles latency = to_agcu(from, flow.sender) + to_agcu(to, flow.receiver) + 2 * target.agcu.latency_cycles;
  if (flow.to < edge.routes.size())
    for (const LinkId id : edge.routes[flow.to]) latency += target.links[id.value].latency_cycles;
  return latency;
}

std::vector<StageCost> stage_costs(const SpatialProgram& program, const Target& target,
                                   const std::vector<MemoryFlow>& memory, const std::vector<CrossingFlow>& crossings) {
  // Who shares what, in one section.
  using AgcuAt = std::tuple<SectionId, ChipId, AgcuId, bool>;
  std::map<AgcuAt, std::uint64_t> on_agcu;
  std::map<std::pair<SectionId, ChipId>, std::uint64_t> on_chip;
  for (const MemoryFlow& f : memory) {
    const SectionId section = program.stage(f.stage).section;
    ++on_agcu[{section, f.chip, f.agcu, f.write}];
    if (!f.write) ++on_chip[{section, f.chip}];
  }
  std::map<SectionId, std::vector<std::uint64_t>> on_links;  // by link
  const auto route_of = [&](const CrossingFlow& f) -> std::span<const LinkId> {
    const Edge& e = program.edge(f.edge);
    if (f.to >= e.routes.size()) return {};
    return e.routes[f.to];
  };
  const auto on_links_of = [&](SectionId section) -> std::vector<std::uint64_t>& {
    auto& on = on_links[section];
    if (on.empty()) on.resize(target.links.size());
    return on;
  };
  for (const CrossingFlow& f : crossings) {
    auto& on_link = on_links_of(program.stage(program.edge(f.edge).from).section);
    for (const LinkId id : route_of(f)) ++on_link[id.value];
  }

  std::vector<StageCost> costs(program.stages.size());
  for (const Stage& s : program.stages) {
    if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) costs[s.id.value] = matmul_cost(program, target, s, *m);
    if (const auto* g = std::get_if<Generic>(&s.kind)) costs[s.id.value] = generic_cost(program, target, s, *g);
  }

  const Latencies l{target};
  const Fraction sustainable = target.hbm.sustainable_bytes_per_cycle();
  for (const MemoryFlow& f : memory) {
    const Stage& s = program.stage(f.stage);
    StageCost& cost = costs[s.id.value];
    const Fraction port = f.write ? target.pmu.read_bytes_per_cycle : target.pmu.write_bytes_per_cycle;
    const Fraction own =
        least({target.agcu.bytes_per_cycle, target.network.link_bytes_per_cycle, port, lane_rate(program, s)});
    const Fraction share =
        least({own, shared(target.agcu.bytes_per_cycle, on_agcu[{s.section, f.chip, f.agcu, f.write}]),
               shared(sustainable, f.write ? 1 : on_chip[{s.section, f.chip}])});
    const std::uint64_t firings = std::max<std::uint64_t>(all_firings(program, s), 1);
    cost.busy_cycles = std::max(cost.busy_cycles, time_of(f.bytes, own));
    cost.initiation_interval_cycles =
        std::max<Cycles>({cost.initiation_interval_cycles, ceil_div(time_of(f.bytes, share), firings), 1});
    // What is written is acknowledged through the AGCU.
    const auto* store = std::get_if<Store>(&s.kind);
    const Cycles outside = store == nullptr ? target.hbm.latency_cycles + target.agcu.latency_cycles
                           : handed_to_host(program, target, *store) ? 0
                                                                     : 2 * target.agcu.latency_cycles;
    cost.latency_cycles =
        std::max(cost.latency_cycles, outside + l.mesh(hops(program, target, f)) + target.pmu.access_latency_cycles +
                                          ceil_div(time_of(f.bytes, own), firings));
  }
  for (const CrossingFlow& f : crossings) {
    const Stage& s = program.stage(program.edge(f.edge).to[f.to]);
    StageCost& cost = costs[s.id.value];
    const std::span<const LinkId> route = route_of(f);
    const auto& on_link = on_links_of(s.section);
    Fraction own = least({target.network.link_bytes_per_cycle, target.pmu.write_bytes_per_cycle});
    if (!route.empty()) own = least({own, target.agcu.bytes_per_cycle});
    Fraction share = own;
    for (const LinkId id : route) {
      const Fraction rate = carried_rate(target.links[id.value]);
      own = least({own, rate});
      share = least({share, shared(rate, on_link[id.value])});
    }
    const std::uint64_t pages = std::max<std::uint64_t>(f.pages, 1);
    cost.busy_cycles = std::max(cost.busy_cycles, time_of(f.bytes, own));
    cost.initiation_interval_cycles =
        std::max<Cycles>({cost.initiation_interval_cycles, ceil_div(time_of(f.bytes, share), pages), 1});
    cost.latency_cycles =
        std::max(cost.latency_cycles,
                 times(crossing_latency(program, target, f), 1 + trips_of(program.edge(f.edge).handshake).before_seen) +
                     2 * target.pmu.access_latency_cycles + ceil_div(time_of(f.bytes, own), pages));
  }
  for (const Stage& s : program.stages) {
    StageCost& cost = costs[s.id.value];
    cost.total_cycles = plus(times(all_firings(program, s), cost.initiation_interval_cycles), cost.latency_cycles);
  }
  return costs;
}

}  // namespace rdusim::cost
