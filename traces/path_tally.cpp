#include "traces/path_tally.h"

#include <algorithm>

namespace rdusim {

std::string_view name_of(PathPiece piece) {
  static constexpr std::array<std::string_view, path_pieces> names = {
      "launch",       "compute",      "load",           "store",          "landing",        "sending",
      "crossing",     "signal",       "waiting_input",  "waiting_room",   "waiting_memory", "waiting_network",
      "waiting_link", "waiting_bank", "waiting_engine", "waiting_credit", "drain"};
  return names[static_cast<std::size_t>(piece)];
}

namespace {

bool longer(const PathStep& a, const PathStep& b) {
  const Cycles x = a.to - a.from, y = b.to - b.from;
  return x != y ? x > y : a.from < b.from;
}

}  // namespace

void PathTally::add(const PathStep& earlier) {
  if (earlier.from >= earlier.to) return;
  if (!latest_) {
    latest_ = earlier;
    return;
  }
  PathStep& last = earliest_ ? *earliest_ : *latest_;
  if (last.about == earlier.about) {
    last.from = earlier.from;
    return;
  }
  if (earliest_) settle(*earliest_);
  earliest_ = earlier;
}

void PathTally::add(const PathTally& earlier) {
  if (!earlier.latest_) return;
  add(*earlier.latest_);
  if (!earlier.earliest_) return;
  if (earliest_) settle(*earliest_);
  pieces_ += earlier.pieces_;
  for (const auto& [about, cycles] : earlier.sums_) sum(about, cycles);
  for (const PathStep& s : earlier.longest_) keep(s);
  earliest_ = earlier.earliest_;
}

void PathTally::close() {
  for (std::optional<PathStep>* outermost : {&latest_, &earliest_})
    if (*outermost) settle(**outermost);
  latest_ = earliest_ = std::nullopt;
}

std::vector<PathStep> PathTally::longest() const {
  std::vector<PathStep> list = longest_;
  std::sort(list.begin(), list.end(), [](const PathStep& a, const PathStep& b) { return a.from < b.from; });
  return list;
}

void PathTally::settle(const PathStep& s) {
  ++pieces_;
  sum(s.about, s.to - s.from);
  keep(s);
}

void PathTally::keep(const PathStep& s) {
  if (longest_.size() == most_) {
    if (most_ == 0 || !longer(s, longest_.front())) return;
    std::pop_heap(longest_.begin(), longest_.end(), longer);
    longest_.pop_back();
  }
  longest_.push_back(s);
  std::push_heap(longest_.begin(), longest_.end(), longer);
}

void PathTally::sum(const About& about, Cycles cycles) {
  const auto at = std::lower_bound(sums_.begin(), sums_.end(), about,
                                   [](const auto& entry, const About& a) { return entry.first < a; });
  if (at == sums_.end() || at->first != about)
    sums_.insert(at, {about, cycles});
  else
    at->second += cycles;
}

}  // namespace rdusim
