// What chips of one process send to chips of another in a window, as bytes.
//
// It is taken in between two windows. In which order does not matter: events of a cycle are sorted by the queue that
// they are put in, and each page has a slot of its own, which nobody reads before the event that follows it. So nothing
// depends on how chips are divided.
//
// Sets of contributions are numbered by each process for itself: a set crosses once, by what it holds, and is known by
// the sender's number from then on.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "models/events/provenance.h"
#include "models/units/chip.h"

namespace rdusim {

using Bits = std::vector<std::byte>;

template <class T>
void put(Bits& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// Takes values off the front. Beyond the end it gives zeros, and is no longer good().
class Taker {
 public:
  explicit Taker(std::span<const std::byte> from) : from_(from) {}
  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (const auto bytes = take(sizeof(T)); bytes.size() == sizeof(T))
      std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(std::uint64_t n) {
    if (n > from_.size()) {
      good_ = false;
      n = 0;
    }
    const auto front = from_.first(n);
    from_ = from_.subspan(n);
    return front;
  }
  bool good() const { return good_; }
  bool empty() const { return from_.empty(); }

 private:
  std::span<const std::byte> from_;
  bool good_ = true;
};

void put_set(Bits& to, const std::vector<Contribution>& set);
std::vector<Contribution> take_set(Taker& from);

// What goes to one process.
class WindowOut {
 public:
  void post(std::uint32_t chip, Cycle at, const Event& e);
  void deliver(std::uint32_t chip, std::uint32_t channel, std::uint64_t page, const PageTag& tag,
               std::span<const std::byte> values, std::uint32_t bytes, Cycle sent, const ProvenanceTable& table);
  // Time of the earliest event in it.
  Cycle least() const { return least_; }
  // Its parts, one after the other, are what WindowIn reads; valid until clear().
  std::array<std::span<const std::byte>, 2> parts() const { return {std::span(sets_), std::span(messages_)}; }
  std::uint64_t set_bytes() const { return sets_.size(); }
  void clear();

  static constexpr Cycle never = ~Cycle{0};

 private:
  Cycle least_ = never;
  Bits sets_, messages_;
  std::vector<bool> known_;  // there, by this process's numbers
};

// What comes from one process.
class WindowIn {
 public:
  // Gives every message to `chips`, and says so of each event. False where the bytes are not what WindowOut writes.
  template <class Expect>
  bool read(std::span<const std::byte> sets, std::span<const std::byte> messages, ProvenanceTable& table,
            const std::vector<std::unique_ptr<Chip>>& chips, Expect&& expect);

 private:
  bool learn(std::span<const std::byte> sets, ProvenanceTable& table);
  std::vector<ProvenanceId> mine_{0};  // by the sender's numbers
};

// ---- how messages are written

struct PostedEvent {
  Cycle at = 0;
  Event event;
};
struct DeliveredPage {
  std::uint64_t page = 0;
  Cycle sent = 0;
  PageTag tag;
  std::uint32_t channel = 0, bytes = 0;
  std::uint64_t values = 0;  // bytes behind it
};
struct MessageHead {
  std::uint32_t chip = 0;
  std::uint32_t is_page = 0;
};

template <class Expect>
bool WindowIn::read(std::span<const std::byte> sets, std::span<const std::byte> messages, ProvenanceTable& table,
                    const std::vector<std::unique_ptr<Chip>>& chips, Expect&& expect) {
  if (!learn(sets, table)) return false;
  Taker from(messages);
  while (!from.empty()) {
    const auto head = from.take<MessageHead>();
    if (head.chip >= chips.size() || !chips[head.chip]) return false;
    if (head.is_page == 0) {
      const auto m = from.take<PostedEvent>();
      if (!from.good()) return false;
      chips[head.chip]->post(m.at, m.event);
      expect(head.chip, m.at);
      continue;
    }
    auto m = from.take<DeliveredPage>();
    const auto values = from.take(m.values);
    if (!from.good() || m.tag.provenance >= mine_.size()) return false;
    m.tag.provenance = mine_[m.tag.provenance];
    chips[head.chip]->accept(m.channel, m.page, m.tag, values, m.bytes, m.sent);
  }
  return from.good();
}

}  // namespace rdusim
