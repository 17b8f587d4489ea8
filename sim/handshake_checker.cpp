#include "sim/handshake_checker.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/print.h"

namespace rdusim {

HandshakeChecker::HandshakeChecker(const Instances& instances, Violations& violations)
    : instances_(instances), violations_(violations) {
  const SpatialProgram& p = instances.program();
  for (const Buffer& b : p.buffers) {
    for (std::uint32_t i = 0; i < instances.instances(b.id); ++i) {
      constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
      watched_.push_back({{b.initial_pages, b.initial_pages, 0, b.initial_pages, 0, 0, 0},
                          static_cast<std::uint32_t>(std::min(b.depth_pages, most)),
                          static_cast<std::uint32_t>(popped_.size())});
      popped_.resize(popped_.size() + instances.ends(b.id).consumers.size());
    }
  }
  watched_.push_back({{}, 0, static_cast<std::uint32_t>(popped_.size())});
  for (const Stage& s : p.stages) {
    first_intake_.push_back(static_cast<std::uint32_t>(intakes_.size()));
    first_taken_.push_back(taken_.size());
    for (const Port& port : s.ports) {
      if (port.direction != Direction::input || port.need.empty() || port.pop.empty()) continue;
      const bool cyclic = port.need.size() != 1 || port.pop.size() != 1;
      intakes_.push_back({port.buffer, port.need.front().value, port.pop.front().value, cyclic ? &port : nullptr});
    }
    taken_.resize(taken_.size() + (intakes_.size() - first_intake_.back()) * instances.instances(s.id));
  }
  first_intake_.push_back(static_cast<std::uint32_t>(intakes_.size()));
}

void HandshakeChecker::on(const FiringStarted& e) {
  const std::uint32_t stage = e.stage.stage.value;
  const std::uint32_t first = first_intake_[stage];
  const std::uint32_t ports = first_intake_[stage + 1] - first;
  std::uint64_t* taken = taken_.data() + first_taken_[stage] + std::size_t{e.stage.instance} * ports;
  for (std::uint32_t i = 0; i < ports; ++i) {
    const Intake& in = intakes_[first + i];
    const std::uint32_t need = in.cyclic == nullptr ? in.need : at_phase(in.cyclic->need, e.firing);
    const BufferAt buffer{in.buffer, e.stage.instance};
    if (need != 0 && taken[i] + need > counts(instances_.of(buffer)).pushed) {
      Diagnostic& d =
          violations_.found(Code::RDU7024, e.at, instances_.place(e.stage),
                            "firing {} of '{}' takes page {} of '{}' before it was written ({} pages were pushed)",
                            e.firing, instances_.program().stage(e.stage.stage).name, taken[i] + need - 1,
                            instances_.program().buffer(in.buffer).name, counts(instances_.of(buffer)).pushed);
      describe(d, buffer);
    }
    taken[i] += in.cyclic == nullptr ? in.pop : at_phase(in.cyclic->pop, e.firing);
  }
}

void HandshakeChecker::on(const PageReserved& e) {
  const std::uint32_t n = instances_.of(e.buffer);
  Watched& w = watched_[n];
  BufferCounts& c = w.counts;
  c.reserved += e.pages;
  if (c.reserved > c.popped + w.depth) {
    violated(Code::RDU7003, e.at, e.buffer, 0, "more pages are reserved than were popped and fit");
  }
  c.peak_pages = std::max(c.peak_pages, c.reserved - c.popped);
}

void HandshakeChecker::on(const PagePushed& e) {
  BufferCounts& c = watched_[instances_.of(e.buffer)].counts;
  if (e.page != c.pushed) {
    Diagnostic& d = violations_.found(Code::RDU7025, e.at, instances_.place(e.buffer),
                                      "page {} is pushed where page {} is next", e.page, c.pushed);
    describe(d, e.buffer);
  }
  ++c.pushed;
  c.bytes += e.bytes;
  c.last_pushed = e.at;
  if (c.pushed > c.reserved) violated(Code::RDU7002, e.at, e.buffer, 0, "a page is pushed that was not reserved");
}

void HandshakeChecker::on(const PagePopped& e) {
  const std::uint32_t n = instances_.of(e.buffer);
  BufferCounts& c = watched_[n].counts;
  const std::uint32_t first = watched_[n].first_consumer;
  const std::uint32_t end = watched_[n + 1].first_consumer;
  if (first + e.consumer >= end) {
    violated(Code::RDU7001, e.at, e.buffer, e.consumer, "a page is popped by a consumer that the buffer does not have");
    return;
  }
  std::uint64_t& mine = popped_[first + e.consumer];
  if (e.page != mine) {
    Diagnostic& d = violations_.found(Code::RDU7025, e.at, instances_.place(e.buffer),
                                      "page {} is popped where page {} is next", e.page, mine);
    describe(d, e.buffer);
  }
  ++mine;
  c.last_popped = e.at;
  if (mine > c.pushed) violated(Code::RDU7001, e.at, e.buffer, e.consumer, "a page is popped that was not pushed");
  std::uint64_t slowest = mine;
  for (std::uint32_t i = first; i < end; ++i) slowest = std::min(slowest, popped_[i]);
  c.popped = slowest;
}

void HandshakeChecker::violated(Code code, Cycle at, const BufferAt& buffer, std::uint32_t consumer, const char* what) {
  const std::uint32_t n = instances_.of(buffer);
  const BufferCounts& c = counts(n);
  const std::uint32_t first = watched_[n].first_consumer;
  const std::uint64_t by = first + consumer < watched_[n + 1].first_consumer ? popped_[first + consumer] : 0;
  Diagnostic& d =
      violations_.found(code, at, instances_.place(buffer),
                        "{}: buffer '{}' has reserved {}, pushed {}, popped {} (by this consumer {}), depth {}", what,
                        instances_.program().buffer(buffer.buffer).name, c.reserved, c.pushed, c.popped, by,
                        instances_.program().buffer(buffer.buffer).depth_pages);
  describe(d, buffer);
}

void HandshakeChecker::describe(Diagnostic& d, const BufferAt& buffer) const {
  if (violations_.dropped(d)) return;
  const SpatialProgram& p = instances_.program();
  const BufferEnds& ends = instances_.ends(buffer.buffer);
  if (ends.local)
    d.note(instances_.place(buffer), "edge {}, {}", ends.local->value, name_of(p.edge(*ends.local).handshake));
  if (ends.landing)
    d.note(instances_.place(buffer), "landing buffer of edge {}, {}", ends.landing->value,
           name_of(p.edge(*ends.landing).handshake));
  if (ends.producer) {
    d.note(instances_.place(StageAt{*ends.producer, buffer.instance}), "producer '{}'", p.stage(*ends.producer).name);
  }
  for (std::size_t i = 0; i < ends.consumers.size(); ++i) {
    const std::uint64_t popped = this->popped(instances_.of(buffer), static_cast<std::uint32_t>(i));
    if (ends.consumers[i].stage) {
      const StageAt stage{*ends.consumers[i].stage, buffer.instance};
      d.note(instances_.place(stage), "consumer {} '{}', popped {}", i, p.stage(stage.stage).name, popped);
    } else {
      d.note(instances_.place(buffer), "consumer {}: crossing edge {}, popped {}", i, ends.consumers[i].crossing->value,
             popped);
    }
  }
}

void HandshakeChecker::repeated(const Repetition& r) {
  const SpatialProgram& p = instances_.program();
  // What each launch counts, all count.
  const auto scale = [&](std::uint64_t& n, std::uint64_t initial) { n += (n - initial) / r.done * r.times; };
  for (std::uint32_t n = 0; n + 1 < watched_.size(); ++n) {
    const BufferId b = instances_.buffer_at(n).buffer;
    const auto& producer = instances_.ends(b).producer;
    if (!producer || p.stage(*producer).section != r.section) continue;
    BufferCounts& c = watched_[n].counts;
    const std::uint64_t initial = p.buffer(b).initial_pages;
    scale(c.reserved, initial);
    scale(c.pushed, initial);
    scale(c.popped, 0);
    scale(c.bytes, 0);
    for (std::uint32_t i = watched_[n].first_consumer; i < watched_[n + 1].first_consumer; ++i) scale(popped_[i], 0);
    for (Cycle* last : {&c.last_pushed, &c.last_popped})
      if (*last >= r.start) *last += r.times * r.period;
  }
}

void HandshakeChecker::finish(Cycle at) {
  for (std::uint32_t n = 0; n + 1 < watched_.size(); ++n) {
    const BufferCounts& c = counts(n);
    const BufferAt buffer = instances_.buffer_at(n);
    const std::uint64_t initial = instances_.program().buffer(buffer.buffer).initial_pages;
    bool balanced = c.reserved == c.pushed;
    // Initial pages are there again at the end: what was pushed during the run was popped.
    for (std::uint32_t i = watched_[n].first_consumer; i < watched_[n + 1].first_consumer; ++i)
      balanced = balanced && popped_[i] + initial == c.pushed;
    if (!balanced)
      violated(Code::RDU7007, at, buffer, 0, "pages reserved, pushed and popped do not balance at the end");
  }
}

}  // namespace rdusim
