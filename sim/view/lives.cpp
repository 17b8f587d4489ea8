#include "sim/view/lives.h"

#include <algorithm>
#include <cmath>

namespace rdusim {

namespace {

// The more there is to draw, the coarser.
std::uint32_t bins_for(std::uint32_t units, Cycle cycles) {
  const std::uint32_t most = units <= 32'768 ? 128 : units <= 131'072 ? 64 : 32;
  return static_cast<std::uint32_t>(std::clamp<Cycle>(cycles, 1, most));
}

std::uint32_t level(Cycles spent, Cycles of) {
  if (of == 0 || spent == 0) return 0;
  const double sevenths = std::ceil(7.0 * static_cast<double>(spent) / static_cast<double>(of));
  return static_cast<std::uint32_t>(std::min(7.0, sevenths));
}

void repeat(std::string& row, char symbol, std::uint32_t times) {
  if (times == 0) return;
  row += symbol;
  if (times > 1) row += std::to_string(times);
}

}  // namespace

Lives::Lives(const Roster& roster, Cycle cycles)
    : roster_(roster),
      cycles_(cycles),
      bins_(bins_for(roster.stage_instances(), cycles)),
      width_(std::max<Cycles>(1, ceil_div(cycles, bins_))),
      open_(roster.stage_instances()),
      links_(roster.links.size()),
      memories_(roster.memories()) {
  bins_ = static_cast<std::uint32_t>(std::max<Cycles>(1, ceil_div(cycles, width_)));
}

Cycles Lives::width_of(std::uint32_t bin) const {
  return std::min(cycles_, (bin + Cycles{1}) * width_) - std::min(cycles_, bin * width_);
}

// Writes the symbols of the bins before `until`.
void Lives::close_bins(Open& o, std::uint32_t until) {
  const auto tell = [&](char symbol, std::uint32_t times) {
    if (symbol != o.last) {
      repeat(o.row, o.last, o.times);
      o.last = symbol;
      o.times = 0;
    }
    o.times += times;
  };
  if (o.bin >= until) return;
  const auto most = std::max_element(o.spent.begin() + 1, o.spent.end());
  const std::uint32_t rest = *most == 0 ? 0 : static_cast<std::uint32_t>(most - o.spent.begin());
  tell(life_symbols[level(o.spent[0], width_of(o.bin)) * 8 + rest], 1);
  if (until - o.bin > 1) tell(life_symbols[0], until - o.bin - 1);
  o.bin = until;
  o.spent = {};
}

void Lives::spend(Open& o, Cycle from, Cycle to, std::size_t fate) {
  from = std::max(from, o.reached);
  to = std::min(to, cycles_);
  while (from < to) {
    const auto bin = static_cast<std::uint32_t>(from / width_);
    close_bins(o, bin);
    const Cycle end = std::min(to, (bin + Cycle{1}) * width_);
    o.spent[fate] += end - from;
    from = end;
  }
  o.reached = std::max(o.reached, from);
}

void Lives::on(const FiringStarted& e) {
  Open& o = open_[roster_.of(e.stage)];
  const auto cause = static_cast<std::size_t>(e.cause);
  ++o.totals.firings;
  o.totals.busy += e.busy;
  o.totals.stall[cause] += e.stall;
  spend(o, e.at - std::min(e.at, e.stall), e.at, 1 + cause);
  spend(o, e.at, e.busy < ~Cycle{0} - e.at ? e.at + e.busy : ~Cycle{0}, 0);
}

void Lives::take(Taken& t, Cycle from, Cycle to) const {
  from = std::max(from, t.reached);
  to = std::min(to, cycles_);
  if (from >= to) return;
  if (t.spent.empty()) t.spent.resize(bins_);
  t.busy += to - from;
  t.reached = to;
  while (from < to) {
    const Cycle end = std::min(to, (from / width_ + 1) * width_);
    t.spent[from / width_] += end - from;
    from = end;
  }
}

void Lives::on(const LinkUsed& e) {
  links_[e.link.value].bytes += e.bytes;
  take(links_[e.link.value], e.begin, e.end);
}

void Lives::on(const MemoryUsed& e) {
  Taken& t = memories_[roster_.memory(e.chip, e.space, e.channel)];
  t.bytes += e.bytes;
  take(t, e.begin, e.end);
}

void Lives::finish() {
  std::map<Life, std::uint32_t> known;
  life_of_.reserve(open_.size());
  for (Open& o : open_) {
    close_bins(o, bins_);
    repeat(o.row, o.last, o.times);
    const auto [at, fresh] = known.try_emplace({std::move(o.row), o.totals}, static_cast<std::uint32_t>(lives_.size()));
    if (fresh) lives_.push_back(at->first);
    life_of_.push_back(at->second);
  }
  open_ = {};
}

std::string Lives::row_of(const std::vector<Cycles>& spent, Cycles each) const {
  std::string row;
  char last = 0;
  std::uint32_t times = 0;
  for (std::uint32_t b = 0; b < bins_; ++b) {
    const char symbol = life_symbols[spent.empty() ? 0 : level(spent[b], width_of(b) * each)];
    if (symbol != last) {
      repeat(row, last, times);
      last = symbol;
      times = 0;
    }
    ++times;
  }
  repeat(row, last, times);
  return row;
}

Lives::Load Lives::link(LinkId l) const {
  const Taken& t = links_[l.value];
  return {row_of(t.spent, 1), t.bytes, t.busy};
}

Lives::Load Lives::memory(ChipId chip, std::uint8_t space) const {
  const std::uint32_t channels = roster_.memory_channels[space];
  Load load;
  std::vector<Cycles> spent(bins_);
  for (std::uint32_t c = 0; c < channels; ++c) {
    const Taken& t = memories_[roster_.memory(chip, space, c)];
    load.bytes += t.bytes;
    load.busy += t.busy;
    for (std::uint32_t b = 0; b < t.spent.size(); ++b) spent[b] += t.spent[b];
  }
  if (channels != 0) load.busy /= channels;
  load.row = row_of(spent, channels);
  return load;
}

}  // namespace rdusim
