#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "compiler/cost/cost.h"
#include "compiler/ir/collective_order.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/untimed_run.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/expand.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::collective_test {
using namespace rdusim::test;

namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

constexpr std::array all_algorithms = {Algorithm::through_one, Algorithm::direct, Algorithm::ring,
                                       Algorithm::halving_doubling, Algorithm::tree};
// Those that carry out a kind of reduction.
std::vector<Algorithm> forms_of(Kind kind) {
  if (kind == Kind::all_reduce) return {all_algorithms.begin(), all_algorithms.end()};
  if (kind == Kind::reduce_scatter) return {Algorithm::through_one, Algorithm::direct, Algorithm::ring};
  return {Algorithm::through_one, Algorithm::direct, Algorithm::ring, Algorithm::tree};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Nothing waits for ever though every buffer holds but one page, or what its form says that it must; and every store
// receives the sums that the trees say.
void check_runs(SpatialProgram p) {
  for (Buffer& b : p.buffers) b.depth_pages = std::max<std::uint64_t>(b.depth_pages, 1);
  const UntimedRun run = run_untimed(p, p.header.native_tile);
  CHECK(run.stuck == 0);
  CHECK(run.cycle.empty());
  CHECK(run.starved.empty());
  CHECK(!run.undecided);
  for (const SumFault& f : run.sums) {
    INFO(p.stage(f.stage).name);
    INFO(f.message);
    CHECK(false);
  }
}

// Every stage's ports speak of the same number of phases, or of all phases alike.
void check_phases(const SpatialProgram& p) {
  for (const Stage& s : p.stages) {
    INFO(s.name);
    std::set<std::uint64_t> cycles;
    for (const Port& port : s.ports) {
      for (const auto* c : {&port.need, &port.pop, &port.reserve, &port.push}) cycles.insert(cycle_length(*c));
      cycles.insert(cycle_length(port.chunk));
    }
    if (const auto* g = std::get_if<Generic>(&s.kind)) cycles.insert(cycle_length(g->bodies));
    if (const auto* st = std::get_if<Store>(&s.kind); st && !st->chunks.empty()) cycles.insert(st->chunks.size());
    cycles.erase(1);
    CHECK(cycles.size() <= 1);
    for (const std::uint64_t c : cycles) CHECK(s.firings % c == 0);
  }
}

// Pages pushed into a buffer are popped by every local reader, and sent to every Recv.
void check_balance(const SpatialProgram& p) {
  for (const Edge& e : p.edges) {
    std::uint64_t pushed = 0;
    for (std::size_t i = 0; i < p.stage(e.from).ports.size(); ++i)
      if (p.stage(e.from).ports[i].direction == Direction::output && p.stage(e.from).ports[i].buffer == e.buffer)
        pushed = count_pages(p, p.stage(e.from), i, 0)->pushed;
    for (const StageId to : e.to) {
      const Stage& reader = p.stage(to);
      INFO(p.buffer(e.buffer).name);
      INFO(reader.name);
      if (std::holds_alternative<Recv>(reader.kind)) {
        CHECK(reader.firings == pushed);
        continue;
      }
      for (std::size_t i = 0; i < reader.ports.size(); ++i)
        if (reader.ports[i].buffer == e.buffer && reader.ports[i].direction == Direction::input)
          CHECK(count_pages(p, reader, i, 0)->popped == pushed);
    }
  }
}

void check_crossings(const SpatialProgram& p, const Target& t) {
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    REQUIRE(e.routes.size() == e.to.size());
    for (std::size_t i = 0; i < e.to.size(); ++i) {
      const Stage& recv = p.stage(e.to[i]);
      REQUIRE(std::holds_alternative<Recv>(recv.kind));
      CHECK(std::get<Recv>(recv.kind).edge == e.id);
      CHECK(recv.role == StageRole::movement);
      CHECK(e.routes[i] == route(t, p.chip_of(p.stage(e.from)), p.chip_of(recv)));
      const Buffer& landing = p.buffer(recv.ports.front().buffer);
      CHECK(landing.dtype == p.buffer(e.buffer).dtype);
      CHECK(landing.group == recv.group);
    }
  }
}

// Every chunk of every output has a tree that adds each member once, and every store writes every chunk once.
void check_chunks(const SpatialProgram& p, const Target& t) {
  for (const Collective& c : p.collectives) {
    if (c.kind == Kind::all_gather || c.kind == Kind::all_to_all || c.kind == Kind::broadcast) continue;
    std::set<std::uint32_t> chunks;
    std::uint32_t of = 0;
    for (const SummationTree& tree : p.trees) {
      if (tree.op != c.op) continue;
      CHECK(chunks.insert(tree.chunk).second);
      of = tree.chunks;
      std::map<ChipId, std::int64_t> summed;
      for (const SummationNode& n : tree.nodes)
        if (n.leaf) summed[n.chip] += n.k_end - n.k_begin;
      CHECK(summed.size() == c.members.size());
      for (const auto& [chip, length] : summed)
        CHECK(length == p.work[chip.value * p.operators->operators.size() + c.op.value].k);
    }
    CHECK(chunks.size() == of);
    const auto members = static_cast<std::uint32_t>(c.members.size());
    if (c.algorithm == Algorithm::halving_doubling)
      CHECK(of == std::bit_floor(members));
    else if (c.algorithm == Algorithm::hierarchical)
      CHECK(of == (c.kind == Kind::reduce_scatter ? members : TwoLevels(c.members, t.node_chips).chunks()));
    else
      CHECK((of == 1 || of == members));
    for (const Stage& s : p.stages) {
      const auto* store = std::get_if<Store>(&s.kind);
      if (!store || s.origin != c.op || store->chunks.empty()) continue;
      std::set<std::uint32_t> written;
      for (const Chunk& chunk : store->chunks) {
        CHECK(chunk.of == of);
        CHECK(written.insert(chunk.index).second);
      }
      CHECK(written.size() == of);
    }
  }
}

