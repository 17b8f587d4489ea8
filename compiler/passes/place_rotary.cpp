#include "compiler/passes/place_rotary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "compiler/passes/extents.h"
#include "compiler/passes/move_nests.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/section_builder.h"

namespace rdusim {
namespace {

// Of the accumulator's type: a page of half a head, and a few of them, double, in a site's memory.
constexpr Bytes most_half_page_bytes = Bytes{32} << 10;

std::uint64_t half_of(const OperatorGraph& graph, const Operator& op) {
  return static_cast<std::uint64_t>(graph.operand(op.in[0]).shape.back()) / op.attributes.heads / 2;
}
// Of the work: of one chip.
std::uint64_t heads_of(const OperatorGraph& graph, const Operator& op, const Work& w) {
  return static_cast<std::uint64_t>(w.n) / (2 * half_of(graph, op));
}
std::uint64_t rows_a_page(const OperatorGraph& graph, const Operator& op, const Work& w, const Target& t) {
  const std::uint64_t fit = most_half_page_bytes / (half_of(graph, op) * bytes_of(DType::fp32));
  return std::clamp<std::uint64_t>(fit, 1, std::min<std::uint64_t>(t.native_tile, static_cast<std::uint64_t>(w.m)));
}

std::uint64_t evenly(std::uint64_t n, std::uint64_t most) {
  std::uint64_t sites = std::max<std::uint64_t>(std::min(n, most), 1);
  while (n % sites != 0) --sites;
  return sites;
}

class RotaryPlacer {
 public:
  RotaryPlacer(SpatialProgram& p, const Target& t, const Work& w, SectionId section)
      : p_(p),
        t_(t),
        plan_(*w.plan),
        build_(p, t, w, section),
        op_(build_.op()),
        m_(static_cast<std::uint64_t>(w.m)),
        n_(static_cast<std::uint64_t>(w.n)),
        half_(half_of(*p.operators, op_)),
        rows_(rows_a_page(*p.operators, op_, w, t)) {}

  void place(SiteAllocator& sites) {
    group_ = build_.add_group(sites.near_agcus(plan_.sites_m * plan_.sites_n));
    const Source x = load_half("x", mutated("rotary.halves_change_places", std::uint64_t{0}, half_));
    const Source y = load_half("y", half_);
    const Source cos = load_angles("cos", op_.in[1]);
    const Source sin = load_angles("sin", mutated("rotary.sine_is_cosine", op_.in[2], op_.in[1]));
    turn("first", {x, cos, y, sin}, ExprOp::subtract, 0);
    turn("second", {y, cos, x, sin}, ExprOp::add, mutated("rotary.second_over_the_first", half_, 0));
    for (const Source& s : {x, y, cos, sin}) build_.add_edge(s.load, s.buffer, takers_);
  }

 private:
  struct Source {
    StageId load;
    BufferId buffer;
    bool angles = false;  // serves all heads of its rows
  };

  // Blocks of rows by heads, of half a head each, from column `column` of a head on.
  MoveNest halves(OperandId operand, std::uint64_t column) const {
    MoveNest nest;
    nest.loops = {plan_.rounds_m * plan_.sites_m, plan_.rounds_n * plan_.sites_n};
    nest.from = {operand, {{rows_, 0}, {0, 2 * half_}}, {0, column}, {rows_, half_}, {m_, n_}};
    share(nest);
    return nest;
  }
  void share(MoveNest& nest) const {
    nest.shared_loop = plan_.sites_n > 1 ? 1 : 0;
    nest.sites = plan_.sites_m * plan_.sites_n;
  }

  BufferId add_buffer(const std::string& name, DType type) {
    const BufferId id =
        build_.add_buffer(name, BufferKind::fifo, group_, type, tiles_of(std::int64_t(rows_), t_.native_tile),
                          tiles_of(std::int64_t(half_), t_.native_tile), std::int64_t(rows_), std::int64_t(half_));
    return id;
  }

  Source add_load(const std::string& name, OperandId operand, const MoveNest& nest, bool angles) {
    const Tensor& t = build_.tensor_of(operand);
    Load load{t.id, pattern_of(nest, nest.from, t, t_.native_tile), {}};
    if (angles && plan_.sites_n > 1) load.multicast_set.assign(plan_.sites_n, 0);
    std::uint64_t firings = 1;
    for (const std::uint64_t trips : load.pattern.loops) firings *= trips;
    const BufferId buffer = add_buffer(name, t.dtype);
    const StageId stage = build_.add_stage("load_" + name, std::move(load), group_, movement_engine(t_, movements_++),
                                           firings, {output_port(buffer)});
    return {stage, buffer, angles};
  }
  Source load_half(const std::string& name, std::uint64_t column) {
    return add_load(name, op_.in[0], halves(op_.in[0], column), false);
  }
  // One page a block of rows, the same for all sites that share its heads.
  Source load_angles(const std::string& name, OperandId operand) {
    MoveNest nest;
    nest.loops = {plan_.rounds_m * plan_.sites_m, plan_.sites_n};
    nest.from = {operand, {{rows_, 0}, {0, 0}}, {0, 0}, {rows_, half_}, {m_, half_}};
    share(nest);
    return add_load(name, operand, nest, true);
  }

