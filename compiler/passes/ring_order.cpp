#include "compiler/passes/ring_order.h"

#include <algorithm>

namespace rdusim {
namespace {

// Depth-first search for a round through all chips. Steps are bounded: the question is NP-complete, and every topology
// of a real machine answers it at once or has no round.
class Search {
 public:
  Search(const Target& target, std::uint32_t chips) : next_(chips), is_last_(chips, false), taken_(chips, false) {
    std::vector<std::vector<std::uint32_t>> behind(target.switches);  // chips that a switch has a link to
    for (const ChipLinkParameters& l : target.links)
      if (l.from.value >= target.chips && l.to.value < chips) behind[l.from.value - target.chips].push_back(l.to.value);
    const auto follows = [&](std::uint32_t from, std::uint32_t to) {
      if (to >= chips || to == from) return;
      next_[from].push_back(to);
      if (to == 0) is_last_[from] = true;
    };
    for (const ChipLinkParameters& l : target.links) {
      if (l.from.value >= chips) continue;
      if (l.to.value < target.chips)
        follows(l.from.value, l.to.value);
      else
        for (const std::uint32_t to : behind[l.to.value - target.chips]) follows(l.from.value, to);
    }
    for (auto& list : next_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  std::vector<ChipId> round() {
    take(0);
    if (!extend()) return {};
    return order_;
  }

 private:
  static constexpr std::uint64_t most_steps = 20'000;

  void take(std::uint32_t chip) {
    taken_[chip] = true;
    order_.push_back(ChipId(chip));
  }

  // Whether every chip that is left can be reached over others that are, and one of them leads back to the first: a
  // branch that fails this has cut off its way home, and is given up at once.
  bool can_finish() const {
    std::vector<bool> reached(next_.size(), false);
    std::vector<std::uint32_t> from = {order_.back().value};
    std::size_t count = 0;
    bool leads_back = false;
    while (!from.empty()) {
      const std::uint32_t at = from.back();
      from.pop_back();
      for (const std::uint32_t c : next_[at]) {
        if (taken_[c] || reached[c]) continue;
        reached[c] = true;
        leads_back = leads_back || is_last_[c];
        ++count;
        from.push_back(c);
      }
    }
    return leads_back && count == next_.size() - order_.size();
  }

  bool extend() {
    if (order_.size() == next_.size()) return is_last_[order_.back().value];
    if (++steps_ > most_steps) return false;
    if (!can_finish()) return false;
    for (const std::uint32_t chip : next_[order_.back().value]) {
      if (taken_[chip]) continue;
      take(chip);
      if (extend()) return true;
      taken_[chip] = false;
      order_.pop_back();
    }
    return false;
  }

  std::vector<std::vector<std::uint32_t>> next_;  // chips that a chip has a link to, rising
  std::vector<bool> is_last_;                     // chips that have a link to the first
  std::vector<bool> taken_;
  std::vector<ChipId> order_;
  std::uint64_t steps_ = 0;
};

}  // namespace

std::vector<ChipId> ring_order(const Target& target, std::uint32_t chips) {
  std::vector<ChipId> order = chips > 1 ? Search(target, chips).round() : std::vector<ChipId>{};
  if (!order.empty()) return order;
  for (std::uint32_t c = 0; c < chips; ++c) order.push_back(ChipId(c));
  return order;
}

}  // namespace rdusim
