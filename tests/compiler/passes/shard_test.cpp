#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/rates.h"
#include "compiler/passes/rewrite.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::shard_test {
using namespace rdusim::test;

namespace {

Result<SpatialProgram> try_shard(const OperatorGraph& graph, const ShardPlan& plan, const Target& target) {
  return shard(placed(graph, target), plan, target);
}

// The one diagnostic that a refusal has.
Diagnostic refusal(const Result<SpatialProgram>& r) {
  REQUIRE(!r.ok());
  REQUIRE(r.diagnostics().list().size() == 1);
  return r.diagnostics().list().front();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The slices of every operand tile its whole, each region held by as many tensors as it declares.
void check_slices(const SpatialProgram& p) {
  std::map<OperandId,
           std::map<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>, std::vector<const Tensor*>>>
      regions;
  for (const Tensor& t : p.tensors) regions[t.operand][{t.offset, t.shape}].push_back(&t);
  for (const auto& [operand, parts] : regions) {
    std::int64_t covered = 0;
    for (const auto& [region, tensors] : parts) {
      const Tensor& t = *tensors.front();
      INFO(t.name);
      covered += *element_count(t.shape);
      for (const Tensor* other : tensors) CHECK(other->replicas == tensors.size());
      for (std::size_t d = 0; d < t.shape.size(); ++d) {
        CHECK(t.offset[d] >= 0);
        CHECK(t.offset[d] + t.shape[d] <= t.whole[d]);
        CHECK(t.tiles[d] == ceil_div(static_cast<std::uint64_t>(t.shape[d]), std::uint64_t{p.header.native_tile}));
      }
      // Distinct slices of one cut start at multiples of the slice, so equal volume means neither gap nor overlap.
      for (const auto& [other_region, others] : parts)
        if (other_region != region) CHECK(other_region.first != region.first);
    }
    CHECK(covered == *element_count(parts.begin()->second.front()->whole));
  }
}

// Every page that a load or store names lies in its tensor.
void check_patterns(const SpatialProgram& p) {
  for (const Stage& s : p.stages) {
    const AccessPattern* pattern = nullptr;
    const Tensor* tensor = nullptr;
    if (const auto* load = std::get_if<Load>(&s.kind)) pattern = &load->pattern, tensor = &p.tensor(load->tensor);
    if (const auto* store = std::get_if<Store>(&s.kind)) pattern = &store->pattern, tensor = &p.tensor(store->tensor);
    if (!pattern) continue;
    INFO(s.name);
    CHECK(pattern->first.size() == p.sites_of(s).sites.size());
    for (std::size_t i = 0; i < pattern->first.size(); ++i)
      CHECK(movable_pages(*pattern, i, tensor->tiles) == pages_per_trip(*pattern));
  }
}

}  // namespace

// ---- refusals -----------------------------------------------------------------------------------------------------

TEST_CASE("no chips are refused, one is the identity, and more than the target has are refused") {
  const Target t = sn40l();
  const SpatialProgram one = placed(one_matmul(32, 512, 64), t);
  const Diagnostic zero = refusal(shard(one, over(0), t));
  CHECK(zero.code == Code::RDU4108);
  CHECK(has(zero.help.front(), "1 to 16"));

  SpatialProgram expected = one;
  expected.header.plan = over(1);
  const auto same = shard(one, over(1), t);
  REQUIRE(same.ok());
  CHECK(*same == expected);
  CHECK(!same->header.plan.portable);
  CHECK(same->header.name == "down");

  const Diagnostic many = refusal(shard(one, over(17), t));
  CHECK(many.code == Code::RDU2009);
  CHECK(has(many.message, "17"));
  CHECK(has(many.message, "16"));
}

TEST_CASE("a sharded program is not sharded again") {
  const Target t = sn40l();
  const SpatialProgram two = sharded(one_matmul(32, 512, 64), over(2), t);
  CHECK(refusal(shard(two, over(2), t)).code == Code::RDU4117);
  const SpatialProgram columns = sharded(one_matmul(32, 512, 64), over(2, ShardKind::column), t);
  CHECK(refusal(shard(columns, over(2), t)).code == Code::RDU4117);
}

TEST_CASE("a program that was not lowered from operators, or has no matmul, has nothing to shard") {
  const Target t = sn40l();
  SpatialProgram assembled = placed(one_matmul(32, 512, 64), t);
  assembled.operators.reset();
  CHECK(refusal(shard(assembled, over(2), t)).code == Code::RDU4101);

  SpatialProgram empty = placed(one_matmul(32, 512, 64), t);
  empty.stages.clear();
  empty.edges.clear();
  CHECK(refusal(shard(empty, over(2), t)).code == Code::RDU4101);
}

TEST_CASE("an operand that no load fills is refused") {
  const Target t = sn40l();
  SpatialProgram p = placed(one_matmul(32, 512, 64), t);
  for (Stage& s : p.stages)
    if (s.name == "down.load_a") s.kind = Recv{};
  const Diagnostic d = refusal(shard(p, over(2), t));
  CHECK(d.code == Code::RDU4109);
  CHECK(has(d.message, "down.a"));
  CHECK(d.notes.size() == 1);
}

TEST_CASE("a result that is not stored is refused") {
  const Target t = sn40l();
  SpatialProgram p = placed(one_matmul(32, 512, 64), t);
  std::erase_if(p.stages, [](const Stage& s) { return std::holds_alternative<Store>(s.kind); });
  CHECK(refusal(shard(p, over(2), t)).code == Code::RDU4110);
}

TEST_CASE("operands that disagree on the contraction are refused with both extents") {
  const Target t = sn40l();
  SpatialProgram p = placed(one_matmul(32, 512, 64), t);
  p.operators->operands[1].shape = {480, 64};
  const Diagnostic d = refusal(shard(p, over(2), t));
  CHECK(d.code == Code::RDU4104);
  CHECK(has(d.message, "512"));
  CHECK(has(d.message, "480"));
}

TEST_CASE("a contraction that the chips do not divide is refused with what would work") {
  const Diagnostic d = refusal(try_shard(one_matmul(32, 14336, 128), over(12), sn40l()));
  CHECK(d.code == Code::RDU4102);
  CHECK(d.message == "the contraction axis of 'down' is 14336 long; 12 chips do not divide it");
  CHECK(has(d.help.front(), "1, 2, 4, 7, 8, 14 or 16 chips divide it into whole tiles of 32"));
  CHECK(has(d.help.front(), "; --uneven gives each chip 37 or 38; --pad makes it 14592 long, 1.8 % longer"));
}

TEST_CASE("the chips divide the extent, not the extent the chips: 8 heads' worth over 2 chips is 4") {
  // The test written the wrong way round (chips mod extent, or extent < chips) refuses 8 / 2.
  const Target t = sn40l();
  const SpatialProgram p = sharded(one_matmul(32, 8 * 32, 32), over(2), t);
  CHECK(p.work[0].k == 4 * 32);
  CHECK(refusal(try_shard(one_matmul(32, 2 * 32, 32), over(8), t)).code == Code::RDU4103);
  CHECK(refusal(try_shard(one_matmul(32, 2 * 32, 32), over(3), t)).code == Code::RDU4102);
}

TEST_CASE("a slice that is not whole tiles is refused with its length") {
  const Target t = sn40l();
  const Diagnostic row = refusal(try_shard(one_matmul(32, 960, 4096), over(4), t));
  CHECK(row.code == Code::RDU4103);
  CHECK(has(row.message, "contraction axis of 'down' is 960 long"));
  CHECK(has(row.message, "is 240, not whole tiles of 32"));
  CHECK(has(row.help.front(), "1, 2, 3, 5, 6, 10 or 15 chips divide"));
  CHECK(has(row.help.back(), "--shard column splits its output column axis, 4096 long"));

  const Diagnostic column = refusal(try_shard(one_matmul(32, 32, 960), over(4, ShardKind::column), t));
  CHECK(column.code == Code::RDU4103);
  CHECK(has(column.message, "output column axis of 'down' is 960 long"));
  CHECK(column.help.size() == 1);  // row would not work either
}

TEST_CASE("an extent that nothing divides says so") {
  const Diagnostic d = refusal(try_shard(one_matmul(32, 241, 64), over(2), sn40l()));
  CHECK(d.code == Code::RDU4102);
  CHECK(has(d.help.front(), "of 1 to 16 chips, only 1 divides it"));
}

TEST_CASE("every operator whose axis does not divide is reported, in order") {
  const auto r = try_shard(two_matmuls(32, 96, 160, 64), over(2), sn40l());
  REQUIRE(r.diagnostics().list().size() == 2);
  CHECK(has(r.diagnostics().list()[0].message, "'up' is 96 long"));
  CHECK(has(r.diagnostics().list()[1].message, "'down' is 160 long"));
}

// Where each chip's slice of the contraction begins, and where the last one ends.
std::vector<std::int64_t> bounds(const SpatialProgram& p) {
  std::vector<std::int64_t> at;
  for (const Work& w : p.work) at.push_back(w.offset_k);
  at.push_back(p.work.back().offset_k + p.work.back().k);
  return at;
}

TEST_CASE("uneven slices are whole tiles, as many as can be alike, the first chips one more") {
  ShardPlan plan = over(3);
  plan.uneven = true;
  const Target t = sn40l();
  const SpatialProgram p = sharded(one_matmul(32, 11 * 32 + 5, 64), plan, t);
  CHECK(bounds(p) == std::vector<std::int64_t>{0, 128, 256, 357});
  for (const Tensor& tensor : p.tensors)
    if (tensor.role == TensorRole::weight) CHECK(tensor.shape[0] == p.work[tensor.chip.value].k);
  // What is joined is cut alike: the same blocks on the same sites.
  for (const Work& w : p.work) {
    CHECK(w.plan->block_m == p.work[0].plan->block_m);
    CHECK(w.plan->block_n == p.work[0].plan->block_n);
    CHECK(w.plan->sites_m * w.plan->sites_n == p.work[0].plan->sites_m * p.work[0].plan->sites_n);
  }
  plan.chips = 13;
  const Diagnostic few = refusal(try_shard(one_matmul(32, 11 * 32 + 5, 64), plan, t));
  CHECK(few.code == Code::RDU4102);
  CHECK(has(few.help.front(), "whole tiles of 32; it has 12, fewer than chips"));
}

TEST_CASE("padded slices have elements as alike as can be and tiles alike, and one block plan") {
  ShardPlan plan = over(3);
  plan.pad = true;
  const SpatialProgram p = sharded(one_matmul(32, 11 * 32 + 4, 64), plan, sn40l());
  CHECK(bounds(p) == std::vector<std::int64_t>{0, 119, 238, 356});
  for (const Work& w : p.work) CHECK(w.plan == p.work[0].plan);
}

TEST_CASE("where slices are whole tiles anyway, uneven and padded change nothing") {
  const Target t = sn40l();
  const SpatialProgram exact = sharded(one_matmul(32, 14336, 128), over(4), t);
  for (const bool pad : {false, true}) {
    ShardPlan plan = over(4);
    plan.pad = pad;
    plan.uneven = !pad;
    SpatialProgram p = sharded(one_matmul(32, 14336, 128), plan, t);
    p.header.plan = exact.header.plan;
    CHECK(p == exact);
  }
}

TEST_CASE("what is read in part of a whole begins at a tile: padding does not, uneven slices do") {
  // Column-parallel 'up' would leave 33 columns a chip: its result is gathered, or 'down' reads a part of a whole x.
  const Target t = sn40l();
  OperatorGraph g = two_matmuls(32, 330, 330, 330);
  ShardPlan plan = over(10, ShardKind::row);
  plan.pad = true;
  const Diagnostic d = refusal(try_shard(g, plan, t));
  CHECK(d.code == Code::RDU4116);
  CHECK(has(d.message, "parts do not begin at whole tiles of 32"));
  CHECK(has(d.help.front(), "--uneven"));
  plan.pad = false;
  plan.uneven = true;
  CHECK(try_shard(g, plan, t).ok());
}

TEST_CASE("a fill that depends on the whole tensor, or has too few values, is not sliced") {
  const Target t = sn40l();
  OperatorGraph g = one_matmul(32, 512, 64);
  g.operands[1].fill = WholeTensorRandomFill{7};
  const Diagnostic d = refusal(try_shard(g, over(2), t));
  CHECK(d.code == Code::RDU4105);
  CHECK(has(d.message, "'w'"));
  // What every chip holds whole is not sliced: column-parallel takes x as it is.
  OperatorGraph whole_x = one_matmul(32, 512, 64);
  whole_x.operands[0].fill = WholeTensorRandomFill{7};
  CHECK(try_shard(whole_x, over(2, ShardKind::column), t).ok());
  CHECK(refusal(try_shard(whole_x, over(2), t)).code == Code::RDU4105);
  OperatorGraph few = one_matmul(32, 512, 64);
  few.operands[0].fill = ValuesFill{{1, 2, 3}, {}};
  CHECK(refusal(try_shard(few, over(2), t)).code == Code::RDU4105);
}

TEST_CASE("without a crossing hand-off only what joins nothing is sharded") {
  Target t = sn40l();
  t.crossing.clear();
  OperatorGraph g = one_matmul(32, 512, 64);
  g.pins.push_back({OperatorId(0), {}, {}, {}, 1, {}, {}, {}, {}, {}, {}, {}, {}, false});
  CHECK(refusal(try_shard(g, over(2), t)).code == Code::RDU4106);
  CHECK(try_shard(g, over(2, ShardKind::column), t).ok());
}

TEST_CASE("a pass that rejects the slice is named with its cause") {
  const Target t = sn40l();
  OperatorGraph g = one_matmul(32, 512, 64);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = 16;  // 16 tiles of contraction on one chip, 8 on each of two
  pin.page_k = 1;
  g.pins.push_back(pin);
  const Diagnostic d = refusal(try_shard(g, over(2), t));
  CHECK(d.code == Code::RDU4107);
  REQUIRE(d.notes.size() == 1);
  CHECK(has(d.notes.front().message, "RDU1026"));
}

// ---- what comes out -------------------------------------------------------------------------------------------------

TEST_CASE("a 32 x 512 by 512 x 32 matmul over two chips carries 8 contraction tiles in each chip's stages") {
  const Target t = sn40l();
  const SpatialProgram one = placed(one_matmul(32, 512, 32), t);
  const auto contraction_tiles = [](const SpatialProgram& p, ChipId chip) {
    std::uint64_t tiles = 0;
    for (const Stage& s : p.stages)
      if (const auto* m = std::get_if<MatmulTiles>(&s.kind); m && p.chip_of(s) == chip) tiles += m->k_tiles;
    return tiles;
  };
  CHECK(contraction_tiles(one, ChipId(0)) == 16);

  const SpatialProgram two = sharded(one_matmul(32, 512, 32), over(2), t);
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(contraction_tiles(two, ChipId(c)) == 8);
    CHECK(two.work[c].k == 256);
    CHECK(two.work[c].offset_k == std::int64_t(c) * 256);
  }
  // Loads push just the pages that the matmuls pop.
  for (const Edge& e : two.edges) {
    if (!std::holds_alternative<Load>(two.stage(e.from).kind)) continue;
    const Stage& reader = two.stage(e.to.front());
    for (std::size_t port = 0; port < reader.ports.size(); ++port)
      if (reader.ports[port].buffer == e.buffer)
        CHECK(count_pages(two, two.stage(e.from), 0, 0)->pushed == count_pages(two, reader, port, 0)->popped);
  }
}