// What a site of a chip really has in a section.
SiteDemand have(const SpatialProgram& p, ChipId chip) {
  SiteDemand d;
  std::set<BufferId> buffers;
  const GroupId home = [&] {
    for (const Stage& s : p.stages)
      if (p.chip_of(s) == chip && s.collective) return s.group;
    return GroupId(0);
  }();
  for (const Stage& s : p.stages) {
    if (s.group != home) continue;
    if (s.role == StageRole::compute) ++d.contexts;
    for (const Port& port : s.ports) buffers.insert(port.buffer);
  }
  d.buffers = buffers.size();
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    if (p.stage(e.from).group == home) ++d.semaphores;
    for (const StageId to : e.to) d.semaphores += p.stage(to).group == home ? 1 : 0;
  }
  for (const Buffer& b : p.buffers)
    if (b.group == home) d.bytes += b.page_bytes * std::max<std::uint64_t>(b.depth_pages, 1);
  return d;
}

void check_all(const SpatialProgram& p, const Target& t) {
  check_references(p);
  check_phases(p);
  check_balance(p);
  check_crossings(p, t);
  check_chunks(p, t);
  check_runs(p);
  CHECK(count_of<CollectiveStage>(p) == 0);
  const Diagnostics found = verify(p, t);
  INFO(found.to_text());
  CHECK(!found.has_errors());
  std::set<std::string> names;
  for (const Stage& s : p.stages) CHECK(names.insert(s.name).second);
  names.clear();
  for (const Buffer& b : p.buffers) CHECK(names.insert(b.name).second);
}

// One that is reduced in that way.
OperatorGraph matmul_of(Kind kind, std::int64_t m, std::int64_t k, std::int64_t n, DType type = DType::int8,
                        DType result = DType::int32) {
  return kind == Kind::reduce_scatter ? one_scattered_matmul(m, k, n, type, result) : one_matmul(m, k, n, type, result);
}

// Reductions of one matmul whose output is ragged, cut over sites and, where asked, along the contraction on the chip.
SpatialProgram reduction(std::uint32_t n, Kind kind, Algorithm algorithm, const Target& t, DType result = DType::int32,
                         std::uint32_t unroll_k = 1) {
  const std::int64_t rows = kind == Kind::reduce_scatter ? 7 * std::int64_t{n} : 40;  // of two tiles, beyond four chips
  OperatorGraph g = matmul_of(kind, rows, 64 * n, 100, is_integer(result) ? DType::int8 : DType::bf16, result);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = unroll_k;
  pin.page_k = 1;
  pin.unroll_n = 2;
  pin.block_n = 1;
  g.pins.push_back(pin);
  return joined(g, over(n, ShardKind::row, kind, algorithm), t);
}

std::vector<Algorithm> with_hierarchical(Kind kind, std::uint32_t n) {
  std::vector<Algorithm> forms = forms_of(kind);
  if (kind != Kind::reduce && n > 2) forms.push_back(Algorithm::hierarchical);
  return forms;
}

}  // namespace

// ---- the forms ------------------------------------------------------------------------------------------------------

TEST_CASE("every form of a reduction, over 2 to 9 chips, is sound and adds every partial once") {
  const Target t = sn40l();
  for (std::uint32_t n = 2; n <= 9; ++n)
    for (const Kind kind : {Kind::reduce, Kind::all_reduce, Kind::reduce_scatter})
      for (const Algorithm a : forms_of(kind)) {
        CAPTURE(n);
        CAPTURE(int(kind));
        CAPTURE(int(a));
        const SpatialProgram p = reduction(n, kind, a, t);
        check_all(p, t);
        CHECK(p.collectives[0].algorithm == a);
        CHECK(count_of<Store>(p) == (kind == Kind::reduce ? 1 : n));
      }
}

TEST_CASE("every form works where the chip splits the contraction further and where the result is narrower") {
  const Target t = sn40l();
  for (const std::uint32_t n : {2u, 3u, 4u})
    for (const Kind kind : {Kind::reduce, Kind::all_reduce, Kind::reduce_scatter})
      for (const Algorithm a : forms_of(kind)) {
        CAPTURE(n);
        CAPTURE(int(kind));
        CAPTURE(int(a));
        check_all(reduction(n, kind, a, t, DType::bf16, 2), t);
      }
}

TEST_CASE("every form works with semaphores and with barriers") {
  for (const Target& t : {full_mesh(wormhole(), 4), full_mesh(barrier_machine(), 4)})
    for (const std::uint32_t n : {2u, 3u})
      for (const Kind kind : {Kind::reduce, Kind::all_reduce, Kind::reduce_scatter})
        for (const Algorithm a : forms_of(kind)) {
          CAPTURE(t.name);
          CAPTURE(n);
          CAPTURE(int(kind));
          CAPTURE(int(a));
          OperatorGraph g = matmul_of(kind, 12, 64 * n, 64);
          SchedulePin pin;
          pin.op = OperatorId(0);
          pin.unroll_k = 1;
          g.pins.push_back(pin);
          const SpatialProgram p = joined(g, over(n, ShardKind::row, kind, a), t);
          check_all(p, t);
          const Handshake first =
              t.crossing.front() == CrossingHandshake::semaphore ? Handshake::semaphore : Handshake::barrier;
          for (const Edge& e : p.edges) CHECK((is_local(e.handshake) || e.handshake == first));
        }
}

