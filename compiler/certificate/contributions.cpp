#include "compiler/certificate/contributions.h"

#include <algorithm>
#include <tuple>

#include "compiler/certificate/finding.h"

namespace rdusim::certificate {

std::uint32_t Contributions::intern(std::vector<Contribution> set) {
  const auto [it, is_new] = ids_.try_emplace(std::move(set), static_cast<std::uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(it->first);
  return it->second;
}

std::uint32_t Contributions::sum(std::uint32_t a, std::uint32_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const std::pair key{std::min(a, b), std::max(a, b)};
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  std::vector<Contribution> both;
  std::merge(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(), std::back_inserter(both));
  return sums_[key] = intern(std::move(both));
}

const std::string& Contributions::fault(std::uint32_t set, std::uint32_t op, std::uint64_t k) {
  const auto [it, is_new] = faults_.try_emplace({set, op, k});
  if (!is_new) return it->second;
  std::vector<Contribution> products;
  for (const Contribution& c : sets_[set]) {
    if (c.kind == Contribution::Kind::products) {
      if (c.of != op) return it->second = fmt::format("it holds products of operator {} as well as of {}", c.of, op);
      products.push_back(c);
    } else if (std::count(sets_[set].begin(), sets_[set].end(), c) > 1) {
      return it->second = c.kind == Contribution::Kind::constant
                              ? "a constant is added more than once"
                              : fmt::format("operand {} is added more than once", c.of);
    }
  }
  std::sort(products.begin(), products.end(), [](const Contribution& a, const Contribution& b) {
    return std::tuple(a.k_begin, a.k_end, a.chip) < std::tuple(b.k_begin, b.k_end, b.chip);
  });
  std::uint64_t covered = 0;
  ChipId last;
  for (const Contribution& c : products) {
    if (c.k_begin > covered) return it->second = fmt::format("contraction [{}, {}) is missing", covered, c.k_begin);
    if (c.k_begin < covered)
      return it->second = fmt::format("contraction [{}, {}) is added twice, by chips {} and {}", c.k_begin,
                                      std::min(covered, c.k_end), last.value, c.chip.value);
    covered = c.k_end;
    last = c.chip;
  }
  if (covered != k)
    it->second = fmt::format("contraction [{}, {}) is {}", std::min(covered, k), std::max(covered, k),
                             covered < k ? "missing" : "not of this operator");
  return it->second;
}

}  // namespace rdusim::certificate
