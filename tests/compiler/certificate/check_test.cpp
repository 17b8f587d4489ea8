// The independent checker: proves what the compiler makes, on every kind of machine, and refutes what was broken on
// purpose, each time with the obligation that it breaks and a witness.
#include "compiler/certificate/check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "compiler/compile.h"
#include "tests/compiler/ir/sample_program.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::check_test {
namespace {

SpatialProgram compiled(const OperatorGraph& graph, const Target& target, const ShardPlan& plan) {
  CompileOptions options;
  options.plan = plan;
  auto p = compile(graph, target, options);
  INFO(p.diagnostics().to_text());
  REQUIRE(p.ok());
  return std::move(p).value();
}

const Obligation& of(const Certificate& c, ObligationKind kind) {
  return c.obligations[static_cast<std::size_t>(kind)];
}

// All eleven are there, in order, and just `expected` is refuted, with a reason that mentions `witness`.
void check_refuted(const SpatialProgram& p, const Target& t, ObligationKind expected, const std::string& witness) {
  const Certificate c = prove_again(p, t);
  REQUIRE(c.obligations.size() == obligation_kinds);
  const Obligation& o = of(c, expected);
  CAPTURE(o.reason);
  CHECK(o.status == ProofStatus::refuted);
  CHECK(o.reason.find(witness) != std::string::npos);
}
void check_only_refuted(const SpatialProgram& p, const Target& t, ObligationKind expected, const std::string& witness) {
  check_refuted(p, t, expected, witness);
  for (const Obligation& o : prove_again(p, t).obligations) {
    CAPTURE(static_cast<int>(o.kind));
    CAPTURE(o.reason);
    CHECK((o.kind == expected || o.status != ProofStatus::refuted));
  }
}

void check_proved(const SpatialProgram& p, const Target& t) {
  const Certificate c = prove_again(p, t);
  REQUIRE(c.obligations.size() == obligation_kinds);
  for (std::size_t i = 0; i < obligation_kinds; ++i) {
    CAPTURE(i);
    CAPTURE(c.obligations[i].reason);
    CHECK(static_cast<std::size_t>(c.obligations[i].kind) == i);
    CHECK(c.obligations[i].status == ProofStatus::proved);
  }
}

// What the pass wrote is proved, and the checker finds the same.
void check_agrees(const SpatialProgram& p, const Target& t) {
  REQUIRE(p.certificate.has_value());
  const Diagnostics d = check_certificate(p, t);
  INFO(d.to_text());
  CHECK(d.empty());
  for (const BufferClaim& b : p.certificate->buffers) CHECK(b.least_depth != 0);
}

Stage& stage(SpatialProgram& p, const std::string& name) {
  return sample::stage(p, name);
}

// ---- what holds

TEST_CASE("hand-built programs are proved") {
  for (const std::uint32_t chips : {1u, 2u, 4u})
    for (const Handshake crossing : {Handshake::token, Handshake::semaphore}) {
      CAPTURE(chips);
      check_proved(sample::program({.chips = chips, .crossing = crossing}), sample::target());
    }
}

TEST_CASE("compiled programs are proved on every shipped machine, and the pass and the checker agree") {
  for (const std::string name : {"sn10", "sn30", "sn40l", "sn50", "wormhole"}) {
    CAPTURE(name);
    const Target t = test::target_named(name);
    for (const auto& plan : {ShardPlan{}, test::over(2), test::over(4),
                             test::over(2, ShardKind::row, CollectiveKind::reduce), test::over(4, ShardKind::column)}) {
      CAPTURE(plan.chips);
      check_agrees(compiled(test::one_matmul(32, 512, 256), t, plan), t);
    }
    check_agrees(compiled(test::one_matmul(40, 500, 300), t, ShardPlan{}), t);
    check_agrees(compiled(test::two_matmuls(32, 256, 512, 128, DType::bf16), t, test::over(2)), t);
  }
}

TEST_CASE("a machine with barriers alone is certified, too") {
  const Target t = test::barrier_machine();
  check_agrees(compiled(test::one_matmul(32, 512, 128), t, ShardPlan{}), t);
  check_agrees(compiled(test::one_matmul(32, 512, 128), t, test::over(2)), t);
}

TEST_CASE("every algorithm is proved for every number of chips") {
  const Target t = test::sn40l();
  for (const auto algorithm :
       {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct, CollectiveAlgorithm::ring})
    for (const auto kind : {CollectiveKind::reduce, CollectiveKind::all_reduce, CollectiveKind::reduce_scatter})
      for (const std::uint32_t chips : {2u, 3u, 5u, 8u}) {
        CAPTURE(chips);
        const SpatialProgram p =
            compiled(kind == CollectiveKind::reduce_scatter ? test::one_scattered_matmul(120, 32 * 2 * 120, 96)
                                                            : test::one_matmul(32, 32 * 2 * 120, 96),
                     t, test::over(chips, ShardKind::row, kind, algorithm));
        check_agrees(p, t);
        CHECK(p.certificate->outputs.front().contributions % chips == 0);
        CHECK(p.certificate->outputs.size() == (kind == CollectiveKind::reduce ? 1 : chips));
      }
}

TEST_CASE("sixteen chips of many sites are proved in well under the time that loading may take") {
  const Target t = test::sn40l();
  const SpatialProgram p =
      compiled(test::one_matmul(32, 14336, 8192), t,
               test::over(16, ShardKind::row, CollectiveKind::all_reduce, CollectiveAlgorithm::direct));
  CHECK(p.stages.size() > 16 * 30);
  const auto begin = std::chrono::steady_clock::now();
  const Diagnostics d = check_certificate(p, t);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));  // 0.1 s on a quiet computer
  INFO(d.to_text());
  CHECK(d.empty());
}