TEST_CASE("the stand-ins of the tests can fail: a dropped, a doubled and a swapped partial are seen") {
  const Target t = sn40l();
  const auto faults = [](SpatialProgram p) {
    for (Buffer& b : p.buffers) b.depth_pages = 1;
    return run_untimed(p, p.header.native_tile).sums.size();
  };
  const SpatialProgram good = reduction(3, Kind::all_reduce, Algorithm::direct, t);
  CHECK(faults(good) == 0);
  const auto fold_of = [](SpatialProgram& p) -> Generic& {
    for (Stage& s : p.stages)
      if (s.name == "down.all_reduce.fold_c1") return std::get<Generic>(s.kind);
    FAIL("no fold");
    std::abort();
  };
  SpatialProgram dropped = good;
  fold_of(dropped).bodies[2].value = {{ExprOp::accumulator, 0, 0}};
  CHECK(faults(dropped) > 0);
  SpatialProgram doubled = good;
  const Expr twice = {{ExprOp::accumulator, 0, 0},
                      {ExprOp::operand, 2, 0},
                      {ExprOp::add, 0, 0},
                      {ExprOp::operand, 2, 0},
                      {ExprOp::add, 0, 0}};
  fold_of(doubled).bodies[2].value = twice;
  CHECK(faults(doubled) > 0);
  SpatialProgram swapped = good;
  for (Stage& s : swapped.stages)
    if (auto* store = std::get_if<Store>(&s.kind)) std::swap(store->chunks[0], store->chunks[1]);
  CHECK(faults(swapped) > 0);
}

TEST_CASE("through one: the first chip folds, a landing a sender, and sends the sum on by one edge") {
  const Target t = sn40l();
  const SpatialProgram p = reduction(4, Kind::all_reduce, Algorithm::through_one, t);
  CHECK(count_of<Recv>(p) == 3 + 3);
  CHECK(count_of<Generic>(p) == 1);
  for (std::size_t c = 1; c < 4; ++c) {
    CHECK(stage_named(p, "down.all_reduce.recv_c" + std::to_string(c) + "_c0"));
    CHECK(buffer_named(p, "down.all_reduce.landing_c" + std::to_string(c) + "_c0")->kind == BufferKind::interm);
    CHECK(stage_named(p, "down.all_reduce.result_c0_c" + std::to_string(c)));
  }
  const Stage* fold = stage_named(p, "down.all_reduce.fold_c0");
  REQUIRE(fold);
  CHECK(fold->ports[0].buffer == buffer_named(p, "down.partial_c0")->id);
  for (std::uint64_t phase = 0; phase < 4; ++phase)
    for (std::size_t port = 0; port < 4; ++port)
      CHECK(at_phase(fold->ports[port].need, phase) == (port == phase ? 1 : 0));
  std::size_t from_sum = 0;
  for (const Edge& e : p.edges)
    if (e.from == fold->id && !is_local(e.handshake)) from_sum += e.to.size() == 3 ? 1 : 100;
  CHECK(from_sum == 1);
  REQUIRE(p.trees.size() == 1);
  CHECK(p.trees[0].chunks == 1);
}

TEST_CASE("direct: member d folds chunk d of every partial, own partial local") {
  const Target t = sn40l();
  const SpatialProgram p = reduction(3, Kind::all_reduce, Algorithm::direct, t);
  CHECK(count_of<Recv>(p) == 3 * 2 + 3 * 2);
  for (std::uint32_t d = 0; d < 3; ++d) {
    const Stage* fold = stage_named(p, "down.all_reduce.fold_c" + std::to_string(d));
    REQUIRE(fold);
    CHECK(fold->ports[d].buffer == buffer_named(p, "down.partial_c" + std::to_string(d))->id);
    CHECK(at_phase(fold->ports[d].chunk, d) == Chunk{d, 3});
    for (std::uint32_t c = 0; c < 3; ++c) {
      if (c == d) continue;
      const Stage* recv = stage_named(p, "down.all_reduce.recv_c" + std::to_string(c) + "_c" + std::to_string(d));
      REQUIRE(recv);
      CHECK(p.edge(std::get<Recv>(recv->kind).edge).chunk == Chunk{d, 3});
      const Buffer* landing =
          buffer_named(p, "down.all_reduce.landing_c" + std::to_string(c) + "_c" + std::to_string(d));
      CHECK(landing->page_bytes == ceil_div(buffer_named(p, "down.partial_c0")->page_bytes / 4, std::uint64_t{3}) * 4);
    }
  }
  // Whatever its chunk, an element is added in the order of members.
  REQUIRE(p.trees.size() == 3);
  CHECK(p.trees[0].nodes == p.trees[1].nodes);
  CHECK(p.trees[0].nodes == reduction(3, Kind::all_reduce, Algorithm::through_one, t).trees[0].nodes);
}

TEST_CASE("ring: one edge and one landing a chip, own chunks sent first, and chunks stored as they become final") {
  const Target t = sn40l();
  const std::uint32_t n = 4;
  const SpatialProgram p = reduction(n, Kind::all_reduce, Algorithm::ring, t);
  CHECK(count_of<Recv>(p) == n);
  CHECK(count_of<Generic>(p) == n);
  for (std::uint32_t r = 0; r < n; ++r) {
    const Stage* ring = stage_named(p, "down.all_reduce.ring_c" + std::to_string(r));
    REQUIRE(ring);
    CHECK(at_phase(ring->ports[0].chunk, 0) == Chunk{r, n});
    CHECK(cycle_length(std::get<Generic>(ring->kind).bodies) == 2 * n - 1);
    const Stage* store = stage_named(p, "down.store_c" + std::to_string(r));
    REQUIRE(store);
    const auto& chunks = std::get<Store>(store->kind).chunks;
    for (std::uint32_t j = 0; j < n; ++j) CHECK(chunks[j] == Chunk{(r + 1 + n - j) % n, n});
    // Chunk r is added from member r on.
    CHECK(p.trees[r].chunk == r);
    CHECK(p.trees[r].nodes.front().chip == ChipId(r));
  }
}