TEST_CASE("slicing the tensors and leaving the stages at 16 is a program that waits for pages that are never pushed") {
  const Target t = sn40l();
  OperatorGraph g = one_matmul(32, 512, 32);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = 1;
  pin.page_k = 16;
  g.pins.push_back(pin);
  SpatialProgram edited = placed(g, t);
  CHECK(!verify(edited, t).has_errors());
  for (const OperandId operand : {OperandId(0), OperandId(1)}) {
    Tensor& tensor = edited.tensors[operand.value];
    const std::size_t axis = operand == OperandId(0) ? 1 : 0;
    tensor.shape[axis] = 256;
    tensor.tiles[axis] = 8;
  }
  const Diagnostics found = verify(edited, t);
  INFO(found.to_text());
  CHECK(found.contains(Code::RDU3008));
  CHECK(has(found.to_text(), "reserved 0, pushed 0, popped 1"));
}

TEST_CASE("a sharded program that drops its reduction does not verify") {
  const Target t = sn40l();
  SpatialProgram p = sharded(one_matmul(32, 512, 64, DType::int8, DType::int32), over(2), t);
  Dropped gone(p);
  for (Stage& s : p.stages) {
    if (!std::holds_alternative<CollectiveStage>(s.kind)) continue;
    gone.stages[s.id.value] = true;
    const BufferId partial = s.ports[0].buffer, result = s.ports[1].buffer;
    gone.buffers[result.value] = true;
    StageId store;
    for (Edge& e : p.edges)
      if (e.buffer == result) {
        store = e.to.front();
        gone.edges[e.id.value] = true;
      }
    for (Edge& e : p.edges)
      if (e.buffer == partial) e.to = {store};
    p.stages[store.value].ports[0].buffer = partial;
  }
  drop(p, gone);
  for (Stage& s : p.stages) s.collective.reset();
  for (Edge& e : p.edges) e.collective.reset();
  p.collectives.clear();
  const Diagnostics found = verify(p, t);
  INFO(found.to_text());
  CHECK(found.contains(Code::RDU3024));
}

