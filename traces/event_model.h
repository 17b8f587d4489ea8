// How the event log foretells an event from the one before of its kind and subject: every field is expected to go on as
// it went (last value plus last difference), and only what does not is written. Writer and reader keep the same model.
//
// Bounded: subjects share one of most_contexts places a kind, whatever a file says. A model is forgotten in one step.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <unordered_map>

#include "traces/event_kinds.h"

namespace rdusim {

template <class E>
using EventFields = std::array<std::uint64_t, field_count<E>>;  // in the order of each_field

// The fields of the last event of a kind and subject, and of the one before it; all zero: nothing happened yet. A run goes
// round all its subjects, so that what the model costs is what it takes of the caches: numbers of 32 bits, and a list of
// its own for whom they do not suffice.
template <class E>
struct EventContext {
  std::uint32_t epoch : 31;
  std::uint32_t wide : 1;  // what holds is in the other list
  std::array<std::uint32_t, field_count<E>> last, before;
};

class EventModel {
 public:
  static constexpr std::uint32_t most_contexts = 1 << 16;

  explicit EventModel(const Roster& roster) : roster_(roster) {}

  // Everything is expected to be zero again.
  void forget() {
    ++epoch_;
    next_subject_.fill(0);
    std::apply([](auto&... list) { (list.wide.clear(), ...); }, lists_);
  }

  // Has the context at hand when it is asked for soon.
  template <class E>
  void fetch(std::uint32_t subject) {
    const char* c = reinterpret_cast<const char*>(place<E>(subject));
    for (std::size_t line = 0; line < sizeof(EventContext<E>); line += 64) __builtin_prefetch(c + line, 1);
    __builtin_prefetch(c + sizeof(EventContext<E>) - 1, 1);
  }
  // Requires a subject that the roster has.
  template <class E>
  EventContext<E>& context(std::uint32_t subject) {
    EventContext<E>& c = *place<E>(subject);
    if (c.epoch != epoch_) {
      if (c.epoch != 0) c = {};
      c.epoch = epoch_;
    }
    return c;
  }
  // What the next event of `c` should be.
  template <class E>
  EventFields<E> expected(const EventContext<E>& c) const {
    EventFields<E> next;
    if (c.wide != 0) [[unlikely]] {
      const Wide<E>& w = std::get<List<E>>(lists_).wide.at(&c);
      for (std::size_t f = 0; f < next.size(); ++f) next[f] = 2 * w.last[f] - w.before[f];
    } else {
      for (std::size_t f = 0; f < next.size(); ++f) next[f] = 2 * std::uint64_t{c.last[f]} - c.before[f];
    }
    return next;
  }
  // What it was.
  template <class E>
  void follow(EventContext<E>& c, const EventFields<E>& event) {
    std::uint64_t all = 0;
    for (const std::uint64_t field : event) all |= field;
    if (c.wide != 0 || all >> 32U != 0) [[unlikely]]
      return follow_wide(c, event);
    for (std::size_t f = 0; f < event.size(); ++f) {
      c.before[f] = c.last[f];
      c.last[f] = static_cast<std::uint32_t>(event[f]);
    }
  }
  // The subject that the next event of a kind is expected to have.
  std::uint32_t& next_subject(EventKind kind) { return next_subject_[static_cast<std::size_t>(kind)]; }

 private:
  template <class E>
  struct Wide {
    EventFields<E> last, before;
  };
  template <class E>
  struct List {
    struct Free {
      void operator()(EventContext<E>* c) const { std::free(c); }
    };
    std::unique_ptr<EventContext<E>, Free> contexts;           // an array
    std::unordered_map<const EventContext<E>*, Wide<E>> wide;  // looked up, never iterated

    // Most subjects see but a few kinds of events: what the system gives as zeros takes no memory, and no time, until it
    // is touched.
    void make(std::size_t count) {
      static_assert(std::is_trivial_v<EventContext<E>>);
      contexts.reset(static_cast<EventContext<E>*>(std::calloc(count, sizeof(EventContext<E>))));
      if (contexts == nullptr) throw std::bad_alloc();
    }
  };

  template <class E>
  EventContext<E>* place(std::uint32_t subject) {
    auto& list = std::get<List<E>>(lists_);
    if (list.contexts == nullptr) [[unlikely]]
      list.make(std::min(most_contexts, subjects(roster_, subject_of<E>())));
    return list.contexts.get() + subject % most_contexts;
  }

  // From the first number that is too large on until all is forgotten.
  template <class E>
  void follow_wide(EventContext<E>& c, const EventFields<E>& event) {
    Wide<E>& w = std::get<List<E>>(lists_).wide[&c];
    if (c.wide == 0) std::copy(c.last.begin(), c.last.end(), w.last.begin());
    c.wide = 1;
    w.before = w.last;
    w.last = event;
  }

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