TEST_CASE("reduce-scatter: each chip adds its rows of every partial and stores just those") {
  const Target t = sn40l();
  const std::uint32_t n = 4;
  const SpatialProgram direct = reduction(n, Kind::reduce_scatter, Algorithm::direct, t);
  const SpatialProgram ring = reduction(n, Kind::reduce_scatter, Algorithm::ring, t);
  const SpatialProgram through = reduction(n, Kind::reduce_scatter, Algorithm::through_one, t);
  CHECK(count_of<Recv>(direct) == n * (n - 1));
  CHECK(count_of<Recv>(ring) == n);
  CHECK(count_of<Recv>(through) == 2 * (n - 1));
  for (const SpatialProgram* p : {&direct, &ring, &through})
    for (std::uint32_t c = 0; c < n; ++c) {
      const std::string at = "_c" + std::to_string(c);
      const Tensor* y = tensor_named(*p, "y" + at);
      CHECK(y->offset == std::vector<std::int64_t>{7 * std::int64_t{c}, 0});
      CHECK(y->shape == std::vector<std::int64_t>{7, 100});
      const Stage* store = stage_named(*p, "down.store" + at);
      REQUIRE(store);
      CHECK(std::get<Store>(store->kind).chunks.empty());
      CHECK(std::get<Store>(store->kind).pattern.extent_tiles == y->tiles);
    }
  const auto& members = ring.collectives[0].members;
  for (std::uint32_t r = 0; r < n; ++r) {
    const Stage* s = stage_named(ring, "down.reduce_scatter.ring_c" + std::to_string(members[r].value));
    REQUIRE(s);
    CHECK(cycle_length(std::get<Generic>(s->kind).bodies) == n);
    CHECK(at_phase(s->ports[0].chunk, n - 1) == Chunk{members[r].value, n});
    CHECK(at_phase(s->ports[0].chunk, 0) == Chunk{members[(r + n - 1) % n].value, n});
    // What a member keeps is added from the one after it on, and last its own.
    const Sum& sum = ring.trees[members[r].value].nodes;
    CHECK(sum.front().chip == members[(r + 1) % n]);
  }
  CHECK(direct.trees.size() == n);
  CHECK(through.trees.size() == 1);
}

TEST_CASE("reduce-scatter: other forms are refused with those that there are") {
  const Target t = sn40l();
  for (const Algorithm a : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::hierarchical}) {
    const auto r =
        collective(sharded(one_scattered_matmul(32, 256, 64), over(4, ShardKind::row, Kind::all_reduce, a), t), t);
    REQUIRE(!r.ok());
    REQUIRE(r.diagnostics().contains(Code::RDU4114));
    CHECK(has(r.diagnostics().list().front().help.front(), "--collective direct, --collective ring"));
  }
}

TEST_CASE("halving and doubling: an edge a partner each way, a guest an edge each way, for any number of chips") {
  const Target t = sn40l();
  for (std::uint32_t n = 2; n <= 16; ++n) {
    CAPTURE(n);
    const SpatialProgram p = reduction(n, Kind::all_reduce, Algorithm::halving_doubling, t);
    check_all(p, t);
    const std::uint32_t corners = std::bit_floor(n), steps = static_cast<std::uint32_t>(std::countr_zero(corners));
    CHECK(count_of<Recv>(p) == corners * steps + 2 * (n - corners));
    CHECK(count_of<Generic>(p) == corners);
    CHECK(p.trees.size() == corners);
  }
  // Over four chips, block 2 (of the upper half, and of that the lower) is chip 1's: it adds what chip 0 sends to its
  // own, and then what chip 3 has added of chip 2's.
  const SpatialProgram p = reduction(4, Kind::all_reduce, Algorithm::halving_doubling, t);
  std::vector<std::uint32_t> chips;
  for (const SummationNode& node : p.trees[2].nodes)
    if (node.leaf) chips.push_back(node.chip.value);
  CHECK(chips == std::vector<std::uint32_t>{1, 0, 3, 2});
  const Stage* store = stage_named(p, "down.store_c1");
  REQUIRE(store);
  CHECK(std::get<Store>(store->kind).chunks.front() == Chunk{2, 4});
}

TEST_CASE("halving and doubling leaves its result everywhere: a reduction to one chip is refused") {
  const Target t = sn40l();
  const auto r = collective(
      sharded(one_matmul(32, 256, 64), over(4, ShardKind::row, Kind::reduce, Algorithm::halving_doubling), t), t);
  REQUIRE(!r.ok());
  CHECK(r.diagnostics().contains(Code::RDU4114));
}

