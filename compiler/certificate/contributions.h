// Which products a partial sum adds, as interned multisets: a number stands for a set, and a sum is looked up.
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
  Contributions() : sets_(1) { ids_[{}] = 0; }

  std::uint32_t single(const Contribution& c) { return intern({c}); }
  std::uint32_t sum(std::uint32_t a, std::uint32_t b);
  const std::vector<Contribution>& of(std::uint32_t set) const { return sets_[set]; }  // sorted

  // Why the set is not all of operator `op`'s contraction of extent k, each index once, and every addend at most once.
  // Empty: it is.
  const std::string& fault(std::uint32_t set, std::uint32_t op, std::uint64_t k);

 private:
  std::uint32_t intern(std::vector<Contribution> set);
  std::vector<std::vector<Contribution>> sets_;
  std::map<std::vector<Contribution>, std::uint32_t> ids_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sums_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::string> faults_;
};

}  // namespace rdusim::certificate
