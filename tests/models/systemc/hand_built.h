// Programs built by hand for the machine's tests, and a small machine to run them on. Nothing here comes from the
// passes.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "models/systemc/machine.h"

namespace rdusim::test {

// 4 x 4 sites, two AGCUs, four memory channels, `chips` chips in a ring of links both ways.
inline Target small_target(std::uint32_t chips = 2) {
  Target t;
  t.name = "small";
  t.clock_ghz = {1, 1};
  t.chips = chips;
  t.native_tile = 4;
  t.mesh = {4, 4};
  t.site = {4, 4, 4, 4, 32, 16, 8, 16};
  t.pcu.lanes = 4;
  t.pcu.stages = 4;
  t.pcu.macs_per_cycle.fill(16);
  t.pcu.simd_ops_per_cycle.fill(4);
  t.pcu.systolic_fill_cycles = 4;
  t.pcu.systolic_drain_cycles = 4;
  t.pcu.simd_latency_cycles = 6;
  t.pmu = {1 << 20, 4, {32, 1}, {32, 1}, 2};
  t.network = {{16, 1}, 1, 1, 1, 16};
  t.agcu.at = {{0, 0}, {3, 3}};
  t.agcu.bytes_per_cycle = {16, 1};
  t.agcu.latency_cycles = 5;
  t.agcu.outstanding_bursts = 64;
  t.agcu.burst_bytes = 64;
  t.hbm.capacity_bytes = 1 << 30;
  t.hbm.channels = 4;
  t.hbm.channel_bytes_per_cycle = {25, 3};
  t.hbm.interleave_bytes = 64;
  t.hbm.latency_cycles = 40;
  t.hbm.row_bytes = 256;
  t.hbm.row_miss_cycles = 3;
  t.hbm.turnaround_cycles = 4;
  t.hbm.refresh_interval_cycles = 1000;
  t.hbm.refresh_cycles = 20;
  t.host = {100, 10};
  t.crossing = {CrossingHandshake::token};
  for (std::uint32_t c = 0; c < chips && chips > 1; ++c) {
    for (const std::uint32_t to : {(c + 1) % chips, (c + chips - 1) % chips}) {
      if (to == (c + 1) % chips && chips == 2 && c == 1 && false) continue;
      t.links.push_back({LinkId{t.links.size()}, ChipId{c}, ChipId{to}, {7, 2}, 50, 8});
      if (chips == 2) break;
    }
  }
  return t;
}

class Builder {
 public:
  explicit Builder(const Target& target, std::uint64_t trips = 1) {
    p.header.name = "hand";
    p.header.native_tile = target.native_tile;
    p.sections.push_back({SectionId{0}, "all", trips});
    p.placement.emplace();
    p.placement->mesh = target.mesh;
  }

