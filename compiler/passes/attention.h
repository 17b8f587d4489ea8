// What the passes know of an attention: its extents, and how it is cut.
//
// The rows of queries are cut in blocks of a tile; a block of a head is worked on by sites of three groups, past which
// pages of keys and of values stream:
//
//   scores   q k^T; several sites, each with pages of keys of its own, in turn
//   further  q' k'^T where there are such, on as many sites of their own; added to the scores where those are scaled
//   weights  one site, which keeps the scores of the block until its rows' maxima and sums are known (scaled, max, sum, weights)
//   values   weights times v; several sites, each with columns of its own, to which every page of weights goes; where
//            scores have several sites, four times as many, each of a slice of the keys, whose sums are folded
//
// Where the scores of a block do not fit a site, they are worked out three times, by three such sites with sites of
// scores of their own: for the maxima, for the sums, and for the weights; columns cross from the first to the others.
//
// Rows are summed in rising key wherever their scores come from. Products with values are added in rising key, slice by
// slice where there are slices: the program's summation tree says so.
// Nothing is stored but the result.
//
// A key that a query does not look at has the score minus infinity, and so the weight zero: its value is multiplied all
// the same, which changes nothing unless it is infinite or no number. Pages that no query of a block looks at are worked
// on like others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/passes/recipe.h"

namespace rdusim {

struct AttentionExtents {
  std::vector<std::uint64_t> stack;               // leading extents
  std::int64_t queries = 0, keys = 0, width = 0;  // rows of a matrix of q and of k; columns of a head
  std::int64_t further_width = 0;                 // of further queries and keys; 0: none
  std::uint64_t heads = 1, kv_heads = 1;          // of the work: of one chip
  std::uint64_t first_head = 0;                   // in the whole

  std::uint64_t group() const { return heads / kv_heads; }  // heads that share keys and values
};

// Of the whole operator.
AttentionExtents attention_extents(const OperatorGraph& graph, const Operator& op);
// Of a chip's work, whose columns are whole heads.
AttentionExtents attention_extents(const OperatorGraph& graph, const Work& work);

// Blocks whose scores a site of weights keeps at once: two where there is room for them; 0 where there is none for one,
// and scores are worked out three times.
std::uint64_t score_blocks(const OperatorGraph& graph, const Work& work, const BlockPlan& plan, const Target& target);

// Groups of scores each time that they are worked out: those of further queries and keys are a second.
std::uint64_t score_groups(const AttentionExtents& extents);

// How often scores are worked out: once, or three times.
std::uint64_t score_passes(const OperatorGraph& graph, const Work& work, const BlockPlan& plan, const Target& target);

// How many sites a block of a head has: of scores (each time that they are worked out), and of values.
struct AttentionSites {
  std::uint64_t heads = 1;  // that are worked on at once
  std::uint64_t scores = 1, values = 1;
  std::uint64_t slices = 1;  // of keys, over whose values sums are split; `values` sites each
};
AttentionSites attention_sites(const AttentionExtents& extents, const BlockPlan& plan, const Target& target);

// A plan: block_m is a tile of queries, block_n columns of a head, page_k a page of keys; sites_m deals the stack and its
// row blocks, sites_n the heads and the columns of each, sites_k pages of keys. Nothing where a pin asks for what cannot
// be.
std::optional<BlockPlan> attention_plan(const OperatorGraph& graph, const Work& work, const SchedulePin& pin,
                                        const Target& target);

}  // namespace rdusim
