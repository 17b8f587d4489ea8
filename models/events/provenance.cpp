#include "models/events/provenance.h"

#include <algorithm>
#include <iterator>
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
std::uint64_t mix(std::uint64_t h, const ContributionRun& r) {
  return mix(mix(mix(h, std::uint64_t{r.chip.value} << 32U | r.count), r.k_begin), r.length);
}

// Elements that come after all that `runs` has. Runs grow from the left as far as they can, so that equal sets are equal
// runs, whatever they were put together of.
void append(std::vector<ContributionRun>& runs, const ContributionRun& more) {
  if (!runs.empty()) {
    ContributionRun& r = runs.back();
    if (r.length == more.length && r.chip.value + r.count == more.chip.value && r.k_end() == more.k_begin) {
      r.count += more.count;
      return;
    }
  }
  runs.push_back(more);
}

void append(std::vector<ContributionRun>& runs, std::span<const Contribution> set) {
  for (const Contribution& c : set) append(runs, {c.chip, 1, c.k_begin, c.k_end - c.k_begin});
}

// The two sets' runs one after the other, into `out`. False where they are interleaved, or have a chip in common.
bool chain(std::span<const ContributionRun> a, std::span<const ContributionRun> b, std::vector<ContributionRun>& out) {
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].last().value < b[j].chip.value)) {
      append(out, a[i++]);
    } else if (i == a.size() || b[j].last().value < a[i].chip.value) {
      append(out, b[j++]);
    } else {
      return false;
    }
  }
  return true;
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

ProvenanceTable::ProvenanceTable() : first_{0, 0}, recent_(recent_extensions) {}

ProvenanceId ProvenanceTable::intern_runs(std::span<const ContributionRun> set) {
  if (set.empty()) return 0;
  std::uint64_t hash = set.size();
  for (const ContributionRun& r : set) hash = mix(hash, r);
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (const auto known = runs(it->second); std::equal(known.begin(), known.end(), set.begin(), set.end()))
      return it->second;
  const ProvenanceId id = size();
  runs_.insert(runs_.end(), set.begin(), set.end());
  first_.push_back(runs_.size());
  index_.emplace(hash, id);
  return id;
}

ProvenanceId ProvenanceTable::intern(std::span<const Contribution> set) {
  made_.clear();
  append(made_, set);
  return intern_runs(made_);
}

std::vector<Contribution> ProvenanceTable::contributions(ProvenanceId id) const {
  std::vector<Contribution> set;
  for (const ContributionRun& r : runs(id))
    for (std::uint32_t i = 0; i < r.count; ++i) {
      const std::uint64_t begin = r.k_begin + i * r.length;
      set.push_back({ChipId{r.chip.value + i}, begin, begin + r.length});
    }
  return set;
}

ProvenanceId ProvenanceTable::single(const Contribution& c) {
  const ContributionRun run{c.chip, 1, c.k_begin, c.k_end - c.k_begin};
  return intern_runs({&run, 1});
}

ProvenanceId ProvenanceTable::sum(ProvenanceId a, ProvenanceId b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (std::uint64_t{a} << 32) | b;
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  made_.clear();
  if (!chain(runs(a), runs(b), made_)) {
    const std::vector<Contribution> of_a = contributions(a), of_b = contributions(b);
    std::vector<Contribution> set;
    set.reserve(of_a.size() + of_b.size());
    std::merge(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(set));
    join_adjacent(set);
    made_.clear();
    append(made_, set);
  }
  const ProvenanceId result = intern_runs(made_);
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
