#include "compiler/passes/slice.h"

#include <algorithm>
#include <string>

#include "compiler/passes/extents.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/recipe.h"
#include "compiler/workload/fill_reader.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

std::int64_t split_extent(const OperatorGraph& graph, const Operator& op, CutKind kind) {
  const Work whole = whole_work_of(graph, op);
  return kind == CutKind::row ? whole.k : kind == CutKind::rows ? whole.m : whole.n;
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

// In how many parts `heads` are dealt to chips where all have as many; nothing where they cannot be.
std::optional<std::uint32_t> parts_of_heads(std::uint32_t heads, std::uint32_t chips) {
  if (heads % chips == 0) return chips;
  return heads != 0 && chips % heads == 0 ? std::optional(heads) : std::nullopt;
}

constexpr std::size_t its_result = ~std::size_t{0};

// How the columns of an attention's operand `in`, or of its result, are dealt by heads: those of keys with the heads that
// share them. Nothing where heads cannot be dealt.
std::optional<Share> share_of_heads(const OperatorGraph& graph, const Operator& op, std::size_t in,
                                    const ShardPlan& plan) {
  const std::uint32_t heads = op.attributes.heads, kv_heads = op.attributes.kv_heads;
  const bool of_keys = is_of_keys(in, op.in.size());
  const auto parts = parts_of_heads(heads, plan.chips), of_kv = parts_of_heads(kv_heads, plan.chips);
  if (parts && of_kv) return Share{of_keys ? *of_kv : *parts, 0};
  if (!plan.uneven || kv_heads < plan.chips) return std::nullopt;
  return Share{plan.chips, graph.operand(in == its_result ? op.out : op.in[in]).shape.back() / kv_heads};
}

// How an extent is cut that no attention deals.
Share plain_share(std::int64_t extent, const ShardPlan& plan, std::uint32_t tile) {
  if (whole_tiles(extent, plan.chips, tile)) return {plan.chips, 0};
  return {plan.chips, plan.uneven ? std::int64_t{tile} : plan.pad ? 1 : 0};
}

// Whether every part of an extent is some whole tiles, or as much as the plan grants.
bool can_cut(std::int64_t extent, const Share& share, std::uint32_t tile) {
  if (share.unit == 0) return whole_tiles(extent, share.parts, tile);
  return ceil_div(static_cast<std::uint64_t>(extent), static_cast<std::uint64_t>(share.unit)) >= share.parts &&
         (share.unit == 1 || share.unit % std::int64_t{tile} == 0);
}

bool follows_columns(OperatorKind kind) {
  return is_point_wise(kind) || kind == OperatorKind::attention || kind == OperatorKind::rotary ||
         kind == OperatorKind::append;
}

// By operand: how its columns are cut, where they are: as every extent of that length, or as a reader, near or far, deals
// out heads. What is cut so for one reader and otherwise for another is cut for the first.
std::vector<Share> shares_of(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile) {
  std::vector<Share> shares(graph.operands.size());
  const auto want = [&](OperandId o, const Share& share) {
    if (shares[o.value].parts == 0) shares[o.value] = share;
  };
  const auto plain = [&](OperandId o) { return plain_share(graph.operand(o).shape.back(), plan, tile); };
  // Of a vocabulary that does not divide, every chip has its own columns, and pads them.
  for (const Operator& op : graph.operators)
    if (plan.kind == ShardKind::tensor && is_vocabulary(graph, op) && plain(op.out).unit == 0) {
      const std::int64_t columns = graph.operand(op.out).shape.back();
      want(op.out, {plan.chips, whole_tiles(columns, plan.chips, tile) ? 0 : 1});
    }
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    if (op->kind == OperatorKind::attention) {
      want(op->out, share_of_heads(graph, *op, its_result, plan).value_or(plain(op->out)));
      for (std::size_t in = 0; in < op->in.size(); ++in)
        if (in != sinks_at(op->in.size()))
          want(op->in[in], share_of_heads(graph, *op, in, plan).value_or(plain(op->in[in])));
      continue;
    }
    want(op->out, plain(op->out));
    if (op->kind == OperatorKind::rotary) {
      want(op->in[0], shares[op->out.value]);
    } else if (op->kind == OperatorKind::matmul) {
      // The weight's columns are the result's.
      want(op->in[1], shares[op->out.value]);
    } else if (follows_columns(op->kind)) {
      for (const OperandId in : op->in) want(in, shares[op->out.value]);
    }
  }
  for (const Operand& o : graph.operands)
    if (!o.shape.empty()) want(o.id, plain(o.id));
  return shares;
}

