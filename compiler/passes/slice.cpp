#include "compiler/passes/slice.h"

#include <algorithm>
#include <string>

#include "compiler/passes/extents.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/recipe.h"
#include "compiler/workload/fill_reader.h"

namespace rdusim {
namespace {

std::int64_t split_extent(const OperatorGraph& graph, const Operator& op, ShardKind kind) {
  const Work whole = whole_work_of(graph, op);
  return kind == ShardKind::row ? whole.k : whole.n;
}

bool divides(std::int64_t extent, std::uint32_t chips) {
  return extent % std::int64_t{chips} == 0;
}
bool whole_tiles(std::int64_t extent, std::uint32_t chips, std::uint32_t tile) {
  return divides(extent, chips) && extent / std::int64_t{chips} % std::int64_t{tile} == 0;
}

// Whether the heads of an attention can be dealt: as many on every chip, and those of keys with the heads that share
// them; where chips are more than those, each chip has all keys and values, and reads its head's.
bool heads_divide(const Operator& op, std::uint32_t chips) {
  const std::uint32_t heads = op.attributes.heads, kv_heads = op.attributes.kv_heads;
  return heads % chips == 0 && (kv_heads % chips == 0 || chips % kv_heads == 0);
}

// The axis along which an operator that is cut that way wants operand `in`.
std::optional<std::uint32_t> wanted_axis(const OperatorGraph& graph, const Operator& op, ShardKind kind, std::size_t in,
                                         std::uint32_t chips) {
  if (kind == ShardKind::none) return std::nullopt;
  const auto last = static_cast<std::uint32_t>(graph.operand(op.in[in]).shape.size() - 1);
  if (op.kind == OperatorKind::attention)
    return in == 0 || op.attributes.kv_heads % chips == 0 ? std::optional(last) : std::nullopt;
  if (op.kind != OperatorKind::matmul) {
    if (!spans_columns(graph, op, in)) return std::nullopt;
    return last;
  }
  const std::uint32_t contraction = op.attributes.transposed ? 1 : 0;  // of in1
  if (kind == ShardKind::row) return in == 0 ? last : mutated("slice.wrong_axis", contraction, 1 - contraction);
  return in == 0 ? std::nullopt : std::optional(1 - contraction);
}
// The axis along which it has its result cut.
std::optional<std::uint32_t> result_axis(const OperatorGraph& graph, const Operator& op, ShardKind kind) {
  if (kind != ShardKind::column) return std::nullopt;
  return static_cast<std::uint32_t>(graph.operand(op.out).shape.size() - 1);
}

// By operand: whether a matmul reads it as its left one, as it is or by way of point-wise operators and attention.
std::vector<bool> lead_to_matmul(const OperatorGraph& graph) {
  std::vector<bool> lead(graph.operands.size(), false);
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    if (op->kind == OperatorKind::matmul) lead[op->in[0].value] = true;
    if ((!is_point_wise(op->kind) && op->kind != OperatorKind::attention) || !lead[op->out.value]) continue;
    for (const OperandId in : op->in) lead[in.value] = true;
  }
  return lead;
}

std::optional<OperatorId> writer_of(const OperatorGraph& graph, OperandId operand) {
  for (const Operator& op : graph.operators)
    if (op.out == operand) return op.id;
  return std::nullopt;
}

// Which way each operator is cut.
std::vector<ShardKind> choose_kinds(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile) {
  const bool in_pairs = plan.kind == ShardKind::none || plan.kind == ShardKind::tensor;
  std::vector<ShardKind> kinds(graph.operators.size(), plan.kind);
  const auto fits = [&](const Operator& op, ShardKind kind) {
    return whole_tiles(split_extent(graph, op, kind), plan.chips, tile);
  };
  const std::vector<bool> leads = lead_to_matmul(graph);
  const auto is_column = [&](OperandId in) {
    const std::optional<OperatorId> writer = writer_of(graph, in);
    return writer && kinds[writer->value] == ShardKind::column;
  };
  for (const Operator& op : graph.operators) {
    ShardKind& kind = kinds[op.id.value];
    if (op.kind != OperatorKind::matmul) {
      kind = ShardKind::none;
      for (std::size_t in = 0; in < op.in.size() && is_point_wise(op.kind); ++in)
        if (is_column(op.in[in]) && spans_columns(graph, op, in)) kind = ShardKind::column;
      if (op.kind == OperatorKind::attention && heads_divide(op, plan.chips) &&
          (is_column(op.in[0]) || !writer_of(graph, op.in[0])))
        kind = ShardKind::column;
      continue;
    }
    if (!in_pairs) continue;
    const bool after_column = is_column(op.in[0]);
    const bool before_row = leads[op.out.value];
    if (after_column && fits(op, ShardKind::row))
      kind = ShardKind::row;
    else if (before_row && fits(op, ShardKind::column))
      kind = ShardKind::column;
    else
      kind = !fits(op, ShardKind::row) && fits(op, ShardKind::column) ? ShardKind::column : ShardKind::row;
  }
  return kinds;
}

// "1, 2 or 4 chips divide"; "only 1 chip divides".
std::string chips_that_divide(std::int64_t extent, std::uint32_t tile, std::uint32_t most_chips) {
  std::vector<std::uint32_t> good;
  for (std::uint32_t n = 1; n <= most_chips; ++n)
    if (n == 1 || whole_tiles(extent, n, tile)) good.push_back(n);
  if (good.size() == 1) return "of 1 to " + std::to_string(most_chips) + " chips, only 1 divides";
  std::string list;
  for (std::size_t i = 0; i < good.size(); ++i)
    list += (i == 0 ? "" : i + 1 == good.size() ? " or " : ", ") + std::to_string(good[i]);
  return list + " chips divide";
}

// Part of the extent that padding to whole tiles on every chip would add, in percent with one decimal.
std::string padding_percent(std::int64_t extent, std::int64_t padded) {
  const std::uint64_t added = static_cast<std::uint64_t>(padded - extent), whole = static_cast<std::uint64_t>(extent);
  const std::uint64_t tenths = added / whole * 1000 + (added % whole * 2000 + whole) / (2 * whole);
  if (tenths == 0) return "less than 0.1 %";
  return fmt::format("{}.{} %", tenths / 10, tenths % 10);
}

class Cutter {
 public:
  Cutter(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile, std::uint32_t most_chips,
         const std::string& where)
      : graph_(graph),
        plan_(plan),
        tile_(tile),
        most_chips_(most_chips),
        where_(where),
        kinds_(choose_kinds(graph, plan, tile)) {}

