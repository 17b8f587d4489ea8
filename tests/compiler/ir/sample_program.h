// Programs put together by hand, as simple as complete programs can be, for tests that break one thing at a time.
//
// A 32 x 512 by 512 x 64 matmul in int8 over `chips` chips, row-sharded: on each, two sites compute a column of tiles
// each. With one chip, matmul feeds the store. With several, each chip's partial sums go to a fold on chip 0, which
// adds them in the order of the chips; only chip 0 stores.
#pragma once

#include <string>

#include "compiler/ir/program.h"
#include "compiler/ir/verify.h"

namespace rdusim::sample {

struct Shape {
  std::uint32_t chips = 1;
  std::uint64_t page_k = 4;  // contraction tiles a page
  Handshake crossing = Handshake::token;
  bool own_crosses = false;             // chip 0's own partial is received, too, on the sites that it is sent from
  bool lowered_before_slicing = false;  // the stages of every chip are those of the whole contraction
};

// Four chips, each linked with each, of 4 x 4 sites.
inline Target target() {
  Target t;
  t.name = "sample";
  t.text = "name = \"sample\"\n";
  t.sha256 = std::string(64, '0');
  t.clock_ghz = {1, 1};
  t.chips = 4;
  t.native_tile = 32;
  t.mesh = {4, 4};
  t.site = {.pcu_contexts = 2,
            .vector_inputs = 2,
            .vector_outputs = 2,
            .movement_engines = 6,
            .buffers = 10,
            .semaphores = 8,
            .semaphore_bits = 8,
            .token_bits = 8};
  t.pcu.lanes = 32;
  t.pcu.stages = 6;
  t.pcu.macs_per_cycle.fill(64);
  t.pcu.simd_ops_per_cycle.fill(32);
  t.pmu.capacity_bytes = 256 * 1024;
  t.pmu.banks = 4;
  t.pmu.read_bytes_per_cycle = t.pmu.write_bytes_per_cycle = {64, 1};
  t.agcu.at = {{0, 0}, {3, 3}};
  t.agcu.bytes_per_cycle = {64, 1};
  t.hbm.capacity_bytes = Bytes{1} << 30;
  t.hbm.channels = 4;
  t.hbm.channel_bytes_per_cycle = {16, 1};
  t.crossing = {CrossingHandshake::token, CrossingHandshake::semaphore};
  for (std::uint32_t from = 0; from < t.chips; ++from)
    for (std::uint32_t to = 0; to < t.chips; ++to)
      if (from != to) t.links.push_back({LinkId{t.links.size()}, ChipId{from}, ChipId{to}, {32, 1}, 100, 8});
  return t;
}

class Builder {
 public:
  explicit Builder(const Shape& shape) : shape_(shape) {
    p.header = {"down", "sample", "name = \"sample\"\n", std::string(64, '0'), 32, {}, {}};
    p.header.plan.chips = shape.chips;
    p.header.plan.portable = shape.chips == 1;
    p.header.plan.kind = shape.chips == 1 ? ShardKind::none : ShardKind::row;
    p.header.plan.collective = CollectiveKind::reduce;
    OperatorGraph g;
    g.name = "down";
    g.operands = {{OperandId{0}, "x", TensorRole::input, {m, k}, DType::int8, ZeroFill{}, ""},
                  {OperandId{1}, "w", TensorRole::weight, {k, n}, DType::int8, ZeroFill{}, ""},
                  {OperandId{2}, "y", TensorRole::output, {m, n}, DType::int32, ZeroFill{}, ""}};
    g.operators = {{OperatorId{0}, "down", OperatorKind::matmul, {OperandId{0}, OperandId{1}}, OperandId{2}, {}, ""}};
    p.operators = g;
    p.placement = Placement{{4, 4}, {}, {}};
    p.memory = MemoryPlan{};
    p.schedule = Schedule{};
    p.sections.push_back({SectionId{0}, "down", 1});
    p.required.handshakes = {Handshake::valid_ready};
    if (shape.chips > 1) p.required.handshakes.push_back(shape.crossing);
    p.required.operand_dtypes = {DType::int8};
    p.required.spaces = {MemorySpace::hbm};
    for (std::uint32_t c = 0; c < shape.chips; ++c) add_chip(c);
    if (shape.chips > 1)
      add_fold();
    else
      add_store(BufferId{2}, StageId{2});
    for (std::size_t i = 0; i < p.stages.size(); ++i) p.schedule->slots.push_back({static_cast<std::uint32_t>(i), 1});
  }