TEST_CASE("the certificate has all obligations in the order of their kinds even where nothing can be read") {
  SpatialProgram p = sample::program();
  p.placement.reset();
  const Certificate c = prove_again(p, sample::target());
  REQUIRE(c.obligations.size() == obligation_kinds);
  for (const Obligation& o : c.obligations) {
    CHECK(o.status == ProofStatus::unchecked);
    CHECK(!o.reason.empty());
  }
}

// ---- what is refuted

TEST_CASE("stages that were lowered before slicing do not balance") {
  // 16 contraction blocks over two chips: the loads of each can move 8, and the matmul waits for 16.
  check_refuted(sample::program({.chips = 2, .page_k = 1, .lowered_before_slicing = true}), sample::target(),
                ObligationKind::counting_balance, "8 pages pushed, 16 popped");
}

TEST_CASE("a program that drops its reduction is refuted") {
  SpatialProgram p = sample::program({.chips = 2});
  // Chip 0's own partial is stored, as if it were the answer; the rest of the fold stays, balanced.
  auto& fold = std::get<Generic>(stage(p, "down.fold").kind);
  fold.bodies = {{1, {{ExprOp::operand, 0, 0}}}, {1, {{ExprOp::accumulator, 0, 0}}}};
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "[256, 512) is missing");
}

TEST_CASE("rows of a reduce-scatter that change places are refuted") {
  const Target t = test::sn40l();
  for (const auto algorithm :
       {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct, CollectiveAlgorithm::ring}) {
    SpatialProgram p = compiled(test::one_scattered_matmul(12, 192, 64), t,
                                test::over(3, ShardKind::row, CollectiveKind::all_reduce, algorithm));
    std::vector<Tensor*> parts;
    for (Tensor& y : p.tensors)
      if (y.role == TensorRole::output) parts.push_back(&y);
    REQUIRE(parts.size() == 3);
    std::swap(parts[0]->offset, parts[2]->offset);
    check_only_refuted(p, t, ObligationKind::reduction_completeness, "stores a sum of operator 0");
  }
}