  Result<Cuts> cut() {
    for (const Operator& op : graph_.operators) check_extent(op);
    if (out_.has_errors()) return out_;
    Cuts cuts;
    cuts.chips = plan_.chips;
    for (const Operator& op : graph_.operators) cuts.operators.push_back({kinds_[op.id.value], joined_by(op)});
    for (const Operand& o : graph_.operands) cuts.operands.push_back(operand_cut(o, cuts));
    for (const Operand& o : graph_.operands) {
      if (!cuts.operands[o.id.value].axis) continue;
      const std::string why = why_not_sliceable(o.fill, o.shape);
      if (!why.empty())
        out_.error(Code::RDU4105, o.where.empty() ? where_ : o.where, "'{}' cannot be sliced over {} chips: {}", o.name,
                   plan_.chips, why);
    }
    if (out_.has_errors()) return out_;
    return cuts;
  }

 private:
  void check_extent(const Operator& op) {
    const ShardKind kind = kinds_[op.id.value];
    if (kind == ShardKind::none) return;
    const std::int64_t extent = split_extent(graph_, op, kind), chips = plan_.chips, tile = tile_;
    if (whole_tiles(extent, plan_.chips, tile_)) return;
    const std::string_view axis = kind == ShardKind::row ? "contraction" : "output column";
    const std::string& where = op.where.empty() ? where_ : op.where;
    Diagnostic* d = nullptr;
    if (plan_.uneven || plan_.pad)
      d = &out_.error(
          Code::RDU4116, where,
          "the {} axis of '{}' is {} long, which is not whole tiles of {} for each of {} chips, and this version "
          "does not do what {} asks for",
          axis, op.name, extent, tile, chips, plan_.pad ? "--pad" : "--uneven");
    else if (!divides(extent, plan_.chips))
      d = &out_.error(Code::RDU4102, where, "the {} axis of '{}' is {} long; {} chips do not divide it", axis, op.name,
                      extent, chips);
    else
      d = &out_.error(Code::RDU4103, where,
                      "the {} axis of '{}' is {} long; a slice for each of {} chips is {}, not whole tiles of {}", axis,
                      op.name, extent, chips, extent / chips, tile);
    const std::int64_t step = chips * tile;
    const std::int64_t padded = (extent / step + 1) * step;
    d->suggest(
        "{} it into whole tiles of {}; padded to {} it would be {} longer, but padding and uneven slices are not in "
        "this version",
        chips_that_divide(extent, tile_, most_chips_), tile, padded, padding_percent(extent, padded));
    const ShardKind other = kind == ShardKind::row ? ShardKind::column : ShardKind::row;
    if (op.kind == OperatorKind::matmul && whole_tiles(split_extent(graph_, op, other), plan_.chips, tile_))
      d->suggest("--shard {} splits its {} axis, {} long, into whole tiles", other == ShardKind::row ? "row" : "column",
                 other == ShardKind::row ? "contraction" : "output column", split_extent(graph_, op, other));
  }