TEST_CASE("tree: each adds its children's sums, and the root's sum goes down again from landing to landing") {
  const Target t = sn40l();
  for (std::uint32_t n = 10; n <= 16; ++n) check_all(reduction(n, Kind::all_reduce, Algorithm::tree, t), t);
  const SpatialProgram p = reduction(6, Kind::all_reduce, Algorithm::tree, t);
  CHECK(count_of<Recv>(p) == 2 * 5);
  // 0 above 1 (above 2) and 3 (above 4 and 5).
  for (const char* stage : {"recv_c1_c0", "recv_c3_c0", "recv_c2_c1", "recv_c4_c3", "recv_c5_c3", "result_c0_c1",
                            "result_c0_c3", "result_c1_c2", "result_c3_c4", "result_c3_c5"})
    CHECK(stage_named(p, std::string("down.all_reduce.") + stage));
  REQUIRE(p.trees.size() == 1);
  std::vector<std::uint32_t> chips;
  for (const SummationNode& node : p.trees[0].nodes)
    if (node.leaf) chips.push_back(node.chip.value);
  CHECK(chips == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("hierarchical: within nodes, between them and within again, for full nodes and for others") {
  Target t = sn40l();
  for (const std::uint32_t node : {8u, 4u, 2u, 1u}) {
    t.node_chips = node;
    for (const std::uint32_t n : {2u, 3u, 7u, 9u, 12u, 15u, 16u}) {
      if (n <= node) continue;
      CAPTURE(node);
      CAPTURE(n);
      for (const DType type : {DType::int32, DType::bf16}) {
        const SpatialProgram p = reduction(n, Kind::all_reduce, Algorithm::hierarchical, t, type);
        check_all(p, t);
        CHECK(p.collectives[0].algorithm == Algorithm::hierarchical);
        check_all(reduction(n, Kind::reduce_scatter, Algorithm::hierarchical, t, type), t);
      }
    }
  }
  t.node_chips = 8;
  const SpatialProgram p = reduction(16, Kind::all_reduce, Algorithm::hierarchical, t);
  // To each chip: a chunk from each of seven, a sum from its counterpart, a result from each of seven.
  CHECK(count_of<Recv>(p) == 16 * (7 + 1 + 7));
  CHECK(stage_named(p, "down.all_reduce.node_c11_c3"));
  CHECK(p.trees.size() == 8);
  // Scattered: two chunks from each of seven, one of which goes on to its counterpart.
  const SpatialProgram scattered = reduction(16, Kind::reduce_scatter, Algorithm::hierarchical, t);
  CHECK(count_of<Recv>(scattered) == 16 * (2 * 7 + 1));
  CHECK(scattered.trees.size() == 16);
  const auto refused = [&](std::uint32_t n, Kind kind) {
    const auto r =
        collective(sharded(one_matmul(32, 64 * n, 64), over(n, ShardKind::row, kind, Algorithm::hierarchical), t), t);
    return !r.ok() && r.diagnostics().contains(Code::RDU4114);
  };
  CHECK(refused(8, Kind::all_reduce));
  CHECK(refused(9, Kind::reduce));
  t.node_chips = 0;
  CHECK(refused(9, Kind::all_reduce));
}

TEST_CASE("only the final value is converted: partials cross in the accumulator's type") {
  const Target t = sn40l();
  for (const Algorithm a : all_algorithms) {
    const SpatialProgram p = reduction(3, Kind::all_reduce, a, t, DType::bf16);
    for (const Buffer& b : p.buffers) {
      if (b.kind == BufferKind::interm) CHECK(b.dtype == DType::fp32);
    }
    for (const Stage& s : p.stages)
      if (std::holds_alternative<Store>(s.kind))
        for (const Port& port : s.ports) CHECK(p.buffer(port.buffer).dtype == DType::bf16);
  }
  CHECK(count_of<Generic>(reduction(3, Kind::all_reduce, Algorithm::ring, t, DType::bf16)) == 6);
  CHECK(count_of<Generic>(reduction(3, Kind::all_reduce, Algorithm::ring, t, DType::fp32)) == 3);
}

TEST_CASE("an all-gather sends each chip's columns to all others by one edge") {
  const Target t = sn40l();
  for (std::uint32_t n = 2; n <= 5; ++n) {
    const SpatialProgram p = joined(two_matmuls(40, 64, 32 * n, 32 * n), over(n, ShardKind::column), t);
    check_all(p, t);
    CHECK(count_of<Recv>(p) == n * (n - 1));
    CHECK(p.collectives[0].algorithm == Algorithm::direct);
    std::size_t crossing = 0;
    for (const Edge& e : p.edges) crossing += is_local(e.handshake) ? 0 : 1;
    CHECK(crossing == n);
  }
}

TEST_CASE("an all-to-all sends each chip its rows of each other's columns, directly and in no other way") {
  for (const Target& t : {sn40l(), full_mesh(barrier_machine(), 7)})
    for (std::uint32_t n = 2; n <= 7; ++n)
      for (const DType type : {DType::int32, DType::int8}) {
        CAPTURE(t.name);
        CAPTURE(n);
        const OperatorGraph g = one_scattered_matmul(7 * std::int64_t{n}, 64, 64 * std::int64_t{n}, DType::int8, type);
        const SpatialProgram before = sharded(g, over(n, ShardKind::column), t);
        const SpatialProgram p = joined(g, over(n, ShardKind::column), t);
        check_all(p, t);
        CHECK(count_of<Recv>(p) == n * (n - 1));
        CHECK(p.collectives[0].algorithm == Algorithm::direct);
        const Collective& c = before.collectives[0];
        const SiteDemand said = demand_of(before, c, members_of(before, c), {Algorithm::direct}, t);
        const SiteDemand after = have(p, ChipId(0));
        SiteDemand own = have(before, ChipId(0));
        for (const Buffer& b : before.buffers)  // what the stand-in would push, which goes
          if (has(b.name, ".page_c") && b.name.ends_with("_c0")) {
            --own.buffers;
            own.bytes -= b.page_bytes;
          }
        CHECK(said.buffers == after.buffers - own.buffers);
        CHECK(said.semaphores == after.semaphores - own.semaphores);
        CHECK(said.bytes == after.bytes - own.bytes);
      }
  const Target t = sn40l();
  for (const Algorithm a : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling, Algorithm::through_one}) {
    const auto r =
        collective(sharded(one_scattered_matmul(32, 64, 128), over(2, ShardKind::column, Kind::all_reduce, a), t), t);
    REQUIRE(!r.ok());
    CHECK(r.diagnostics().contains(Code::RDU4114));
  }
}

TEST_CASE("a broadcast gives every chip the first member's pages, in every form, and asks of sites what it says") {
  for (const Target& t : {sn40l(), full_mesh(wormhole(), 6), full_mesh(barrier_machine(), 6)})
    for (std::uint32_t n = 2; n <= 6; ++n)
      for (const Algorithm a :
           {Algorithm::through_one, Algorithm::direct, Algorithm::ring, Algorithm::tree, Algorithm::automatic})
        for (const DType type : {DType::int32, DType::int8}) {
          CAPTURE(t.name);
          CAPTURE(n);
          CAPTURE(int(a));
          const OperatorGraph g = one_matmul_alone(n - 2, n, 40, 64, 72, DType::int8, type);
          const SpatialProgram before = sharded(g, over(n, ShardKind::row, Kind::all_reduce, a), t);
          CHECK(count_of<CollectiveStage>(before) == n);
          CHECK(count_of<MatmulTiles>(before) == 1);
          CHECK(before.work.size() == 1);
          const SpatialProgram p = joined(g, over(n, ShardKind::row, Kind::all_reduce, a), t);
          check_all(p, t);
          const Collective& c = p.collectives[0];
          CHECK(c.kind == Kind::broadcast);
          CHECK(c.members.front() == ChipId(n - 2));
          CHECK(c.bytes[0] == 40 * 72 * bytes_of(type));
          CHECK(std::count(c.bytes.begin(), c.bytes.end(), Bytes{0}) == n - 1);
          CHECK((a == Algorithm::automatic || c.algorithm == a));
          CHECK(count_of<Store>(p) == n);
          const bool in_chunks = c.algorithm == Algorithm::direct;
          CHECK(count_of<Recv>(p) == (in_chunks ? (n - 1) * (n - 1) : n - 1));
          CHECK(p.trees.size() == 1);
          const SiteDemand said = demand_of(before, c, members_of(before, c), {c.algorithm}, t);
          SiteDemand most;
          for (std::uint32_t chip = 0; chip < n; ++chip) {
            if (chip == n - 2) continue;
            const SiteDemand after = have(p, ChipId(chip));
            most.buffers = std::max(most.buffers, after.buffers);
            most.semaphores = std::max(most.semaphores, after.semaphores);
            most.bytes = std::max(most.bytes, after.bytes);
          }
          CHECK(said.buffers == most.buffers);
          CHECK(said.semaphores == most.semaphores);
          CHECK(said.bytes == most.bytes);
        }
}

TEST_CASE("a broadcast within nodes and between them crosses between nodes once for each") {
  Target t = sn40l();
  for (const std::uint32_t n : {9u, 12u, 16u}) {
    CAPTURE(n);
    const SpatialProgram p = joined(one_matmul_alone(3, n, 40, 64, 72),
                                    over(n, ShardKind::row, Kind::all_reduce, Algorithm::hierarchical), t);
    check_all(p, t);
    std::size_t between = 0;
    for (const Edge& e : p.edges)
      for (const StageId to : e.to) between += p.chip_of(p.stage(e.from)).value / 8 != p.chip_of(p.stage(to)).value / 8;
    CHECK(between == 1);
  }
  // Seven nodes of two: a tree of nodes, each reached once, from no more than two others' way.
  t.node_chips = 2;
  const SpatialProgram p = joined(one_matmul_alone(5, 13, 40, 64, 72),
                                  over(13, ShardKind::row, Kind::all_reduce, Algorithm::hierarchical), t);
  check_all(p, t);
  std::map<std::uint32_t, std::size_t> into, out_of;  // by node
  for (const Edge& e : p.edges)
    for (const StageId to : e.to) {
      const std::uint32_t a = p.chip_of(p.stage(e.from)).value / 2, b = p.chip_of(p.stage(to)).value / 2;
      if (a != b) ++into[b], ++out_of[a];
    }
  CHECK(into.size() == 6);
  for (const auto& [node, times] : into) CHECK(times == 1);
  for (const auto& [node, times] : out_of) CHECK(times <= 2);
  const SpatialProgram before = sharded(one_matmul_alone(5, 13, 40, 64, 72),
                                        over(13, ShardKind::row, Kind::all_reduce, Algorithm::hierarchical), t);
  const Collective& c = p.collectives[0];
  CHECK(demand_of(before, c, members_of(before, c), {c.algorithm}, t).semaphores == 2);
}

TEST_CASE("chains are sound, whichever way they are sharded") {
  const Target t = sn40l();
  for (const ShardKind kind : {ShardKind::none, ShardKind::row, ShardKind::column})
    for (std::uint32_t n = 2; n <= 4; ++n)
      check_all(joined(two_matmuls(33, 32 * n, 64 * n, 32 * n), over(n, kind), t), t);
}

TEST_CASE("where nothing is joined the pass changes nothing") {
  const Target t = sn40l();
  const SpatialProgram p = sharded(one_matmul(32, 64, 64), over(2, ShardKind::column), t);
  const auto q = collective(p, t);
  REQUIRE(q.ok());
  CHECK(*q == p);
}

// ---- what a site gives ----------------------------------------------------------------------------------------------

TEST_CASE("what a form is said to ask of a site is what it asks") {
  Target t = sn40l();
  t.node_chips = 2;
  for (std::uint32_t n = 2; n <= 6; ++n)
    for (const Kind kind : {Kind::reduce, Kind::all_reduce, Kind::reduce_scatter})
      for (const Algorithm a : with_hierarchical(kind, n))
        for (const DType type : {DType::fp32, DType::bf16}) {
          CAPTURE(n);
          CAPTURE(int(kind));
          CAPTURE(int(a));
          OperatorGraph g = matmul_of(kind, 60, 64 * n, 32, DType::bf16, type);
          const SpatialProgram before = sharded(g, over(n, ShardKind::row, kind, a), t);
          const SpatialProgram after = joined(g, over(n, ShardKind::row, kind, a), t);
          const SiteDemand said =
              demand_of(before, before.collectives[0], members_of(before, before.collectives[0]), {a}, t);
          SiteDemand most;
          for (std::size_t c = 0; c < n; ++c) {
            SiteDemand added = have(after, ChipId(c));
            SiteDemand base = have(before, ChipId(c));
            for (const Buffer& b : before.buffers)  // what the stand-in would push, which goes
              if (has(b.name, ".result_c" + std::to_string(c))) {
                --base.buffers;
                base.bytes -= b.page_bytes;
              }
            most.buffers = std::max(most.buffers, added.buffers - base.buffers);
            most.semaphores = std::max(most.semaphores, added.semaphores - base.semaphores);
            most.contexts = std::max(most.contexts, added.contexts + 1 - base.contexts);
            most.bytes = std::max(most.bytes, added.bytes - base.bytes);
          }
          CHECK(said.buffers == most.buffers);
          CHECK(said.semaphores == most.semaphores);
          CHECK(said.contexts == most.contexts);
          CHECK(said.bytes == most.bytes);
        }
}

TEST_CASE("a form that a site cannot hold is refused with limit and actual, and auto takes another") {
  Target t = sn40l();
  OperatorGraph g = one_matmul(32, 64 * 8, 32);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = 1;
  g.pins.push_back(pin);
  const auto asked = [&](Algorithm a) {
    return collective(sharded(g, over(8, ShardKind::row, Kind::all_reduce, a), sn40l()), t);
  };
  t.site.buffers = 7;  // a, b, partial, and four
  for (const Algorithm a : {Algorithm::through_one, Algorithm::direct}) {
    const auto r = asked(a);
    REQUIRE(!r.ok());
    REQUIRE(r.diagnostics().list().size() == 1);
    const Diagnostic& d = r.diagnostics().list().front();
    CHECK(d.code == Code::RDU4114);
    CHECK(has(d.message, a == Algorithm::direct ? "18 buffers" : "11 buffers"));
    CHECK(has(d.message, "gives it 7"));
    CHECK(has(d.help.front(), "ring"));
  }
  CHECK(asked(Algorithm::ring).ok());
  CHECK(!asked(Algorithm::halving_doubling).ok());
  const auto chosen = asked(Algorithm::automatic);
  REQUIRE(chosen.ok());
  CHECK(chosen->collectives[0].algorithm == Algorithm::tree);  // of four buffers, as ring
  CHECK(has(chosen->collectives[0].reason, "direct not available"));
  t.site.buffers = 4;
  const auto none = asked(Algorithm::automatic);
  REQUIRE(!none.ok());
  CHECK(none.diagnostics().contains(Code::RDU4114));
  CHECK(none.diagnostics().list().front().notes.size() == all_algorithms.size() + 1);  // and hierarchical
}

TEST_CASE("semaphores, compute stages and vector ports are counted") {
  OperatorGraph g = one_matmul(32, 64 * 4, 32);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = 1;
  g.pins.push_back(pin);
  const auto refused = [&](const Target& t, Algorithm a, const std::string& text) {
    const Target ample = t.crossing.front() == CrossingHandshake::token ? sn40l() : full_mesh(wormhole(), 4);
    const auto r = collective(sharded(g, over(4, ShardKind::row, Kind::all_reduce, a), ample), t);
    REQUIRE(!r.ok());
    INFO(r.diagnostics().to_text());
    CHECK(r.diagnostics().contains(Code::RDU4114));
    CHECK(has(r.diagnostics().list().front().message, text));
  };
  Target w = full_mesh(wormhole(), 4);
  w.site.semaphores = 9;
  refused(w, Algorithm::direct, "10 semaphores and the target gives it 9");
  Target s = sn40l();
  s.site.pcu_contexts = 1;
  refused(s, Algorithm::through_one, "2 compute stages and the target gives it 1");
  s = sn40l();
  s.site.vector_inputs = 1;
  refused(s, Algorithm::ring, "2 vector inputs");
  s = sn40l();
  s.site.vector_outputs = 1;
  refused(s, Algorithm::ring, "2 vector outputs");
}

TEST_CASE("auto picks the least estimate and says what the others would take") {
  const Target t = sn40l();
  const SpatialProgram p = reduction(8, Kind::all_reduce, Algorithm::automatic, t);
  const Collective& c = p.collectives[0];
  const std::uint64_t lanes = 2 * 2, pages = 2;
  std::map<Algorithm, Cycles> cycles;
  for (const Algorithm a : all_algorithms)
    cycles[a] = estimate_collective(c.kind, a, c.bytes[0], lanes, c.members, t, pages).cycles;
  for (const Algorithm a : all_algorithms) {
    CHECK(cycles[c.algorithm] <= cycles[a]);
    CHECK(has(c.reason, with_commas(cycles[a])));
  }
}

TEST_CASE("an all-gather is direct, in a ring or by levels, and nothing else") {
  Target t = sn40l();
  for (const std::uint32_t node : {1u, 2u, 3u, 4u}) {
    t.node_chips = node;
    for (std::uint32_t n = 2; n <= 7; ++n)
      for (const Algorithm a : {Algorithm::ring, Algorithm::hierarchical}) {
        if (a == Algorithm::hierarchical && n <= node) continue;
        CAPTURE(node);
        CAPTURE(n);
        CAPTURE(int(a));
        const auto plan = over(n, ShardKind::column, Kind::all_reduce, a);
        const OperatorGraph g = two_matmuls(40, 64, 32 * n, 32 * n);
        const SpatialProgram p = joined(g, plan, t);
        check_all(p, t);
        CHECK(count_of<Recv>(p) == n * (n - 1));
        CHECK(p.collectives[0].algorithm == a);
        // Semaphores: of each chip, its receives and the edges that leave it.
        std::map<ChipId, std::uint64_t> ends;
        for (const Edge& e : p.edges) {
          if (is_local(e.handshake)) continue;
          ++ends[p.chip_of(p.stage(e.from))];
          for (const StageId to : e.to) ++ends[p.chip_of(p.stage(to))];
        }
        std::uint64_t most = 0;
        for (const auto& [chip, count] : ends) most = std::max(most, count);
        CHECK(counts_of(Kind::all_gather, a, n, false, t).semaphores == most);
      }
  }
  for (const Algorithm a : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::through_one}) {
    const auto r =
        collective(sharded(two_matmuls(32, 64, 64, 64), over(2, ShardKind::column, Kind::all_reduce, a), t), t);
    REQUIRE(!r.ok());
    CHECK(r.diagnostics().contains(Code::RDU4114));
  }
}

