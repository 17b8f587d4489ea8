#include "sim/statistics.h"

#include <algorithm>

namespace rdusim {

std::string_view name_of(StallCause cause) {
  switch (cause) {
    case StallCause::input_starvation:
      return "input_starvation";
    case StallCause::back_pressure:
      return "back_pressure";
    case StallCause::memory:
      return "memory";
    case StallCause::network_contention:
      return "network_contention";
    case StallCause::link:
      return "link";
    case StallCause::bank_conflict:
      return "bank_conflict";
    case StallCause::engine:
      return "engine";
  }
  return "";
}

Cycles LinkStatistics::busy_until(Cycle end) const {
  Cycles sum = busy;
  for (const Slot& s : spans) sum += std::min(s.end, end) - std::min(s.begin, end);
  return sum;
}

Cycles StageStatistics::stalled() const {
  Cycles sum = 0;
  for (Cycles c : stall) sum += c;
  return sum;
}

Cycles StageStatistics::total(Cycle section_start) const {
  if (!first) return 0;
  return std::max({last, engine_free, section_start}) - section_start;
}

Cycles StageStatistics::idle(Cycle section_start) const {
  const Cycles used = busy + stalled();
  const Cycles all = total(section_start);
  return all > used ? all - used : 0;
}

Statistics::Statistics(const Instances& instances, const Target& target, std::atomic<Cycle>* reached)
    : instances_(instances),
      reached_(reached),
      stages_(instances.stages()),
      links_(target.links.size()),
      memories_(std::size_t{target.chips} * spaces),
      sections_(instances.program().sections.size()) {}

void Statistics::on(const SectionStarted& e) {
  sections_[e.section.value].start = e.at;
}
void Statistics::on(const SectionEnded& e) {
  sections_[e.section.value].end = e.at;
}

void Statistics::on(const FiringStarted& e) {
  StageStatistics& s = stages_[instances_.of(e.stage)];
  ++s.firings;
  s.busy += e.busy;
  s.stall[static_cast<std::size_t>(e.cause)] += e.stall;
  if (!s.first) {
    s.first = e.at;
    s.first_stall = e.stall;
    s.first_cause = e.cause;
  }
  s.engine_free = e.at + e.busy;
  if (reached_ != nullptr) reached_->store(e.at, std::memory_order_relaxed);
}

void Statistics::on(const FiringCompleted& e) {
  StageStatistics& s = stages_[instances_.of(e.stage)];
  s.last = std::max(s.last, e.at);
}

void Statistics::on(const LinkUsed& e) {
  LinkStatistics& l = links_[e.link.value];
  l.bytes += e.bytes;
  if (e.broken) ++l.broken;
  if (!l.spans.empty() && e.begin <= l.spans.back().end) {
    l.spans.back().end = std::max(l.spans.back().end, e.end);
    return;
  }
  const auto over = std::find_if(l.spans.begin(), l.spans.end(), [&](const Slot& s) { return s.end > e.at; });
  for (auto s = l.spans.begin(); s != over; ++s) l.busy += s->end - s->begin;
  l.spans.erase(l.spans.begin(), over);
  l.spans.push_back({e.begin, e.end});
}

void Statistics::on(const MemoryUsed& e) {
  const std::size_t n = e.chip.value * spaces + e.space;
  if (e.space >= spaces || n >= memories_.size()) return;
  MemoryStatistics& m = memories_[n];
  m.busy += e.taken();
  const bool first_read = !e.write && m.read == 0;
  (e.write ? m.written : m.read) += e.bytes;
  if (first_read) m.first.reset(), m.last = 0;
  if (e.write && m.read != 0) return;
  m.first = std::min(m.first.value_or(e.begin), e.begin);
  m.last = std::max(m.last, e.end);
}

Cycle Statistics::section_start(StageId s) const {
  const SectionId section = instances_.program().stage(s).section;
  return section.value < sections_.size() ? sections_[section.value].start.value_or(0) : 0;
}

std::uint32_t Statistics::slowest_instance(StageId s) const {
  const std::uint32_t first = instances_.of(StageAt{s, 0});
  std::uint32_t slowest = 0;
  for (std::uint32_t i = 1; i < instances_.instances(s); ++i) {
    if (stages_[first + i].last > stages_[first + slowest].last) slowest = i;
  }
  return slowest;
}

}  // namespace rdusim