  SpatialProgram p;

  BufferId add_buffer(std::string name, BufferKind kind, DType type, std::uint64_t tiles, std::uint32_t chip) {
    Buffer b;
    b.id = BufferId{p.buffers.size()};
    b.name = std::move(name);
    b.kind = kind;
    b.depth_pages = 2;
    b.page_tiles = tiles;
    b.page_bytes = tiles * 32 * 32 * bytes_of(type);
    b.dtype = type;
    b.group = GroupId{chip};
    p.memory->buffers.push_back({next_address_[chip], static_cast<std::uint32_t>(next_address_[chip] / 65536 % 4)});
    next_address_[chip] += b.depth_pages * b.page_bytes;
    p.buffers.push_back(b);
    return b.id;
  }
  StageId add_stage(std::string name, StageKind kind, std::uint32_t chip, Engine engine, std::uint64_t firings,
                    std::vector<Port> ports) {
    Stage s;
    s.id = StageId{p.stages.size()};
    s.name = std::move(name);
    s.kind = std::move(kind);
    s.role = engine.kind;
    s.ports = std::move(ports);
    s.group = GroupId{chip};
    s.engine = engine;
    s.firings = firings;
    s.origin = OperatorId{0};
    p.stages.push_back(std::move(s));
    return p.stages.back().id;
  }
  EdgeId add_edge(StageId from, BufferId buffer, std::vector<StageId> to,
                  Handshake handshake = Handshake::valid_ready) {
    Edge e;
    e.id = EdgeId{p.edges.size()};
    e.from = from;
    e.buffer = buffer;
    e.to = std::move(to);
    e.handshake = handshake;
    p.edges.push_back(std::move(e));
    return p.edges.back().id;
  }
  TensorId add_tensor(std::string name, OperandId operand, std::uint32_t chip, std::vector<std::int64_t> shape,
                      std::vector<std::int64_t> offset) {
    const Operand& o = p.operators->operand(operand);
    Tensor t;
    t.id = TensorId{p.tensors.size()};
    t.name = std::move(name);
    t.operand = operand;
    t.role = o.role;
    for (std::int64_t extent : shape) t.tiles.push_back(static_cast<std::uint64_t>((extent + 31) / 32));
    t.whole = o.shape;
    t.shape = std::move(shape);
    t.offset = std::move(offset);
    t.dtype = o.dtype;
    t.chip = ChipId{chip};
    const Bytes bytes = static_cast<Bytes>(*element_count(t.shape)) * bytes_of(t.dtype);
    p.memory->tensors.push_back({next_tensor_, bytes});
    next_tensor_ += bytes;
    p.tensors.push_back(std::move(t));
    return p.tensors.back().id;
  }
  static Port input(BufferId b) {
    Port port{Direction::input, b};
    port.need = port.pop = always(1u);
    return port;
  }
  static Port output(BufferId b) {
    Port port{Direction::output, b};
    port.reserve = port.push = always(1u);
    return port;
  }
  static Cyclic<std::uint32_t> only_in(std::uint32_t phase, std::uint32_t of) {
    Cyclic<std::uint32_t> c;
    if (phase > 0) c.push_back({phase, 0});
    c.push_back({1, 1});
    if (phase + 1 < of) c.push_back({of - phase - 1, 0});
    return c;
  }
  static Generic sum(std::size_t inputs) {
    Generic g;
    g.iterators = {IteratorKind::parallel};
    g.maps.assign(inputs + 1, {{1, 0}});
    g.bodies = {{1, {{ExprOp::operand, 0, 0}}}};
    for (std::uint32_t i = 1; i < inputs; ++i)
      g.bodies.push_back({1, {{ExprOp::accumulator, 0, 0}, {ExprOp::operand, i, 0}, {ExprOp::add, 0, 0}}});
    g.accumulator = g.result = DType::int32;
    return g;
  }

