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

// A matmul whose result nobody reads again, as the logits of a vocabulary, and whose weight nobody else reads: its columns
// may be cut within a tile. Each chip then holds just its own columns, the last tile of them ragged, and takes the time
// of whole tiles: that is the padding, and it is masked as every ragged edge is.
bool is_vocabulary(const OperatorGraph& graph, const Operator& op) {
  if (op.kind != OperatorKind::matmul || op.in.size() != 2 || op.in[0] == op.in[1]) return false;
  return std::none_of(graph.operators.begin(), graph.operators.end(), [&](const Operator& other) {
    return std::any_of(other.in.begin(), other.in.end(),
                       [&](OperandId in) { return in == op.out || (in == op.in[1] && other.id != op.id); });
  });
}

// Whether the operator's extent can be cut into so many parts that way. Where the plan names one axis for all, only into
// whole tiles.
bool can_cut(const OperatorGraph& graph, const Operator& op, ShardKind kind, std::uint32_t parts, const ShardPlan& plan,
             std::uint32_t tile) {
  const std::int64_t extent = split_extent(graph, op, kind);
  return whole_tiles(extent, parts, tile) || (plan.kind == ShardKind::tensor && kind == ShardKind::column &&
                                              divides(extent, parts) && is_vocabulary(graph, op));
}

// In how many parts `heads` are dealt to chips; nothing where they cannot be.
std::optional<std::uint32_t> parts_of_heads(std::uint32_t heads, std::uint32_t chips) {
  if (heads % chips == 0) return chips;
  return heads != 0 && chips % heads == 0 ? std::optional(heads) : std::nullopt;
}

// Whether the heads of an attention can be dealt: as many on every chip, and those of keys with the heads that share
// them.
bool heads_divide(const Operator& op, std::uint32_t chips) {
  return op.attributes.heads % chips == 0 && parts_of_heads(op.attributes.kv_heads, chips);
}

bool follows_columns(OperatorKind kind) {
  return is_point_wise(kind) || kind == OperatorKind::attention || kind == OperatorKind::rotary ||
         kind == OperatorKind::append;
}

// By operand: in how many parts its columns are cut, where they are: the chips, or the heads of keys and values that a
// reader, near or far, deals out. What is cut so for one reader and otherwise for another is cut for the first.
std::vector<std::uint32_t> parts_of(const OperatorGraph& graph, std::uint32_t chips) {
  std::vector<std::uint32_t> parts(graph.operands.size(), 0);
  const auto want = [&](OperandId o, std::uint32_t n) {
    if (parts[o.value] == 0) parts[o.value] = n;
  };
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    want(op->out, chips);
    if (op->kind == OperatorKind::attention) {
      want(op->in[0], chips);
      for (std::size_t in = 1; in < op->in.size(); ++in)
        want(op->in[in], parts_of_heads(op->attributes.kv_heads, chips).value_or(chips));
    } else if (op->kind == OperatorKind::rotary) {
      want(op->in[0], parts[op->out.value]);
    } else if (op->kind != OperatorKind::matmul && follows_columns(op->kind)) {
      for (const OperandId in : op->in) want(in, parts[op->out.value]);
    } else if (op->kind == OperatorKind::matmul) {
      // The weight's columns are the result's.
      want(op->in[1], parts[op->out.value]);
    }
  }
  for (std::uint32_t& n : parts)
    if (n == 0) n = chips;
  return parts;
}