// The axis along which an operator that is cut that way wants operand `in`.
std::optional<std::uint32_t> wanted_axis(const OperatorGraph& graph, const Operator& op, CutKind kind, std::size_t in) {
  if (kind == CutKind::none || kind == CutKind::one) return std::nullopt;
  if (kind == CutKind::rows) {
    const bool by_rows = op.kind == OperatorKind::gather ? in == 1 : spans_rows(graph, op, in);
    return by_rows ? std::optional(0u) : std::nullopt;
  }
  const auto last = static_cast<std::uint32_t>(graph.operand(op.in[in]).shape.size() - 1);
  if (op.kind == OperatorKind::attention) return in == sinks_at(op.in.size()) ? std::nullopt : std::optional(last);
  if (op.kind == OperatorKind::rotary) return in == 0 ? std::optional(last) : std::nullopt;
  if (op.kind == OperatorKind::append) return last;
  if (op.kind != OperatorKind::matmul) {
    if (!spans_columns(graph, op, in)) return std::nullopt;
    return last;
  }
  const std::uint32_t contraction = op.attributes.transposed ? 1 : 0;  // of in1
  if (kind == CutKind::row) return in == 0 ? last : mutated("slice.wrong_axis", contraction, 1 - contraction);
  return in == 0 ? std::nullopt : std::optional(1 - contraction);
}
// The axis along which it has its result cut.
std::optional<std::uint32_t> result_axis(const OperatorGraph& graph, const Operator& op, CutKind kind) {
  const auto rank = static_cast<std::uint32_t>(graph.operand(op.out).shape.size());
  if (kind == CutKind::rows || (kind != CutKind::none && op.attributes.scattered)) return rank < 2 ? 0 : rank - 2;
  if (kind != CutKind::column) return std::nullopt;
  return rank - 1;
}

// By operand: whether a matmul reads it as its left one, as it is or by way of operators that follow its columns. An
// attention does where its heads can be dealt.
std::vector<bool> lead_to_matmul(const OperatorGraph& graph, const ShardPlan& plan) {
  std::vector<bool> lead(graph.operands.size(), false);
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    if (!op->attributes.alone.empty()) continue;  // it takes all of what it reads
    if (op->kind == OperatorKind::matmul) lead[op->in[0].value] = true;
    if (!follows_columns(op->kind) || !lead[op->out.value]) continue;
    if (op->kind == OperatorKind::attention && !share_of_heads(graph, *op, 0, plan)) continue;
    for (const OperandId in : op->in) lead[in.value] = true;
  }
  return lead;
}

std::optional<OperatorId> writer_of(const OperatorGraph& graph, OperandId operand) {
  for (const Operator& op : graph.operators)
    if (op.out == operand) return op.id;
  return std::nullopt;
}

// How an operator is cut that way.
Share share_cut(const Operator& op, CutKind kind, const ShardPlan& plan, const std::vector<Share>& shares) {
  if (kind == CutKind::none || kind == CutKind::one) return {};
  if (kind == CutKind::column) return shares[op.out.value];
  if (kind == CutKind::rows) return {plan.chips, 0};
  const Share& of_columns = shares[op.in[0].value];
  return of_columns.parts == plan.chips ? of_columns : Share{plan.chips, 0};
}

