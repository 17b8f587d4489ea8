#include "sim/semaphore_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

SemaphoreChecker::SemaphoreChecker(const Instances& instances, Violations& violations)
    : instances_(instances),
      violations_(violations),
      counts_(instances.channels()),
      senders_(instances.senders()),
      valid_(instances.receivers().size()),
      greatest_(instances.program().edges.size()) {
  for (const Edge& e : instances.program().edges) semaphore_.push_back(e.handshake == Handshake::semaphore);
}

SemaphoreChecker::Range SemaphoreChecker::range(const ChannelAt& channel, bool ready) const {
  const SpatialProgram& p = instances_.program();
  const Edge& e = p.edge(channel.edge);
  std::uint32_t bits = e.counter_bits;
  std::uint64_t initial = 0;
  if (e.semaphores && (ready || channel.to < e.semaphores->valid.size())) {
    const Semaphore& s = p.semaphores[(ready ? e.semaphores->ready : e.semaphores->valid[channel.to]).value];
    bits = s.width_bits;
    initial = s.initial;
  }
  return {initial, bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1};
}

void SemaphoreChecker::check_value(Cycle at, const ChannelAt& channel, bool ready, std::uint64_t value,
                                   std::uint64_t expected) {
  const char* name = ready ? "ready" : "valid";
  const Range r = range(channel, ready);
  greatest_[channel.edge.value] = std::max(greatest_[channel.edge.value], value);
  if (value > r.greatest)
    violated(at, channel, name, fmt::format("has value {}, and its width holds at most {}", value, r.greatest));
  if (value != r.initial + expected) {
    violated(at, channel, name, fmt::format("has value {}, and the signals seen make {}", value, r.initial + expected));
  }
}

void SemaphoreChecker::on(const PageLanded& e) {
  if (!semaphore_[e.channel.edge.value]) return;
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  ++c.landed;
  const std::uint64_t sent = instances_.turn(n).of(ready_consumed(e.channel.edge, e.channel.from));
  if (c.landed <= sent) return;
  describe(violations_.found(Code::RDU7005, e.at, instances_.describe(e.channel),
                             "page {} lands, and the sender consumed ready for {} pages", e.page, sent),
           e.channel);
}

void SemaphoreChecker::on(const ReadyRaised& e) {
  Counts& c = counts_[instances_.of(e.channel)];
  Sender& s = senders_[instances_.sender(e.channel.edge, e.channel.from)];
  if (e.generation != c.ready_raised) {
    violated(e.at, e.channel, "ready",
             fmt::format("is raised for generation {} where {} is next", e.generation, c.ready_raised));
  }
  ++c.ready_raised;
  ++s.raised;
  if (c.ready_raised > s.consumed + 1) {
    violated(e.at, e.channel, "ready",
             fmt::format("is raised {} times, and the sender has begun {} generations", c.ready_raised, s.consumed));
  }
  const std::uint64_t members = instances_.channels_of(e.channel.edge, e.channel.from);
  check_value(e.at, e.channel, true, e.value, s.raised - std::min(s.raised, s.consumed * members));
}

void SemaphoreChecker::on(const ReadyConsumed& e) {
  Sender& s = senders_[instances_.sender(e.edge, e.from)];
  const std::uint32_t first = instances_.first_channel(e.edge, e.from);
  const std::uint32_t members = instances_.channels_of(e.edge, e.from);
  if (members == 0) return;
  const ChannelAt channel = instances_.channel_at(first);
  if (e.generation != s.consumed) {
    violated(e.at, channel, "ready",
             fmt::format("is consumed for generation {} where {} is next", e.generation, s.consumed));
  }
  ++s.consumed;
  for (std::uint32_t i = first; i < first + members; ++i) {
    if (counts_[i].ready_raised < s.consumed) {
      violated(e.at, instances_.channel_at(i), "ready",
               fmt::format("is consumed for generation {}, and this receiver raised {}", e.generation,
                           counts_[i].ready_raised));
      return;
    }
  }
  check_value(e.at, channel, true, e.value, s.raised - std::min<std::uint64_t>(s.raised, s.consumed * members));
}

void SemaphoreChecker::on(const ValidRaised& e) {
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  if (e.generation != c.valid_raised) {
    violated(e.at, e.channel, "valid",
             fmt::format("is raised for generation {} where {} is next", e.generation, c.valid_raised));
  }
  ++c.valid_raised;
  if (c.valid_raised > senders_[instances_.sender(e.channel.edge, e.channel.from)].consumed) {
    violated(e.at, e.channel, "valid",
             fmt::format("is raised for generation {} for which the sender did not consume ready", e.generation));
  }
  const Turn& turn = instances_.turn(n);
  if (turn.has(e.generation) && c.landed < turn.of(e.generation + 1)) {
    describe(violations_.found(Code::RDU7024, e.at, instances_.describe(e.channel),
                               "semaphore valid is raised for generation {} before its page has landed ({} pages have)",
                               e.generation, c.landed),
             e.channel);
  }
  std::uint64_t& value = valid_[instances_.receiver_of(n)];
  ++value;
  check_value(e.at, e.channel, false, e.value, value);
}

void SemaphoreChecker::on(const ValidConsumed& e) {
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  if (e.generation != c.valid_consumed) {
    violated(e.at, e.channel, "valid",
             fmt::format("is consumed for generation {} where {} is next", e.generation, c.valid_consumed));
  }
  ++c.valid_consumed;
  std::uint64_t& value = valid_[instances_.receiver_of(n)];
  if (value > 0) --value;
  if (c.valid_consumed > c.valid_raised) {
    violated(e.at, e.channel, "valid",
             fmt::format("is consumed {} times and was raised {} times", c.valid_consumed, c.valid_raised));
    return;
  }
  check_value(e.at, e.channel, false, e.value, value);
}

void SemaphoreChecker::violated(Cycle at, const ChannelAt& channel, const char* semaphore, const std::string& what) {
  describe(violations_.found(Code::RDU7005, at, instances_.describe(channel), "semaphore {} {}", semaphore, what),
           channel);
}

void SemaphoreChecker::describe(Diagnostic& d, const ChannelAt& channel) const {
  const Counts& c = counts_[instances_.of(channel)];
  const SpatialProgram& p = instances_.program();
  const StageAt from{p.edge(channel.edge).from, channel.from};
  const StageAt to{p.edge(channel.edge).to[channel.to], channel.receiver};
  d.note(instances_.place(from), "sender '{}': {} generations begun, valid raised {} times for this receiver",
         p.stage(from.stage).name, senders_[instances_.sender(channel.edge, channel.from)].consumed, c.valid_raised);
  d.note(instances_.place(to), "receiver '{}': ready raised {} times, {} pages landed, valid consumed {} times",
         p.stage(to.stage).name, c.ready_raised, c.landed, c.valid_consumed);
}

void SemaphoreChecker::finish(Cycle at) {
  for (std::uint32_t n = 0; n < counts_.size(); ++n) {
    const ChannelAt& channel = instances_.channel_at(n);
    if (!semaphore_[channel.edge.value]) continue;
    const Counts& c = counts_[n];
    const std::uint64_t consumed = ready_consumed(channel.edge, channel.from);
    if (c.ready_raised == consumed && c.valid_raised == consumed && c.valid_consumed == c.valid_raised) continue;
    violations_.found(
        Code::RDU7008, at, instances_.describe(channel),
        "semaphores are not back at their initial values: ready raised {}, consumed {}; valid raised {}, consumed {}",
        c.ready_raised, consumed, c.valid_raised, c.valid_consumed);
  }
}

}  // namespace rdusim