TEST_CASE("what an assembled program says of its work does not matter, what its operators say does") {
  const Target t = sn40l();
  SpatialProgram p = placed(one_matmul(32, 512, 64), t);
  const auto expected = shard(p, over(2), t);
  p.work.clear();
  p.placement->work.clear();
  const auto same = shard(p, over(2), t);
  REQUIRE(same.ok());
  CHECK(*same == *expected);
  p.tensors.push_back(p.tensors.front());
  CHECK(refusal(shard(p, over(2), t)).code == Code::RDU4116);
}

TEST_CASE("row-parallel: contraction slices, full-shape partial sums, and a collective before the store") {
  const Target t = sn40l();
  const SpatialProgram p = sharded(one_matmul(32, 768, 96), over(3), t);
  check_references(p);
  check_slices(p);
  check_patterns(p);
  CHECK(p.header.name == "down_tp3");
  CHECK(p.header.plan == over(3));
  for (std::size_t c = 0; c < 3; ++c) {
    const std::string n = "_c" + std::to_string(c);
    const Tensor* x = tensor_named(p, "x" + n);
    const Tensor* w = tensor_named(p, "w" + n);
    const Tensor* y = tensor_named(p, "y" + n);
    REQUIRE((x && w && y));
    CHECK(x->shape == std::vector<std::int64_t>{32, 256});
    CHECK(x->offset == std::vector<std::int64_t>{0, std::int64_t(c) * 256});
    CHECK(w->shape == std::vector<std::int64_t>{256, 96});
    CHECK(w->offset == std::vector<std::int64_t>{std::int64_t(c) * 256, 0});
    CHECK(w->whole == std::vector<std::int64_t>{768, 96});
    CHECK(w->fill == Fill{PatternFill{53, 26}});
    CHECK(w->range == std::optional(std::pair<std::int64_t, std::int64_t>(-26, 26)));
    CHECK(w->dtype == DType::int8);
    CHECK(w->replicas == 1);
    CHECK(w->chip == ChipId(c));
    CHECK(y->shape == std::vector<std::int64_t>{32, 96});
    CHECK(y->replicas == 3);
    const Buffer* partial = buffer_named(p, "down.partial" + n);
    REQUIRE(partial);
    CHECK(partial->kind == BufferKind::interm);
    CHECK(partial->dtype == DType::int32);
    const Stage* part = stage_named(p, "down.all_reduce" + n);
    REQUIRE(part);
    CHECK(part->ports.size() == 2);
    CHECK(part->ports[0].buffer == partial->id);
  }
  REQUIRE(p.collectives.size() == 1);
  CHECK(p.collectives[0].kind == CollectiveKind::all_reduce);
  CHECK(p.collectives[0].bytes == std::vector<Bytes>(3, 32 * 96 * 4));
  REQUIRE(p.trees.size() == 1);
  std::set<ChipId> summed;
  for (const SummationNode& n : p.trees[0].nodes)
    if (n.leaf) summed.insert(n.chip);
  CHECK(summed.size() == 3);
}

