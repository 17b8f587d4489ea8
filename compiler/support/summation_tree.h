// The order of the additions that make one reduced output: data, not an accident of arrival.
//
// A leaf is a partial sum that one chip computes: the products of contraction indices [k_begin, k_end), added one by one
// in rising k to an accumulator that starts at zero. With several lanes it is the products of each `lanes` indices, from
// k_begin on, that are added so, each such group summed before as a reduction tree does: neighbours first, then
// neighbouring pairs (of a last group that is not whole, what there is of it). An inner node adds its right child to its left child, in the
// accumulator's type. A tree holds for the elements of chunk `chunk` of `chunks` of every page of the output (page.h of
// the program says how a page is cut), for every page.
//
// Where the contraction is spread over chips, an operator has one tree a chunk, with leaves of every chip. Where each chip
// sums columns of its own, it has one tree a chip (chunk 0 of 1), all leaves of which are that chip's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/support/ids.h"

namespace rdusim {

struct SummationNode {
  bool leaf = true;
  // leaf
  ChipId chip;
  std::int64_t k_begin = 0;
  std::int64_t k_end = 0;
  // inner node: indices into SummationTree::nodes, both less than this node's own index
  std::uint32_t left = 0;
  std::uint32_t right = 0;

  friend bool operator==(const SummationNode&, const SummationNode&) = default;
};

struct SummationTree {
  SummationTreeId id;
  OperatorId op;  // the matmul whose output is summed
  std::uint32_t chunk = 0;
  std::uint32_t chunks = 1;
  std::vector<SummationNode> nodes;  // the last is the root
  std::uint32_t lanes = 1;           // of every leaf; a power of two
  friend bool operator==(const SummationTree&, const SummationTree&) = default;
};

// The elements of chunk j of n of a page (or of any run of `elements`): [begin, end). The n chunks tile the page; their
// sizes differ by at most one, and some are empty where elements < n.
struct ElementRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};
constexpr ElementRange chunk_range(std::uint64_t elements, std::uint32_t chunk, std::uint32_t chunks) {
  return {elements * chunk / chunks, elements * (chunk + 1) / chunks};
}
// The rows that a run of elements of a page of `cols` columns is; nothing where it is empty, or begins or ends within one.
constexpr std::optional<ElementRange> whole_rows(const ElementRange& run, std::uint64_t cols) {
  if (run.begin >= run.end || cols == 0 || run.begin % cols != 0 || run.end % cols != 0) return std::nullopt;
  return ElementRange{run.begin / cols, run.end / cols};
}

}  // namespace rdusim
