#include "compiler/ir/verify.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "tests/compiler/ir/sample_program.h"

namespace rdusim::verify_test {
namespace {

using sample::buffer;
using sample::Builder;
using sample::edge_of;
using sample::program;
using sample::stage;

std::string text(const SpatialProgram& p, const Target& t = sample::target()) {
  return verify(p, t).to_text();
}

// Asserts that `p` breaks `code` and no other rule, and that what is said has `words` in it.
void check_only(Code code, const SpatialProgram& p, std::string_view words = "", const Target& t = sample::target()) {
  const Diagnostics d = verify(p, t);
  INFO(d.to_text());
  CHECK(d.contains(code));
  for (const Diagnostic& one : d.list()) CHECK(one.code == code);
  if (!words.empty()) CHECK(d.to_text().find(words) != std::string::npos);
}

sample::Shape over(std::uint32_t chips) {
  sample::Shape s;
  s.chips = chips;
  return s;
}

TEST_CASE("the sample programs keep every rule") {
  for (std::uint32_t chips : {1u, 2u, 4u}) CHECK(text(program(over(chips))) == "");
  sample::Shape s = over(2);
  s.crossing = Handshake::semaphore;
  CHECK(text(program(s)) == "");
}

TEST_CASE("a program for more chips than the target has is refused") {
  SpatialProgram p = program();
  p.header.plan.chips = 5;
  check_only(Code::RDU2009, p, "for 5 chips, and target 'sample' has 4");
}

TEST_CASE("an id out of place is found") {
  SpatialProgram p = program();
  p.stages[1].id = StageId{7u};
  check_only(Code::RDU3001, p, "stage 1 has id 7");
}

TEST_CASE("a dangling reference is found wherever it stands, and stops what would follow it") {
  const std::vector<std::function<void(SpatialProgram&)>> edits = {
      [](SpatialProgram& p) { p.buffers[0].group = GroupId{9u}; },
      [](SpatialProgram& p) { p.stages[0].ports[0].buffer = BufferId{99u}; },
      [](SpatialProgram& p) { p.stages[0].section = SectionId{9u}; },
      [](SpatialProgram& p) { std::get<Load>(p.stages[0].kind).tensor = TensorId{99u}; },
      [](SpatialProgram& p) { p.edges[0].to = {StageId{99u}}; },
      [](SpatialProgram& p) { p.edges[0].routes = {{LinkId{99u}}}; },
      [](SpatialProgram& p) { p.buffers[1].alias_of = BufferId{1u}; },
      [](SpatialProgram& p) { p.tensors[0].chip = ChipId{3u}; },
      [](SpatialProgram& p) { p.trees[0].nodes[2].right = 2; },
      [](SpatialProgram& p) { p.collectives[0].members[1] = ChipId{2u}; },
      [](SpatialProgram& p) { p.placement->groups[0].sites.clear(); },
      [](SpatialProgram& p) { p.placement->groups[0].agcus[1] = AgcuId{2u}; },
      [](SpatialProgram& p) { p.placement->work[0].work = WorkId{9u}; },
      [](SpatialProgram& p) { p.memory->accumulators[0].stage = StageId{99u}; },
      [](SpatialProgram& p) { p.operators->operators[0].in.push_back(OperandId{0u}); },
      [](SpatialProgram& p) { p.operators->operators[0].attributes.alone = {2, 2}; },
      [](SpatialProgram& p) { p.operators->operators[0].attributes.alone = {1}; },
      [](SpatialProgram& p) { p.operators->operands[0].alone = {-1, 2}; },
      [](SpatialProgram& p) { p.placement.reset(); },
  };
  for (const auto& edit : edits) {
    SpatialProgram p = program(over(2));
    edit(p);
    check_only(Code::RDU3002, p);
  }
}

TEST_CASE("sizes that disagree are found wherever they stand") {
  const std::vector<std::function<void(SpatialProgram&)>> edits = {
      [](SpatialProgram& p) { p.tensors[0].tiles[1] = 17; },
      [](SpatialProgram& p) { p.tensors[0].offset[1] = 1; },
      [](SpatialProgram& p) { p.tensors[0].shape = {}; },
      [](SpatialProgram& p) {
        p.tensors[0].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
      },
      [](SpatialProgram& p) { p.header.native_tile = 16; },
      [](SpatialProgram& p) { p.memory->buffers.pop_back(); },
      [](SpatialProgram& p) { p.schedule->slots.pop_back(); },
      [](SpatialProgram& p) { p.buffers[0].page_bytes = 1 << 20; },
      [](SpatialProgram& p) { p.buffers[0].page_bytes = 1024; },
      [](SpatialProgram& p) { p.buffers[0].depth_pages = 0; },
      [](SpatialProgram& p) { p.buffers[0].depth_pages = ~std::uint64_t{0}; },
      [](SpatialProgram& p) { std::get<Load>(p.stages[0].kind).pattern.loops = {5}; },
      [](SpatialProgram& p) {
        std::get<Load>(p.stages[0].kind).pattern.stride[0] = {0, ~std::uint64_t{0}};
      },
      [](SpatialProgram& p) { std::get<Load>(p.stages[0].kind).pattern.first.pop_back(); },
      [](SpatialProgram& p) { std::get<Load>(p.stages[0].kind).multicast_set.pop_back(); },
      [](SpatialProgram& p) { std::get<MatmulTiles>(p.stages[2].kind).k_tiles = 17; },
      [](SpatialProgram& p) { std::get<MatmulTiles>(p.stages[2].kind).block_m = 0; },
      [](SpatialProgram& p) {
        p.edges[0].chunk = {2, 2};
      },
      [](SpatialProgram& p) { p.work[0].plan->rounds_n = 0; },
      [](SpatialProgram& p) { p.placement->work[0].items[0] = {2}; },
      [](SpatialProgram& p) { p.sections[0].trips = ~std::uint64_t{0}; },
  };
  for (std::size_t i = 0; i < edits.size(); ++i) {
    INFO("edit " << i);
    SpatialProgram p = program();
    edits[i](p);
    check_only(Code::RDU3003, p);
  }
}

TEST_CASE("a buffer that two local edges consume is found") {
  SpatialProgram p = program();
  Edge again = p.edges[1];
  again.id = EdgeId{p.edges.size()};
  p.edges.push_back(again);
  check_only(Code::RDU3004, p, "buffer 'down.b': 2 local edges consume it");
}

TEST_CASE("a buffer that no edge consumes is found") {
  SpatialProgram p = program(over(2));
  // The fold still takes chip 0's own partial.
  Edge& own = edge_of(p, "down.partial_c0");
  own = p.edges.back();
  own.id = EdgeId{static_cast<std::size_t>(&own - p.edges.data())};
  p.edges.pop_back();
  check_only(Code::RDU3004, p, "buffer 'down.partial_c0': no local edge consumes it");
}

TEST_CASE("a buffer that two stages fill is found") {
  Builder b({});
  b.add_stage("down.again", b.p.stages[0].kind, 0, {StageRole::movement, 3}, 4, {b.output(BufferId{0u})});
  b.p.schedule->slots.push_back({9, 1});
  check_only(Code::RDU3004, b.p, "2 stages push into it");
}

TEST_CASE("what crosses lands in a buffer of a Recv") {
  SpatialProgram p = program(over(2));
  Edge& e = edge_of(p, "down.partial_c1");
  e.to.push_back(stage(p, "down.fold").id);
  e.routes.push_back(e.routes[0]);
  check_only(Code::RDU3005, p, "crosses to 'down.fold', which is not its Recv");
}

TEST_CASE("a local hand-off between sites is found") {
  SpatialProgram p = program();
  p.placement->groups.push_back({GroupId{1u}, {{ChipId{0u}, {0, 1}}, {ChipId{0u}, {1, 1}}}, {AgcuId{0u}, AgcuId{0u}}});
  stage(p, "down.store").group = GroupId{1u};
  check_only(Code::RDU3006, p, "edge 2 is a local hand-off (ValidReady) between different sites");
}

TEST_CASE("a crossing hand-off within a site is found") {
  sample::Shape s = over(2);
  s.own_crosses = true;
  check_only(Code::RDU3007, program(s), "is a crossing hand-off (Token) within chip0.site(0,0)");
}

TEST_CASE("an unbalanced buffer is reported with its counts and both ends") {
  SpatialProgram p = program();
  Stage& load = stage(p, "down.load_b");
  std::get<Load>(load.kind).pattern.loops = {3};
  load.firings = 3;
  check_only(Code::RDU3008, p, "buffer 'down.b': reserved 3, pushed 3, popped 4 by 'down.matmul'");
}

TEST_CASE("a Recv that takes fewer pages than are sent is unbalanced") {
  SpatialProgram p = program(over(2));
  stage(p, "down.recv_c1").firings = 2;
  check_only(Code::RDU3008, p, "1 pages are sent to 'down.recv_c1', which receives 2");
}

// The case that taught the rule of re-lowering: stages of 16 contraction tiles over slices of 8.
TEST_CASE("re-lowering: sliced tensors under unsliced stages push nothing that the matmul waits for") {
  sample::Shape s = over(2);
  s.page_k = 16;
  s.lowered_before_slicing = true;
  SpatialProgram p = program(s);
  check_only(Code::RDU3008, p, "buffer 'down.b_c0': reserved 0, pushed 0, popped 1 by 'down.matmul_c0'");
  check_only(Code::RDU3008, p, "buffer 'down.a_c1': reserved 0, pushed 0, popped 1 by 'down.matmul_c1'");
  s.page_k = 1;
  check_only(Code::RDU3008, program(s), "buffer 'down.b_c0': reserved 8, pushed 8, popped 16 by 'down.matmul_c0'");
  s.page_k = 8;
  s.lowered_before_slicing = false;
  CHECK(text(program(s)) == "");
}

TEST_CASE("a hand-off that the target does not provide is found") {
  SpatialProgram p = program();
  p.edges[0].handshake = Handshake::circular_buffer;
  check_only(Code::RDU3009, p, "edge 0 is a CircularBuffer, and target 'sample' has ValidReady within a site");
  p.edges[0].handshake = Handshake::fifo;
  check_only(Code::RDU3009, p, "edge 0 is a Fifo");
}

TEST_CASE("two loads on one engine need an order") {
  SpatialProgram p = program();
  stage(p, "down.load_b").engine.index = 0;
  check_only(Code::RDU3010, p, "'down.load_a' and 'down.load_b' share movement engine 0");
  p.schedule->engine_orders.push_back({{StageId{0u}, StageId{1u}}});
  CHECK(text(p) == "");
}

TEST_CASE("a matmul on a movement engine is found") {
  SpatialProgram p = program();
  stage(p, "down.matmul").engine = {StageRole::movement, 5};
  check_only(Code::RDU3011, p, "is a MatmulTiles of role compute on a movement engine");
}

TEST_CASE("slices that leave a gap are found") {
  SpatialProgram p = program();
  p.operators.reset();
  p.tensors[2].whole = {32, 96};
  check_only(Code::RDU3012, p, "the slices of 'y' hold 2048 of its 3072 elements");
}

TEST_CASE("replicas that are declared and not there are a gap") {
  SpatialProgram p = program();
  p.tensors[0].replicas = 2;
  check_only(Code::RDU3012, p, "1 tensors hold [0,32)[0,512) of 'x', and 'x' declares 2 replicas");
}

TEST_CASE("a slice held twice without being declared a replica is found, and declared it is not") {
  Builder b({});
  b.add_tensor("w_again", OperandId{1u}, 0, {512, 64}, {0, 0});
  check_only(Code::RDU3013, b.p, "2 tensors hold [0,512)[0,64) of 'w', and 'w' declares 1 replicas");
  b.p.tensors[1].replicas = b.p.tensors[3].replicas = 2;
  CHECK(text(b.p) == "");
}

TEST_CASE("slices that overlap are found") {
  Builder b({});
  b.add_tensor("w_part", OperandId{1u}, 0, {256, 64}, {256, 0});
  check_only(Code::RDU3013, b.p, "two slices of one operand overlap: 'w' and 'w_part'");
}

TEST_CASE("an output that two stages store is found") {
  Builder b({});
  const StageId again = b.add_stage("down.store_again", stage(b.p, "down.store").kind, 0, {StageRole::movement, 3}, 1,
                                    {b.input(BufferId{2u})});
  b.p.schedule->slots.push_back({9, 1});
  edge_of(b.p, "down.c").to.push_back(again);
  check_only(Code::RDU3014, b.p, "tensor 'y': 2 of its 2 tiles are written more than once, the first at (0,0)");
}

TEST_CASE("an output that no stage stores is found") {
  Builder b({});
  b.p.operators->operands.push_back({OperandId{3u}, "z", TensorRole::output, {32, 32}, DType::int32, ZeroFill{}, ""});
  b.add_tensor("z", OperandId{3u}, 0, {32, 32}, {0, 0});
  check_only(Code::RDU3015, b.p, "tensor 'z': no stage stores it");
}

TEST_CASE("chunks that do not tile the page leave it unwritten, and chunks stored twice are found") {
  const auto chunked = [](std::vector<Chunk> chunks) {
    SpatialProgram p = program();
    Stage& store = stage(p, "down.store");
    std::get<Store>(store.kind).chunks = std::move(chunks);
    return verify(p, sample::target());
  };
  // Other rules have their say on such a store, too: a page is stored as a chunk.
  CHECK(chunked({{1, 2}}).contains(Code::RDU3015));
  CHECK_FALSE(chunked({{0, 1}}).contains(Code::RDU3015));
}

TEST_CASE("buffers beyond a site's memory are found") {
  SpatialProgram p = program();
  buffer(p, "down.c").depth_pages = 62;
  p.memory->accumulators.clear();
  check_only(Code::RDU3016, p, "and a PMU has");
}

TEST_CASE("a bank that a site does not have is found") {
  SpatialProgram p = program();
  p.memory->buffers[1].bank = 4;
  check_only(Code::RDU3016, p, "buffer 'down.b' is said to begin in bank 4 of 4, and its address 8192 is in bank 0");
}

TEST_CASE("a bank that is not the address's is found") {
  SpatialProgram p = program();
  p.memory->buffers[1].bank = 1;
  check_only(Code::RDU3016, p, "buffer 'down.b' is said to begin in bank 1 of 4, and its address 8192 is in bank 0");
}

TEST_CASE("a partial sum in a buffer that is not Interm is found") {
  SpatialProgram p = program(over(2));
  buffer(p, "down.partial_c1").kind = BufferKind::fifo;
  check_only(Code::RDU3046, p,
             "'down.matmul_c1' pushes the partial sum c1[256,512) into 'down.partial_c1', which is not Interm");
}

TEST_CASE("work items taken twice, by nobody, or summed in part are found") {
  SpatialProgram p = program();
  auto& items = p.placement->work[0].items;
  const auto right = items;
  items[1] = items[0];
  check_only(Code::RDU3047, p, "item 0 of work item 0 is carried out more than once");
  items = right;
  items[1].clear();
  check_only(Code::RDU3047, p, "1 of the 2 items of work item 0 are carried out by nobody");
  items = right;
  std::get<MatmulTiles>(stage(p, "down.matmul").kind).k_tiles -= 1;
  check_only(Code::RDU3047, p,
             "stage 'down.matmul' sums 15 tiles of the contraction, and item 0 of work item 0 has 16");
}

TEST_CASE("places in a section's order that are not one each, or that an engine does not follow, are found") {
  SpatialProgram p = program();
  p.schedule->slots[1].order = 0;
  check_only(Code::RDU3048, p, "'down.load_a' and 'down.load_b' both have place 0 in the order of section 'down'");
  p.schedule->slots[1].order = 1;
  p.schedule->engine_orders = {{{StageId{1u}, StageId{0u}}}};
  check_only(Code::RDU3048, p, "'down.load_b' is served before 'down.load_a', and has place 1 after its 0");
}

TEST_CASE("a complete program that does not say what it requires is found") {
  SpatialProgram p = program();
  p.required.handshakes.clear();
  check_only(Code::RDU3033, p, "the program uses ValidReady, and does not say that it requires it");
  p = program();
  p.required.operand_dtypes.clear();
  check_only(Code::RDU3033, p, "the program uses int8, and does not say that it requires it");
}

TEST_CASE("a value range that leaves out values of the fill is found") {
  SpatialProgram p = program();
  p.tensors[0].range = {1, 5};
  check_only(Code::RDU3040, p, "tensor 'x': its values are said to lie in [1, 5], and its fill has [0, 0]");
}

TEST_CASE("tensors beyond a chip's memory are found") {
  Target t = sample::target();
  t.hbm.capacity_bytes = 20000;
  check_only(Code::RDU3017, program(), "chip 0 holds", t);
  SpatialProgram p = program();
  p.memory->tensors[0].address = Bytes{1} << 30;
  check_only(Code::RDU3017, p, "tensor 'x'");
  p.memory->tensors[0].address = 0;
  p.memory->tensors[1].address = 16;
  check_only(Code::RDU3042, p, "'x' and 'w' overlap in hbm of chip 0");
}

TEST_CASE("a tensor between operators takes no turns with others: its place is its own") {
  SpatialProgram p = program();
  p.operators->operands[2].role = p.tensors[2].role = TensorRole::intermediate;
  CHECK(text(p) == "");
  p.memory->tensors[2].address = p.memory->tensors[0].address;
  check_only(Code::RDU3042, p, "overlap in hbm of chip 0");
}

TEST_CASE("a tensor whose place is larger or smaller than it is found") {
  for (const Bytes bytes : {Bytes{32 * 512 - 1}, Bytes{32 * 512 + 1}}) {
    SpatialProgram p = program();
    p.memory->tensors[0].bytes = bytes;
    p.memory->tensors[0].address = 1 << 20;
    check_only(Code::RDU3041, p, fmt::format("tensor 'x': it has 16384 bytes, and its place {}", bytes));
  }
}

TEST_CASE("a slice that says anything else of the whole than its operand is found") {
  SpatialProgram p = program(over(2));
  p.tensors[0].fill = ConstantFill{1, 1};
  check_only(Code::RDU3040, p, "tensor 'x_c0': its fill is not that of operand 'x'");
  p = program(over(2));
  p.tensors[0].role = TensorRole::weight;
  check_only(Code::RDU3040, p, "its role is not that of operand 'x'");
  p = program(over(2));
  p.tensors[0].range = {0, 5};
  CHECK(text(p).find("its value range is not that of tensor 'x_c0'") != std::string::npos);
}

TEST_CASE("without an operator graph the slices of an operand are held to each other") {
  SpatialProgram p = program(over(2));
  p.operators.reset();
  CHECK(text(p) == "");
  p.tensors[0].fill = PatternFill{61, 30};
  check_only(Code::RDU3040, p, "tensor 'x_c1': its fill is not that of tensor 'x_c0'");
  p.tensors[0].fill = {};
  p.tensors[0].dtype = DType::fp8_e4m3;
  CHECK(text(p).find("tensor 'x_c1': its element type is not that of tensor 'x_c0'") != std::string::npos);
}

TEST_CASE("a member that takes no part in its collective is found") {
  SpatialProgram p = program(over(2));
  p.header.plan.chips = 3;
  p.collectives[0].members.push_back(ChipId{2u});
  p.collectives[0].bytes.push_back(p.collectives[0].bytes[0]);
  check_only(Code::RDU3018, p, "of its 3 members these have no stage for it: chips 2");
}

TEST_CASE("a chip that takes part and is no member is found") {
  SpatialProgram p = program(over(2));
  p.collectives[0].members.pop_back();
  p.collectives[0].bytes.pop_back();
  check_only(Code::RDU3018, p, "these are no members and have stages for it: chips 1");
}

TEST_CASE("two collectives with one place are found") {
  SpatialProgram p = program(over(2));
  Collective again = p.collectives[0];
  again.id = CollectiveId{1u};
  again.name = "down.again";
  p.collectives.push_back(again);
  stage(p, "down.matmul_c0").collective = stage(p, "down.matmul_c1").collective = CollectiveId{1u};
  check_only(Code::RDU3019, p, "collectives 'down.reduce' and 'down.again' both have place 0 on chip 0");
  p.collectives[1].order = 1;
  CHECK(text(p) == "");
}

TEST_CASE("members that disagree on what each contributes are found") {
  SpatialProgram p = program(over(2));
  p.collectives[0].bytes[1] += 4;
  check_only(Code::RDU3020, p, "chip 0 contributes 8192 bytes and chip 1 8196");
  p.collectives[0].bytes[0] += 4;
  check_only(Code::RDU3020, p, "its 32 x 64 elements of int32 are 8192");
}

TEST_CASE("a counter that cannot hold its count is found") {
  SpatialProgram p = program(over(2));
  edge_of(p, "down.partial_c1").counter_bits = 1;
  check_only(Code::RDU3021, p, "counts the 2 credits of 'down.landing_c1' in 1 bits, which hold 1");
  edge_of(p, "down.partial_c1").counter_bits = 9;
  check_only(Code::RDU3021, p, "has a counter of 9 bits, and target 'sample' has 8");
  sample::Shape s = over(2);
  s.crossing = Handshake::semaphore;
  p = program(s);
  p.semaphores[0].initial = 255;
  check_only(Code::RDU3021, p, "its ready semaphore 0 starts at 255 and rises by 1, with 8 bits");
}

TEST_CASE("what a site does not have is found") {
  SpatialProgram p = program();
  stage(p, "down.store").engine.index = 6;
  check_only(Code::RDU3022, p, "stage 'down.store' is on movement engine 6");
  Target t = sample::target();
  t.site.buffers = 2;
  check_only(Code::RDU3022, program(), "chip0.site(0,0) and 1 alike uses 3 buffers", t);
  t = sample::target();
  t.site.vector_inputs = 1;
  check_only(Code::RDU3022, program(), "stage 'down.matmul' uses 2 vector inputs in one firing", t);
  t = sample::target();
  t.site.pcu_contexts = 1;
  p = program(over(2));
  stage(p, "down.fold").engine.index = 0;
  check_only(Code::RDU3022, p, "uses 2 compute contexts", t);
  sample::Shape s = over(4);
  s.crossing = Handshake::semaphore;
  t = sample::target();
  t.site.semaphores = 2;
  check_only(Code::RDU3022, program(s), "uses 3 semaphores", t);
}

TEST_CASE("ports that are read in turn need not be there at once") {
  // A fold of four chips reads one port a phase, and a site has two vector inputs.
  CHECK(text(program(over(4))) == "");
}

TEST_CASE("two edges that share a semaphore are found") {
  sample::Shape s = over(4);
  s.crossing = Handshake::semaphore;
  SpatialProgram p = program(s);
  edge_of(p, "down.partial_c2").semaphores->valid = edge_of(p, "down.partial_c1").semaphores->valid;
  check_only(Code::RDU3023, p, "its valid semaphore 1 is that of edge");
}

TEST_CASE("a crossing edge without its semaphores is found once the program is complete") {
  sample::Shape s = over(2);
  s.crossing = Handshake::semaphore;
  SpatialProgram p = program(s);
  edge_of(p, "down.partial_c1").semaphores.reset();
  check_only(Code::RDU3023, p, "it has no semaphores");
  p.schedule.reset();
  CHECK(text(p) == "");
}

TEST_CASE("a program that drops the reduction does not verify") {
  SpatialProgram p = program(over(2));
  auto& bodies = std::get<Generic>(stage(p, "down.fold").kind).bodies;
  bodies[1].value = {{ExprOp::operand, 1, 0}};  // chip 0's partial is taken, and lost
  check_only(Code::RDU3024, p, "of the contraction of 512, contraction [0,256) is missing");
  CHECK(text(p).find("chip 0 computes [0,256)") != std::string::npos);
}

TEST_CASE("a partial stored as if it were the sum does not verify") {
  SpatialProgram p = program(over(2));
  auto& bodies = std::get<Generic>(stage(p, "down.fold").kind).bodies;
  bodies[1].value = {{ExprOp::accumulator, 0, 0}};
  check_only(Code::RDU3024, p, "contraction [256,512) is missing");
  CHECK(text(p).find("chip 1 computes [256,512)") != std::string::npos);
}

TEST_CASE("a contribution added twice does not verify") {
  SpatialProgram p = program(over(2));
  auto& bodies = std::get<Generic>(stage(p, "down.fold").kind).bodies;
  bodies[1].value.insert(bodies[1].value.end(), {{ExprOp::operand, 1, 0}, {ExprOp::add, 0, 0}});
  check_only(Code::RDU3024, p, "contraction [256,512) is added 2 times, by chip 1 chip 1");
}

TEST_CASE("two columns swapped at the store do not verify") {
  SpatialProgram p = program();
  std::swap(std::get<Store>(stage(p, "down.store").kind).pattern.first[0],
            std::get<Store>(stage(p, "down.store").kind).pattern.first[1]);
  check_only(Code::RDU3024, p, "stores the sum of [0,32)[0,32) where 'y' has [0,32)[32,64)");
}

TEST_CASE("operands of different contraction ranges do not verify") {
  SpatialProgram p = program();
  auto& pattern = std::get<Load>(stage(p, "down.load_b").kind).pattern;
  pattern.loops = {2, 2};
  pattern.stride = {{4, 0}, {8, 0}};  // 0, 8, 4, 12 instead of 0, 4, 8, 12
  check_only(Code::RDU3024, p, "multiplies contraction [128,256) of its left operand with [256,384) of its right");
}

TEST_CASE("an activation before the sum is found") {
  SpatialProgram p = program(over(2));
  auto& bodies = std::get<Generic>(stage(p, "down.fold").kind).bodies;
  bodies[0].value = {{ExprOp::operand, 0, 0}, {ExprOp::constant, 0, 0}, {ExprOp::maximum, 0, 0}};
  check_only(Code::RDU3025, p, "'down.fold' does more than add to a partial sum: c0[0,256)");
}

TEST_CASE("an activation after the sum is allowed") {
  SpatialProgram p = program(over(2));
  auto& bodies = std::get<Generic>(stage(p, "down.fold").kind).bodies;
  bodies[1].value.insert(bodies[1].value.end(), {{ExprOp::constant, 0, 0}, {ExprOp::maximum, 0, 0}});
  CHECK(text(p) == "");
}

TEST_CASE("a site that is not on the mesh is found") {
  SpatialProgram p = program();
  p.placement->groups[0].sites[1].at = {4, 0};
  check_only(Code::RDU3026, p, "group 0 has site (4,0) of chip 0");
  p.placement->groups[0].sites[1] = p.placement->groups[0].sites[0];
  check_only(Code::RDU3026, p, "twice");
}

TEST_CASE("ports that do not suit the stage's kind are found") {
  SpatialProgram p = program();
  stage(p, "down.matmul").ports.pop_back();
  check_only(Code::RDU3027, p, "a MatmulTiles with 2 inputs and 0 outputs");
  p = program();
  std::swap(stage(p, "down.matmul").ports[0], stage(p, "down.matmul").ports[2]);
  check_only(Code::RDU3027, p, "an output port stands before an input port");
  p = program(over(2));
  std::get<Load>(stage(p, "down.load_a_c1").kind).tensor = TensorId{0u};
  check_only(Code::RDU3027, p, "it is on chip 1, and 'x_c0' lies in the memory of chip 0");
  p = program(over(2));
  std::get<Generic>(stage(p, "down.fold").kind).bodies[1].value = {{ExprOp::operand, 2, 0}};
  check_only(Code::RDU3027, p, "the body of phase 1 has operand 2 of 2");
  p = program(over(2));
  std::get<Generic>(stage(p, "down.fold").kind).maps[0] = {{2, 0}};
  check_only(Code::RDU3027, p, "its maps are neither identities on parallel iterators");
}

TEST_CASE("a fold over items is of one form, and takes no partial sums") {
  SpatialProgram p = program(over(2));
  auto& fold = std::get<Generic>(stage(p, "down.fold").kind);
  fold.iterators = {IteratorKind::reduction, IteratorKind::parallel};
  fold.maps = {{{1, 0, 0}, {0, 1, 0}}, {{0, 1, 0}}, {{0, 1, 0}}};
  check_only(Code::RDU3025, p, "'down.fold' folds sums");
  fold.maps[2] = {{1, 0, 0}, {0, 1, 0}};  // a result for each item
  check_only(Code::RDU3027, p, "nor a fold over items");
  fold.maps[2] = {{0, 1, 0}};
  fold.iterators = {IteratorKind::reduction, IteratorKind::reduction};
  check_only(Code::RDU3027, p, "nor a fold over items");
}

TEST_CASE("a page map that does not fit its groups is found") {
  SpatialProgram p = program(over(2));
  Edge& e = edge_of(p, "down.partial_c1");
  e.map.kind = PageMapKind::multicast;
  check_only(Code::RDU3028, p, "its map lists 0 senders, and 'down.matmul_c1' has 2");
  e.map.targets = {{0}, {0}};
  check_only(Code::RDU3028, p, "no one sends to instance 1 of 'down.recv_c1'");
  e.map.targets = {{0, 1}, {2}};
  check_only(Code::RDU3028, p, "one that 'down.recv_c1' does not have");
  p = program();
  std::get<Load>(p.stages[0].kind).pattern.first[1] = {0, 1};
  check_only(Code::RDU3028, p, "instances 0 and 1 share multicast set 0 and read different pages");
}

TEST_CASE("a depth that one firing needs more than is found") {
  SpatialProgram p = program();
  stage(p, "down.matmul").ports[0].need = always(3u);
  check_only(Code::RDU3029, p, "buffer 'down.a': depth 2, and 'down.matmul' needs 3 pages at once");
}

TEST_CASE("rates that cannot be are found") {
  const std::vector<std::function<void(SpatialProgram&)>> edits = {
      [](SpatialProgram& p) { stage(p, "down.matmul").ports[0].need = always(0u); },
      [](SpatialProgram& p) { stage(p, "down.matmul").ports[0].need = {}; },
      [](SpatialProgram& p) {
        stage(p, "down.matmul").ports[2].push = {{0, 1}};
      },
      [](SpatialProgram& p) {
        stage(p, "down.matmul").ports[2].push = {{1, 1}, {3, 0}};
      },
      [](SpatialProgram& p) {
        stage(p, "down.matmul").ports[2].reserve = {{3, 0}, {1, 2}};
      },
      [](SpatialProgram& p) {
        stage(p, "down.load_a").ports[0].push = {{1, 2}, {1, 0}};
      },
      [](SpatialProgram& p) { stage(p, "down.load_a").ports[0].need = always(1u); },
      [](SpatialProgram& p) { stage(p, "down.store").ports[0].pop = always(0u); },
      [](SpatialProgram& p) { stage(p, "down.matmul").firings = 6; },
  };
  for (std::size_t i = 0; i < edits.size(); ++i) {
    INFO("edit " << i);
    SpatialProgram p = program();
    edits[i](p);
    check_only(Code::RDU3030, p);
  }
}

TEST_CASE("an edge that leaves a stage which does not fill its buffer is found") {
  SpatialProgram p = program();
  p.edges[1].from = StageId{0u};
  check_only(Code::RDU3031, p, "edge 1: 'down.b' is no output of 'down.load_a'");
}

TEST_CASE("a summation tree in another order than the stages add in is found") {
  SpatialProgram p = program(over(2));
  std::swap(p.trees[0].nodes[0], p.trees[0].nodes[1]);
  check_only(Code::RDU3032, p,
             "stores the sum (c0[0,256) + c1[256,512)); summation tree 0 says (c1[256,512) + c0[0,256))");
}

TEST_CASE("a summation tree that adds a leaf twice is found") {
  SpatialProgram p = program(over(2));
  p.trees[0].nodes[2].right = 0;
  check_only(Code::RDU3032, p, "summation tree 0: node 0 is added 2 times");
}

TEST_CASE("lanes that a unit does not have, that do not divide a tile, or that a tree does not say are found") {
  SpatialProgram p = program(over(2));
  p.trees[0].lanes = 2;
  check_only(Code::RDU3032, p, "summation tree 0: sums in 2 lanes, and stage 'down.matmul");
  const auto in_lanes = [](std::uint32_t lanes) {
    SpatialProgram q = program(over(2));
    for (Stage& s : q.stages)
      if (auto* m = std::get_if<MatmulTiles>(&s.kind)) m->lanes = lanes;
    q.trees[0].lanes = lanes;
    return q;
  };
  CHECK(text(in_lanes(16)) == "");
  p = in_lanes(16);
  std::get<MatmulTiles>(stage(p, "down.matmul_c1").kind).lanes = 8;
  check_only(Code::RDU3032, p, "sums in 8 lanes");
  check_only(Code::RDU3003, in_lanes(3), "sums over 3 lanes, which is no power of two that divides a tile of 32");
  Target t = sample::target();
  t.pcu.lanes = 8;
  check_only(Code::RDU3022, in_lanes(16), "uses 16 lanes", t);
}

TEST_CASE("what the target does not provide is found in what the program requires") {
  SpatialProgram p = program();
  p.required.handshakes.push_back(Handshake::barrier);
  check_only(Code::RDU3033, p, "requires Barrier");
  Target t = sample::target();
  t.pcu.macs_per_cycle[static_cast<std::size_t>(DType::int8)] = 0;
  check_only(Code::RDU3033, program(), "multiplies int8", t);
}

TEST_CASE("a route that leads elsewhere is found") {
  SpatialProgram p = program(over(2));
  edge_of(p, "down.partial_c1").routes = {route(sample::target(), ChipId{0u}, ChipId{1u})};
  check_only(Code::RDU3034, p, "do not lead from chip 1 to chip 0");
}

TEST_CASE("names that are not names are found") {
  SpatialProgram p = program();
  p.stages[1].name = p.stages[0].name;
  check_only(Code::RDU3035, p, "two stages are called 'down.load_a'");
  p.stages[1].name = "a\nb";
  check_only(Code::RDU3035, p, "not printable");
  p.stages[1].name = "\xff";
  check_only(Code::RDU3035, p, "not printable");
  p.stages[1].name = "";
  check_only(Code::RDU3035, p, "empty");
}

TEST_CASE("ends that disagree on the element type are found") {
  SpatialProgram p = program(over(2));
  buffer(p, "down.landing_c1").dtype = DType::fp32;
  check_only(Code::RDU3036, p, "buffer 'down.landing_c1' has fp32, and buffer 'down.partial_c1' int32");
}

TEST_CASE("a section that never runs is found") {
  SpatialProgram p = program();
  p.sections[0].trips = 0;
  check_only(Code::RDU3037, p, "section 'down' makes 0 trips");
}

TEST_CASE("trips that do not do what the first does are found") {
  const auto loads = [](SpatialProgram& p) -> Load& { return std::get<Load>(stage(p, "down.load_a").kind); };
  SpatialProgram p = program();
  loads(p).later = {loads(p).tensor};
  check_only(Code::RDU3070, p, "stage 'down.load_a' names tensors for 2 trips, and section 'down' makes 1");

  p = program();
  p.sections[0].trips = 2;
  p.sections[0].operators_a_trip = 1;
  CHECK(text(p).find("RDU3070") != std::string::npos);
  CHECK(text(p).find("trip 1 would carry out operator 1 where the first carries out 'down', and there are 1") !=
        std::string::npos);

  p = program();
  p.sections[0].trips = 2;
  loads(p).later = {std::get<Load>(stage(p, "down.load_b").kind).tensor};
  CHECK(text(p).find("which is not like it") != std::string::npos);
}

TEST_CASE("an edge between sections is found") {
  SpatialProgram p = program();
  p.sections.push_back({SectionId{1u}, "late", 1});
  stage(p, "down.store").section = SectionId{1u};
  check_only(Code::RDU3037, p, "edge 2 joins two sections");
}

TEST_CASE("buffers that overlap are found, and aliases are not") {
  SpatialProgram p = program();
  p.memory->buffers[1].address = p.memory->buffers[0].address;
  check_only(Code::RDU3038, p, "buffer 'down.a' and buffer 'down.b' overlap");
  p.buffers[1].alias_of = BufferId{0u};
  CHECK(text(p) == "");
}

TEST_CASE("stages that wait for each other are named with what each waits for") {
  Builder b(over(2));
  Stage& fold = stage(b.p, "down.fold");
  const BufferId loop = b.add_buffer("down.loop", BufferKind::interm, DType::int32, 1, 0);
  fold.ports.insert(fold.ports.begin() + 2, b.input(loop));
  fold.ports.push_back(b.output(loop));
  std::get<Generic>(fold.kind).maps.push_back({{1, 0}});
  b.add_edge(fold.id, loop, {fold.id});
  check_only(Code::RDU3039, b.p, "'down.fold' waits for a page of 'down.loop' from 'down.fold'");
  b.p.buffers[loop.value].initial_pages = 1;
  CHECK(text(b.p) == "");
}

TEST_CASE("a placed program may still be abstract, and a scheduled one may not") {
  SpatialProgram p = program(over(2));
  for (Edge& e : p.edges) {
    if (is_local(e.handshake)) e.handshake = Handshake::fifo;
    e.routes.clear();
    e.counter_bits = 0;
  }
  for (Buffer& b : p.buffers) b.depth_pages = 0;
  p.links.clear();
  p.memory.reset();
  p.schedule.reset();
  p.required = {};
  CHECK(text(p) == "");
  p.schedule = Schedule{};
  p.schedule->slots.resize(p.stages.size());
  CHECK(verify(p, sample::target()).contains(Code::RDU3003));
}

TEST_CASE("all faults are reported, not the first") {
  SpatialProgram p = program(over(2));
  p.collectives[0].bytes[1] += 4;
  p.memory->buffers[1].bank = 4;
  std::swap(p.trees[0].nodes[0], p.trees[0].nodes[1]);
  const Diagnostics d = verify(p, sample::target());
  CHECK(d.contains(Code::RDU3016));
  CHECK(d.contains(Code::RDU3020));
}

}  // namespace
}  // namespace rdusim::verify_test
