#include "sim/barrier_checker.h"

#include <fmt/format.h>

namespace rdusim {

BarrierChecker::BarrierChecker(const Instances& instances, Violations& violations)
    : instances_(instances),
      violations_(violations),
      counts_(instances.senders() + instances.channels()),
      landed_(instances.channels()) {
  for (const Edge& e : instances.program().edges) barrier_.push_back(e.handshake == Handshake::barrier);
}

bool BarrierChecker::known(Cycle at, EdgeId e, std::uint32_t from, std::uint32_t member) {
  if (member < members(e, from)) return true;
  violations_.found(Code::RDU7006, at, fmt::format("edge {}", e.value), "member {} takes part in a barrier of {}",
                    member, members(e, from));
  return false;
}

std::string BarrierChecker::name(EdgeId e, std::uint32_t from, std::uint32_t member) const {
  if (member == 0) return instances_.describe(StageAt{instances_.program().edge(e).from, from});
  const ChannelAt& c = instances_.channel_at(instances_.first_channel(e, from) + member - 1);
  return instances_.describe(StageAt{instances_.program().edge(e).to[c.to], c.receiver});
}

void BarrierChecker::on(const PageLanded& e) {
  if (!barrier_[e.channel.edge.value]) return;
  const std::uint32_t n = instances_.of(e.channel);
  if (++landed_[n] <= sent(n)) return;
  violations_.found(Code::RDU7006, e.at, instances_.describe(e.channel),
                    "page {} lands, and the sender left {} generations: it sent {} pages", e.page,
                    counts(e.channel.edge, e.channel.from, 0).left, sent(n));
}

void BarrierChecker::on(const BarrierArrived& e) {
  if (!known(e.at, e.edge, e.from, e.member)) return;
  Counts& c = counts_[first(e.edge, e.from) + e.member];
  if (e.generation != c.arrived || c.arrived != c.left) {
    violations_.found(Code::RDU7006, e.at, fmt::format("edge {}", e.edge.value),
                      "{} arrives for generation {}; it arrived {} times and left {} times",
                      name(e.edge, e.from, e.member), e.generation, c.arrived, c.left);
  }
  ++c.arrived;
}

void BarrierChecker::on(const BarrierLeft& e) {
  if (!known(e.at, e.edge, e.from, e.member)) return;
  const std::size_t begin = first(e.edge, e.from);
  Counts& c = counts_[begin + e.member];
  if (e.generation != c.left) {
    violations_.found(Code::RDU7006, e.at, fmt::format("edge {}", e.edge.value),
                      "{} leaves generation {} where {} is next", name(e.edge, e.from, e.member), e.generation, c.left);
  }
  ++c.left;
  for (std::uint32_t m = 0; m < members(e.edge, e.from); ++m) {
    if (counts_[begin + m].arrived >= c.left) continue;
    violations_.found(Code::RDU7006, e.at, fmt::format("edge {}", e.edge.value),
                      "{} leaves generation {}, and {} arrived only {} times", name(e.edge, e.from, e.member),
                      e.generation, name(e.edge, e.from, m), counts_[begin + m].arrived);
    return;
  }
}

void BarrierChecker::finish(Cycle at) {
  for (const Edge& e : instances_.program().edges) {
    if (e.handshake != Handshake::barrier) continue;
    for (std::uint32_t from = 0; from < instances_.instances(e.from); ++from) {
      const Counts& sender = counts(e.id, from, 0);
      for (std::uint32_t m = 0; m < members(e.id, from); ++m) {
        const Counts& c = counts(e.id, from, m);
        if (c.arrived == sender.arrived && c.left == c.arrived) continue;
        violations_.found(Code::RDU7008, at, fmt::format("edge {}", e.id.value),
                          "{} arrived {} times and left {} times; the sender arrived {} times", name(e.id, from, m),
                          c.arrived, c.left, sender.arrived);
      }
    }
  }
}

}  // namespace rdusim
