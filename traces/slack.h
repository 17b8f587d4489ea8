// How much later what is off the critical path could have come without lengthening the run.
//
//   law     where something waits for several things, the one that came last sets its time, and each other was early by
//           what lies between: its gap. A path from a piece of the run to its end loses, in all, the sum of its gaps
//           before the end is later. Kept is, of each pair of units, the least gap by which a piece of the one was
//           early for the other; the slack of a unit is the least sum of these over all ways from it to the end of its
//           section. So a single piece of the unit can be late by that much, whichever it is, and the run is no longer,
//           unless something arbitrates otherwise: the slack is a lower bound, and 0 on the critical path.
//   units   stage instances, senders and channels of crossings; the instances of a load are one.
//   cost    an entry a pair of units that ever met; nothing grows with the length of the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/support/units.h"

namespace rdusim {

class SlackFold {
 public:
  explicit SlackFold(std::size_t units) : early_(units), at_end_(units) {}

  // A piece of `supplier` was early for `consumer` by `gap`.
  void met(std::size_t consumer, std::size_t supplier, Cycles gap) {
    if (consumer == supplier) return;
    auto& list = early_[consumer];
    const auto at = std::lower_bound(list.begin(), list.end(), supplier,
                                     [](const auto& entry, std::size_t unit) { return entry.first < unit; });
    if (at == list.end() || at->first != supplier)
      list.emplace(at, static_cast<std::uint32_t>(supplier), gap);
    else
      at->second = std::min(at->second, gap);
  }
  // The last piece of `unit` in a section was over so many cycles before what the section's end waited for.
  void ended(std::size_t unit, Cycles gap) {
    if (!at_end_[unit] || gap < *at_end_[unit]) at_end_[unit] = gap;
  }

  // By unit; nothing for one that no end waits for.
  std::vector<std::optional<Cycles>> slack() const;

 private:
  std::vector<std::vector<std::pair<std::uint32_t, Cycles>>> early_;  // by consumer: supplier (rising), least gap
  std::vector<std::optional<Cycles>> at_end_;
};

}  // namespace rdusim
