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
  SectionSpan& s = sections_[e.section.value];
  if (instances_.program().sections[e.section.value].relaunched) begin_launch(e.section);
  s.start = s.start.value_or(e.at);
  s.launched = e.at;
  s.runs = true;
}
void Statistics::begin_launch(SectionId section) {
  for (std::uint32_t n = 0; n < instances_.stages(); ++n)
    if (instances_.program().stage(instances_.stage_at(n).stage).section == section) stages_[n].fired = false;
  before_ = {stages_, links_, memories_};
}

void Statistics::repeated(const Repetition& r) {
  const Cycles shift = r.times * r.period;
  const auto more = [&](std::uint64_t& n, std::uint64_t before) { n += (n - before) * r.times; };
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    StageStatistics& s = stages_[i];
    const StageStatistics& b = before_.stages[i];
    if (s.firings == b.firings) continue;
    more(s.firings, b.firings);
    more(s.busy, b.busy);
    more(s.before_first, b.before_first);
    for (std::size_t c = 0; c < stall_causes; ++c) {
      more(s.stall[c], b.stall[c]);
      more(s.first_stall[c], b.first_stall[c]);
    }
    s.engine_free += shift;
    s.last += shift;
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    LinkStatistics& l = links_[i];
    const LinkStatistics& b = before_.links[i];
    if (l.bytes == b.bytes) continue;
    more(l.bytes, b.bytes);
    more(l.broken, b.broken);
    // A launch ends when nothing is under way.
    l.busy = l.busy_until(r.end);
    l.spans.clear();
    more(l.busy, b.busy_until(r.start));
  }
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    MemoryStatistics& m = memories_[i];
    const MemoryStatistics& b = before_.memories[i];
    if (m.last > b.last) m.last += shift;
    more(m.read, b.read);
    more(m.written, b.written);
    more(m.busy, b.busy);
  }
  SectionSpan& s = sections_[r.section.value];
  s.over += r.times * (r.end - r.start);
  s.launched += shift;
  s.end = s.end.value_or(r.end) + shift;
}

void Statistics::on(const SectionEnded& e) {
  SectionSpan& s = sections_[e.section.value];
  s.end = e.at;
  s.over += e.at - std::min(s.launched, e.at);
  s.runs = false;
}

void Statistics::on(const FiringStarted& e) {
  StageStatistics& s = stages_[instances_.of(e.stage)];
  ++s.firings;
  s.busy += e.busy;
  s.stall[static_cast<std::size_t>(e.cause)] += e.stall;
  if (!s.fired) {
    s.fired = true;
    s.first = s.first.value_or(e.at);
    s.first_stall[static_cast<std::size_t>(e.cause)] += e.stall;
    const SectionSpan& section = sections_[instances_.program().stage(e.stage.stage).section.value];
    s.before_first += e.at - std::min(section.launched, e.at);
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