// Whether a rotary embedding's columns are cut between heads.
bool whole_heads(const OperatorGraph& graph, const Operator& op, const Share& share, const ShardPlan& plan) {
  if (share.unit == 0) return parts_of_heads(op.attributes.heads, plan.chips) == share.parts;
  return share.unit % (graph.operand(op.out).shape.back() / std::int64_t{op.attributes.heads}) == 0;
}

// Which way each operator is cut.
std::vector<CutKind> choose_kinds(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile,
                                  const std::vector<Share>& shares) {
  const bool in_pairs = plan.kind == ShardKind::none || plan.kind == ShardKind::tensor;
  std::vector<CutKind> kinds(graph.operators.size(), plan.kind == ShardKind::column ? CutKind::column : CutKind::row);
  const auto fits = [&](const Operator& op, CutKind kind) {
    return can_cut(split_extent(graph, op, kind), share_cut(op, kind, plan, shares), tile);
  };
  const std::vector<bool> leads = lead_to_matmul(graph, plan);
  const auto is_column = [&](OperandId in) {
    const std::optional<OperatorId> writer = writer_of(graph, in);
    return writer && kinds[writer->value] == CutKind::column && !graph.operators[writer->value].attributes.scattered;
  };
  const auto has_own_rows = [&](OperandId in) {
    const std::optional<OperatorId> writer = writer_of(graph, in);
    if (!writer) return false;
    const CutKind kind = kinds[writer->value];
    return kind == CutKind::rows || (kind != CutKind::none && graph.operators[writer->value].attributes.scattered);
  };
  for (const Operator& op : graph.operators) {
    CutKind& kind = kinds[op.id.value];
    if (!op.attributes.alone.empty()) {
      kind = CutKind::one;
      continue;
    }
    if (op.kind != OperatorKind::matmul) {
      kind = CutKind::none;
      for (std::size_t in = 0; in < op.in.size() && is_point_wise(op.kind); ++in)
        if (is_column(op.in[in]) && spans_columns(graph, op, in)) kind = CutKind::column;
      if (op.kind == OperatorKind::attention && share_of_heads(graph, op, 0, plan) &&
          (is_column(op.in[0]) || !writer_of(graph, op.in[0])))
        kind = CutKind::column;
      if (op.kind == OperatorKind::rotary && is_column(op.in[0]) && whole_heads(graph, op, shares[op.out.value], plan))
        kind = CutKind::column;
      // A cache lies on the chips as its readers have it: what is appended to it is not gathered.
      if (op.kind == OperatorKind::append && is_column(op.in[1]) && leads[op.out.value]) kind = CutKind::column;
      const bool row_by_row = is_point_wise(op.kind) || is_row_wise(op.kind);
      for (std::size_t in = 0; in < op.in.size() && row_by_row && kind == CutKind::none; ++in)
        if (has_own_rows(op.in[in]) && spans_rows(graph, op, in)) kind = CutKind::rows;
      if (op.kind == OperatorKind::gather && op.attributes.scattered) kind = CutKind::rows;
      continue;
    }
    if (!in_pairs) continue;
    if (!is_by_one_matrix(graph, op)) {
      kind = CutKind::none;
      continue;
    }
    const bool after_column = is_column(op.in[0]);
    const bool before_row = leads[op.out.value];
    if (after_column && fits(op, CutKind::row))
      kind = CutKind::row;
    else if ((before_row || is_vocabulary(graph, op)) && fits(op, CutKind::column))
      kind = CutKind::column;
    else
      kind = !fits(op, CutKind::row) && fits(op, CutKind::column) ? CutKind::column : CutKind::row;
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
        shares_(shares_of(graph, plan, tile)),
        kinds_(choose_kinds(graph, plan, tile, shares_)) {}

  Result<Cuts> cut() {
    for (const Operator& op : graph_.operators) check_extent(op);
    if (out_.has_errors()) return out_;
    Cuts cuts;
    cuts.chips = plan_.chips;
    for (const Operator& op : graph_.operators)
      cuts.operators.push_back(
          {kinds_[op.id.value], joined_by(op), share_of(op), home_of(op).value_or(ChipId(0)), given(op)});
    for (const Operator& op : graph_.operators) check_scattered(op);
    for (const Operator& op : graph_.operators)
      if (cuts.operators[op.id.value].joined_by == CollectiveKind::all_gather && share_of(op) != Share{plan_.chips, 0})
        out_.error(Code::RDU4116, op.where.empty() ? where_ : op.where,
                   "'{}' leaves {} {}parts of its result on {} chips, and a reader wants all of it, which is not "
                   "gathered yet",
                   op.name, share_of(op).parts, share_of(op).unit == 0 ? "" : "unequal ", plan_.chips);
    if (out_.has_errors()) return out_;
    for (const Operand& o : graph_.operands) cuts.operands.push_back(operand_cut(o, cuts));
    for (const Operator& op : graph_.operators) check_parts_of_wholes(op, cuts);
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
    const CutKind kind = kinds_[op.id.value];
    if (kind == CutKind::none || kind == CutKind::one) return;
    const std::int64_t extent = split_extent(graph_, op, kind), chips = plan_.chips, tile = tile_;
    if (can_cut(extent, share_of(op), tile_)) return;
    const std::string_view axis = kind == CutKind::row    ? "contraction"
                                  : kind == CutKind::rows ? "output row"
                                                          : "output column";
    const std::string& where = op.where.empty() ? where_ : op.where;
    Diagnostic* d = nullptr;
    if (!divides(extent, plan_.chips))
      d = &out_.error(Code::RDU4102, where, "the {} axis of '{}' is {} long; {} chips do not divide it", axis, op.name,
                      extent, chips);
    else
      d = &out_.error(Code::RDU4103, where,
                      "the {} axis of '{}' is {} long; a slice for each of {} chips is {}, not whole tiles of {}", axis,
                      op.name, extent, chips, extent / chips, tile);
    if (kind == CutKind::rows) {
      d->suggest("{} it into whole tiles of {}; neither --uneven nor --pad deals out rows",
                 chips_that_divide(extent, tile_, most_chips_), tile_);
      return;
    }
    suggest(*d, op, extent);
    const CutKind other = kind == CutKind::row ? CutKind::column : CutKind::row;
    if (op.kind == OperatorKind::matmul && whole_tiles(split_extent(graph_, op, other), plan_.chips, tile_))
      d->suggest("--shard {} splits its {} axis, {} long, into whole tiles", other == CutKind::row ? "row" : "column",
                 other == CutKind::row ? "contraction" : "output column", split_extent(graph_, op, other));
  }

  // The rows of a scattered result are dealt as they are: nothing is computed of them, so that a part need not be whole
  // tiles.
  void check_scattered(const Operator& op) {
    if (!op.attributes.scattered) return;
    const std::string& where = op.where.empty() ? where_ : op.where;
    const Operand& result = graph_.operand(op.out);
    const Operator* reader = nullptr;  // that wants more than the chip's own rows
    for_each_use(op.out, [&](const Operator& user, std::size_t i) {
      if (reader == nullptr && !has_part(this->result(op), wanted(user, i))) reader = &user;
    });
    if (kinds_[op.id.value] == CutKind::column && share_of(op) != Share{plan_.chips, 0}) {
      out_.error(Code::RDU4116, where,
                 "'{}' leaves {} {}parts of its result on {} chips, which are not exchanged for rows yet", op.name,
                 share_of(op).parts, share_of(op).unit == 0 ? "" : "unequal ", plan_.chips);
    } else if (result.shape.size() < 2 || (kinds_[op.id.value] == CutKind::rows && result.shape.size() != 2)) {
      out_.error(Code::RDU4116, where, "'{}' has {} axes, and the rows of matrices alone are scattered yet",
                 result.name, result.shape.size());
    } else if (reader != nullptr) {
      out_.error(Code::RDU4116, where,
                 "'{}' is scattered over {} chips, and '{}' reads all of it, which is not gathered yet", result.name,
                 plan_.chips, reader->name)
          .suggest(
              "an operator that works row by row between the two has its result gathered; or leave out 'scattered'");
    } else if (kinds_[op.id.value] == CutKind::rows) {
      return;  // whole tiles: check_extent()
    } else if (const std::int64_t rows = result.shape[result.shape.size() - 2]; !divides(rows, plan_.chips)) {
      std::string good;
      for (std::uint32_t n = 1; n <= most_chips_; ++n)
        if (divides(rows, n)) good += (good.empty() ? "" : ", ") + std::to_string(n);
      out_.error(Code::RDU4102, where,
                 "the rows of '{}' are to be scattered; it has {}, and {} chips do not divide them", result.name, rows,
                 plan_.chips)
          .suggest("these numbers of chips divide them: {}; neither --uneven nor --pad deals out rows", good);
    }
  }

  // What would work: other numbers of chips, unequal slices, padding.
  void suggest(Diagnostic& d, const Operator& op, std::int64_t extent) const {
    const std::string good =
        fmt::format("{} it into whole tiles of {}", chips_that_divide(extent, tile_, most_chips_), tile_);
    const auto tiles = ceil_div(static_cast<std::uint64_t>(extent), std::uint64_t{tile_});
    if (tiles < plan_.chips) {
      d.suggest("{}; it has {}, fewer than chips", good, tiles == 1 ? "one" : std::to_string(tiles));
    } else if (plan_.uneven || plan_.pad) {
      d.suggest("{}; '{}' is cut in units of {}, by what reads or makes its columns", good, op.name, share_of(op).unit);
    } else {
      const std::int64_t step = std::int64_t{plan_.chips} * tile_;
      const std::int64_t padded = (extent + step - 1) / step * step;
      const std::string each = tiles % plan_.chips == 0
                                   ? std::to_string(tiles / plan_.chips)
                                   : fmt::format("{} or {}", tiles / plan_.chips, tiles / plan_.chips + 1);
      d.suggest("{}; --uneven gives each chip {}; --pad makes it {} long, {} longer", good, each, padded,
                padding_percent(extent, padded));
    }
  }

  // What is read in part, of a tensor that the chip holds whole, begins at a tile.
  void check_parts_of_wholes(const Operator& op, const Cuts& cuts) {
    for (std::size_t in = 0; in < op.in.size(); ++in) {
      const OperandCut part = wanted(op, in);
      if (!part.axis || cuts.operands[op.in[in].value].axis) continue;
      const Operand& operand = graph_.operand(op.in[in]);
      if (part.share.unit == 0 ? whole_tiles(operand.shape[*part.axis], part.share.parts, tile_)
                               : part.share.unit % std::int64_t{tile_} == 0)
        continue;
      out_.error(Code::RDU4116, op.where.empty() ? where_ : op.where,
                 "'{}' reads a part of '{}', which every chip holds whole; of {} on {} chips, parts do not begin at "
                 "whole tiles of {}",
                 op.name, operand.name, operand.shape[*part.axis], plan_.chips, tile_)
          .suggest("--uneven cuts between tiles");
    }
  }

  // Calls f(operator, 0 or 1) for every use of the operand.
  template <class F>
  void for_each_use(OperandId operand, F&& f) const {
    for (const Operator& op : graph_.operators)
      for (std::size_t i = 0; i < op.in.size(); ++i)
        if (op.in[i] == operand) f(op, i);
  }

  // Whether what a reader wants lies in what a chip has: the same part, or a part of it where several chips have each.
  static bool has_part(const OperandCut& has, const OperandCut& wants) {
    const bool equal_parts = has.axis && has.axis == wants.axis && has.share.unit == 0 && wants.share.unit == 0;
    return has == wants || (equal_parts && wants.share.parts % has.share.parts == 0);
  }
  Share share_of(const Operator& op) const { return share_cut(op, kinds_[op.id.value], plan_, shares_); }
  // What a reader wants of its operand `in`.
  OperandCut wanted(const Operator& user, std::size_t in) const {
    const CutKind kind = kinds_[user.id.value];
    const auto axis = wanted_axis(graph_, user, kind, in);
    if (!axis) return {{}, only_home_of(user), {}};
    Share share = share_of(user);
    if (user.kind == OperatorKind::attention && in > 0) {
      share = *share_of_heads(graph_, user, in, plan_);
      if (share != shares_[user.in[in].value]) return {};  // cut for another reader: this one reads its heads of all
    }
    return {axis, {}, share};
  }
  // Who carries it out alone, where one chip does.
  std::optional<ChipId> home_of(const Operator& op) const {
    return kinds_[op.id.value] == CutKind::one ? rdusim::home_of(op.attributes.alone, plan_.chips) : std::nullopt;
  }
  std::vector<ChipId> only_home_of(const Operator& op) const {
    const auto home = home_of(op);
    return home ? std::vector{*home} : std::vector<ChipId>();
  }
  // Of what one chip alone carries out and others read: it and they, rising; nothing where those are all.
  std::vector<ChipId> given(const Operator& op) const {
    if (joined_by(op) != CollectiveKind::broadcast) return {};
    std::vector<ChipId> chips = {*home_of(op)};
    bool read = false, by_all = false;
    for_each_use(op.out, [&](const Operator& user, std::size_t) {
      read = true;
      if (const auto reader = home_of(user))
        chips.push_back(*reader);
      else
        by_all = true;
    });
    if (!read || by_all) return {};
    std::sort(chips.begin(), chips.end());
    chips.erase(std::unique(chips.begin(), chips.end()), chips.end());
    return chips.size() == plan_.chips ? std::vector<ChipId>() : chips;
  }
  OperandCut result(const Operator& op) const {
    const auto axis = result_axis(graph_, op, kinds_[op.id.value]);
    if (!axis) return {{}, only_home_of(op), {}};
    const bool columns = kinds_[op.id.value] == CutKind::column && !op.attributes.scattered;
    return {axis, {}, columns ? share_of(op) : Share{plan_.chips, 0}};
  }

  std::optional<CollectiveKind> joined_by(const Operator& op) const {
    bool read = false, others_columns = false;  // or rows, or on other chips
    for_each_use(op.out, [&](const Operator& user, std::size_t i) {
      read = true;
      if (!has_part(result(op), wanted(user, i))) others_columns = true;
    });
    if (kinds_[op.id.value] == CutKind::none) return std::nullopt;
    if (kinds_[op.id.value] == CutKind::one) {
      const bool stays = read ? !others_columns : plan_.collective == CollectiveKind::reduce;
      return stays ? std::nullopt : std::optional(CollectiveKind::broadcast);
    }
    if (kinds_[op.id.value] == CutKind::column && op.attributes.scattered) return CollectiveKind::all_to_all;
    if (kinds_[op.id.value] == CutKind::column || kinds_[op.id.value] == CutKind::rows)
      return others_columns ? std::optional(CollectiveKind::all_gather) : std::nullopt;
    if (op.attributes.scattered) return CollectiveKind::reduce_scatter;
    // A result that is read again is wanted on every chip, whatever the plan says of results that are only stored.
    return !read && plan_.collective == CollectiveKind::reduce ? CollectiveKind::reduce : CollectiveKind::all_reduce;
  }

  OperandCut operand_cut(const Operand& operand, const Cuts& cuts) const {
    if (const auto writer = writer_of(graph_, operand.id)) {
      const OperatorCut& op = cuts.operators[writer->value];
      if (op.joined_by == CollectiveKind::reduce_scatter || op.joined_by == CollectiveKind::all_to_all)
        return result(graph_.operators[writer->value]);
      if (op.joined_by == CollectiveKind::reduce) return {{}, {ChipId(0)}, {}};
      if (op.joined_by) return {{}, op.given, {}};
      return result(graph_.operators[writer->value]);
    }
    std::optional<OperandCut> agreed;
    bool disagree = false;
    for_each_use(operand.id, [&](const Operator& user, std::size_t i) {
      const OperandCut here = wanted(user, i);
      if (!agreed) agreed = here;
      disagree = disagree || *agreed != here;
    });
    if (!agreed && !operand.alone.empty()) return {{}, {*rdusim::home_of(operand.alone, plan_.chips)}, {}};
    if (!agreed && operand.role == TensorRole::weight && operand.shape.size() == 2) {
      // A weight that nobody reads, as an expert's to which no token goes, takes as little room as one that is read.
      const Share rows = plain_share(operand.shape.front(), plan_, tile_);
      if (can_cut(operand.shape.front(), rows, tile_)) return {0u, {}, rows};
    }
    return disagree || !agreed ? OperandCut{} : *agreed;
  }

  const OperatorGraph& graph_;
  const ShardPlan& plan_;
  std::uint32_t tile_, most_chips_;
  const std::string& where_;
  std::vector<Share> shares_;  // by operand
  std::vector<CutKind> kinds_;
  Diagnostics out_;
};

}  // namespace