  // Calls f(operator, 0 or 1) for every use of the operand.
  template <class F>
  void for_each_use(OperandId operand, F&& f) const {
    for (const Operator& op : graph_.operators)
      for (std::size_t i = 0; i < op.in.size(); ++i)
        if (op.in[i] == operand) f(op, i);
  }

  std::optional<CollectiveKind> joined_by(const Operator& op) const {
    bool read = false, others_columns = false;
    for_each_use(op.out, [&](const Operator& user, std::size_t i) {
      read = true;
      if (wanted_axis(graph_, user, kinds_[user.id.value], i, plan_.chips) !=
          result_axis(graph_, op, kinds_[op.id.value]))
        others_columns = true;
    });
    if (kinds_[op.id.value] == ShardKind::none) return std::nullopt;
    if (kinds_[op.id.value] == ShardKind::column)
      return others_columns ? std::optional(CollectiveKind::all_gather) : std::nullopt;
    // A result that is read again is wanted on every chip, whatever the plan says of results that are only stored.
    return !read && plan_.collective == CollectiveKind::reduce ? CollectiveKind::reduce : CollectiveKind::all_reduce;
  }

  OperandCut operand_cut(const Operand& operand, const Cuts& cuts) const {
    if (const auto writer = writer_of(graph_, operand.id)) {
      const OperatorCut& op = cuts.operators[writer->value];
      if (op.joined_by) return {std::nullopt, op.joined_by == CollectiveKind::reduce};
      return {result_axis(graph_, graph_.operators[writer->value], op.kind), false};
    }
    std::optional<OperandCut> agreed;
    bool disagree = false;
    for_each_use(operand.id, [&](const Operator& user, std::size_t i) {
      const OperandCut wanted{wanted_axis(graph_, user, kinds_[user.id.value], i, plan_.chips), false};
      if (!agreed) agreed = wanted;
      disagree = disagree || *agreed != wanted;
    });
    return disagree || !agreed ? OperandCut{} : *agreed;
  }

  const OperatorGraph& graph_;
  const ShardPlan& plan_;
  std::uint32_t tile_, most_chips_;
  const std::string& where_;
  std::vector<ShardKind> kinds_;
  Diagnostics out_;
};

}  // namespace

Result<Cuts> cut(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile, std::uint32_t most_chips,
                 const std::string& where) {
  return Cutter(graph, plan, tile, most_chips, where).cut();
}

std::int64_t slice_offset(std::int64_t extent, std::uint32_t chips, ChipId chip) {
  return extent / std::int64_t{chips} * mutated("slice.every_chip_has_the_first", std::int64_t{chip.value}, 0);
}

Tensor slice_of(const Tensor& whole, const OperandCut& cut, std::uint32_t chips, ChipId chip, std::uint32_t tile) {
  Tensor t = whole;
  t.chip = chip;
  t.replicas = cut.axis || cut.on_first_only ? 1 : mutated("slice.replica_too_few", chips, chips - 1);
  if (cut.axis) {
    t.shape[*cut.axis] = whole.shape[*cut.axis] / std::int64_t{chips};
    t.offset[*cut.axis] = whole.offset[*cut.axis] + slice_offset(whole.shape[*cut.axis], chips, chip) +
                          mutated<std::int64_t>("slice.tensor_off_by_one", 0, chip.value == 1);
    t.tiles = tile_grid(t.shape, tile);
  }
  return t;
}

Work slice_of(const Work& whole, const OperatorCut& cut, std::uint32_t chips, ChipId chip) {
  Work w = whole;
  w.chip = chip;
  w.plan.reset();
  if (cut.kind == ShardKind::none) return w;
  std::int64_t& extent = cut.kind == ShardKind::row ? w.k : w.n;
  std::int64_t& offset = cut.kind == ShardKind::row ? w.offset_k : w.offset_n;
  offset += slice_offset(extent, chips, chip);
  extent = extent / std::int64_t{chips} - mutated<std::int64_t>("slice.work_off_by_one", 0, 1);
  return w;
}

}  // namespace rdusim
