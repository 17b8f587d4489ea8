// Operator graphs of matmuls, and programs of them on one chip, for the tests of the passes that shard.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/verify.h"
#include "compiler/passes/passes.h"

namespace rdusim::test {

inline Operand operand(OperatorGraph& g, std::string name, TensorRole role, std::vector<std::int64_t> shape, DType type,
                       Fill fill = ZeroFill{}) {
  Operand o;
  o.id = OperandId(g.operands.size());
  o.name = std::move(name);
  o.role = role;
  o.shape = std::move(shape);
  o.dtype = type;
  o.fill = std::move(fill);
  g.operands.push_back(o);
  return o;
}

inline void matmul(OperatorGraph& g, std::string name, OperandId a, OperandId b, OperandId c) {
  Operator op;
  op.id = OperatorId(g.operators.size());
  op.name = std::move(name);
  op.in = {a, b};
  op.out = c;
  g.operators.push_back(std::move(op));
}

// y = x w: m x k by k x n.
inline OperatorGraph one_matmul(std::int64_t m, std::int64_t k, std::int64_t n, DType type = DType::int8,
                                DType result = DType::int32) {
  OperatorGraph g;
  g.name = "down";
  const auto x = operand(g, "x", TensorRole::input, {m, k}, type, PatternFill{61, 30});
  const auto w = operand(g, "w", TensorRole::weight, {k, n}, type, PatternFill{53, 26});
  const auto y = operand(g, "y", TensorRole::output, {m, n}, result);
  matmul(g, "down", x.id, w.id, y.id);
  return g;
}

// The same; chips that sum it up keep rows of their own.
inline OperatorGraph one_scattered_matmul(std::int64_t m, std::int64_t k, std::int64_t n, DType type = DType::int8,
                                          DType result = DType::int32) {
  OperatorGraph g = one_matmul(m, k, n, type, result);
  g.operators[0].attributes.scattered = true;
  return g;
}

// The same; chip floor(part chips / parts) carries it out alone.
inline OperatorGraph one_matmul_alone(std::int64_t part, std::int64_t parts, std::int64_t m, std::int64_t k,
                                      std::int64_t n, DType type = DType::int8, DType result = DType::int32) {
  OperatorGraph g = one_matmul(m, k, n, type, result);
  g.operators[0].attributes.alone = {part, parts};
  return g;
}

// y = x w^T: m x k by n x k.
inline OperatorGraph one_transposed_matmul(std::int64_t m, std::int64_t k, std::int64_t n, DType type = DType::int8,
                                           DType result = DType::int32) {
  OperatorGraph g = one_matmul(m, k, n, type, result);
  g.operands[1].shape = {n, k};
  g.operators[0].attributes.transposed = true;
  return g;
}

// h = x u, y = h d: m x k by k x h by h x n.
inline OperatorGraph two_matmuls(std::int64_t m, std::int64_t k, std::int64_t h, std::int64_t n,
                                 DType type = DType::fp32) {
  OperatorGraph g;
  g.name = "mlp";
  const auto x = operand(g, "x", TensorRole::input, {m, k}, type, PatternFill{61, 30});
  const auto u = operand(g, "u", TensorRole::weight, {k, h}, type, PatternFill{53, 26});
  const auto d = operand(g, "d", TensorRole::weight, {h, n}, type, PatternFill{47, 23});
  const auto hidden = operand(g, "h", TensorRole::intermediate, {m, h}, type);
  const auto y = operand(g, "y", TensorRole::output, {m, n}, type);
  matmul(g, "up", x.id, u.id, hidden.id);
  matmul(g, "down", hidden.id, d.id, y.id);
  return g;
}

// y = (x w + x u) v, of m rows throughout: what x w leaves on chips is scattered, so that the addition works on each
// chip's rows, of x u it reads just those, and its result is gathered.
inline OperatorGraph scattered_chain(std::int64_t m, std::int64_t k, std::int64_t h, DType type = DType::fp32) {
  OperatorGraph g;
  g.name = "chain";
  const auto x = operand(g, "x", TensorRole::input, {m, k}, type, PatternFill{61, 30});
  const auto w = operand(g, "w", TensorRole::weight, {k, h}, type, PatternFill{53, 26});
  const auto u = operand(g, "u", TensorRole::weight, {k, h}, type, PatternFill{47, 23});
  const auto v = operand(g, "v", TensorRole::weight, {h, h}, type, PatternFill{43, 21});
  const auto xw = operand(g, "xw", TensorRole::intermediate, {m, h}, type);
  const auto xu = operand(g, "xu", TensorRole::intermediate, {m, h}, type);
  const auto sum = operand(g, "sum", TensorRole::intermediate, {m, h}, type);
  const auto y = operand(g, "y", TensorRole::output, {m, h}, type);
  matmul(g, "first", x.id, w.id, xw.id);
  g.operators.back().attributes.scattered = true;
  matmul(g, "second", x.id, u.id, xu.id);
  matmul(g, "sum", xw.id, xu.id, sum.id);
  g.operators.back().kind = OperatorKind::add;
  matmul(g, "last", sum.id, v.id, y.id);
  return g;
}

inline Target target_named(const std::string& name) {
  auto target = find_target(name);
  REQUIRE(target.ok());
  return std::move(target).value();
}
inline Target sn40l() {
  return target_named("sn40l");
}
inline Target wormhole() {
  return target_named("wormhole");
}
inline Target barrier_machine() {
  return target_named(std::string(RDUSIM_SOURCE_DIR) + "/tests/support/barrier.toml");
}

// As a target with `chips` chips, each with a link to every other.
inline Target full_mesh(Target target, std::uint32_t chips) {
  const ChipLinkParameters like = target.links.front();
  target.chips = chips;
  target.links.clear();
  for (std::uint32_t from = 0; from < chips; ++from)
    for (std::uint32_t to = 0; to < chips; ++to) {
      if (from == to) continue;
      ChipLinkParameters link = like;
      link.id = LinkId(target.links.size());
      link.from = ChipId(from);
      link.to = ChipId(to);
      target.links.push_back(link);
    }
  return target;
}

inline ShardPlan over(std::uint32_t chips, ShardKind kind = ShardKind::row,
                      CollectiveKind collective = CollectiveKind::all_reduce,
                      CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) {
  ShardPlan plan;
  plan.chips = chips;
  plan.portable = false;
  plan.kind = kind;
  plan.collective = collective;
  plan.algorithm = algorithm;
  return plan;
}

inline std::string text_of(const Diagnostics& d) {
  return d.to_text();
}

// The program of a graph on one chip, placed.
inline SpatialProgram placed(const OperatorGraph& graph, const Target& target) {
  auto p = start(graph, target, ShardPlan{})
               .then([&](SpatialProgram q) { return lower(std::move(q), target); })
               .then([&](SpatialProgram q) { return tile(std::move(q), target); })
               .then([&](SpatialProgram q) { return place(std::move(q), target); });
  INFO(text_of(p.diagnostics()));
  REQUIRE(p.ok());
  return std::move(p).value();
}

inline SpatialProgram sharded(const OperatorGraph& graph, const ShardPlan& plan, const Target& target) {
  auto p = shard(placed(graph, target), plan, target);
  INFO(text_of(p.diagnostics()));
  REQUIRE(p.ok());
  const Diagnostics found = verify(*p, target);
  INFO(text_of(found));
  CHECK(!found.has_errors());
  return std::move(p).value();
}

inline SpatialProgram joined(const OperatorGraph& graph, const ShardPlan& plan, const Target& target) {
  auto p = collective(sharded(graph, plan, target), target);
  INFO(text_of(p.diagnostics()));
  REQUIRE(p.ok());
  return std::move(p).value();
}

inline const Stage* stage_named(const SpatialProgram& p, const std::string& name) {
  for (const Stage& s : p.stages)
    if (s.name == name) return &s;
  return nullptr;
}
inline const Tensor* tensor_named(const SpatialProgram& p, const std::string& name) {
  for (const Tensor& t : p.tensors)
    if (t.name == name) return &t;
  return nullptr;
}
inline const Buffer* buffer_named(const SpatialProgram& p, const std::string& name) {
  for (const Buffer& b : p.buffers)
    if (b.name == name) return &b;
  return nullptr;
}
template <class Kind>
std::size_t count_of(const SpatialProgram& p) {
  std::size_t n = 0;
  for (const Stage& s : p.stages) n += std::holds_alternative<Kind>(s.kind) ? 1 : 0;
  return n;
}

// Ids are positions, and every reference names an element that is there.
inline void check_references(const SpatialProgram& p) {
  const auto dense = [](const auto& list) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].id.value != i) return false;
    return true;
  };
  CHECK(dense(p.tensors));
  CHECK(dense(p.stages));
  CHECK(dense(p.buffers));
  CHECK(dense(p.edges));
  CHECK(dense(p.collectives));
  CHECK(dense(p.sections));
  CHECK(dense(p.work));
  CHECK(dense(p.trees));
  CHECK(dense(p.placement->groups));
  std::vector<std::size_t> producers(p.buffers.size()), consumers(p.buffers.size());
  std::vector<std::size_t> read(p.buffers.size());
  for (const Stage& s : p.stages) {
    REQUIRE(s.group.value < p.placement->groups.size());
    REQUIRE(s.section.value < p.sections.size());
    if (const auto* load = std::get_if<Load>(&s.kind)) CHECK(p.tensor(load->tensor).chip == p.chip_of(s));
    if (const auto* store = std::get_if<Store>(&s.kind)) CHECK(p.tensor(store->tensor).chip == p.chip_of(s));
    if (const auto* recv = std::get_if<Recv>(&s.kind)) {
      const auto& to = p.edge(recv->edge).to;
      CHECK(std::find(to.begin(), to.end(), s.id) != to.end());
    }
    for (const Port& port : s.ports) {
      REQUIRE(port.buffer.value < p.buffers.size());
      CHECK(p.buffer(port.buffer).group == s.group);
      ++(port.direction == Direction::output ? producers : consumers)[port.buffer.value];
    }
  }
  for (const Edge& e : p.edges) {
    REQUIRE(e.from.value < p.stages.size());
    bool pushes = false;
    for (const Port& port : p.stage(e.from).ports)
      pushes = pushes || (port.direction == Direction::output && port.buffer == e.buffer);
    CHECK(pushes);
    ++read[e.buffer.value];
    for (const StageId to : e.to) {
      REQUIRE(to.value < p.stages.size());
      CHECK(is_local(e.handshake) == (p.stage(e.from).group == p.stage(to).group));
    }
  }
  for (const Buffer& b : p.buffers) {
    INFO(b.name);
    CHECK(producers[b.id.value] == 1);
    CHECK(read[b.id.value] >= 1);
  }
  for (const WorkAssignment& a : p.placement->work) {
    CHECK(std::holds_alternative<MatmulTiles>(p.stage(a.stage).kind));
    CHECK(p.work[a.work.value].chip == p.chip_of(p.stage(a.stage)));
  }
}

}  // namespace rdusim::test
