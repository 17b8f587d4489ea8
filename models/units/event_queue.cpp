#include "models/units/event_queue.h"

#include <algorithm>
#include <bit>

namespace rdusim {
namespace {

constexpr auto later = [](const auto& a, const auto& b) { return a.at > b.at; };

}  // namespace

EventQueue::EventQueue() = default;

void EventQueue::put(Cycle at, const Event& e) {
  ++pending_;
  if (at - base_ >= slots) {
    far_.push_back({at, e});
    std::push_heap(far_.begin(), far_.end(), later);
    return;
  }
  std::uint32_t node = free_;
  if (node == 0) {
    nodes_.emplace_back();
    node = static_cast<std::uint32_t>(nodes_.size());
  } else {
    free_ = nodes_[node - 1].next;
  }
  const auto slot = static_cast<std::uint32_t>(at % slots);
  nodes_[node - 1] = {e, head_[slot]};
  head_[slot] = node;
  used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  used_words_ |= std::uint64_t{1} << (slot / 64);
}

std::optional<Cycle> EventQueue::next() const {
  if (pending_ == 0) return std::nullopt;
  std::optional<Cycle> best;
  if (used_words_ != 0) {
    // The first used slot after base_, going round.
    const auto from = static_cast<std::uint32_t>((base_ + 1) % slots);
    const std::uint32_t word = from / 64;
    std::uint32_t slot = 0;
    const std::uint64_t here = used_[word] & (~std::uint64_t{0} << (from % 64));
    if (here != 0) {
      slot = word * 64 + static_cast<std::uint32_t>(std::countr_zero(here));
    } else {
      const std::uint64_t after = word == 63 ? 0 : used_words_ & (~std::uint64_t{0} << (word + 1));
      const std::uint64_t words = after != 0 ? after : used_words_;
      const auto w = static_cast<std::uint32_t>(std::countr_zero(words));
      slot = w * 64 + static_cast<std::uint32_t>(std::countr_zero(used_[w]));
    }
    const std::uint32_t ahead = (slot - from) % slots;
    best = base_ + 1 + ahead;
  }
  if (!far_.empty() && (!best || far_.front().at < *best)) best = far_.front().at;
  return best;
}

void EventQueue::take(Cycle now, std::vector<Event>& out) {
  out.clear();
  const auto slot = static_cast<std::uint32_t>(now % slots);
  if (now - base_ < slots && head_[slot] != 0) {
    std::uint32_t node = head_[slot];
    head_[slot] = 0;
    used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    if (used_[slot / 64] == 0) used_words_ &= ~(std::uint64_t{1} << (slot / 64));
    while (node != 0) {
      Node& n = nodes_[node - 1];
      out.push_back(n.event);
      const std::uint32_t next = n.next;
      n.next = free_;
      free_ = node;
      node = next;
    }
    std::reverse(out.begin(), out.end());  // the list has the last one first
  }
  while (!far_.empty() && far_.front().at <= now) {
    out.push_back(far_.front().event);
    std::pop_heap(far_.begin(), far_.end(), later);
    far_.pop_back();
  }
  pending_ -= out.size();
  base_ = now;
  sort_events(out);
}

}  // namespace rdusim