// torchcomms, issue 2119, and https://github.com/astra-sim/astra-sim/issues/371: groups that nodes do
// not divide lost or doubled contributions.
TEST_CASE("32 chips in nodes of 6, and 6 with 4, are all counted once, reduced and gathered") {
  Target t = sn40l();
  t.node_chips = 6;
  t.chips = 32;
  t.links.clear();
  for (std::uint32_t a = 0; a < 32; ++a)
    for (std::uint32_t b = 0; b < 32; ++b)
      if (a != b && (a / 6 == b / 6 || a % 6 == b % 6))
        t.links.push_back({LinkId{t.links.size()}, ChipId{a}, ChipId{b}, {32, 1}, 100, 0});
  for (const std::uint32_t n : {32u, 10u}) {
    CAPTURE(n);
    const OperatorGraph sums = one_matmul(32, 32 * n, 32);
    check_all(joined(sums, over(n, ShardKind::row, Kind::all_reduce, Algorithm::hierarchical), t), t);
    const auto columns = two_matmuls(32, 32, 32 * n, 32 * n);
    const SpatialProgram p = joined(columns, over(n, ShardKind::column, Kind::all_reduce, Algorithm::hierarchical), t);
    check_all(p, t);
    CHECK(std::count_if(p.stages.begin(), p.stages.end(), [](const Stage& st) {
            return std::holds_alternative<Recv>(st.kind) && st.collective;
          }) == n * (n - 1));
  }
}

