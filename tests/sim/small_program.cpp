#include "tests/sim/small_program.h"

namespace rdusim::test {

namespace {

Port input(std::uint32_t buffer) {
  Port p;
  p.direction = Direction::input;
  p.buffer = BufferId{buffer};
  p.need = always(std::uint32_t{1});
  p.pop = always(std::uint32_t{1});
  return p;
}

Port output(std::uint32_t buffer) {
  Port p;
  p.direction = Direction::output;
  p.buffer = BufferId{buffer};
  p.reserve = always(std::uint32_t{1});
  p.push = always(std::uint32_t{1});
  return p;
}

AccessPattern one_page() {
  AccessPattern a;
  a.loops = {1};
  a.stride = {{0, 0}};
  a.first = {{0, 0}};
  a.page_tiles = {1, 1};
  a.extent_tiles = {1, 1};
  return a;
}

}  // namespace

SpatialProgram small_program(Handshake crossing, std::uint64_t depth) {
  SpatialProgram p;
  p.header.name = "small_tp2";
  p.header.native_tile = 32;
  p.header.plan.chips = 2;
  p.header.plan.portable = false;
  p.header.plan.kind = ShardKind::row;
  p.header.plan.collective = CollectiveKind::reduce;

  OperatorGraph g;
  g.name = "small";
  g.operands = {{OperandId{0u}, "x", TensorRole::input, {32, 64}, DType::int8, PatternFill{61, 30}, ""},
                {OperandId{1u}, "w", TensorRole::weight, {64, 32}, DType::int8, PatternFill{59, 29}, ""},
                {OperandId{2u}, "y", TensorRole::output, {32, 32}, DType::int32, ZeroFill{}, ""}};
  g.operators = {
      {OperatorId{0u}, "matmul0", OperatorKind::matmul, {OperandId{0u}, OperandId{1u}}, OperandId{2u}, {}, ""}};
  p.operators = g;

  const auto tensor = [&](std::uint32_t id, std::string name, std::uint32_t operand, TensorRole role, std::int64_t row,
                          std::int64_t col, std::uint32_t chip) {
    const Operand& o = g.operands[operand];
    Tensor t;
    t.id = TensorId{id};
    t.name = std::move(name);
    t.operand = o.id;
    t.role = role;
    t.shape = {32, 32};
    t.tiles = {1, 1};
    t.dtype = o.dtype;
    t.fill = o.fill;
    t.chip = ChipId{chip};
    t.whole = o.shape;
    t.offset = {row, col};
    return t;
  };
  p.tensors = {tensor(0, "x_c0", 0, TensorRole::input, 0, 0, 0), tensor(1, "x_c1", 0, TensorRole::input, 0, 32, 1),
               tensor(2, "w_c0", 1, TensorRole::weight, 0, 0, 0), tensor(3, "w_c1", 1, TensorRole::weight, 32, 0, 1),
               tensor(4, "y", 2, TensorRole::output, 0, 0, 0)};

  const auto stage = [&](std::uint32_t id, std::string name, StageKind kind, StageRole role, std::uint32_t group,
                         std::vector<Port> ports) {
    Stage s;
    s.id = StageId{id};
    s.name = std::move(name);
    s.kind = std::move(kind);
    s.role = role;
    s.ports = std::move(ports);
    s.group = GroupId{group};
    s.engine.kind = role;
    s.engine.index = role == StageRole::movement ? id % 5 : 0;
    s.firings = 1;
    s.origin = OperatorId{0u};
    p.stages.push_back(std::move(s));
  };
  MatmulTiles matmul;
  matmul.operand = DType::int8;
  matmul.accumulator = matmul.result = DType::int32;
  Generic add;
  add.iterators = {IteratorKind::parallel};
  add.bodies = always(Expr{{ExprOp::operand, 0, 0}, {ExprOp::operand, 1, 0}, {ExprOp::add, 0, 0}});
  add.accumulator = add.result = DType::int32;
  const auto load = [](std::uint32_t t) { return Load{TensorId{t}, one_page(), {}}; };
  stage(load_x0, "load_x_c0", load(0), StageRole::movement, 0, {output(x0)});
  stage(load_w0, "load_w_c0", load(2), StageRole::movement, 0, {output(w0)});
  stage(matmul0, "matmul_c0", matmul, StageRole::compute, 0, {input(x0), input(w0), output(partial0)});
  stage(load_x1, "load_x_c1", load(1), StageRole::movement, 1, {output(x1)});
  stage(load_w1, "load_w_c1", load(3), StageRole::movement, 1, {output(w1)});
  stage(matmul1, "matmul_c1", matmul, StageRole::compute, 1, {input(x1), input(w1), output(partial1)});
  stage(recv, "recv_c0", Recv{EdgeId{crossing_edge}}, StageRole::movement, 0, {output(landing)});
  stage(fold, "fold_c0", add, StageRole::compute, 0, {input(partial0), input(landing), output(sum)});
  stage(store, "store_y", Store{TensorId{4u}, one_page(), {}}, StageRole::movement, 0, {input(sum)});
  p.stages[recv].collective = CollectiveId{0u};
  p.stages[fold].collective = CollectiveId{0u};

  const auto buffer = [&](std::uint32_t id, std::string name, DType t, std::uint32_t group, BufferKind kind) {
    Buffer b;
    b.id = BufferId{id};
    b.name = std::move(name);
    b.kind = kind;
    b.depth_pages = depth;
    b.page_bytes = 32 * 32 * bytes_of(t);
    b.dtype = t;
    b.group = GroupId{group};
    p.buffers.push_back(std::move(b));
  };
  buffer(x0, "x_c0.pages", DType::int8, 0, BufferKind::fifo);
  buffer(w0, "w_c0.pages", DType::int8, 0, BufferKind::fifo);
  buffer(partial0, "partial_c0", DType::int32, 0, BufferKind::interm);
  buffer(x1, "x_c1.pages", DType::int8, 1, BufferKind::fifo);
  buffer(w1, "w_c1.pages", DType::int8, 1, BufferKind::fifo);
  buffer(partial1, "partial_c1", DType::int32, 1, BufferKind::interm);
  buffer(landing, "landing_c0", DType::int32, 0, BufferKind::interm);
  buffer(sum, "sum_c0", DType::int32, 0, BufferKind::fifo);

  const auto edge = [&](std::uint32_t from, std::uint32_t b, std::uint32_t to, Handshake h) {
    Edge e;
    e.id = EdgeId{p.edges.size()};
    e.from = StageId{from};
    e.buffer = BufferId{b};
    e.to = {StageId{to}};
    e.handshake = h;
    p.edges.push_back(std::move(e));
  };
  edge(load_x0, x0, matmul0, Handshake::valid_ready);
  edge(load_w0, w0, matmul0, Handshake::valid_ready);
  edge(matmul0, partial0, fold, Handshake::valid_ready);
  edge(load_x1, x1, matmul1, Handshake::valid_ready);
  edge(load_w1, w1, matmul1, Handshake::valid_ready);
  edge(matmul1, partial1, recv, crossing);
  edge(recv, landing, fold, Handshake::valid_ready);
  edge(fold, sum, store, Handshake::valid_ready);
  p.edges[crossing_edge].collective = CollectiveId{0u};
  p.edges[crossing_edge].counter_bits = 4;
  if (crossing == Handshake::semaphore) {
    p.semaphores = {{SemaphoreId{0u}, GroupId{1u}, 0, 4}, {SemaphoreId{1u}, GroupId{0u}, 0, 4}};
    p.edges[crossing_edge].semaphores = SemaphorePair{SemaphoreId{0u}, {SemaphoreId{1u}}};
  }

  Collective c;
  c.name = "reduce_y";
  c.kind = CollectiveKind::reduce;
  c.algorithm = CollectiveAlgorithm::through_one;
  c.members = {ChipId{0u}, ChipId{1u}};
  c.bytes = {4096, 4096};
  p.collectives = {c};

  p.sections = {{SectionId{0u}, "matmul0", 1}};
  BlockPlan plan;
  for (std::uint32_t chip = 0; chip < 2; ++chip) {
    Work w;
    w.id = WorkId{chip};
    w.chip = ChipId{chip};
    w.m = w.n = w.k = 32;
    w.offset_k = 32 * chip;
    w.plan = plan;
    p.work.push_back(w);
  }
  Placement placement;
  placement.mesh = {4, 4};
  placement.groups = {{GroupId{0u}, {{ChipId{0u}, {1, 2}}}, {AgcuId{0u}}},
                      {GroupId{1u}, {{ChipId{1u}, {1, 2}}}, {AgcuId{0u}}}};
  placement.work = {{StageId{matmul0}, WorkId{0u}, {{0}}}, {StageId{matmul1}, WorkId{1u}, {{0}}}};
  p.placement = placement;

  SummationTree tree;
  tree.nodes = {{true, ChipId{0u}, 0, 32, 0, 0}, {true, ChipId{1u}, 32, 64, 0, 0}, {false, ChipId{}, 0, 0, 0, 1}};
  p.trees = {tree};
  return p;
}

std::vector<AnyEvent> good_run(const SpatialProgram& p, ProvenanceTable& table) {
  std::vector<AnyEvent> events;
  Cycle at = 100;
  const auto stage = [](std::uint32_t s) { return StageAt{StageId{s}, 0}; };
  const auto buffer = [](std::uint32_t b) { return BufferAt{BufferId{b}, 0}; };
  const auto add = [&](auto e) {
    e.at = at++;
    events.push_back(e);
  };
  const auto operand = [](std::uint32_t id, std::uint64_t row, std::uint64_t col) {
    PageTag t;
    t.operand = OperandId{id};
    t.row = row, t.col = col, t.rows = 32, t.cols = 32;
    return t;
  };
  const auto reserve = [&](std::uint32_t b) { add(PageReserved{0, buffer(b), 1}); };
  const auto push = [&](std::uint32_t b, const PageTag& t) {
    add(PagePushed{0, buffer(b), 0, p.buffers[b].page_bytes, t});
  };
  const auto pop = [&](std::uint32_t b) { add(PagePopped{0, buffer(b), 0, 0}); };
  Cycle started = at;
  const auto start = [&](std::uint32_t s) {
    // The engine was free from the section's start, a hundred cycles in.
    add(FiringStarted{0, stage(s), 0, 4, at - started, StallCause::input_starvation});
  };
  const auto complete = [&](std::uint32_t s) {
    at += 4;
    add(FiringCompleted{0, stage(s), 0});
  };
  const auto load = [&](std::uint32_t s, std::uint32_t b, std::uint32_t tensor, const PageTag& t) {
    reserve(b);
    start(s);
    add(PageLoaded{0, stage(s), 0, TensorId{tensor}, t});
    complete(s);
    push(b, t);
  };
  const auto matmul = [&](std::uint32_t s, std::uint32_t a, std::uint32_t b, std::uint32_t out, const PageTag& ta,
                          const PageTag& tb, std::uint32_t chip) {
    reserve(out);
    start(s);
    pop(a);
    pop(b);
    add(OperandsJoined{0, stage(s), 0, ta, tb});
    complete(s);
    PageTag t = operand(2, 0, 0);
    t.provenance = table.single({ChipId{chip}, 32 * chip, 32 * chip + 32});
    push(out, t);
    return t;
  };

  add(SectionStarted{0, SectionId{0u}});
  started = at - 1;
  load(load_x0, x0, 0, operand(0, 0, 0));
  load(load_w0, w0, 2, operand(1, 0, 0));
  const PageTag p0 = matmul(matmul0, x0, w0, partial0, operand(0, 0, 0), operand(1, 0, 0), 0);
  load(load_x1, x1, 1, operand(0, 0, 32));
  load(load_w1, w1, 3, operand(1, 32, 0));

  const ChannelAt channel{EdgeId{crossing_edge}, 0, 0, 0};
  const EdgeId edge{crossing_edge};
  const Handshake h = p.edges[crossing_edge].handshake;
  if (h == Handshake::semaphore) add(ReadyRaised{0, channel, 0, 1});
  const PageTag p1 = matmul(matmul1, x1, w1, partial1, operand(0, 0, 32), operand(1, 32, 0), 1);
  reserve(landing);
  if (h == Handshake::token) add(CreditTaken{0, channel, 0});
  if (h == Handshake::semaphore) add(ReadyConsumed{0, edge, 0, 0, 0});
  if (h == Handshake::barrier) {
    for (std::uint32_t m : {0u, 1u}) add(BarrierArrived{0, edge, 0, m, 0});
    for (std::uint32_t m : {0u, 1u}) add(BarrierLeft{0, edge, 0, m, 0});
  }
  add(PageSent{0, channel, 0, 4096});
  add(LinkUsed{0, LinkId{0u}, at, at + 64, 4096, false});
  pop(partial1);
  add(PageLanded{0, channel, 0, p1});
  if (h == Handshake::semaphore) add(ValidRaised{0, channel, 0, 1});
  if (h == Handshake::barrier) {
    for (std::uint32_t m : {0u, 1u}) add(BarrierArrived{0, edge, 0, m, 1});
    for (std::uint32_t m : {0u, 1u}) add(BarrierLeft{0, edge, 0, m, 1});
  }
  if (h == Handshake::semaphore) add(ValidConsumed{0, channel, 0, 0});
  start(recv);
  complete(recv);
  push(landing, p1);
  reserve(sum);
  PageTag none = p0;
  none.provenance = 0;
  add(PartialFolded{0, stage(fold), 0, none, p0, p0});
  PageTag total = p0;
  total.provenance = table.sum(p0.provenance, p1.provenance);
  add(PartialFolded{0, stage(fold), 0, p0, p1, total});
  start(fold);
  pop(partial0);
  pop(landing);
  if (h == Handshake::token) add(CreditReturned{0, channel});
  complete(fold);
  push(sum, total);
  if (h == Handshake::token) add(CreditArrived{0, channel});
  start(store);
  pop(sum);
  add(MemoryUsed{0, ChipId{0u}, static_cast<std::uint8_t>(MemorySpace::hbm), 0, at, at + 16, 4096, true});
  add(PageStored{0, stage(store), 0, TensorId{4u}, total});
  complete(store);
  add(SectionEnded{0, SectionId{0u}});
  return events;
}

void replay(const std::vector<AnyEvent>& events, EventSink& sink) {
  for (const AnyEvent& e : events) std::visit([&](const auto& event) { sink.on(event); }, e);
}

}  // namespace rdusim::test
