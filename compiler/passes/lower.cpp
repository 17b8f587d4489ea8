#include <algorithm>
#include <limits>
#include <variant>

#include "compiler/passes/attention.h"
#include "compiler/passes/extents.h"
#include "compiler/passes/move_nests.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/place_gather.h"
#include "compiler/passes/recipe.h"
#include "compiler/workload/fill_rules.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// Tiles along one axis are counted in 32 bits where pages are numbered, and a chip's work items in 64; an extent of
// more tiles than this is a mistake in the workload.
constexpr std::uint64_t most_tiles = std::uint64_t{1} << 32;

Tensor whole_tensor(const Operand& operand, TensorId id, std::uint32_t tile) {
  Tensor t;
  t.id = id;
  t.name = operand.name;
  t.operand = operand.id;
  t.role = operand.role;
  t.shape = operand.shape;
  t.tiles = tile_grid(operand.shape, tile);
  t.dtype = operand.dtype;
  t.fill = operand.fill;
  const bool computed = operand.role == TensorRole::output || operand.role == TensorRole::intermediate;
  if (!computed) t.range = value_range(operand.fill);
  if (t.range) t.range->second -= mutated("lower.range_too_narrow", 0, 1);
  t.whole = operand.shape;
  t.offset.assign(operand.shape.size(), mutated("lower.tensor_begins_further_on", 0, 1));
  return t;
}

// RDU4118: extents that pages can count.
bool check_extents(const Operator& op, const Work& w, const Target& target, const std::string& where,
                   Diagnostics& out) {
  bool fits = true;
  for (const std::int64_t extent : {w.m, w.k, w.n}) {
    if (tiles_of(extent, target.native_tile) <= most_tiles) continue;
    fits = false;
    out.error(Code::RDU4118, where, "{} '{}' has an extent of {}; at most {} tiles of {} an axis", name_of(op.kind),
              op.name, extent, most_tiles, target.native_tile);
  }
  return fits;
}

// An operator that works on rows and columns: the extents that it goes through.
std::optional<Work> work_by_row(const OperatorGraph& graph, const Operator& op, const Target& target,
                                const std::string& where, Diagnostics& out) {
  bool fits = true;
  const auto flat = [&](OperandId id) {
    const Operand& o = graph.operand(id);
    if (o.shape.size() <= 2) return;
    fits = false;
    out.error(Code::RDU4113, where, "operand '{}' of {} '{}' has rank {}; only ranks 1 and 2 are lowered", o.name,
              name_of(op.kind), op.name, o.shape.size());
  };
  for (const OperandId in : op.in) flat(in);
  flat(op.out);
  const DType accumulator = accumulator_of(graph.operand(op.in[0]).dtype);
  if (target.pcu.simd(accumulator) == 0) {
    fits = false;
    out.error(Code::RDU4111, where, "{} '{}' is worked out in {}, in which target '{}' does no element-wise operations",
              name_of(op.kind), op.name, name_of(accumulator), target.name);
  }
  if (!fits) return std::nullopt;
  const Work w = whole_work_of(graph, op);
  return check_extents(op, w, target, where, out) ? std::optional(w) : std::nullopt;
}

// RDU4145, RDU4111: an attention whose heads are pages of whole tiles, in types that the target has.
std::optional<Work> work_of_attention(const OperatorGraph& graph, const Operator& op, const Target& target,
                                      const std::string& where, Diagnostics& out) {
  const AttentionExtents e = attention_extents(graph, op);
  const DType type = graph.operand(op.in[0]).dtype;
  constexpr std::int64_t most_places = std::int64_t{1} << 24;  // which fp32 tells apart
  bool fits = true;
  for (const std::int64_t width : {e.width, e.further_width})
    if (width % target.native_tile != 0) {
      fits = false;
      out.error(Code::RDU4145, where, "the heads of attention '{}' are {} wide, which is not whole tiles of {}",
                op.name, width, target.native_tile);
    }
  if (e.queries >= most_places || e.keys >= most_places) {
    fits = false;
    out.error(Code::RDU4145, where, "attention '{}' has {} queries and {} keys, and their places are counted below {}",
              op.name, e.queries, e.keys, most_places);
  }
  for (const OperandId in : op.in)
    if (target.pcu.macs(graph.operand(in).dtype) == 0 || target.pcu.simd(accumulator_of(type)) == 0) {
      fits = false;
      out.error(Code::RDU4111, where, "attention '{}' is in {}, in which target '{}' does not compute", op.name,
                name_of(graph.operand(in).dtype), target.name);
      break;
    }
  if (graph.operand(op.in[1]).dtype != type) {
    fits = false;
    out.error(Code::RDU4113, where, "attention '{}' has queries in {} and keys in {}, which is not lowered", op.name,
              name_of(type), name_of(graph.operand(op.in[1]).dtype));
  }
  if (!fits) return std::nullopt;
  const Work w = whole_work_of(graph, op);
  return check_extents(op, w, target, where, out) ? std::optional(w) : std::nullopt;
}

