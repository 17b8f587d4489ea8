// Events of one chip, kept for a while: a chip that runs ahead of the others writes here, and the records of all chips
// are handed on afterwards in rising time, chip by chip within a cycle, just as if they had run side by side.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "models/events/events.h"

namespace rdusim {

class EventRecord {
 public:
  template <class E>
  void add(const E& e) {
    static_assert(std::is_trivially_copyable_v<E> && alignof(E) <= 8);
    constexpr std::size_t words = 1 + (sizeof(E) + 7) / 8;
    const std::size_t at = data_.size();
    data_.resize(at + words);
    data_[at] = number(static_cast<const E*>(nullptr));
    std::memcpy(&data_[at + 1], &e, sizeof(E));
  }

  bool done() const { return read_ == data_.size(); }
  // Time of the oldest record left. Requires !done(). Every record begins with its time.
  Cycle time() const { return data_[read_ + 1]; }
  // Hands the oldest record to `sink` and forgets it. Requires !done().
  void hand_on(EventSink& sink);
  void clear() {
    data_.clear();
    read_ = 0;
  }

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

  std::vector<std::uint64_t> data_;  // a number, then the record's bytes, and so on
  std::size_t read_ = 0;
};

}  // namespace rdusim
