#include "compiler/passes/repeats.h"

#include <doctest/doctest.h>

#include "compiler/passes/passes.h"
#include "compiler/target/target.h"

namespace rdusim::repeats_test {
namespace {

// x -> (add w, multiply v) once a layer -> y; every layer has a w of its own, and all share v.
OperatorGraph layered(std::uint32_t layers, std::vector<std::int64_t> last = {64}) {
  OperatorGraph g;
  g.name = "layered";
  const auto operand = [&](const std::string& name, TensorRole role, std::vector<std::int64_t> shape) {
    const OperandId id(g.operands.size());
    Operand o;
    o.id = id;
    o.name = name;
    o.role = role;
    o.shape = std::move(shape);
    o.dtype = DType::fp32;
    g.operands.push_back(std::move(o));
    return id;
  };
  const auto apply = [&](OperatorKind kind, OperandId a, OperandId b, OperandId out) {
    Operator op;
    op.id = OperatorId(g.operators.size());
    op.name = "op" + std::to_string(op.id.value);
    op.kind = kind;
    op.in = {a, b};
    op.out = out;
    g.operators.push_back(std::move(op));
  };
  OperandId x = operand("x", TensorRole::input, {32, 64});
  const OperandId v = operand("v", TensorRole::weight, {64});
  const OperandId h0 = operand("h0", TensorRole::intermediate, {32, 64});
  apply(OperatorKind::subtract, x, v, h0);
  x = h0;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    const bool end = i + 1 == layers;
    const OperandId w = operand("w" + n, TensorRole::weight, end ? last : std::vector<std::int64_t>{64});
    const OperandId sum = operand("s" + n, TensorRole::intermediate, {32, 64});
    const OperandId out = operand("h" + std::to_string(i + 1), TensorRole::intermediate, {32, 64});
    apply(OperatorKind::add, x, w, sum);
    apply(OperatorKind::multiply, sum, v, out);
    x = out;
  }
  apply(OperatorKind::subtract, x, v, operand("y", TensorRole::output, {32, 64}));
  return g;
}

SpatialProgram lowered(const OperatorGraph& graph) {
  const Target target = *find_target("sn40l");
  return *tile(*lower(*start(graph, target, {}), target), target);
}

}  // namespace

TEST_CASE("the layers of a graph are found, with what each takes from the one before") {
  const std::vector<Repeat> found = repeats_of(layered(5));
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == OperatorId{1u});
  CHECK(found[0].length == 2);
  CHECK(found[0].trips == 5);
  CHECK(repeats_of(layered(1)).empty());
}

TEST_CASE("a layer of another shape ends a run") {
  const std::vector<Repeat> found = repeats_of(layered(5, {32, 64}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].trips == 4);
}

TEST_CASE("a layer that takes its operand from elsewhere than the others do ends a run") {
  OperatorGraph g = layered(5);
  g.operators[7].in[0] = g.operators[1].out;  // the fourth layer adds to a sum of the first
  const std::vector<Repeat> found = repeats_of(g);
  REQUIRE(!found.empty());
  CHECK(found[0].first == OperatorId{1u});
  CHECK(found[0].trips == 3);
}

TEST_CASE("a layer whose schedule is pinned is no trip of others") {
  OperatorGraph g = layered(5);
  g.pins.push_back({OperatorId{5u}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, false});
  for (const Repeat& r : repeats_of(g)) CHECK((r.end() <= 5 || r.first.value > 5));
}

TEST_CASE("later trips name tensors of their own where they work on others, and none where they do not") {
  const SpatialProgram p = lowered(layered(3));
  const Repeat repeat = repeats_of(*p.operators).front();
  const auto later = later_tensors(p, repeat);
  REQUIRE(later);
  const auto named = [&](const std::string& name) {
    for (const Tensor& t : p.tensors)
      if (t.name == name) return t.id;
    return TensorId{};
  };
  const auto of = [&](const std::string& name) { return (*later)[named(name).value]; };
  CHECK(of("v").empty());
  CHECK(of("w0") == std::vector{named("w1"), named("w2")});
  CHECK(of("h0") == std::vector{named("h1"), named("h2")});
  CHECK(of("h1") == std::vector{named("h2"), named("h3")});
  CHECK(of("y").empty());
}

TEST_CASE("tensors that lie otherwise are no trips of each other") {
  SpatialProgram p = lowered(layered(3));
  const Repeat repeat = repeats_of(*p.operators).front();
  for (Tensor& t : p.tensors)
    if (t.name == "w1") t.space = MemorySpace::ddr;
  CHECK_FALSE(later_tensors(p, repeat));
}

TEST_CASE("layers become the trips of one section") {
  const Target target = *find_target("sn40l");
  const SpatialProgram p = *place(lowered(layered(4)), target);
  REQUIRE(p.sections.size() == 3);
  CHECK(p.sections[0].trips == 1);
  CHECK(p.sections[1].trips == 4);
  CHECK(p.sections[1].operators_a_trip == 2);
  CHECK(p.work.size() == 4);
  for (const Stage& s : p.stages)
    if (const auto* store = std::get_if<Store>(&s.kind))
      CHECK(store->later.size() == (s.section == SectionId{1u} ? 3 : 0));
}

}  // namespace rdusim::repeats_test