TEST_CASE("rows of an all-to-all that change places are refuted") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::one_scattered_matmul(12, 64, 96), t, test::over(3, ShardKind::column));
  check_agrees(p, t);
  std::vector<Tensor*> parts;
  for (Tensor& y : p.tensors)
    if (y.role == TensorRole::output) parts.push_back(&y);
  REQUIRE(parts.size() == 3);
  std::swap(parts[0]->offset, parts[2]->offset);
  check_only_refuted(p, t, ObligationKind::reduction_completeness, "stores a sum of operator 0");
}

TEST_CASE("a doubled contribution is refuted") {
  SpatialProgram p = sample::program({.chips = 2});
  auto& fold = std::get<Generic>(stage(p, "down.fold").kind);
  fold.bodies[1].value = {{ExprOp::accumulator, 0, 0},
                          {ExprOp::operand, 1, 0},
                          {ExprOp::add, 0, 0},
                          {ExprOp::operand, 1, 0},
                          {ExprOp::add, 0, 0}};
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "added twice, by chips 1 and 1");
}

TEST_CASE("a chip that loads another's slice of an operand is refuted") {
  SpatialProgram p = sample::program({.chips = 2});
  // Both chips compute contraction [0, 256): one range twice, the other not at all.
  for (const std::size_t tensor : {2u, 3u}) {
    p.tensors[tensor].offset = p.tensors[tensor - 2].offset;
  }
  check_refuted(p, sample::target(), ObligationKind::reduction_completeness, "added twice, by chips 0 and 1");
}

TEST_CASE("one operand's pages of another contraction range are refuted") {
  SpatialProgram p = sample::program();
  std::get<Load>(stage(p, "down.load_b").kind).pattern.stride = {{0, 0}};  // the first page, over and over
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "multiplies contraction [128, 256)");
}

TEST_CASE("one instance that reads another column is refuted though the first is right") {
  SpatialProgram p = sample::program();
  std::get<Load>(stage(p, "down.load_b").kind).pattern.first[1] = {0, 0};
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "instance 1");
}

TEST_CASE("two sums of different blocks cannot be added") {
  SpatialProgram p = sample::program({.chips = 2});
  auto& load = std::get<Load>(stage(p, "down.load_b_c1").kind);
  std::swap(load.pattern.first[0], load.pattern.first[1]);
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "adds a sum of operator 0");
}

TEST_CASE("something that is not linear is not applied to a partial sum") {
  SpatialProgram p = sample::program({.chips = 2});
  auto& fold = std::get<Generic>(stage(p, "down.fold").kind);
  fold.bodies[1].value = {{ExprOp::accumulator, 0, 0}, {ExprOp::operand, 1, 0}, {ExprOp::maximum, 0, 0}};
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "before it is complete");
  // After the sum it may be.
  fold.bodies[1].value = {{ExprOp::accumulator, 0, 0},
                          {ExprOp::operand, 1, 0},
                          {ExprOp::add, 0, 0},
                          {ExprOp::constant, 0, 0},
                          {ExprOp::maximum, 0, 0}};
  check_proved(p, sample::target());
}

TEST_CASE("a constant is added once, not once a chip") {
  SpatialProgram p = sample::program({.chips = 2});
  auto& fold = std::get<Generic>(stage(p, "down.fold").kind);
  fold.bodies[0].value = {{ExprOp::operand, 0, 0}, {ExprOp::constant, 0, 3}, {ExprOp::add, 0, 0}};
  check_proved(p, sample::target());
  fold.bodies[1].value = {{ExprOp::accumulator, 0, 0},
                          {ExprOp::operand, 1, 0},
                          {ExprOp::add, 0, 0},
                          {ExprOp::constant, 0, 3},
                          {ExprOp::add, 0, 0}};
  check_only_refuted(p, sample::target(), ObligationKind::reduction_completeness, "a constant is added more than once");
}