  void add_store(BufferId from, StageId producer) {
    const TensorId y = add_tensor("y", OperandId{2}, 0, {m, n}, {0, 0});
    const AccessPattern pattern{{1, 1}, {{1, 0}, {0, 2}}, {{0, 0}, {0, 1}}, {1, 1}, {1, 2}};
    const StageId store = add_stage("down.store", Store{y, pattern, {}}, 0, {StageRole::movement, 2}, 1, {input(from)});
    add_edge(producer, from, {store});
  }

 private:
  static constexpr std::int64_t m = 32, k = 512, n = 64;

  void add_chip(std::uint32_t c) {
    const std::string suffix = shape_.chips == 1 ? "" : "_c" + std::to_string(c);
    const std::int64_t slice = k / shape_.chips;
    const std::uint64_t tiles = static_cast<std::uint64_t>(shape_.lowered_before_slicing ? k : slice) / 32;
    const std::uint64_t pages = (tiles + shape_.page_k - 1) / shape_.page_k;
    p.placement->groups.push_back({GroupId{c}, {{ChipId{c}, {0, 0}}, {ChipId{c}, {1, 0}}}, {AgcuId{0u}, AgcuId{0u}}});
    next_tensor_ = 0;
    next_address_.push_back(0);
    const std::int64_t at = static_cast<std::int64_t>(c) * slice;
    const TensorId x = add_tensor("x" + suffix, OperandId{0}, c, {m, slice}, {0, at});
    const TensorId w = add_tensor("w" + suffix, OperandId{1}, c, {slice, n}, {at, 0});

    const BufferId a = add_buffer("down.a" + suffix, BufferKind::fifo, DType::int8, shape_.page_k, c);
    const BufferId b = add_buffer("down.b" + suffix, BufferKind::fifo, DType::int8, shape_.page_k, c);
    const bool partial = shape_.chips > 1;
    const BufferId out = add_buffer((partial ? "down.partial" : "down.c") + suffix,
                                    partial ? BufferKind::interm : BufferKind::fifo, DType::int32, 1, c);
    const AccessPattern rows{{pages}, {{0, shape_.page_k}}, {{0, 0}, {0, 0}}, {1, shape_.page_k}, {1, tiles}};
    const AccessPattern columns{{pages}, {{shape_.page_k, 0}}, {{0, 0}, {0, 1}}, {shape_.page_k, 1}, {tiles, 2}};
    const StageId load_a =
        add_stage("down.load_a" + suffix, Load{x, rows, {0, 0}}, c, {StageRole::movement, 0}, pages, {output(a)});
    const StageId load_b =
        add_stage("down.load_b" + suffix, Load{w, columns, {}}, c, {StageRole::movement, 1}, pages, {output(b)});
    Port push = output(out);
    push.reserve = push.push = only_in(static_cast<std::uint32_t>(pages) - 1, static_cast<std::uint32_t>(pages));
    const MatmulTiles body{OperatorId{0}, 1, 1, shape_.page_k, tiles, pages, DType::int8, DType::int32, DType::int32};
    const StageId matmul =
        add_stage("down.matmul" + suffix, body, c, {StageRole::compute, 0}, pages, {input(a), input(b), push});
    p.memory->accumulators.push_back({matmul, 1, 128 * 1024, 4096});
    add_edge(load_a, a, {matmul});
    add_edge(load_b, b, {matmul});
    Work work;
    work.id = WorkId{p.work.size()};
    work.chip = ChipId{c};
    work.m = m;
    work.n = n;
    work.k = slice;
    work.offset_k = at;
    work.plan = BlockPlan{1, 1, shape_.page_k, 1, 2, 1, 1, 1, pages};
    p.work.push_back(work);
    p.placement->work.push_back({matmul, work.id, {{0}, {1}}});
    outs_.push_back(out);
    matmuls_.push_back(matmul);
  }

