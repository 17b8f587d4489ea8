// Sums as a static run sees them: which partial sums were added, in which order, over which part of which output block.
// The same question that provenance asks of a run, asked of the program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/program.h"

namespace rdusim {

using SumId = std::uint32_t;

// What one addend of a sum is.
struct SumLeaf {
  enum class Kind : std::uint8_t {
    partial,  // products of contraction indices [k_begin, k_end) of `op`, on `chip`
    addend,   // anything else that is added: pages of a tensor, a constant; `chip` and the range mean nothing
  };
  Kind kind = Kind::partial;
  OperatorId op;
  ChipId chip;
  std::int64_t k_begin = 0;
  std::int64_t k_end = 0;
  std::string addend;  // what is added, in words
  friend auto operator<=>(const SumLeaf&, const SumLeaf&) = default;
};

// Every different sum once: two sums have one id just if they add the same leaves in the same order.
class SumTable {
 public:
  SumId leaf(const SumLeaf& leaf);
  SumId add(SumId left, SumId right);

  // The leaves, in the order in which they are added.
  std::vector<SumLeaf> leaves(SumId sum) const;

  // "(c0[0,256) + c1[256,512))", cut short after some eighty characters.
  std::string text(SumId sum) const;

  // The sum that a summation tree asks for. Requires a tree whose nodes refer to earlier nodes.
  SumId of_tree(const SummationTree& tree);

 private:
  struct Node {
    bool is_leaf = true;
    SumLeaf leaf;
    SumId left = 0;
    SumId right = 0;
  };
  std::vector<Node> nodes_;
  std::map<SumLeaf, SumId> leaf_ids_;
  std::map<std::pair<SumId, SumId>, SumId> add_ids_;
};

// A range of the contraction that a sum holds not at all, or more than once.
struct SumGap {
  std::int64_t k_begin = 0;
  std::int64_t k_end = 0;
  std::uint32_t times = 0;    // 0: missing; else how often it was added
  std::vector<ChipId> chips;  // times > 1: by whom
};

// Where `leaves` of operator `op` do not cover [0, k) exactly once, rising.
std::vector<SumGap> gaps(const std::vector<SumLeaf>& leaves, OperatorId op, std::int64_t k);

// A rectangle of elements of a whole operand: a page's place. At least two axes; a vector is one row.
using ElementBox = std::vector<AxisRange>;

// Elements of a box; it was cut from a tensor whose element count fits.
std::uint64_t elements(const ElementBox& box);

}  // namespace rdusim
