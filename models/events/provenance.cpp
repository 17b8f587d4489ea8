#include "models/events/provenance.h"

#include <algorithm>
#include <utility>

namespace rdusim {
namespace {

constexpr std::size_t recent_extensions = 4096;  // a power of two

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ (h >> 33);
}

std::uint64_t mix(std::uint64_t h, const Contribution& c) {
  return mix(mix(mix(h, c.chip.value), c.k_begin), c.k_end);
}

// Of a sorted set: every range that another of the same chip continues is joined with it. Of several candidates the
// first is taken, so equal ranges stay equal in number.
void join_adjacent(std::vector<Contribution>& set) {
  bool joined = true;
  while (joined) {
    joined = false;
    for (std::size_t i = 0; i < set.size() && !joined; ++i) {
      const Contribution next{set[i].chip, set[i].k_end, 0};
      if (set[i].k_begin == set[i].k_end) continue;
      const auto found = std::lower_bound(set.begin(), set.end(), next);
      if (found == set.end() || found->chip != set[i].chip || found->k_begin != set[i].k_end) continue;
      const auto j = static_cast<std::size_t>(found - set.begin());
      if (j == i) continue;
      set[i].k_end = set[j].k_end;
      set.erase(set.begin() + static_cast<std::ptrdiff_t>(j));
      std::sort(set.begin(), set.end());
      joined = true;
    }
  }
}

}  // namespace

ProvenanceTable::ProvenanceTable() : recent_(recent_extensions) {
  sets_.emplace_back();
}

ProvenanceId ProvenanceTable::intern(std::vector<Contribution> set) {
  if (set.empty()) return 0;
  std::uint64_t hash = set.size();
  for (const Contribution& c : set) hash = mix(hash, c);
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (sets_[it->second] == set) return it->second;
  const auto id = static_cast<ProvenanceId>(sets_.size());
  sets_.push_back(std::move(set));
  index_.emplace(hash, id);
  return id;
}

ProvenanceId ProvenanceTable::single(const Contribution& c) {
  return intern({c});
}

ProvenanceId ProvenanceTable::sum(ProvenanceId a, ProvenanceId b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (std::uint64_t{a} << 32) | b;
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  std::vector<Contribution> set;
  set.reserve(sets_[a].size() + sets_[b].size());
  std::merge(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(), std::back_inserter(set));
  join_adjacent(set);
  const ProvenanceId result = intern(std::move(set));
  sums_.emplace(key, result);
  return result;
}

ProvenanceId ProvenanceTable::extend(ProvenanceId held, const Contribution& c) {
  Extension& e = recent_[mix(held, c) & (recent_extensions - 1)];
  if (e.known && e.held == held && e.added == c) return e.result;
  const ProvenanceId result = sum(held, single(c));
  e = {true, held, c, result};
  return result;
}

}  // namespace rdusim