TEST_CASE("a buffer that is too shallow deadlocks, with the circle as witness") {
  SpatialProgram p = sample::program();
  Stage& matmul = stage(p, "down.matmul");
  // The matmul looks at all of x's pages before it takes the first: depth 2 holds half of them.
  matmul.ports[0].need = {{1, 4}, {1, 3}, {1, 2}, {1, 1}};
  check_refuted(p, sample::target(), ObligationKind::buffer_depth, "a firing takes 4 pages");
  check_refuted(p, sample::target(), ObligationKind::deadlock_freedom, "'down.a' (depth 2)");
  sample::buffer(p, "down.a").depth_pages = 4;
  p.memory->buffers[0].address = 192 * 1024;
  const Certificate c = prove_again(p, sample::target());
  CHECK(of(c, ObligationKind::deadlock_freedom).status == ProofStatus::proved);
  CHECK(c.buffers[0].least_depth == 4);
}

TEST_CASE("least depths are found where one firing's need does not tell them") {
  // Two stages pass pages side by side: one hands all four on at once, so the other path must hold what waits.
  sample::Builder b({});
  SpatialProgram& p = b.p;
  Stage& matmul = stage(p, "down.matmul");
  Stage& load = stage(p, "down.load_b");
  load.ports[0].reserve = {{3, 0}, {1, 4}};  // pushes its four pages together
  load.ports[0].push = {{3, 0}, {1, 4}};
  matmul.ports[1].need = matmul.ports[1].pop = always(1u);
  sample::buffer(p, "down.b").depth_pages = 8;
  const Certificate c = prove_again(p, sample::target());
  CHECK(of(c, ObligationKind::counting_balance).status == ProofStatus::proved);
  CHECK(of(c, ObligationKind::deadlock_freedom).status == ProofStatus::proved);
  CHECK(c.buffers[0].least_depth == 1);
  CHECK(c.buffers[1].least_depth == 4);
}

TEST_CASE("a local hand-off across sites is refuted") {
  SpatialProgram p = sample::program();
  p.placement->groups.push_back({GroupId{1u}, {{ChipId{0u}, {2, 0}}, {ChipId{0u}, {3, 0}}}, {AgcuId{0u}, AgcuId{0u}}});
  stage(p, "down.store").group = GroupId{1u};
  check_only_refuted(p, sample::target(), ObligationKind::handshake_locality, "chip0.site(2,0)");
}

TEST_CASE("a crossing hand-off within a site is refuted") {
  check_only_refuted(sample::program({.chips = 2, .own_crosses = true}), sample::target(),
                     ObligationKind::handshake_locality, "a token hand-off joins");
}

TEST_CASE("a hand-off that the target lacks, and a route that leads elsewhere, are refuted") {
  Target t = sample::target();
  t.local = LocalHandshake::circular_buffer;
  check_only_refuted(sample::program(), t, ObligationKind::handshake_locality, "does not provide");
  SpatialProgram p = sample::program({.chips = 2});
  for (Edge& e : p.edges)
    if (!is_local(e.handshake)) e.routes[0] = {LinkId{0u}};
  check_only_refuted(p, sample::target(), ObligationKind::handshake_locality, "does not start at chip 1");
}

TEST_CASE("a counter that is too narrow is refuted") {
  for (const Handshake crossing : {Handshake::token, Handshake::semaphore}) {
    SpatialProgram p = sample::program({.chips = 2, .crossing = crossing});
    for (Edge& e : p.edges)
      if (!is_local(e.handshake)) e.counter_bits = crossing == Handshake::token ? 1 : 0;
    check_only_refuted(p, sample::target(), ObligationKind::counter_range, "bits hold");
  }
}

TEST_CASE("a counter wider than the machine's is refuted") {
  SpatialProgram p = sample::program({.chips = 2});
  for (Edge& e : p.edges)
    if (!is_local(e.handshake)) e.counter_bits = 9;
  check_only_refuted(p, sample::target(), ObligationKind::counter_range, "and the machine's have 8");
}

