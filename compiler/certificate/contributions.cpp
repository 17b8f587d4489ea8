#include "compiler/certificate/contributions.h"

#include <algorithm>
#include <tuple>

#include "compiler/certificate/finding.h"

namespace rdusim::certificate {

std::uint32_t Contributions::single(const Contribution& c) {
  const auto [it, is_new] = leaf_nodes_.try_emplace(c, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) {
    nodes_.push_back({static_cast<std::uint32_t>(leaves_.size()), 0, 1});
    leaves_.push_back(c);
  }
  return it->second;
}

std::uint32_t Contributions::sum(std::uint32_t a, std::uint32_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const std::pair key{std::min(a, b), std::max(a, b)};
  const auto [it, is_new] = sums_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new)
    nodes_.push_back({key.first, key.second, certificate::sum(nodes_[key.first].size, nodes_[key.second].size)});
  return it->second;
}

// Requires a set of at most `most`.
std::vector<Contribution> Contributions::expand(std::uint32_t set) const {
  std::vector<Contribution> all;
  std::vector<std::uint32_t> open{set};
  while (!open.empty()) {
    const Node& n = nodes_[open.back()];
    open.pop_back();
    if (n.size == 0) continue;
    if (n.right == 0) {
      all.push_back(leaves_[n.left]);
      continue;
    }
    open.push_back(n.right);
    open.push_back(n.left);
  }
  std::sort(all.begin(), all.end());
  return all;
}

const std::string& Contributions::fault(std::uint32_t set, std::uint32_t op, std::uint64_t k) {
  const auto [it, is_new] = faults_.try_emplace({set, op, k});
  if (is_new) it->second = find_fault(set, op, k);
  return it->second;
}

std::string Contributions::find_fault(std::uint32_t set, std::uint32_t op, std::uint64_t k) {
  std::uint64_t& count = products_[set];
  count = 0;
  if (nodes_[set].size > most)
    return fmt::format("it adds {} contributions, and no more than {} are told apart", nodes_[set].size, most);
  const std::vector<Contribution> all = expand(set);
  std::vector<Contribution> products;
  const Contribution* last_addend = nullptr;
  for (const Contribution& c : all) {
    if (c.kind == Contribution::Kind::products) {
      ++count;
      products.push_back(c);
      continue;
    }
    if (last_addend != nullptr && *last_addend == c)
      return c.kind == Contribution::Kind::constant ? "a constant is added more than once"
                                                    : fmt::format("operand {} is added more than once", c.of);
    last_addend = &c;
  }
  for (const Contribution& c : products)
    if (c.of != op) return fmt::format("it holds products of operator {} as well as of {}", c.of, op);
  std::sort(products.begin(), products.end(), [](const Contribution& a, const Contribution& b) {
    return std::tuple(a.k_begin, a.k_end, a.chip) < std::tuple(b.k_begin, b.k_end, b.chip);
  });
  std::uint64_t covered = 0;
  ChipId last;
  for (const Contribution& c : products) {
    if (c.k_begin > covered) return fmt::format("contraction [{}, {}) is missing", covered, c.k_begin);
    if (c.k_begin < covered)
      return fmt::format("contraction [{}, {}) is added twice, by chips {} and {}", c.k_begin,
                         std::min(covered, c.k_end), last.value, c.chip.value);
    covered = c.k_end;
    last = c.chip;
  }
  if (covered == k) return {};
  return fmt::format("contraction [{}, {}) is {}", std::min(covered, k), std::max(covered, k),
                     covered < k ? "missing" : "not of this operator");
}

}  // namespace rdusim::certificate