// As many buffers as the site that asks most has, with what the trains add.
TEST_CASE("an all-gather comes in trains where a landing for each chip is more than a site has") {
  for (const std::uint32_t node : {2u, 3u, 4u})
    for (std::uint32_t n = 4; n <= 9; ++n)
      for (const Algorithm a : {Algorithm::ring, Algorithm::hierarchical}) {
        if (a == Algorithm::hierarchical && n <= node) continue;
        CAPTURE(node);
        CAPTURE(n);
        CAPTURE(int(a));
        Target t = sn40l();
        t.node_chips = node;
        OperatorGraph g = two_matmuls(40, 64, 32 * n, 32 * n);
        for (const Operator& op : g.operators) {
          SchedulePin pin;
          pin.op = op.id;
          pin.unroll_k = 1;
          g.pins.push_back(pin);
        }
        const SpatialProgram before = sharded(g, over(n, ShardKind::column, Kind::all_reduce, a), t);
        const std::vector<Member> members = members_of(before, before.collectives[0]);
        const SiteDemand apart = demand_of(before, before.collectives[0], members, {a}, t);
        const SiteDemand trains = demand_of(before, before.collectives[0], members, {a, true}, t);
        t.site.buffers = 3 + trains.buffers;  // a, b, c
        const auto r = collective(before, t);
        if (apart.buffers <= trains.buffers) continue;
        REQUIRE(r.ok());
        check_all(*r, t);
        CHECK(r->collectives[0].algorithm == a);
        std::map<ChipId, std::uint64_t> buffers, ends;
        for (const Buffer& b : r->buffers)
          if (b.origin == OperatorId(0)) ++buffers[r->group(b.group).sites.front().chip];
        for (const Edge& e : r->edges) {
          if (is_local(e.handshake)) continue;
          ++ends[r->chip_of(r->stage(e.from))];
          for (const StageId to : e.to) ++ends[r->chip_of(r->stage(to))];
        }
        std::uint64_t most_buffers = 0, most_ends = 0;
        for (const auto& [chip, count] : buffers) most_buffers = std::max(most_buffers, count);
        for (const auto& [chip, count] : ends) most_ends = std::max(most_ends, count);
        CHECK(most_buffers == t.site.buffers);
        CHECK(most_ends == trains.semaphores);
        // One less, and there is no way.
        --t.site.buffers;
        const auto none = collective(before, t);
        REQUIRE(!none.ok());
        CHECK(none.diagnostics().contains(Code::RDU4114));
      }
}