TEST_CASE("partial sums are kept in the accumulator's type, whatever the result's") {
  const SpatialProgram p = sharded(one_matmul(32, 512, 64, DType::bf16, DType::bf16), over(2), sn40l());
  const Buffer* partial = buffer_named(p, "down.partial_c1");
  const Buffer* result = buffer_named(p, "down.all_reduce.result_c1");
  REQUIRE((partial && result));
  CHECK(partial->dtype == DType::fp32);
  CHECK(result->dtype == DType::bf16);
  CHECK(partial->page_bytes == 2 * result->page_bytes);
  for (const Stage& s : p.stages)
    if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) CHECK(m->result == DType::fp32);
}

TEST_CASE("reduce stores the result on the first chip only") {
  const SpatialProgram p = sharded(one_matmul(32, 512, 64), over(4, ShardKind::row, CollectiveKind::reduce), sn40l());
  check_references(p);
  check_slices(p);
  CHECK(count_of<Store>(p) == 1);
  CHECK(count_of<CollectiveStage>(p) == 4);
  CHECK(tensor_named(p, "y_c0"));
  CHECK(!tensor_named(p, "y_c1"));
  CHECK(tensor_named(p, "y_c0")->replicas == 1);
  CHECK(p.collectives[0].kind == CollectiveKind::reduce);
}

