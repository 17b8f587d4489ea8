#include "models/systemc/window_mail.h"

#include <algorithm>

namespace rdusim {

void put_set(Bits& to, const std::vector<Contribution>& set) {
  put(to, std::uint64_t{set.size()});
  for (const Contribution& c : set) put(to, c);
}

std::vector<Contribution> take_set(Taker& from) {
  std::vector<Contribution> set;
  for (auto n = from.take<std::uint64_t>(); n > 0 && from.good(); --n) set.push_back(from.take<Contribution>());
  return set;
}

void WindowOut::post(std::uint32_t chip, Cycle at, const Event& e) {
  least_ = std::min(least_, at);
  put(messages_, MessageHead{chip, 0});
  put(messages_, PostedEvent{at, e});
}

void WindowOut::deliver(std::uint32_t chip, std::uint32_t channel, std::uint64_t page, const PageTag& tag,
                        std::span<const std::byte> values, std::uint32_t bytes, Cycle sent,
                        const ProvenanceTable& table) {
  if (const ProvenanceId id = tag.provenance; id != 0) {
    if (known_.size() <= id) known_.resize(table.size());
    if (!known_[id]) {
      known_[id] = true;
      put(sets_, std::uint64_t{id});
      put_set(sets_, table.contributions(id));
    }
  }
  put(messages_, MessageHead{chip, 1});
  put(messages_, DeliveredPage{page, sent, tag, channel, bytes, values.size()});
  messages_.insert(messages_.end(), values.begin(), values.end());
}

void WindowOut::clear() {
  least_ = never;
  sets_.clear();
  messages_.clear();
}

bool WindowIn::learn(std::span<const std::byte> sets, ProvenanceTable& table) {
  Taker from(sets);
  while (!from.empty()) {
    const auto id = from.take<std::uint64_t>();
    const auto set = take_set(from);
    if (!from.good() || id >> 32U != 0) return false;
    if (mine_.size() <= id) mine_.resize(id + 1);
    mine_[id] = table.intern(set);
  }
  return from.good();
}

}  // namespace rdusim