  EdgeId add_crossing(std::uint32_t from, BufferId landing) {
    const StageId recv = add_stage("down.recv_c" + std::to_string(from), Recv{}, 0,
                                   {StageRole::movement, 2 + from + (from == 0 ? 3u : 0u)}, 1, {output(landing)});
    const EdgeId e = add_edge(matmuls_[from], outs_[from], {recv}, shape_.crossing);
    std::get<Recv>(p.stages[recv.value].kind).edge = e;
    Edge& edge = p.edges[e.value];
    edge.counter_bits = 8;
    edge.routes.resize(1);
    if (from != 0) {
      edge.routes = {route(target(), ChipId{from}, ChipId{0u})};
      p.links.push_back(edge.routes[0][0]);
    }
    if (shape_.crossing == Handshake::semaphore) {
      p.semaphores.push_back({SemaphoreId{p.semaphores.size()}, GroupId{from}, 0, 8});
      p.semaphores.push_back({SemaphoreId{p.semaphores.size()}, GroupId{0u}, 0, 8});
      edge.semaphores = SemaphorePair{SemaphoreId{p.semaphores.size() - 2}, {SemaphoreId{p.semaphores.size() - 1}}};
    }
    edge.collective = CollectiveId{0};
    p.stages[recv.value].collective = CollectiveId{0};
    add_edge(recv, landing, {});
    return EdgeId{p.edges.size() - 1};
  }

  void add_fold() {
    const std::uint32_t chips = shape_.chips;
    std::vector<Port> ports;
    std::vector<EdgeId> edges;
    for (std::uint32_t c = 0; c < chips; ++c) {
      BufferId from = outs_[c];
      if (c == 0 && !shape_.own_crosses) {
        edges.push_back(add_edge(matmuls_[0], from, {}));
      } else {
        from = add_buffer("down.landing_c" + std::to_string(c), BufferKind::interm, DType::int32, 1, 0);
        edges.push_back(add_crossing(c, from));
      }
      ports.push_back(input(from));
      ports.back().need = ports.back().pop = only_in(c, chips);
    }
    const BufferId result = add_buffer("down.sum", BufferKind::fifo, DType::int32, 1, 0);
    ports.push_back(output(result));
    ports.back().reserve = ports.back().push = only_in(chips - 1, chips);
    const StageId fold = add_stage("down.fold", sum(chips), 0, {StageRole::compute, 1}, chips, std::move(ports));
    p.stages[fold.value].collective = CollectiveId{0};
    for (EdgeId e : edges) p.edges[e.value].to = {fold};
    add_store(result, fold);
    Collective all;
    all.id = CollectiveId{0};
    all.name = "down.reduce";
    all.kind = CollectiveKind::reduce;
    all.algorithm = CollectiveAlgorithm::through_one;
    SummationTree tree;
    for (std::uint32_t c = 0; c < chips; ++c) {
      all.members.push_back(ChipId{c});
      all.bytes.push_back(m * n * 4);
      SummationNode leaf;
      leaf.chip = ChipId{c};
      leaf.k_begin = c * (k / chips);
      leaf.k_end = (c + 1) * (k / chips);
      tree.nodes.push_back(leaf);
      if (c == 0) continue;
      SummationNode add;
      add.leaf = false;
      add.left = static_cast<std::uint32_t>(tree.nodes.size() - 2);
      add.right = static_cast<std::uint32_t>(tree.nodes.size() - 1);
      tree.nodes.push_back(add);
    }
    p.collectives.push_back(std::move(all));
    p.trees.push_back(std::move(tree));
  }

  Shape shape_;
  std::vector<BufferId> outs_;
  std::vector<StageId> matmuls_;
  std::vector<Bytes> next_address_;  // by chip
  Bytes next_tensor_ = 0;
};

inline SpatialProgram program(const Shape& shape = {}) {
  return Builder(shape).p;
}

// The part called `name`. Requires that there is one.
inline Stage& stage(SpatialProgram& p, std::string_view name) {
  for (Stage& s : p.stages)
    if (s.name == name) return s;
  std::abort();
}
inline Buffer& buffer(SpatialProgram& p, std::string_view name) {
  for (Buffer& b : p.buffers)
    if (b.name == name) return b;
  std::abort();
}
inline Edge& edge_of(SpatialProgram& p, std::string_view buffer_name) {
  for (Edge& e : p.edges)
    if (p.buffer(e.buffer).name == buffer_name) return e;
  std::abort();
}

}  // namespace rdusim::sample
