// What of a run a trace is to hold: which units and kinds of events, which cycles, how many bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/pattern.h"
#include "compiler/support/result.h"
#include "traces/event_kinds.h"

namespace rdusim {

// Filters are KEY=VALUE[,VALUE...]. Of one key any value may hold, whether it stands in one filter or in several; of
// different keys all must.
//
//   chip=3, chip=0..7     a unit of that chip; a link that begins or ends there
//   site=4:7              a unit at x 4, y 7 of any chip
//   stage=down.fold*      the stage (* is any text), buffers that it fills or takes from, its crossings
//   kind=firing           a group (section, firing, page, credit, semaphore, barrier, link, memory, partial), or one
//   kind
//                         (firing-started, ...)
//
// A crossing is kept where one of its ends is. What has no site or stage (links, memory) is left out where one is asked
// for. The start and end of a section are always kept.
class TraceSelection {
 public:
  // Errors: RDU8016, RDU8017 a chip, site or stage that the roster does not have.
  static Result<TraceSelection> parse(const std::vector<std::string>& filters, const Roster& roster);

  bool everything() const { return everything_; }
  bool keeps(EventKind kind) const { return everything_ || kinds_[static_cast<std::size_t>(kind)]; }
  bool keeps(EventSubject s, std::uint32_t n) const {
    const auto& list = units_[static_cast<std::size_t>(s)];
    return everything_ || s == EventSubject::section || list[n];
  }

 private:
  bool everything_ = true;
  std::array<bool, event_kinds> kinds_{};
  std::array<std::vector<bool>, 8> units_;  // by EventSubject, by number
};

struct TraceScope {
  TraceSelection selection;
  Cycle from = 0;
  Cycle to = ~Cycle{0};        // included
  std::optional<Bytes> limit;  // of the file
};

enum class Wanted : std::uint8_t { yes, filtered, outside };

template <class E>
Wanted wanted(const E& e, const TraceScope& scope, const Roster& roster) {
  if constexpr (subject_of<E>() == EventSubject::section) return Wanted::yes;
  if (!scope.selection.everything() &&
      !(scope.selection.keeps(kind_of_event<E>) && scope.selection.keeps(subject_of<E>(), subject(e, roster))))
    return Wanted::filtered;
  return e.at >= scope.from && e.at <= scope.to ? Wanted::yes : Wanted::outside;
}

}  // namespace rdusim