bool is_by_one_matrix(const OperatorGraph& graph, const Operator& op) {
  return op.in.size() == 2 && graph.operand(op.in[1]).shape.size() == 2;
}

Result<Cuts> cut(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile, std::uint32_t most_chips,
                 const std::string& where) {
  return Cutter(graph, plan, tile, most_chips, where).cut();
}

Slice slice_of(std::int64_t extent, const Share& share, std::uint32_t chips, ChipId chip) {
  const std::int64_t parts = share.parts;
  const auto part = static_cast<std::int64_t>(std::uint64_t{chip.value} * share.parts / chips);
  const std::int64_t unit = share.unit == 0 ? extent / parts : share.unit;
  const std::int64_t units = share.unit == 0 ? parts : (extent + unit - 1) / unit;
  const auto begin = [&](std::int64_t p) {
    const std::int64_t more = mutated("slice.remainder_left_out", std::min(p, units % parts), std::int64_t{0});
    return std::min(extent, (units / parts * p + more) * unit);
  };
  return {mutated("slice.every_chip_has_the_first", begin(part), std::int64_t{0}), begin(part + 1) - begin(part)};
}

Tensor slice_of(const Tensor& whole, const OperandCut& cut, std::uint32_t chips, ChipId chip, std::uint32_t tile) {
  Tensor t = whole;
  t.chip = chip;
  t.replicas = !cut.only_on.empty() ? static_cast<std::uint32_t>(cut.only_on.size())
               : cut.axis           ? chips / cut.share.parts
                                    : mutated("slice.replica_too_few", chips, chips - 1);
  if (cut.axis) {
    const Slice s = slice_of(whole.shape[*cut.axis], cut.share, chips, chip);
    t.shape[*cut.axis] = s.length;
    t.offset[*cut.axis] =
        whole.offset[*cut.axis] + s.offset + mutated<std::int64_t>("slice.tensor_off_by_one", 0, chip.value == 1);
    t.tiles = tile_grid(t.shape, tile);
  }
  return t;
}

Work slice_of(const Work& whole, const OperatorCut& cut, std::uint32_t chips, ChipId chip) {
  Work w = whole;
  w.chip = chip;
  w.plan.reset();
  if (cut.kind == CutKind::none || cut.kind == CutKind::one) return w;
  std::int64_t& extent = cut.kind == CutKind::row ? w.k : cut.kind == CutKind::rows ? w.m : w.n;
  std::int64_t& offset = cut.kind == CutKind::row ? w.offset_k : cut.kind == CutKind::rows ? w.offset_m : w.offset_n;
  const Slice s = slice_of(extent, cut.share, chips, chip);
  offset += s.offset;
  extent = s.length - mutated<std::int64_t>("slice.work_off_by_one", 0, 1);
  return w;
}

}  // namespace rdusim