TEST_CASE("two edges that share a semaphore are refuted") {
  SpatialProgram p = sample::program({.chips = 4, .crossing = Handshake::semaphore});
  const SemaphorePair* first = nullptr;
  for (Edge& e : p.edges) {
    if (!e.semaphores) continue;
    if (first == nullptr)
      first = &*e.semaphores;
    else
      e.semaphores->valid = first->valid;
  }
  check_only_refuted(p, sample::target(), ObligationKind::counter_range, "belongs to edges");
}

TEST_CASE("a hole in what the stores write is refuted, and so is a page written twice") {
  SpatialProgram p = sample::program();
  auto& store = std::get<Store>(stage(p, "down.store").kind);
  store.pattern.first[1] = {0, 0};
  check_refuted(p, sample::target(), ObligationKind::write_coverage, "written twice");
  store.pattern.first[1] = {0, 1};
  // A column that no store writes.
  for (std::size_t tensor : {1u, 2u}) {
    p.tensors[tensor].shape[1] = p.tensors[tensor].whole[1] = 96;
    p.tensors[tensor].tiles[1] = 3;
  }
  check_refuted(p, sample::target(), ObligationKind::write_coverage, "element (0, 64) is not written");
}

TEST_CASE("a chunk that is stored twice leaves another unwritten") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::one_matmul(32, 512, 64), t,
                              test::over(4, ShardKind::row, CollectiveKind::all_reduce, CollectiveAlgorithm::direct));
  for (Stage& s : p.stages)
    if (auto* store = std::get_if<Store>(&s.kind)) {
      REQUIRE(store->chunks.size() == 4);
      store->chunks[2] = store->chunks[1];
      break;
    }
  check_refuted(p, t, ObligationKind::write_coverage, "written twice");
  check_refuted(p, t, ObligationKind::reduction_completeness, "stores");
}

TEST_CASE("replicas that are not declared are refuted") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::one_matmul(32, 512, 64), t, test::over(2));
  for (Tensor& tensor : p.tensors)
    if (tensor.role == TensorRole::output) tensor.replicas = 1;
  check_only_refuted(p, t, ObligationKind::write_coverage, "declares 1 replicas; 2 tensors");
}

TEST_CASE("collectives in another order than they run are refuted") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::two_matmuls(32, 256, 512, 128, DType::bf16), t, test::over(2));
  REQUIRE(p.collectives.size() == 2);
  // Each in a section of its own: those of one section run side by side.
  p.sections.push_back({SectionId{1u}, "second", 1});
  for (Stage& s : p.stages)
    if (s.origin == p.operators->operators[1].id) s.section = SectionId{1u};
  std::swap(p.collectives[0].order, p.collectives[1].order);
  check_only_refuted(p, t, ObligationKind::collective_agreement, "runs before");
  p.collectives[0].order = p.collectives[1].order;
  check_only_refuted(p, t, ObligationKind::collective_agreement, "same place");
}

TEST_CASE("a load that waits for what is stored behind it is refuted") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::two_matmuls(32, 256, 512, 256, DType::bf16), t, test::over(1));
  REQUIRE(p.sections.size() == 1);
  const OperatorGraph& graph = *p.operators;
  const auto tensor_of = [&](OperandId o) {
    return std::find_if(p.tensors.begin(), p.tensors.end(), [&](const Tensor& x) { return x.operand == o; })->id;
  };
  for (Stage& s : p.stages)
    if (auto* load = std::get_if<Load>(&s.kind); load && load->tensor == tensor_of(graph.operators[0].in[0]))
      load->tensor = tensor_of(graph.operators[1].out);
  check_refuted(p, t, ObligationKind::deadlock_freedom, "waits for it in turn");
}