// The axis along which an operator that is cut that way wants operand `in`.
std::optional<std::uint32_t> wanted_axis(const OperatorGraph& graph, const Operator& op, ShardKind kind, std::size_t in,
                                         std::uint32_t chips) {
  if (kind == ShardKind::none) return std::nullopt;
  const auto last = static_cast<std::uint32_t>(graph.operand(op.in[in]).shape.size() - 1);
  if (op.kind == OperatorKind::attention)
    return in == 0 || parts_of_heads(op.attributes.kv_heads, chips) ? std::optional(last) : std::nullopt;
  if (op.kind == OperatorKind::rotary) return in == 0 ? std::optional(last) : std::nullopt;
  if (op.kind == OperatorKind::append) return last;
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

// By operand: whether a matmul reads it as its left one, as it is or by way of operators that follow its columns.
std::vector<bool> lead_to_matmul(const OperatorGraph& graph) {
  std::vector<bool> lead(graph.operands.size(), false);
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    if (op->kind == OperatorKind::matmul) lead[op->in[0].value] = true;
    if (!follows_columns(op->kind) || !lead[op->out.value]) continue;
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
std::vector<ShardKind> choose_kinds(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile,
                                    const std::vector<std::uint32_t>& parts) {
  const bool in_pairs = plan.kind == ShardKind::none || plan.kind == ShardKind::tensor;
  std::vector<ShardKind> kinds(graph.operators.size(), plan.kind);
  const auto fits = [&](const Operator& op, ShardKind kind) {
    return can_cut(graph, op, kind, kind == ShardKind::column ? parts[op.out.value] : plan.chips, plan, tile);
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
      if (op.kind == OperatorKind::rotary && is_column(op.in[0]) &&
          parts_of_heads(op.attributes.heads, plan.chips) == parts[op.out.value])
        kind = ShardKind::column;
      if (op.kind == OperatorKind::append && is_column(op.in[1])) kind = ShardKind::column;
      continue;
    }
    if (!in_pairs) continue;
    const bool after_column = is_column(op.in[0]);
    const bool before_row = leads[op.out.value];
    if (after_column && fits(op, ShardKind::row))
      kind = ShardKind::row;
    else if ((before_row || is_vocabulary(graph, op)) && fits(op, ShardKind::column))
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
        parts_(parts_of(graph, plan.chips)),
        kinds_(choose_kinds(graph, plan, tile, parts_)) {}

  Result<Cuts> cut() {
    for (const Operator& op : graph_.operators) check_extent(op);
    if (out_.has_errors()) return out_;
    Cuts cuts;
    cuts.chips = plan_.chips;
    for (const Operator& op : graph_.operators)
      cuts.operators.push_back({kinds_[op.id.value], joined_by(op), parts_cut(op)});
    for (const Operator& op : graph_.operators)
      if (cuts.operators[op.id.value].joined_by == CollectiveKind::all_gather && parts_cut(op) != plan_.chips)
        out_.error(
            Code::RDU4116, op.where.empty() ? where_ : op.where,
            "'{}' leaves {} parts of its result on {} chips, and a reader wants all of it, which is not gathered yet",
            op.name, parts_cut(op), plan_.chips);
    if (out_.has_errors()) return out_;
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
    if (can_cut(graph_, op, kind, parts_cut(op), plan_, tile_)) return;
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

  // In how many parts an operator is cut; 0 where it is not.
  std::uint32_t parts_cut(const Operator& op) const {
    const ShardKind kind = kinds_[op.id.value];
    return kind == ShardKind::none ? 0 : kind == ShardKind::row ? plan_.chips : parts_[op.out.value];
  }
  // What a reader wants of its operand `in`.
  OperandCut wanted(const Operator& user, std::size_t in) const {
    const ShardKind kind = kinds_[user.id.value];
    const auto axis = wanted_axis(graph_, user, kind, in, plan_.chips);
    if (!axis) return {};
    std::uint32_t parts = parts_cut(user);
    if (user.kind == OperatorKind::attention && in > 0) {
      parts = *parts_of_heads(user.attributes.kv_heads, plan_.chips);
      if (parts != parts_[user.in[in].value]) return {};  // cut for another reader: this one reads its heads of all
    }
    return {axis, false, parts};
  }
  OperandCut result(const Operator& op) const {
    const auto axis = result_axis(graph_, op, kinds_[op.id.value]);
    return axis ? OperandCut{axis, false, parts_cut(op)} : OperandCut{};
  }

  std::optional<CollectiveKind> joined_by(const Operator& op) const {
    bool read = false, others_columns = false;
    for_each_use(op.out, [&](const Operator& user, std::size_t i) {
      read = true;
      if (wanted(user, i) != result(op)) others_columns = true;
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
      if (op.joined_by) return {std::nullopt, op.joined_by == CollectiveKind::reduce, 0};
      return result(graph_.operators[writer->value]);
    }
    std::optional<OperandCut> agreed;
    bool disagree = false;
    for_each_use(operand.id, [&](const Operator& user, std::size_t i) {
      const OperandCut here = wanted(user, i);
      if (!agreed) agreed = here;
      disagree = disagree || *agreed != here;
    });
    return disagree || !agreed ? OperandCut{} : *agreed;
  }

  const OperatorGraph& graph_;
  const ShardPlan& plan_;
  std::uint32_t tile_, most_chips_;
  const std::string& where_;
  std::vector<std::uint32_t> parts_;  // by operand
  std::vector<ShardKind> kinds_;
  Diagnostics out_;
};

}  // namespace

Result<Cuts> cut(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile, std::uint32_t most_chips,
                 const std::string& where) {
  return Cutter(graph, plan, tile, most_chips, where).cut();
}

std::int64_t slice_offset(std::int64_t extent, std::uint32_t parts, std::uint32_t chips, ChipId chip) {
  const auto part = static_cast<std::int64_t>(std::uint64_t{chip.value} * parts / chips);
  return extent / std::int64_t{parts} * mutated("slice.every_chip_has_the_first", part, 0);
}

Tensor slice_of(const Tensor& whole, const OperandCut& cut, std::uint32_t chips, ChipId chip, std::uint32_t tile) {
  Tensor t = whole;
  t.chip = chip;
  t.replicas = cut.on_first_only ? 1
               : cut.axis        ? chips / cut.parts
                                 : mutated("slice.replica_too_few", chips, chips - 1);
  if (cut.axis) {
    t.shape[*cut.axis] = whole.shape[*cut.axis] / std::int64_t{cut.parts};
    t.offset[*cut.axis] = whole.offset[*cut.axis] + slice_offset(whole.shape[*cut.axis], cut.parts, chips, chip) +
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
  offset += slice_offset(extent, cut.parts, chips, chip);
  extent = extent / std::int64_t{cut.parts} - mutated<std::int64_t>("slice.work_off_by_one", 0, 1);
  return w;
}

}  // namespace rdusim