TEST_CASE("collectives on a machine whose chips share no hand-off are refused") {
  Target t = sn40l();
  const SpatialProgram p = sharded(one_matmul(32, 512, 64), over(2), t);
  t.crossing.clear();
  const auto r = collective(p, t);
  REQUIRE(!r.ok());
  CHECK(r.diagnostics().contains(Code::RDU4106));
}

TEST_CASE("a collective that a member takes no part in is refused") {
  const Target t = sn40l();
  SpatialProgram p = sharded(one_matmul(32, 512, 64), over(2), t);
  p.collectives[0].members.push_back(ChipId(2));
  const auto r = collective(p, t);
  REQUIRE(!r.ok());
  CHECK(r.diagnostics().contains(Code::RDU3018));
}

// ---- any shape ------------------------------------------------------------------------------------------------------

TEST_CASE("any shape over any number of chips joins soundly") {
  const Target t = sn40l();
  CHECK(rc::check("reductions", [&] {
    const auto chips = *rc::gen::inRange<std::uint32_t>(2, 12);
    const auto m = *rc::gen::inRange<std::int64_t>(1, 80);
    const auto n = *rc::gen::inRange<std::int64_t>(1, 130);
    const auto k = *rc::gen::inRange<std::int64_t>(1, 5);
    const auto kind = *rc::gen::element(Kind::reduce, Kind::all_reduce);
    const auto a = *rc::gen::element(Algorithm::through_one, Algorithm::direct, Algorithm::ring, Algorithm::automatic,
                                     Algorithm::halving_doubling, Algorithm::tree);
    RC_PRE(bool{kind == Kind::all_reduce || a != Algorithm::halving_doubling});
    const auto type = *rc::gen::element(DType::int8, DType::bf16, DType::int64);
    const auto result = type == DType::int8 ? DType::int32 : type;
    check_all(joined(one_matmul(m, k * 32 * chips, n, type, result), over(chips, ShardKind::row, kind, a), t), t);
  }));
}

}  // namespace rdusim::collective_test