TEST_CASE("a member that is missing, one too many, and wrong bytes are refuted") {
  const SpatialProgram good = sample::program({.chips = 2});
  SpatialProgram p = good;
  p.collectives[0].bytes[1] -= 4;
  check_only_refuted(p, sample::target(), ObligationKind::collective_agreement, "contributes 8192 bytes");
  p = good;
  p.collectives[0].members.push_back(ChipId{2u});
  p.collectives[0].bytes.push_back(8192);
  check_only_refuted(p, sample::target(), ObligationKind::collective_agreement, "has no part in it");
  p = good;
  p.collectives[0].members.erase(p.collectives[0].members.begin());
  p.collectives[0].bytes.pop_back();
  check_only_refuted(p, sample::target(), ObligationKind::collective_agreement, "is no member");
}

TEST_CASE("buffers that overlap or end beyond the memory are refuted") {
  SpatialProgram p = sample::program();
  p.memory->buffers[1].address = p.memory->buffers[0].address + 1;
  check_only_refuted(p, sample::target(), ObligationKind::memory_fit, "overlap");
  p = sample::program();
  p.memory->buffers[1].address = 256 * 1024 - 1;
  check_only_refuted(p, sample::target(), ObligationKind::memory_fit, "ends at");
  Target small = sample::target();
  small.hbm.capacity_bytes = 1024;
  check_only_refuted(sample::program(), small, ObligationKind::memory_fit, "tensor");
}

TEST_CASE("routes on a cycle of links are not called proved") {
  SpatialProgram p = sample::program({.chips = 4});
  Target t = sample::target();
  const auto link = [&](std::uint32_t a, std::uint32_t b) {
    for (const ChipLinkParameters& l : t.links)
      if (l.from == ChipId{a} && l.to == ChipId{b}) return l.id;
    return LinkId{};
  };
  // Each of three edges goes a long way round: 1 2 3 0, 2 3 1 0, 3 1 2 0.
  std::uint32_t from = 1;
  for (Edge& e : p.edges)
    if (!is_local(e.handshake)) {
      const std::uint32_t b = from % 3 + 1, c = b % 3 + 1;
      e.routes[0] = {link(from, b), link(b, c), link(c, 0)};
      ++from;
    }
  const Certificate c = prove_again(p, t);
  CHECK(of(c, ObligationKind::network_progress).status == ProofStatus::unchecked);
  CHECK(of(c, ObligationKind::handshake_locality).status == ProofStatus::proved);
}

// ---- claims