TEST_CASE("a scattered result: every chip sums all rows, and stores its own, whole tiles or not") {
  for (const std::uint32_t chips : {2u, 3u, 4u, 6u, 12u}) {
    CAPTURE(chips);
    const SpatialProgram p = sharded(one_scattered_matmul(36, 32 * 12 * 2, 80), over(chips), sn40l());
    check_references(p);
    check_slices(p);
    CHECK(count_of<Store>(p) == chips);
    REQUIRE(p.collectives.size() == 1);
    CHECK(p.collectives[0].kind == CollectiveKind::reduce_scatter);
    CHECK(p.collectives[0].bytes == std::vector<Bytes>(chips, 36 * 80 * 4));
    for (const Work& w : p.work) {
      CHECK(w.m == 36);
      CHECK(w.plan->block_m == 2);
      CHECK(w.plan->sites_m * w.plan->rounds_m == 1);
    }
    for (std::size_t c = 0; c < chips; ++c) {
      const Tensor* y = tensor_named(p, "y_c" + std::to_string(c));
      CHECK(y->shape == std::vector<std::int64_t>{36 / chips, 80});
      CHECK(y->offset == std::vector<std::int64_t>{36 / chips * std::int64_t(c), 0});
      CHECK(y->replicas == 1);
    }
  }
  // On one chip, and of columns, there is nothing to scatter.
  const SpatialProgram alone = sharded(one_scattered_matmul(36, 768, 80), over(1), sn40l());
  CHECK(alone.collectives.empty());
}

