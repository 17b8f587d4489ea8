#include "models/events/event_record.h"

#include <array>
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

namespace {

// Where an event holds numbers of provenance sets: bytes behind its beginning.
struct Tags {
  std::uint32_t words = 0;  // of the event
  std::uint32_t count = 0;
  std::array<std::uint32_t, 3> at{};
};
template <class E>
constexpr Tags tags_of() {
  return {(sizeof(E) + 7) / 8, 0, {}};
}
constexpr std::size_t in_tag = offsetof(PageTag, provenance);
#define RDU_ONE_TAG(Event)                                                \
  template <>                                                             \
  constexpr Tags tags_of<Event>() {                                       \
    return {(sizeof(Event) + 7) / 8, 1, {offsetof(Event, tag) + in_tag}}; \
  }
RDU_ONE_TAG(PagePushed)
RDU_ONE_TAG(PageLanded)
RDU_ONE_TAG(PageLoaded)
RDU_ONE_TAG(PageStored)
#undef RDU_ONE_TAG
template <>
constexpr Tags tags_of<OperandsJoined>() {
  return {(sizeof(OperandsJoined) + 7) / 8,
          2,
          {offsetof(OperandsJoined, a) + in_tag, offsetof(OperandsJoined, b) + in_tag}};
}
template <>
constexpr Tags tags_of<PartialFolded>() {
  return {(sizeof(PartialFolded) + 7) / 8,
          3,
          {offsetof(PartialFolded, held) + in_tag, offsetof(PartialFolded, added) + in_tag,
           offsetof(PartialFolded, sum) + in_tag}};
}

}  // namespace

EventRecord EventRecord::packed() const {
  EventRecord r;
  r.data_.assign(data_.begin(), data_.begin() + static_cast<std::ptrdiff_t>(size_));
  r.size_ = size_;
  r.groups_ = groups_;
  return r;
}

bool EventRecord::read(std::span<const std::byte> words, std::span<const ProvenanceId> ids) {
  static constexpr Tags tags[] = {
#define RDU_TAGS(Event) tags_of<Event>(),
      RDU_EVENTS(RDU_TAGS)
#undef RDU_TAGS
  };
  clear();
  const std::size_t n = words.size() / sizeof(std::uint64_t);
  if (data_.size() < n) data_.resize(n);
  if (!words.empty()) std::memcpy(data_.data(), words.data(), n * sizeof(std::uint64_t));
  while (size_ < n) {
    if (data_[size_] >= std::size(tags)) return false;
    const Tags& t = tags[data_[size_]];
    if (n - size_ - 1 < t.words) return false;
    const Cycle at = data_[size_ + 1];
    if (groups_.empty() || groups_.back().at != at) groups_.push_back({at, size_});
    auto* event = reinterpret_cast<std::byte*>(&data_[size_ + 1]);
    for (std::uint32_t k = 0; k < t.count; ++k) {
      ProvenanceId id = 0;
      std::memcpy(&id, event + t.at[k], sizeof id);
      if (id >= ids.size()) return false;
      std::memcpy(event + t.at[k], &ids[id], sizeof id);
    }
    size_ += 1 + t.words;
  }
  return true;
}

}  // namespace rdusim
