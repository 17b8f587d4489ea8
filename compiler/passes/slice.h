// Which part of every operand each chip holds, and which part of every operator it computes, under a shard plan.
//
//   row       C(m x n) = sum over chips c of A[:, kc] B[kc, :]: every chip has a full-shape partial sum,
//             which a reduction joins; one that the operator asks to be scattered leaves each chip with rows of its own
//   column    C[:, nc] = A B[:, nc]: every chip owns columns; an all-gather joins them where a reader needs others; where
//             the operator asks to be scattered, an all-to-all leaves each chip with rows of all columns
//   rows      C[mc, :] of A[mc, :]: every chip owns rows; an all-gather joins them where a reader needs others
//
// A point-wise operator that reads what a column-parallel one left on its chips works on those columns, as if it were
// part of it; so do a rotary embedding and an attention, whose heads are dealt, and an append to a cache. Where chips
// are more than heads of keys and values, those are cut in as many parts as there are heads, and several chips hold each.
// Where chips are more than heads of queries too, several work on each, and a row-parallel reader takes its part of what
// they all have. An operator that works row by row, and reads what another left scattered, works on those rows; so does
// a gather that asks for it. An operator that one chip is to carry out alone (one) is, and its result is broadcast to those
// other chips that read it; operands that only such operators of one chip read lie there alone. Every other operator that is
// no matmul is worked out by every chip whole (none), and so is a matmul by a stack of matrices.
//
// Slices are equal and whole tiles, unless the plan says otherwise:
//
//   uneven    whole tiles (heads, where an attention is dealt: those of keys with all that share them), as many on every
//             chip as can be, the first chips one more. Chips then do different work.
//   padded    as many elements on every chip as can be, the first chips one more; the last tile of each slice is ragged,
//             and takes the time of a whole one. The same tiles on every chip.
//
// The result of a vocabulary (slice.cpp) is padded so under `tensor` without being asked.
//
// A row-parallel operator that reads a column-parallel one's result needs just the columns that its own chip computed:
// the pair costs one all-reduce, after the second. Where the readers of an operand want different parts of it, every
// chip holds it whole and reads its part.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

// How an extent is cut. Into units of `unit` elements, the last of which may be less: each part has as many units as can
// be, the first parts one more. Chip c has part c parts / chips.
struct Share {
  std::uint32_t parts = 0;  // divides the chips
  std::int64_t unit = 0;    // 0: equal parts
  friend bool operator==(const Share&, const Share&) = default;
};

// One operand, over all chips.
struct OperandCut {
  std::optional<std::uint32_t> axis;  // cut along it, dealt out in order; none: whole
  // Who alone have it, rising: what is reduced to a chip, what it alone reads, what is broadcast to some. Empty: all.
  std::vector<ChipId> only_on;
  Share share;  // where there is an axis
  friend bool operator==(const OperandCut&, const OperandCut&) = default;
};

// Which part of an operator each chip works on: all of it; of a matmul, a part of the contraction (row); columns; rows; all
// of it on one chip, and nothing on the others (one).
enum class CutKind : std::uint8_t { none, row, column, rows, one };

// One operator, over all chips.
struct OperatorCut {
  CutKind kind = CutKind::row;
  // row: reduce, all_reduce or reduce_scatter; column: all_to_all; column and rows: all_gather where a reader needs it;
  // one: broadcast likewise
  std::optional<CollectiveKind> joined_by;
  Share share;  // as of an operand; of a row, its parts are the chips
  ChipId home;  // one: who carries it out
  // one, where it is broadcast: who has its result then, the home included, rising; empty: all
  std::vector<ChipId> given;
  friend bool operator==(const OperatorCut&, const OperatorCut&) = default;
};

// Whether a matmul's right operand is one matrix, of which a part can be cut out.
bool is_by_one_matrix(const OperatorGraph& graph, const Operator& op);

struct Cuts {
  std::uint32_t chips = 1;
  std::vector<OperandCut> operands;    // by operand id
  std::vector<OperatorCut> operators;  // by operator id
  friend bool operator==(const Cuts&, const Cuts&) = default;
};

// plan.kind row or column: every matmul that way. tensor, or none: pairs of column and row where one
// operator reads the other's result (point-wise operators between them do not count), else row where the contraction
// divides, else column.
// Requires operators that are matmuls whose shapes agree, attentions, rotary embeddings, moves, or that have a recipe;
// plan.chips >= 2.
// Refuses, all faults found: RDU4102, RDU4103, RDU4105, RDU4116. `where` names what has no place of its own;
// `most_chips` is the target's.
Result<Cuts> cut(const OperatorGraph& graph, const ShardPlan& plan, std::uint32_t tile, std::uint32_t most_chips,
                 const std::string& where);

// Where a chip's slice of an extent begins and how long it is.
struct Slice {
  std::int64_t offset = 0, length = 0;
};
Slice slice_of(std::int64_t extent, const Share& share, std::uint32_t chips, ChipId chip);

// Chip `chip`'s slice of `whole`, a tensor that one chip holds whole: shape, tiles, offset, chip, replicas.
Tensor slice_of(const Tensor& whole, const OperandCut& cut, std::uint32_t chips, ChipId chip, std::uint32_t tile);

// Chip `chip`'s share of `whole`, the work of one chip; without its block plan.
Work slice_of(const Work& whole, const OperatorCut& cut, std::uint32_t chips, ChipId chip);

}  // namespace rdusim