TEST_CASE("a scattered result is refused where its rows do not divide, where it is read, and where columns are cut") {
  const auto refused = [](const OperatorGraph& g, const ShardPlan& plan, Code code, const std::string& text) {
    const auto r = shard(placed(g, sn40l()), plan, sn40l());
    REQUIRE(!r.ok());
    INFO(text_of(r.diagnostics()));
    REQUIRE(r.diagnostics().list().size() == 1);
    const Diagnostic& d = r.diagnostics().list().front();
    CHECK(d.code == code);
    CHECK(d.message.find(text) != std::string::npos);
  };
  const OperatorGraph g = one_scattered_matmul(36, 32 * 5, 160);
  refused(g, over(5), Code::RDU4102, "it has 36, and 5 chips do not divide them");
  ShardPlan uneven = over(5);
  uneven.uneven = true;
  refused(g, uneven, Code::RDU4102, "it has 36, and 5 chips do not divide them");
  refused(g, over(5, ShardKind::column), Code::RDU4102, "it has 36, and 5 chips do not divide them");
  ShardPlan unequal = over(2, ShardKind::column);
  unequal.uneven = true;
  refused(one_scattered_matmul(36, 64, 96), unequal, Code::RDU4116, "leaves 2 unequal parts of its result on 2 chips");
  OperatorGraph chain = two_matmuls(32, 128, 256, 64);
  chain.operators[0].attributes.scattered = true;
  refused(chain, over(2), Code::RDU4116, "is scattered over 2 chips, and 'down' reads all of it");
  OperatorGraph looked_up = two_matmuls(64, 128, 128, 64);
  looked_up.operators[0].kind = OperatorKind::gather;
  looked_up.operators[0].attributes.scattered = true;
  Operand& indices = looked_up.operands[1];
  indices.role = TensorRole::input;
  indices.shape = {64};
  indices.dtype = DType::int32;
  indices.fill = PatternFill{37, 0};
  refused(looked_up, over(2), Code::RDU4116, "'h' is scattered over 2 chips, and 'down' reads all of it");
  // Rows that are worked on are whole tiles.
  refused(scattered_chain(96, 128, 64), over(2), Code::RDU4103, "the output row axis of 'sum' is 96 long");
  refused(scattered_chain(64, 96, 96), over(3), Code::RDU4102, "the output row axis of 'sum' is 64 long");
}

TEST_CASE("a scattered result that is cut by columns: every chip stores its rows of each chip's columns") {
  for (const std::uint32_t chips : {2u, 3u, 4u}) {
    CAPTURE(chips);
    const SpatialProgram p = sharded(one_scattered_matmul(36, 64, 64 * chips), over(chips, ShardKind::column), sn40l());
    check_references(p);
    check_slices(p);
    REQUIRE(p.collectives.size() == 1);
    CHECK(p.collectives[0].kind == CollectiveKind::all_to_all);
    CHECK(p.collectives[0].bytes == std::vector<Bytes>(chips, 36 * 64 * 4));
    CHECK(count_of<Store>(p) == std::size_t{chips} * chips);
    for (std::uint32_t c = 0; c < chips; ++c) {
      const Tensor* y = tensor_named(p, "y_c" + std::to_string(c));
      CHECK(y->offset == std::vector<std::int64_t>{36 / chips * std::int64_t{c}, 0});
      CHECK(y->shape == std::vector<std::int64_t>{36 / chips, 64 * std::int64_t{chips}});
      CHECK(y->replicas == 1);
    }
  }
}

TEST_CASE("what works row by row on a scattered result has the chip's rows, and is gathered where all are read") {
  for (const std::uint32_t chips : {2u, 4u}) {
    CAPTURE(chips);
    const SpatialProgram p = sharded(scattered_chain(128, 256, 128), over(chips), sn40l());
    check_slices(p);
    REQUIRE(p.collectives.size() == 4);
    const std::array<CollectiveKind, 4> kinds = {CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
                                                 CollectiveKind::all_gather, CollectiveKind::all_reduce};
    for (std::size_t i = 0; i < 4; ++i) CHECK(p.collectives[i].kind == kinds[i]);
    const std::int64_t rows = 128 / chips;
    CHECK(p.collectives[2].bytes == std::vector<Bytes>(chips, static_cast<Bytes>(rows) * 128 * 4));
    for (std::uint32_t c = 0; c < chips; ++c) {
      const std::string at = "_c" + std::to_string(c);
      CHECK(tensor_named(p, "xw" + at)->offset == std::vector<std::int64_t>{rows * c, 0});
      CHECK(tensor_named(p, "xw" + at)->shape == std::vector<std::int64_t>{rows, 128});
      CHECK(tensor_named(p, "xu" + at)->shape == std::vector<std::int64_t>{128, 128});
      CHECK(tensor_named(p, "sum" + at)->shape == std::vector<std::int64_t>{128, 128});
      CHECK(tensor_named(p, "sum" + at)->replicas == chips);
      for (const Work& w : p.work)
        if (w.op == OperatorId(2) && w.chip == ChipId(c)) {
          CHECK(w.m == rows);
          CHECK(w.offset_m == rows * c);
        }
      // Its part of what is whole begins at its rows.
      for (const Stage& s : p.stages) {
        const auto* load = std::get_if<Load>(&s.kind);
        if (!load || s.origin != OperatorId(2) || p.chip_of(s) != ChipId(c)) continue;
        const bool whole = p.tensor(load->tensor).name == "xu" + at;
        CHECK(load->pattern.first.front()[0] == (whole ? static_cast<std::uint64_t>(rows) / 32 * c : 0));
      }
    }
  }
}

