#include "compiler/passes/sums.h"

#include <algorithm>
#include <cstddef>

namespace rdusim {

Sum left_deep(const std::vector<Sum>& parts) {
  Sum sum;
  for (const Sum& part : parts) {
    const auto base = static_cast<std::uint32_t>(sum.size());
    for (SummationNode n : part) {
      if (!n.leaf) {
        n.left += base;
        n.right += base;
      }
      sum.push_back(n);
    }
    if (base == 0) continue;
    SummationNode add;
    add.leaf = false;
    add.left = base - 1;
    add.right = static_cast<std::uint32_t>(sum.size() - 1);
    sum.push_back(add);
  }
  return sum;
}

Sum part_of(const Sum& sum, ChipId chip) {
  const auto all_leaves = static_cast<std::size_t>(
      std::count_if(sum.begin(), sum.end(), [&](const SummationNode& n) { return n.leaf && n.chip == chip; }));
  if (all_leaves == 0) return {};
  // Children stand before their parents: the first node that holds all of the chip's leaves is the lowest one.
  std::vector<std::size_t> leaves(sum.size(), 0), of_chip(sum.size(), 0);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const SummationNode& n = sum[i];
    leaves[i] = n.leaf ? 1 : leaves[n.left] + leaves[n.right];
    of_chip[i] = n.leaf ? std::size_t{n.chip == chip} : of_chip[n.left] + of_chip[n.right];
    if (of_chip[i] != all_leaves) continue;
    if (leaves[i] != all_leaves) return {};
    std::vector<bool> below(i + 1, false);
    below[i] = true;
    for (std::size_t j = i + 1; j-- > 0;)
      if (below[j] && !sum[j].leaf) below[sum[j].left] = below[sum[j].right] = true;
    std::vector<std::uint32_t> to(i + 1, 0);
    Sum part;
    for (std::size_t j = 0; j <= i; ++j) {
      if (!below[j]) continue;
      to[j] = static_cast<std::uint32_t>(part.size());
      part.push_back(sum[j]);
      if (!sum[j].leaf) {
        part.back().left = to[sum[j].left];
        part.back().right = to[sum[j].right];
      }
    }
    return part;
  }
  return {};
}

Sum moved_to(Sum sum, ChipId chip, std::int64_t offset) {
  for (SummationNode& n : sum) {
    if (!n.leaf) continue;
    n.chip = chip;
    n.k_begin += offset;
    n.k_end += offset;
  }
  return sum;
}

}  // namespace rdusim