  // a b `op` c d
  void turn(const std::string& name, const std::array<Source, 4>& in, ExprOp op, std::uint64_t column) {
    const auto heads = static_cast<std::uint32_t>(plan_.rounds_n);
    const DType result = p_.operators->operand(op_.out).dtype;
    Generic g;
    g.iterators = {IteratorKind::parallel, IteratorKind::parallel};
    g.maps.assign(in.size() + 1, {{1, 0, 0}, {0, 1, 0}});
    g.bodies = always(Expr{{ExprOp::operand, 0, 0},
                           {ExprOp::operand, 1, 0},
                           {ExprOp::multiply, 0, 0},
                           {ExprOp::operand, 2, 0},
                           {ExprOp::operand, 3, 0},
                           {ExprOp::multiply, 0, 0},
                           {op, 0, 0}});
    g.accumulator = accumulator_of(p_.operators->operand(op_.in[0]).dtype);
    g.result = result;
    g.shifted = true;
    std::vector<Port> ports;
    for (const Source& s : in) {
      Port port = input_port(s.buffer);
      if (s.angles) port.pop = in_phases(heads - 1, heads, heads);
      ports.push_back(std::move(port));
    }
    const BufferId out = add_buffer(name, result);
    ports.push_back(output_port(out));
    const std::uint64_t firings = plan_.rounds_m * plan_.rounds_n;
    const auto context = static_cast<std::uint32_t>(takers_.size());
    const StageId stage =
        build_.add_stage(name, std::move(g), group_, {StageRole::compute, context}, firings, std::move(ports));
    if (takers_.empty()) build_.assign_work(stage);
    takers_.push_back(stage);
    const Tensor& to = build_.tensor_of(op_.out);
    const MoveNest nest = halves(op_.out, column);
    const StageId store =
        build_.add_stage("store_" + name, Store{to.id, pattern_of(nest, nest.from, to, t_.native_tile), {}}, group_,
                         movement_engine(t_, movements_++), firings, {input_port(out)});
    build_.add_edge(stage, out, {store});
  }

  SpatialProgram& p_;
  const Target& t_;
  const BlockPlan& plan_;
  SectionBuilder build_;
  const Operator& op_;
  std::uint64_t m_, n_, half_, rows_;
  GroupId group_;
  std::uint32_t movements_ = 0;
  std::vector<StageId> takers_;
};

}  // namespace

std::optional<BlockPlan> rotary_plan(const OperatorGraph& graph, const Work& w, const SchedulePin& pin,
                                     const Target& t) {
  constexpr std::uint32_t stages = 2, operands = 4, operations = 3;
  if (pin.unroll_m || pin.unroll_n || pin.unroll_k || pin.block_m || pin.block_n || pin.page_k) return std::nullopt;
  if (t.site.pcu_contexts < stages || t.site.vector_inputs < operands) return std::nullopt;
  const Operator& op = graph.operators[w.op.value];
  const DType type = graph.operand(op.in[0]).dtype;
  const std::uint64_t blocks = ceil_div(static_cast<std::uint64_t>(w.m), rows_a_page(graph, op, w, t));
  const std::uint64_t heads = heads_of(graph, op, w);
  // Sites that work as fast as the memory streams what is read and written.
  const double elements = double(w.m) * double(w.n);
  const double work = elements * operations / std::max(1u, t.pcu.simd(accumulator_of(type)));
  const double bytes = elements * (bytes_of(type) + bytes_of(graph.operand(op.out).dtype));
  const double memory = std::max(bytes / to_double(t.hbm.sustainable_bytes_per_cycle()), 1.0);
  const auto most = std::min<std::uint64_t>(t.sites(), pin.sites.value_or(t.sites()));
  const auto wanted = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(work / memory)), 1, most);
  const std::uint64_t by_rows = evenly(blocks, wanted), by_heads = evenly(heads, wanted);
  BlockPlan plan;
  plan.block_n = tiles_of(static_cast<std::int64_t>(2 * half_of(graph, op)), t.native_tile);
  (by_heads > by_rows ? plan.sites_n : plan.sites_m) = std::max(by_heads, by_rows);
  plan.rounds_m = blocks / plan.sites_m;
  plan.rounds_n = heads / plan.sites_n;
  return plan;
}

void place_rotary(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                  SiteAllocator& sites) {
  RotaryPlacer(program, target, work, section).place(sites);
}

}  // namespace rdusim
