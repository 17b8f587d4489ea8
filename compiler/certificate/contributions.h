// Which products a partial sum adds: multisets, each a number. A sum is a node that refers to the two that it joins, so
// that the sums of a ring, each one contribution longer than the one before, cost one node each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/support/ids.h"

namespace rdusim::certificate {

struct Contribution {
  enum class Kind : std::uint8_t { products, operand, constant } kind = Kind::products;
  std::uint32_t of = 0;                  // products: the operator; operand: which
  ChipId chip;                           // products: who computes them
  std::uint64_t k_begin = 0, k_end = 0;  // products: range of the contraction
  friend auto operator<=>(const Contribution&, const Contribution&) = default;
};

class Contributions {
 public:
  // More than this in one sum are not told apart: it is a fault.
  static constexpr std::uint64_t most = std::uint64_t{1} << 22;

  Contributions() : nodes_(1) {}  // 0: the empty one

  std::uint32_t single(const Contribution& c);
  std::uint32_t sum(std::uint32_t a, std::uint32_t b);

  // Why the set is not all of operator `op`'s contraction of extent k, each index once, and every addend at most once.
  // Empty: it is.
  const std::string& fault(std::uint32_t set, std::uint32_t op, std::uint64_t k);

  // How many partial sums it adds. Requires that fault() was asked.
  std::uint64_t products(std::uint32_t set) const { return products_.at(set); }

 private:
  struct Node {
    std::uint32_t left = 0, right = 0;  // right 0: a leaf, number `left` of leaves_
    std::uint64_t size = 0;
  };
  std::vector<Contribution> expand(std::uint32_t set) const;
  std::string find_fault(std::uint32_t set, std::uint32_t op, std::uint64_t k);

  std::vector<Node> nodes_;
  std::vector<Contribution> leaves_;
  std::map<Contribution, std::uint32_t> leaf_nodes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sums_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::string> faults_;
  std::map<std::uint32_t, std::uint64_t> products_;
};

}  // namespace rdusim::certificate