  GroupId group(std::uint32_t chip, std::vector<Position> at, std::uint32_t agcu = 0) {
    Group g;
    g.id = GroupId{p.placement->groups.size()};
    for (const Position& where : at) {
      g.sites.push_back({ChipId{chip}, where});
      g.agcus.push_back(AgcuId{agcu});
    }
    p.placement->groups.push_back(g);
    return g.id;
  }
  TensorId tensor(const std::string& name, std::vector<std::int64_t> shape, DType type, TensorRole role,
                  std::uint32_t chip = 0) {
    Tensor t;
    t.id = TensorId{p.tensors.size()};
    t.operand = OperandId{p.tensors.size()};
    t.name = name;
    t.role = role;
    t.shape = t.whole = shape;
    t.offset.assign(shape.size(), 0);
    for (const std::int64_t n : shape) t.tiles.push_back(ceil_div(static_cast<std::uint64_t>(n), p.header.native_tile));
    t.dtype = type;
    t.chip = ChipId{chip};
    p.tensors.push_back(t);
    return t.id;
  }
  BufferId buffer(GroupId g, std::uint64_t depth, Bytes page_bytes, DType type, std::uint64_t initial = 0) {
    Buffer b;
    b.id = BufferId{p.buffers.size()};
    b.name = "b" + std::to_string(b.id.value);
    b.depth_pages = depth;
    b.page_bytes = page_bytes;
    b.dtype = type;
    b.group = g;
    b.initial_pages = initial;
    p.buffers.push_back(b);
    return b.id;
  }
  static Port in(BufferId b, Cyclic<std::uint32_t> need = always(std::uint32_t{1}),
                 std::optional<Cyclic<std::uint32_t>> pop = std::nullopt) {
    Port port;
    port.direction = Direction::input;
    port.buffer = b;
    port.pop = pop ? *pop : need;
    port.need = std::move(need);
    return port;
  }
  static Port out(BufferId b, Cyclic<std::uint32_t> push = always(std::uint32_t{1})) {
    Port port;
    port.direction = Direction::output;
    port.buffer = b;
    port.reserve = push;
    port.push = std::move(push);
    return port;
  }
  StageId stage(const std::string& name, StageKind kind, GroupId g, std::vector<Port> ports, std::uint64_t firings,
                Engine engine) {
    Stage s;
    s.id = StageId{p.stages.size()};
    s.name = name;
    s.kind = std::move(kind);
    s.role = engine.kind;
    s.ports = std::move(ports);
    s.group = g;
    s.engine = engine;
    s.firings = firings;
    p.stages.push_back(s);
    return s.id;
  }
  EdgeId local(StageId from, BufferId b, std::vector<StageId> to) {
    Edge e;
    e.id = EdgeId{p.edges.size()};
    e.from = from;
    e.buffer = b;
    e.to = std::move(to);
    e.handshake = Handshake::valid_ready;
    p.edges.push_back(e);
    return e.id;
  }
  EdgeId crossing(StageId from, BufferId b, std::vector<StageId> to, Handshake h, PageMap map = {}, Chunk chunk = {}) {
    Edge e;
    e.id = EdgeId{p.edges.size()};
    e.from = from;
    e.buffer = b;
    e.to = to;
    e.handshake = h;
    e.map = std::move(map);
    e.chunk = chunk;
    e.counter_bits = 16;
    for (const StageId s : to) std::get<Recv>(p.stages[s.value].kind).edge = e.id;
    p.edges.push_back(e);
    return e.id;
  }
  // Walks a matrix of pages row by row: page_m x page_n tiles each.
  AccessPattern walk(TensorId t, std::uint64_t page_m, std::uint64_t page_n, std::uint64_t instances = 1) const {
    const Tensor& x = p.tensor(t);
    AccessPattern a;
    a.loops = {ceil_div(x.tiles[0], page_m), ceil_div(x.tiles[1], page_n)};
    a.stride = {{page_m, 0}, {0, page_n}};
    a.first.assign(instances, {0, 0});
    a.page_tiles = {page_m, page_n};
    a.extent_tiles = x.tiles;
    return a;
  }

  SpatialProgram p;
};

inline constexpr Engine pcu0{StageRole::compute, 0};
inline constexpr Engine move(std::uint32_t n) {
  return {StageRole::movement, n};
}

inline TensorImages blank_images(const SpatialProgram& p) {
  TensorImages images;
  for (const Tensor& t : p.tensors) {
    std::size_t n = bytes_of(t.dtype);
    for (const std::int64_t e : t.shape) n *= static_cast<std::size_t>(e);
    images.emplace_back(n);
  }
  return images;
}
template <class T>
void set(ElementBytes& image, std::size_t i, T value) {
  std::memcpy(image.data() + i * sizeof value, &value, sizeof value);
}
template <class T>
T get(const ElementBytes& image, std::size_t i) {
  T value;
  std::memcpy(&value, image.data() + i * sizeof value, sizeof value);
  return value;
}

}  // namespace rdusim::test
