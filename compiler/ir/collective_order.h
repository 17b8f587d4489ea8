// How members of a collective stand to each other, for the algorithms that do not follow the members' own order. Places
// are indices into the members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/support/ids.h"

namespace rdusim {

// The places in the order of the members' chips.
inline std::vector<std::uint32_t> in_order_of_chips(const std::vector<ChipId>& members) {
  std::vector<std::uint32_t> order(members.size());
  for (std::uint32_t m = 0; m < order.size(); ++m) order[m] = m;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return members[a] < members[b]; });
  return order;
}

// The same, turned so that the first member comes first: it is the root of a tree.
inline std::vector<std::uint32_t> tree_order(const std::vector<ChipId>& members) {
  std::vector<std::uint32_t> order = in_order_of_chips(members);
  std::rotate(order.begin(), std::find(order.begin(), order.end(), 0u), order.end());
  return order;
}

// By place: which part of what is scattered the member keeps.
inline std::vector<std::uint32_t> parts_kept(const std::vector<ChipId>& members) {
  std::vector<std::uint32_t> parts(members.size());
  const std::vector<std::uint32_t> order = in_order_of_chips(members);
  for (std::uint32_t i = 0; i < order.size(); ++i) parts[order[i]] = i;
  return parts;
}

// The places by node, node after node, each in the order of chips. Nodes without a member are left out; `node_chips` 0:
// one node.
inline std::vector<std::vector<std::uint32_t>> by_node(const std::vector<ChipId>& members, std::uint32_t node_chips) {
  std::vector<std::vector<std::uint32_t>> nodes;
  std::uint32_t last = 0;
  for (const std::uint32_t m : in_order_of_chips(members)) {
    const std::uint32_t node = node_chips == 0 ? 0 : members[m].value / node_chips;
    if (nodes.empty() || node != last) nodes.emplace_back();
    nodes.back().push_back(m);
    last = node;
  }
  return nodes;
}

// The same, turned so that the first member's node comes first, and in it that member.
inline std::vector<std::vector<std::uint32_t>> nodes_from_first(const std::vector<ChipId>& members,
                                                                std::uint32_t node_chips) {
  std::vector<std::vector<std::uint32_t>> nodes = by_node(members, node_chips);
  const auto has_first = [](const auto& node) { return std::find(node.begin(), node.end(), 0u) != node.end(); };
  std::rotate(nodes.begin(), std::find_if(nodes.begin(), nodes.end(), has_first), nodes.end());
  std::vector<std::uint32_t>& own = nodes.front();
  std::rotate(own.begin(), std::find(own.begin(), own.end(), 0u), own.end());
  return nodes;
}

// A binary tree over 0 .. n - 1: 0 is the root, and the two halves of what follows a node are the trees below it, each
// with its first at its root. So subtrees are neighbours, and of two nodes of eight one is the left half's.
class BinaryTree {
 public:
  explicit BinaryTree(std::uint32_t n) : parent_(n), children_(n), depth_(n, 0) { split(0, n); }

  std::optional<std::uint32_t> parent(std::uint32_t i) const { return parent_[i]; }
  const std::vector<std::uint32_t>& children(std::uint32_t i) const { return children_[i]; }  // none, one or two
  std::uint32_t depth(std::uint32_t i) const { return depth_[i]; }                            // of the root: 0
  std::uint32_t size() const { return static_cast<std::uint32_t>(parent_.size()); }

 private:
  void split(std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t middle = begin + 1 + (end - begin - 1) / 2;
    for (const auto& [first, last] : {std::pair{begin + 1, middle}, std::pair{middle, end}}) {
      if (first >= last) continue;
      parent_[first] = begin;
      children_[begin].push_back(first);
      depth_[first] = depth_[begin] + 1;
      split(first, last);
    }
  }
  std::vector<std::optional<std::uint32_t>> parent_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<std::uint32_t> depth_;
};

// The nodes of a machine of two levels as a hierarchical all-reduce sees them: a page is cut in as many chunks as the
// fullest node has members, and each node deals them to its members in turn.
class TwoLevels {
 public:
  TwoLevels(const std::vector<ChipId>& members, std::uint32_t node_chips) : nodes_(by_node(members, node_chips)) {
    for (const auto& node : nodes_) chunks_ = std::max(chunks_, static_cast<std::uint32_t>(node.size()));
  }
  const std::vector<std::vector<std::uint32_t>>& nodes() const { return nodes_; }
  std::uint32_t chunks() const { return chunks_; }
  // The place of who reduces chunk j in a node.
  std::uint32_t owner(std::size_t node, std::uint32_t chunk) const {
    return nodes_[node][chunk % static_cast<std::uint32_t>(nodes_[node].size())];
  }
  // The chunks of member i of a node.
  std::vector<std::uint32_t> owned(std::size_t node, std::size_t i) const {
    std::vector<std::uint32_t> chunks;
    for (auto j = static_cast<std::uint32_t>(i); j < chunks_; j += static_cast<std::uint32_t>(nodes_[node].size()))
      chunks.push_back(j);
    return chunks;
  }

 private:
  std::vector<std::vector<std::uint32_t>> nodes_;
  std::uint32_t chunks_ = 0;
};

}  // namespace rdusim