TEST_CASE("column-parallel: each chip stores its columns, and nothing crosses") {
  const SpatialProgram p = sharded(one_matmul(32, 512, 384), over(3, ShardKind::column), sn40l());
  check_references(p);
  check_slices(p);
  check_patterns(p);
  CHECK(p.collectives.empty());
  for (std::size_t c = 0; c < 3; ++c) {
    const std::string n = "_c" + std::to_string(c);
    CHECK(tensor_named(p, "x" + n)->replicas == 3);
    CHECK(tensor_named(p, "x" + n)->shape == std::vector<std::int64_t>{32, 512});
    CHECK(tensor_named(p, "w" + n)->shape == std::vector<std::int64_t>{512, 128});
    CHECK(tensor_named(p, "y" + n)->offset == std::vector<std::int64_t>{0, std::int64_t(c) * 128});
    CHECK(tensor_named(p, "y" + n)->replicas == 1);
    CHECK(p.trees[c].nodes.front().chip == ChipId(c));
  }
  REQUIRE(p.trees.size() == 3);
}

TEST_CASE("the pair: column then row needs one all-reduce, and each chip's columns are the slice it reads") {
  const SpatialProgram p = sharded(two_matmuls(32, 128, 256, 64), over(2, ShardKind::none), sn40l());
  check_references(p);
  check_slices(p);
  check_patterns(p);
  REQUIRE(p.collectives.size() == 1);
  CHECK(p.collectives[0].op == OperatorId(1));
  const Tensor* h = tensor_named(p, "h_c1");
  REQUIRE(h);
  CHECK(h->shape == std::vector<std::int64_t>{32, 128});
  CHECK(h->offset == std::vector<std::int64_t>{0, 128});
}

TEST_CASE("rows only: the first result is on every chip, and the second reads its part of it at an offset") {
  const SpatialProgram p = sharded(two_matmuls(32, 128, 256, 64), over(2), sn40l());
  check_references(p);
  check_slices(p);
  check_patterns(p);
  CHECK(p.collectives.size() == 2);
  CHECK(tensor_named(p, "h_c1")->shape == std::vector<std::int64_t>{32, 256});
  for (const Stage& s : p.stages) {
    const auto* load = std::get_if<Load>(&s.kind);
    if (!load || p.tensor(load->tensor).name.rfind("h_c", 0) != 0) continue;
    const std::uint64_t first = p.chip_of(s).value == 0 ? 0 : 4;
    for (const auto& at : load->pattern.first) {
      CHECK(at[1] >= first);
      CHECK(at[1] < first + 4);
    }
    CHECK(load->pattern.extent_tiles[1] <= first + 4);
  }
}

TEST_CASE("a result that another operator reads is reduced on all chips though the plan reduces to one") {
  const SpatialProgram p =
      sharded(two_matmuls(32, 128, 256, 64), over(2, ShardKind::row, CollectiveKind::reduce), sn40l());
  CHECK(p.collectives[0].kind == CollectiveKind::all_reduce);
  CHECK(p.collectives[1].kind == CollectiveKind::reduce);
}

TEST_CASE("columns only: an all-gather gives every chip the first result whole") {
  const SpatialProgram p = sharded(two_matmuls(32, 128, 192, 96), over(3, ShardKind::column), sn40l());
  check_references(p);
  check_slices(p);
  check_patterns(p);
  REQUIRE(p.collectives.size() == 1);
  CHECK(p.collectives[0].kind == CollectiveKind::all_gather);
  CHECK(p.collectives[0].bytes == std::vector<Bytes>(3, 32 * 64 * 4));
  for (std::size_t to = 0; to < 3; ++to) {
    const Tensor* h = tensor_named(p, "h_c" + std::to_string(to));
    CHECK(h->shape == std::vector<std::int64_t>{32, 192});
    CHECK(h->replicas == 3);
    std::set<std::uint64_t> columns;
    for (std::size_t from = 0; from < 3; ++from) {
      const Stage* s = stage_named(p, "up.store_c" + std::to_string(from) + "_c" + std::to_string(to));
      REQUIRE(s);
      const auto& store = std::get<Store>(s->kind);
      CHECK(p.tensor(store.tensor).id == h->id);
      for (std::size_t i = 0; i < store.pattern.first.size(); ++i)
        for (std::uint64_t page = 0; page < *pages_per_trip(store.pattern); ++page) {
          const TileBox box = page_at(store.pattern, i, page);
          for (std::uint64_t col = 0; col < box.size[1]; ++col) CHECK(columns.insert(box.begin[1] + col).second);
        }
    }
    CHECK(columns.size() == 6);
  }
}

