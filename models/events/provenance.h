// Which contributions a partial sum holds: a multiset of (chip, contraction range), interned so that a page carries one
// number and a union is a table look-up.
//
// A contribution of a matmul's accumulator grows as it runs: [k, k+32) and [k+32, k+64) of one chip join to [k, k+64).
// Ranges that overlap do not join: both stay, and a checker sees the double count.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/support/ids.h"
#include "models/events/events.h"

namespace rdusim {

struct Contribution {
  ChipId chip;
  std::uint64_t k_begin = 0;
  std::uint64_t k_end = 0;
  friend auto operator<=>(const Contribution&, const Contribution&) = default;
};

// `count` contributions of one length, of chips that follow each other, each going on in the contraction where the one
// before it ends: what folds and rings in the order of the chips add up. Sets are kept so: they take as much room as they
// have gaps, not as they have members.
struct ContributionRun {
  ChipId chip;  // the first
  std::uint32_t count = 1;
  std::uint64_t k_begin = 0;  // of the first
  std::uint64_t length = 0;   // of each
  ChipId last() const { return ChipId{chip.value + count - 1}; }
  std::uint64_t k_end() const { return k_begin + count * length; }  // of the last
  friend bool operator==(const ContributionRun&, const ContributionRun&) = default;
};

class ProvenanceTable {
 public:
  ProvenanceTable();

  // The set that holds just `c`.
  ProvenanceId single(const Contribution& c);
  // Multiset sum of two sets (0 is the empty set), adjacent ranges of a chip joined.
  ProvenanceId sum(ProvenanceId a, ProvenanceId b);
  // sum(held, single(c)), remembered: a matmul asks for it at every firing.
  ProvenanceId extend(ProvenanceId held, const Contribution& c);
  // The set of these, sorted; 0 of none. A trace that is read brings its sets so.
  ProvenanceId intern(std::span<const Contribution> set);
  // How many sets there are: they are numbered from 0, the empty one.
  ProvenanceId size() const { return static_cast<ProvenanceId>(first_.size() - 1); }
  // The elements, sorted, in as few runs as that order allows; valid until the next call that is not const.
  std::span<const ContributionRun> runs(ProvenanceId id) const {
    return {runs_.data() + first_[id], first_[id + std::size_t{1}] - first_[id]};
  }
  // Each of them by itself.
  std::vector<Contribution> contributions(ProvenanceId id) const;

 private:
  struct Extension {
    bool known = false;
    ProvenanceId held = 0;
    Contribution added;
    ProvenanceId result = 0;
  };

  ProvenanceId intern_runs(std::span<const ContributionRun> set);

  std::vector<ContributionRun> runs_;                           // set after set
  std::vector<std::size_t> first_;                              // by id, and one past the end: into runs_
  std::vector<ContributionRun> made_;                           // scratch
  std::unordered_map<std::uint64_t, ProvenanceId> sums_;        // (a, b) -> a + b; looked up, never iterated
  std::unordered_multimap<std::uint64_t, ProvenanceId> index_;  // hash of a set -> its id; looked up, never iterated
  std::vector<Extension> recent_;                               // direct-mapped; a miss costs time, never an answer
};

}  // namespace rdusim
