// How the event log foretells an event from the one before of its kind and subject: every field is expected to go on as
// it went (last value plus last difference), and only what does not is written. Writer and reader keep the same model.
//
// Bounded: subjects share one of most_contexts places a kind, whatever a file says. A model is forgotten in one step.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "traces/event_kinds.h"

namespace rdusim {

template <std::size_t N>
struct EventContext {
  std::uint32_t epoch = 0;
  std::array<std::uint64_t, N> last{}, stride{};
};

class EventModel {
 public:
  static constexpr std::uint32_t most_contexts = 1 << 16;

  explicit EventModel(const Roster& roster) : roster_(roster) {}

  // Everything is expected to be zero again.
  void forget() {
    ++epoch_;
    next_subject_.fill(0);
  }

  template <class E>
  EventContext<field_count<E>>& context(std::uint32_t subject) {
    auto& list = std::get<List<E>>(lists_).contexts;
    const std::uint32_t at = subject % most_contexts;
    if (at >= list.size())
      list.resize(
          std::min<std::size_t>(most_contexts, std::max<std::size_t>(at + 1, subjects(roster_, subject_of<E>()))));
    auto& c = list[at];
    if (c.epoch != epoch_) c = {epoch_, {}, {}};
    return c;
  }
  // The subject that the next event of a kind is expected to have.
  std::uint32_t& next_subject(EventKind kind) { return next_subject_[static_cast<std::size_t>(kind)]; }

 private:
  template <class E>
  struct List {
    std::vector<EventContext<field_count<E>>> contexts;
  };
#define RDU_LIST(Event) , List<Event>
  template <class First, class... Rest>
  struct Tail {
    using type = std::tuple<Rest...>;
  };
  using Lists = Tail<void RDU_EVENTS(RDU_LIST)>::type;
#undef RDU_LIST

  const Roster& roster_;
  std::uint32_t epoch_ = 1;
  std::array<std::uint32_t, event_kinds> next_subject_{};
  Lists lists_;
};

// ---- the head byte of an event

inline constexpr std::uint8_t head_kind = 0x1F;          // EventKind, or define_provenance
inline constexpr std::uint8_t head_same_time = 0x20;     // else: cycles since the event before, varint
inline constexpr std::uint8_t head_next_subject = 0x40;  // else: difference to the expected subject, zigzag varint
inline constexpr std::uint8_t head_as_expected =
    0x80;  // else: which fields are not, a varint of bits, then their differences
inline constexpr std::uint8_t define_provenance = 31;

static_assert(event_kinds < define_provenance);

}  // namespace rdusim