TEST_CASE("what fits decides where the plan leaves it open") {
  const Target t = sn40l();
  CHECK(!sharded(one_matmul(32, 512, 241), over(4, ShardKind::none), t).collectives.empty());  // only rows fit
  CHECK(sharded(one_matmul(32, 241, 512), over(4, ShardKind::none), t).collectives.empty());   // only columns
  CHECK(refusal(try_shard(one_matmul(32, 241, 241), over(4, ShardKind::none), t)).code == Code::RDU4102);
}

TEST_CASE("two readers that want different parts of an operand get it whole, and read their parts") {
  // y = x v row-parallel wants columns of x. z = y x^ has x's rows.
  OperatorGraph g;
  g.name = "both";
  const auto x = operand(g, "x", TensorRole::input, {64, 64}, DType::int32, PatternFill{61, 30});
  const auto y = operand(g, "y", TensorRole::output, {64, 64}, DType::int32);
  matmul(g, "square", x.id, x.id, y.id);
  const SpatialProgram p = sharded(g, over(2), sn40l());
  check_references(p);
  check_slices(p);
  check_patterns(p);
  CHECK(tensor_named(p, "x_c1")->shape == std::vector<std::int64_t>{64, 64});
  const Stage* a = stage_named(p, "square.load_a_c1");
  const Stage* b = stage_named(p, "square.load_b_c1");
  REQUIRE((a && b));
  CHECK(std::get<Load>(a->kind).pattern.first[0] == std::vector<std::uint64_t>{0, 1});
  CHECK(std::get<Load>(b->kind).pattern.first[0] == std::vector<std::uint64_t>{1, 0});
}

TEST_CASE("copies differ in nothing but the chip, and inherit their engines") {
  const Target t = sn40l();
  SpatialProgram one = placed(one_matmul(32, 512, 64), t);
  for (Stage& s : one.stages)
    if (std::holds_alternative<Store>(s.kind)) s.engine.index = 5;
  const auto p = shard(one, over(4), t);
  REQUIRE(p.ok());
  for (const Stage& s : p->stages) {
    if (std::holds_alternative<Store>(s.kind)) CHECK(s.engine.index == 5);
    const std::string base = s.name.substr(0, s.name.size() - 1);
    const Stage* first = stage_named(*p, base + "0");
    REQUIRE(first);
    CHECK(first->engine == s.engine);
    CHECK(first->firings == s.firings);
    CHECK(first->section == s.section);
    const Group& mine = p->sites_of(s);
    const Group& theirs = p->sites_of(*first);
    REQUIRE(mine.sites.size() == theirs.sites.size());
    for (std::size_t i = 0; i < mine.sites.size(); ++i) CHECK(mine.sites[i].at == theirs.sites[i].at);
    CHECK(mine.agcus == theirs.agcus);
  }
}

TEST_CASE("a sharded program says nothing of what later passes work out") {
  const Target t = sn40l();
  SpatialProgram one = placed(one_matmul(32, 512, 64), t);
  auto finished =
      size(one, t).then([&](SpatialProgram q) { return handshake(std::move(q), t); }).then([&](SpatialProgram q) {
        return memory(std::move(q), t);
      });
  REQUIRE(finished.ok());
  const auto from_finished = shard(*finished, over(2), t);
  const auto from_placed = shard(one, over(2), t);
  REQUIRE(from_finished.ok());
  CHECK(!from_finished->memory);
  CHECK(!from_finished->schedule);
  CHECK(*from_finished == *from_placed);
}

TEST_CASE("any shape that divides is sliced without gap or overlap, with its pages in its tensors") {
  const Target t = sn40l();
  CHECK(rc::check("row and column", [&] {
    const auto chips = *rc::gen::inRange<std::uint32_t>(2, 10);
    const auto m = *rc::gen::inRange<std::int64_t>(1, 100);
    const auto kind = *rc::gen::element(ShardKind::row, ShardKind::column);
    const auto tiles = *rc::gen::inRange<std::int64_t>(1, 4);
    const auto other = *rc::gen::inRange<std::int64_t>(1, 200);
    const std::int64_t split = tiles * 32 * chips;
    const SpatialProgram p = sharded(kind == ShardKind::row ? one_matmul(m, split, other) : one_matmul(m, other, split),
                                     over(chips, kind), t);
    check_references(p);
    check_slices(p);
    check_patterns(p);
    std::int64_t macs = 0;
    for (const Work& w : p.work) macs += w.m * w.n * w.k;
    RC_ASSERT(macs == m * split * other);
  }));
}

}  // namespace rdusim::shard_test
