// What will happen on a chip, by time: a timing wheel for what is near, a heap for what is far.
//
// An event is a kind, the unit that it happens to, and a number. Events of one cycle are taken together, sorted, so
// that what is done does not depend on the order in which they were put in. Nothing is allocated once the high-water
// mark of pending events has been reached.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/support/units.h"

namespace rdusim {

struct Event {
  std::uint64_t key = 0;  // kind and unit: events sort by it
  std::uint64_t amount = 0;

  Event() = default;
  Event(std::uint8_t kind, std::uint32_t unit, std::uint32_t number = 0)
      : key((std::uint64_t{kind} << 32) | unit), amount(number) {}
  std::uint8_t kind() const { return static_cast<std::uint8_t>(key >> 32); }
  std::uint32_t unit() const { return static_cast<std::uint32_t>(key); }
  std::uint32_t number() const { return static_cast<std::uint32_t>(amount); }

  friend bool operator<(const Event& a, const Event& b) { return a.key != b.key ? a.key < b.key : a.amount < b.amount; }
  friend bool operator==(const Event&, const Event&) = default;
};

// Few events happen in one cycle: sorted in place, without a call for the usual one, two or three. Many are mostly in
// order already: what one cycle's grants put in comes in their order.
inline void sort_events(std::vector<Event>& events) {
  constexpr std::size_t few = 24;
  if (events.size() > few) {
    if (!std::is_sorted(events.begin(), events.end())) std::sort(events.begin(), events.end());
    return;
  }
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Event e = events[i];
    std::size_t j = i;
    for (; j > 0 && e < events[j - 1]; --j) events[j] = events[j - 1];
    events[j] = e;
  }
}

class EventQueue {
 public:
  EventQueue();

  // Requires at > the time of the last take().
  void put(Cycle at, const Event& e);
  // Time of the earliest event.
  std::optional<Cycle> next() const;
  // Replaces `out` by the events of `now`, sorted. Requires that none is earlier.
  void take(Cycle now, std::vector<Event>& out);
  bool empty() const { return pending_ == 0; }

 private:
  static constexpr std::uint32_t slots = 4096;  // 64 x 64
  struct Node {
    Event event;
    std::uint32_t next = 0;  // index + 1
  };
  struct Far {
    Cycle at = 0;
    Event event;
  };

  Cycle base_ = 0;  // everything in the wheel is later than base_ and earlier than base_ + slots
  std::uint64_t pending_ = 0;
  std::array<std::uint32_t, slots> head_{};  // index + 1 of the first node
  std::array<std::uint64_t, slots / 64> used_{};
  std::uint64_t used_words_ = 0;
  std::vector<Node> nodes_;
  std::uint32_t free_ = 0;  // index + 1 of the first free node
  std::vector<Far> far_;    // a heap, the earliest on top
};

}  // namespace rdusim