TEST_CASE("a certificate that is missing, or claims what is not so, is named") {
  const Target t = test::sn40l();
  const SpatialProgram good = compiled(test::one_matmul(32, 512, 64), t, test::over(2));
  CHECK(check_certificate(good, t).empty());
  const auto check = [&](Code code, auto&& change) {
    SpatialProgram p = good;
    change(p);
    const Diagnostics d = check_certificate(p, t);
    INFO(d.to_text());
    CHECK(d.error_count() == 1);
    CHECK(d.contains(code));
  };
  check(Code::RDU5010, [](SpatialProgram& p) { p.certificate.reset(); });
  check(Code::RDU5011, [](SpatialProgram& p) { p.certificate->obligations[3].status = ProofStatus::refuted; });
  check(Code::RDU5012, [](SpatialProgram& p) { p.certificate->obligations.pop_back(); });
  check(Code::RDU5012, [](SpatialProgram& p) { p.certificate->obligations[2].scope = ProofScope::this_input_only; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->buffers[1].pushed; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->buffers[1].popped[0]; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->buffers[0].depth; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->buffers[0].least_depth; });
  check(Code::RDU5012, [](SpatialProgram& p) { --p.certificate->counters[0].greatest; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->outputs[0].contributions; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->outputs[0].elements; });
  check(Code::RDU5012, [](SpatialProgram& p) { --p.certificate->memory.busiest_site_bytes; });
  check(Code::RDU5012, [](SpatialProgram& p) { ++p.certificate->local_edges; });
  check(Code::RDU5012, [](SpatialProgram& p) {
    p.certificate->lower_bound_cycles = prove_again(p, test::sn40l()).lower_bound_cycles + 1;
    p.certificate->predicted_cycles += p.certificate->lower_bound_cycles;
  });
  check(Code::RDU5012,
        [](SpatialProgram& p) { p.certificate->predicted_cycles = p.certificate->lower_bound_cycles - 1; });
  REQUIRE(good.certificate->circles.size() == 1);
  const auto check_circle = [&](auto&& change) {
    check(Code::RDU5012, [&](SpatialProgram& p) {
      p.certificate->lower_bound_cycles = 0;
      change(*p.certificate, p.certificate->circles[0]);
    });
  };
  check_circle([](Certificate&, CircleClaim& c) { c.way *= 10; });
  check_circle([](Certificate&, CircleClaim& c) { c.stages.clear(); });
  check_circle([](Certificate&, CircleClaim& c) { c.stages[0] = StageId{9999u}; });
  check_circle([](Certificate&, CircleClaim& c) { c.buffers = {BufferId{9999u}}; });
  check_circle([](Certificate&, CircleClaim& c) { c.section = SectionId{7u}; });
  check_circle([](Certificate& all, CircleClaim& c) { all.circles.push_back(c); });
  check_circle([](Certificate&, CircleClaim& c) { c.cycles = c.rounds = ~std::uint64_t{0}; });
  check_circle([](Certificate&, CircleClaim& c) { c.parts = 0; });
  // A weaker bound is one all the same.
  {
    SpatialProgram p = good;
    --p.certificate->circles[0].way;
    p.certificate->lower_bound_cycles = 0;
    CHECK(check_certificate(p, t).empty());
  }
  // What is not worked out claims nothing.
  SpatialProgram modest = good;
  for (BufferClaim& b : modest.certificate->buffers) b.least_depth = 0;
  for (OutputClaim& o : modest.certificate->outputs) o.contributions = 0;
  modest.certificate->circles.clear();
  modest.certificate->lower_bound_cycles = 0;
  CHECK(check_certificate(modest, t).empty());
}

TEST_CASE("a circle that a run goes round many times is proved, and none that is a cycle longer") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::one_matmul(32, 512, 64), t, test::over(1));
  p.sections[0].trips = 20;
  p.certificate.reset();
  auto again = complete(std::move(p), t);
  INFO(again.diagnostics().to_text());
  REQUIRE(again.ok());
  const SpatialProgram good = *std::move(again);
  CHECK(check_certificate(good, t).empty());
  REQUIRE(good.certificate->circles.size() == 1);
  const CircleClaim& circle = good.certificate->circles[0];
  REQUIRE(circle.rounds > 1);
  const auto refused = [&](auto&& change) {
    SpatialProgram other = good;
    other.certificate->lower_bound_cycles = 0;
    change(other.certificate->circles[0]);
    return check_certificate(other, t).contains(Code::RDU5012);
  };
  CHECK_FALSE(refused([](CircleClaim& c) { c.way = 0; }));
  CHECK_FALSE(refused([](CircleClaim& c) { --c.rounds; }));
  CHECK(refused([](CircleClaim& c) { ++c.rounds; }));
  CHECK(refused([](CircleClaim& c) {
    ++c.cycles;  // no longer in all, but none comes round so late
    c.way = 0;
  }));
}

TEST_CASE("a refuted obligation is reported with its witness") {
  const Target t = test::sn40l();
  SpatialProgram p = compiled(test::one_matmul(32, 512, 64), t, test::over(2));
  for (Stage& s : p.stages)
    if (std::holds_alternative<MatmulTiles>(s.kind)) {
      s.ports[0].pop = always(0u);
      break;
    }
  const Diagnostics d = check_certificate(p, t);
  CHECK(d.contains(Code::RDU5011));
  CHECK(d.to_text().find("counting balance does not hold: buffer '") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::check_test
