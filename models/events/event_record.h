// Events kept for a while. A chip that runs ahead of the others writes its own here, and the records of all chips are
// handed on afterwards in rising time, chip by chip within a cycle, just as if they had run side by side.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "models/events/events.h"

namespace rdusim {

class EventRecord {
 public:
  // The events of one cycle: those from word `begin` on, up to the next cycle's.
  struct Group {
    Cycle at = 0;
    std::size_t begin = 0;
  };

  // Requires that e.at is not less than that of the event before.
  template <class E>
  void add(const E& e) {
    static_assert(std::is_trivially_copyable_v<E> && alignof(E) <= 8);
    constexpr std::size_t words = 1 + (sizeof(E) + 7) / 8;
    if (groups_.empty() || groups_.back().at != e.at) groups_.push_back({e.at, size_});
    if (data_.size() - size_ < words) data_.resize(2 * data_.size() + most_words);
    std::uint64_t* const to = data_.data() + size_;
    *to = number(static_cast<const E*>(nullptr));
    std::memcpy(to + 1, &e, sizeof(E));
    size_ += words;
  }

  bool empty() const { return size_ == 0; }
  std::span<const Group> groups() const { return groups_; }
  // Hands the events of groups()[group] to `sink`, oldest first.
  void hand_on(std::size_t group, EventSink& sink) const;
  // All of them.
  void hand_on(EventSink& sink) const {
    for (std::size_t group = 0; group < groups_.size(); ++group) hand_on(group, sink);
  }
  void clear() {
    groups_.clear();
    size_ = 0;
  }

  // The same in no more memory than it takes, to be kept for longer.
  EventRecord packed() const;
  // A record goes to another process as its words, and is made of them again there: `ids` are the numbers, here, of the
  // sets of contributions that it names, by their numbers there. False where the bytes are no record.
  std::span<const std::uint64_t> words() const { return {data_.data(), size_}; }
  bool read(std::span<const std::byte> words, std::span<const ProvenanceId> ids);

 private:
  enum Number : std::uint64_t {
#define RDU_NUMBER(Event) n##Event,
    RDU_EVENTS(RDU_NUMBER)
#undef RDU_NUMBER
  };
#define RDU_NUMBER(Event)                               \
  static constexpr std::uint64_t number(const Event*) { \
    return n##Event;                                    \
  }
  RDU_EVENTS(RDU_NUMBER)
#undef RDU_NUMBER
#define RDU_SIZE(Event) sizeof(Event),
  static constexpr std::size_t most_words = 1 + (std::max({RDU_EVENTS(RDU_SIZE) std::size_t{0}}) + 7) / 8;
#undef RDU_SIZE

  // Room that was made is left as it comes: it is written before it is read.
  struct Unset : std::allocator<std::uint64_t> {
    template <class>
    struct rebind {
      using other = Unset;
    };
    void construct(std::uint64_t* to) const noexcept { ::new (to) std::uint64_t; }
    void construct(std::uint64_t* to, std::uint64_t value) const noexcept { ::new (to) std::uint64_t(value); }
  };

  std::vector<std::uint64_t, Unset> data_;  // a number, then the event's bytes, and so on: the first size_ words
  std::size_t size_ = 0;
  std::vector<Group> groups_;
};

// The records of many chips within one stretch of cycles, put in order: by cycle, and within one by chip.
//
// A list for each cycle, built from the last chip to the first: no comparison, and nothing is allocated once the
// high-water mark has been reached.
class EventOrder {
 public:
  struct Entry {
    std::uint32_t chip = 0;
    std::uint32_t group = 0;
    std::uint32_t next = 0;  // index + 1 of the next of the same cycle
  };

  // Takes down the groups of `records[chip]` for the `chips`, which rise. Requires all in [base, base + cycles).
  void sort(std::span<const EventRecord> records, std::span<const std::size_t> chips, Cycle base, Cycle cycles);

  // Calls `cycle(at)` before the first event of each cycle, and stops where that returns false; then
  // `hand_on(chip, group)` for each of its groups. Called again it goes on where it stopped. True: to the end.
  template <class Cycles, class HandOn>
  bool walk(Cycles&& cycle, HandOn&& hand_on) {
    for (std::size_t word = 0; word < used_.size(); ++word)
      for (std::uint64_t& bits = used_[word]; bits != 0; bits &= bits - 1) {
        const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (!cycle(base_ + slot)) return false;
        for (std::uint32_t i = head_[slot]; i != 0; i = entries_[i - 1].next)
          hand_on(entries_[i - 1].chip, entries_[i - 1].group);
      }
    return true;
  }

 private:
  Cycle base_ = 0;
  std::vector<std::uint32_t> head_;  // by cycle - base: index + 1 of the first entry
  std::vector<std::uint64_t> used_;  // which of them are
  std::vector<Entry> entries_;
};

}  // namespace rdusim
