#include "compiler/ir/partial_sums.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

SumId SumTable::leaf(const SumLeaf& leaf) {
  const auto [at, fresh] = leaf_ids_.try_emplace(leaf, static_cast<SumId>(nodes_.size()));
  if (fresh) nodes_.push_back({true, leaf, 0, 0});
  return at->second;
}

SumId SumTable::add(SumId left, SumId right) {
  const auto [at, fresh] = add_ids_.try_emplace({left, right}, static_cast<SumId>(nodes_.size()));
  if (fresh) nodes_.push_back({false, {}, left, right});
  return at->second;
}

std::vector<SumLeaf> SumTable::leaves(SumId sum) const {
  std::vector<SumLeaf> found;
  std::vector<SumId> open{sum};  // a stack, not recursion: a chain over many chips is as deep as it is long
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    if (node.is_leaf) {
      found.push_back(node.leaf);
    } else {
      open.push_back(node.right);
      open.push_back(node.left);
    }
  }
  return found;
}

std::string SumTable::text(SumId sum) const {
  constexpr std::size_t most = 80;
  std::string out;
  struct Step {
    SumId sum;
    const char* literal;
  };
  std::vector<Step> open{{sum, nullptr}};
  while (!open.empty()) {
    if (out.size() > most) return out + " ...";
    const Step step = open.back();
    open.pop_back();
    if (step.literal != nullptr) {
      out += step.literal;
      continue;
    }
    const Node& node = nodes_[step.sum];
    if (!node.is_leaf) {
      open.push_back({0, ")"});
      open.push_back({node.right, nullptr});
      open.push_back({0, " + "});
      open.push_back({node.left, nullptr});
      out += "(";
    } else if (node.leaf.kind == SumLeaf::Kind::addend) {
      out += node.leaf.addend;
    } else {
      out += fmt::format("c{}[{},{})", node.leaf.chip.value, node.leaf.k_begin, node.leaf.k_end);
    }
  }
  return out;
}

SumId SumTable::of_tree(const SummationTree& tree) {
  std::vector<SumId> ids;
  for (const SummationNode& node : tree.nodes)
    ids.push_back(node.leaf ? leaf({SumLeaf::Kind::partial, tree.op, node.chip, node.k_begin, node.k_end, {}})
                            : add(ids[node.left], ids[node.right]));
  return ids.back();
}

std::vector<SumGap> gaps(const std::vector<SumLeaf>& leaves, OperatorId op, std::int64_t k) {
  std::vector<std::int64_t> cuts{0, k};
  std::vector<const SumLeaf*> parts;
  for (const SumLeaf& leaf : leaves) {
    if (leaf.kind != SumLeaf::Kind::partial || leaf.op != op) continue;
    parts.push_back(&leaf);
    cuts.push_back(leaf.k_begin);
    cuts.push_back(leaf.k_end);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::sort(parts.begin(), parts.end(), [](const SumLeaf* a, const SumLeaf* b) { return a->k_begin < b->k_begin; });
  std::vector<SumGap> found;
  std::vector<const SumLeaf*> active;
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::erase_if(active, [&](const SumLeaf* leaf) { return leaf->k_end <= cuts[i]; });
    while (next < parts.size() && parts[next]->k_begin <= cuts[i]) active.push_back(parts[next++]);
    if (active.size() == 1) continue;
    SumGap gap{cuts[i], cuts[i + 1], static_cast<std::uint32_t>(active.size()), {}};
    for (const SumLeaf* leaf : active) gap.chips.push_back(leaf->chip);
    std::sort(gap.chips.begin(), gap.chips.end());
    if (!found.empty() && found.back().k_end == gap.k_begin && found.back().chips == gap.chips)
      found.back().k_end = gap.k_end;
    else
      found.push_back(std::move(gap));
  }
  return found;
}

std::uint64_t elements(const ElementBox& box) {
  std::uint64_t n = 1;
  for (const AxisRange& axis : box) n *= static_cast<std::uint64_t>(axis.size());
  return n;
}

}  // namespace rdusim