std::optional<Work> work_of_matmul(const OperatorGraph& graph, const Operator& op, const Target& target,
                                   const std::string& where, Diagnostics& out) {
  const Operand& a = graph.operand(op.in[0]);
  const Operand& b = graph.operand(op.in[1]);
  const Operand& c = graph.operand(op.out);
  if (a.shape.size() < 2 || b.shape.size() < 2 || c.shape.size() != a.shape.size()) {
    out.error(Code::RDU4113, where, "the operands of matmul '{}' have ranks {}, {} and {}, which is not lowered",
              op.name, a.shape.size(), b.shape.size(), c.shape.size());
    return std::nullopt;
  }
  const std::int64_t contraction_of_b = op.attributes.transposed ? b.shape.back() : b.shape[b.shape.size() - 2];
  if (a.shape.back() != contraction_of_b) {
    out.error(Code::RDU4104, where, "matmul '{}': the contraction axis of '{}' is {} long, that of '{}' {}", op.name,
              a.name, a.shape.back(), b.name, contraction_of_b);
    return std::nullopt;
  }
  if (target.pcu.macs(a.dtype) == 0) {
    auto& d = out.error(Code::RDU4111, where, "matmul '{}' is in {}, in which target '{}' does not compute", op.name,
                        name_of(a.dtype), target.name);
    std::string can;
    for (DType t : all_dtypes)
      if (target.pcu.macs(t) != 0) can += (can.empty() ? "" : ", ") + std::string(name_of(t));
    d.suggest("it computes in {}", can);
    return std::nullopt;
  }
  Work w = whole_work_of(graph, op);
  if (!check_extents(op, w, target, where, out)) return std::nullopt;
  w.m = mutated("lower.rows_are_columns", w.m, w.n);
  w.k -= mutated<std::int64_t>("lower.contraction_short", 0, target.native_tile);
  return w;
}

// A move is cut into nests of loops, whatever rank its operands have.
std::optional<Work> work_of_move(const OperatorGraph& graph, const Operator& op, const Target& target,
                                 const std::string& where, Diagnostics& out) {
  std::string why;
  if (op.kind == OperatorKind::gather
          ? !(why = gather_fault(graph, op)).empty()
          : nests_of(graph, op, graph.operand(op.out).shape.back(), sites_for_moves(target), why).empty()) {
    out.error(Code::RDU4113, where, "{} '{}' {}", name_of(op.kind), op.name, why);
    return std::nullopt;
  }
  const Work w = whole_work_of(graph, op);
  return check_extents(op, w, target, where, out) ? std::optional(w) : std::nullopt;
}

std::optional<Work> work_of_rotary(const OperatorGraph& graph, const Operator& op, const Target& target,
                                   const std::string& where, Diagnostics& out) {
  for (const OperandId in : op.in)
    if (graph.operand(in).shape.size() != 2) {
      out.error(Code::RDU4113, where, "operand '{}' of rotary '{}' has rank {}; only rank 2 is lowered",
                graph.operand(in).name, op.name, graph.operand(in).shape.size());
      return std::nullopt;
    }
  return work_by_row(graph, op, target, where, out);
}

}  // namespace

Result<SpatialProgram> lower(SpatialProgram program, const Target& target) {
  if (!program.operators || !program.work.empty()) return program;
  Diagnostics out;
  const OperatorGraph& graph = *program.operators;

  for (const Operand& operand : graph.operands)
    if (storage_of(graph, operand.id) == operand.id)
      program.tensors.push_back(whole_tensor(operand, TensorId(program.tensors.size()), target.native_tile));

  for (const Operator& op : graph.operators) {
    const std::string where = place_of(program, op);
    const bool by_row = !recipe_of(graph, op).empty(), moves = is_move(op.kind);
    const bool attends = op.kind == OperatorKind::attention, turns = op.kind == OperatorKind::rotary;
    const bool multiplies = op.kind == OperatorKind::matmul && op.in.size() == 2;
    if (!by_row && !moves && !attends && !turns && !multiplies) {
      out.error(Code::RDU4113, where, "operator '{}' is a {} of {} operands, which is not lowered yet", op.name,
                name_of(op.kind), op.in.size());
      continue;
    }
    const std::optional<Work> w = by_row    ? work_by_row(graph, op, target, where, out)
                                  : moves   ? work_of_move(graph, op, target, where, out)
                                  : turns   ? work_of_rotary(graph, op, target, where, out)
                                  : attends ? work_of_attention(graph, op, target, where, out)
                                            : work_of_matmul(graph, op, target, where, out);
    if (!w) continue;
    program.work.push_back(*w);
    program.work.back().id = WorkId(program.work.size() - 1);
  }
  if (out.has_errors()) return out;
  return program;
}

}  // namespace rdusim
