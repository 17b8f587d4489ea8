#include "models/units/event_record.h"

#include <cstddef>
#include <new>

namespace rdusim {

#define RDU_TIME_FIRST(Event) static_assert(offsetof(Event, at) == 0);
RDU_EVENTS(RDU_TIME_FIRST)
#undef RDU_TIME_FIRST

void EventRecord::hand_on(std::size_t group, EventSink& sink) const {
  const std::uint64_t* at = data_.data() + groups_[group].begin;
  const std::uint64_t* const end = data_.data() + (group + 1 < groups_.size() ? groups_[group + 1].begin : size_);
  while (at != end) {
    switch (*at) {
// The copy into the record made an object there, which is heard where it lies.
#define RDU_HAND_ON(Event)                                          \
  case n##Event:                                                    \
    sink.on(*std::launder(reinterpret_cast<const Event*>(at + 1))); \
    at += 1 + (sizeof(Event) + 7) / 8;                              \
    break;
      RDU_EVENTS(RDU_HAND_ON)
#undef RDU_HAND_ON
      default:
        return;
    }
  }
}

void EventOrder::sort(std::span<const EventRecord> records, std::span<const std::size_t> chips, Cycle base,
                      Cycle cycles) {
  base_ = base;
  entries_.clear();
  if (head_.size() < cycles) {
    head_.resize(cycles);
    used_.resize((cycles + 63) / 64);
  }
  std::fill(used_.begin(), used_.end(), 0);
  for (std::size_t i = chips.size(); i-- > 0;) {
    const auto groups = records[chips[i]].groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::size_t slot = groups[g].at - base;
      std::uint64_t& word = used_[slot / 64];
      const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
      entries_.push_back(
          {static_cast<std::uint32_t>(chips[i]), static_cast<std::uint32_t>(g), (word & bit) != 0 ? head_[slot] : 0});
      word |= bit;
      head_[slot] = static_cast<std::uint32_t>(entries_.size());
    }
  }
}

}  // namespace rdusim
