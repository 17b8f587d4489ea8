#include "sim/collective_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

namespace {

// Whether `later` reads what `earlier` makes, itself or by way of others that read all of it. Of operands that are put
// together, a reader may have enough in some: it does not wait for the rest. Operators stand after those that they read.
bool depends(const OperatorGraph& graph, OperatorId earlier, OperatorId later) {
  std::vector<bool> made(graph.operands.size(), false);
  made[graph.operators[earlier.value].out.value] = true;
  for (std::size_t o = earlier.value + 1; o <= later.value; ++o) {
    const Operator& op = graph.operators[o];
    if (std::none_of(op.in.begin(), op.in.end(), [&](OperandId in) { return made[in.value]; })) continue;
    if (op.id == later) return true;
    made[op.out.value] = op.kind != OperatorKind::concat;
  }
  return false;
}

}  // namespace

CollectiveChecker::CollectiveChecker(const Instances& instances, Violations& violations)
    : instances_(instances),
      violations_(violations),
      input_(instances.program().buffers.size()),
      ends_(instances.program().stages.size()),
      seen_(instances.program().collectives.size()) {
  const SpatialProgram& p = instances.program();
  std::uint32_t chips = 0;
  for (const Collective& c : p.collectives) {
    first_member_.push_back(contributed_.size());
    contributed_.resize(contributed_.size() + c.members.size());
    for (ChipId m : c.members) chips = std::max(chips, m.value + 1);
  }
  first_member_.push_back(contributed_.size());
  taken_part_.resize(contributed_.size());
  log_.resize(chips);
  for (const Collective& c : p.collectives) {
    for (ChipId m : c.members) log_[m.value].reserve(p.collectives.size());
  }

  const auto outside = [&](BufferId b, CollectiveId c) {
    const auto& producer = instances.ends(b).producer;
    return producer && p.stage(*producer).collective != c;
  };
  for (const Edge& e : p.edges) {
    if (e.collective && outside(e.buffer, *e.collective)) input_[e.buffer.value] = e.collective;
  }
  for (const Stage& s : p.stages) {
    if (s.collective) {
      ends_[s.id.value] = s.collective;
      for (const Port& port : s.ports) {
        if (port.direction == Direction::input && outside(port.buffer, *s.collective))
          input_[port.buffer.value] = s.collective;
      }
    } else if (std::holds_alternative<Store>(s.kind) && s.origin) {
      for (const Collective& c : p.collectives) {
        if (c.op == *s.origin) ends_[s.id.value] = c.id;
      }
    }
    if (const auto& c = ends_[s.id.value]; c && s.section.value < p.sections.size()) {
      Seen& seen = seen_[c->value];
      seen.trips = std::max<std::uint64_t>(p.sections[s.section.value].trips, 1);
      seen.ends += instances.instances(s.id) * s.firings * seen.trips;
    }
  }
}

std::optional<Cycles> CollectiveChecker::cycles(CollectiveId c) const {
  const auto trip = last_trip(c);
  return trip ? std::optional(seen_[c.value].before + (trip->second - trip->first)) : std::nullopt;
}

std::optional<std::pair<Cycle, Cycle>> CollectiveChecker::last_trip(CollectiveId c) const {
  const Seen& s = seen_[c.value];
  return s.first_sent && s.last ? std::optional(std::pair(*s.first_sent, *s.last)) : std::nullopt;
}

void CollectiveChecker::end(CollectiveId c, Cycle at) {
  Seen& s = seen_[c.value];
  if (s.first_sent && !s.over) s.last = std::max(s.last.value_or(0), at);
}

std::optional<std::uint32_t> CollectiveChecker::member(CollectiveId c, ChipId chip) const {
  const auto& members = instances_.program().collectives[c.value].members;
  const auto it = std::find(members.begin(), members.end(), chip);
  if (it == members.end()) return std::nullopt;
  return static_cast<std::uint32_t>(it - members.begin());
}

void CollectiveChecker::takes_part(CollectiveId c, std::size_t member) {
  if (taken_part_[first_member_[c.value] + member]) return;
  taken_part_[first_member_[c.value] + member] = true;
  log_[instances_.program().collectives[c.value].members[member].value].push_back(c);
}

void CollectiveChecker::on(const PagePushed& e) {
  const auto& c = input_[e.buffer.buffer.value];
  if (!c) return;
  const ChipId chip = instances_.site(e.buffer).chip;
  const auto m = member(*c, chip);
  if (!m) {
    violations_.found(Code::RDU7026, e.at, instances_.place(e.buffer),
                      "chip{} contributes to collective '{}' and is no member of it", chip.value,
                      instances_.program().collectives[c->value].name);
    return;
  }
  Bytes& bytes = contributed_[first_member_[c->value] + *m];
  takes_part(*c, *m);
  bytes += e.bytes;
}

void CollectiveChecker::on(const PageSent& e) {
  const auto& c = instances_.program().edge(e.channel.edge).collective;
  if (!c) return;
  Seen& s = seen_[c->value];
  if (s.over && s.first_sent && s.last) {
    s.before += *s.last - *s.first_sent;
    s.first_sent.reset();
    s.last.reset();
  }
  s.over = false;
  if (!s.first_sent) s.first_sent = e.at;
  s.sent += e.bytes;
}

void CollectiveChecker::on(const PageLanded& e) {
  const SpatialProgram& p = instances_.program();
  const Edge& edge = p.edge(e.channel.edge);
  const auto& c = edge.collective;
  if (!c) return;
  if (p.collectives[c->value].kind == CollectiveKind::broadcast)
    if (const auto m = member(*c, p.chip_of(p.stage(edge.to[e.channel.to])))) takes_part(*c, *m);
  seen_[c->value].last = std::max(seen_[c->value].last.value_or(0), e.at);
}

void CollectiveChecker::on(const FiringCompleted& e) {
  const auto& c = ends_[e.stage.stage.value];
  if (!c) return;
  end(*c, e.at);
  Seen& s = seen_[c->value];
  // Until the next trip's first page is sent: what fires before belongs to that one.
  if (s.trips > 1 && ++s.ended % (s.ends / s.trips) == 0) s.over = true;
}

void CollectiveChecker::on(const PageStored& e) {
  if (const auto& c = ends_[e.stage.stage.value]) end(*c, e.at);
}

void CollectiveChecker::repeated(const Repetition& r) {
  const SpatialProgram& p = instances_.program();
  std::vector<bool> of_section(p.collectives.size(), false);
  for (const Stage& s : p.stages)
    if (s.section == r.section && s.collective) of_section[s.collective->value] = true;
  for (std::size_t c = 0; c < seen_.size(); ++c) {
    if (!of_section[c]) continue;
    for (std::size_t m = first_member_[c]; m < first_member_[c + 1]; ++m)
      contributed_[m] += contributed_[m] / r.done * r.times;
    Seen& s = seen_[c];
    s.sent += s.sent / r.done * r.times;
    s.ended += s.ended / r.done * r.times;
    if (!s.first_sent || !s.last) continue;
    s.before += r.times * (*s.last - *s.first_sent);
    *s.first_sent += r.times * r.period;
    *s.last += r.times * r.period;
  }
}

void CollectiveChecker::finish(Cycle at) {
  const SpatialProgram& p = instances_.program();
  for (const Collective& c : p.collectives) {
    if (c.members.size() == 1 && contributed(c.id, 0) == 0) continue;  // one chip has nothing to send
    for (std::size_t m = 0; m < c.members.size(); ++m) {
      const Bytes expected = (m < c.bytes.size() ? c.bytes[m] : 0) * trips(c.id);
      if (contributed(c.id, m) == expected) continue;
      Diagnostic& d = violations_.found(Code::RDU7026, at, fmt::format("chip{}", c.members[m].value),
                                        "chip{} contributed {} bytes to collective '{}', and its members agreed on {}",
                                        c.members[m].value, contributed(c.id, m), c.name, expected);
      for (std::size_t other = 0; other < c.members.size() && other < 16; ++other) {
        d.note(fmt::format("chip{}", c.members[other].value), "contributed {} of {} bytes", contributed(c.id, other),
               (other < c.bytes.size() ? c.bytes[other] : 0) * trips(c.id));
      }
    }
  }
  // The order in which a chip took part, of the collectives that it shares with the first member of each. Of two that
  // run side by side, neither with anything of the other's, either may come first.
  for (const Collective& c : p.collectives) {
    if (c.members.size() < 2) continue;
    const auto shared = [&](ChipId a, ChipId b) {
      std::vector<CollectiveId> list;
      for (CollectiveId id : log_[a.value]) {
        if (member(id, b)) list.push_back(id);
      }
      return list;
    };
    for (std::size_t m = 1; m < c.members.size(); ++m) {
      const ChipId a = c.members.front();
      const ChipId b = c.members[m];
      const std::vector<CollectiveId> first = shared(a, b), second = shared(b, a);
      if (first == second || !disagree(first, second)) continue;
      violations_.found(Code::RDU7026, at, fmt::format("chip{}", b.value),
                        "chip{} and chip{} took part in their collectives in another order ('{}' among them)", a.value,
                        b.value, c.name);
      return;
    }
  }
}

bool CollectiveChecker::disagree(const std::vector<CollectiveId>& first,
                                 const std::vector<CollectiveId>& second) const {
  if (first.size() != second.size()) return true;
  std::vector<std::size_t> place(instances_.program().collectives.size(), second.size());
  for (std::size_t i = 0; i < second.size(); ++i) place[second[i].value] = i;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (place[first[i].value] == second.size()) return true;
    for (std::size_t j = i + 1; j < first.size(); ++j)
      if (place[first[j].value] < place[first[i].value] && ordered(first[i], first[j])) return true;
  }
  return false;
}

bool CollectiveChecker::ordered(CollectiveId a, CollectiveId b) const {
  const SpatialProgram& p = instances_.program();
  const Collective& x = p.collectives[a.value];
  const Collective& y = p.collectives[b.value];
  const auto section_of = [&](CollectiveId c) {
    const auto stage =
        std::find_if(p.stages.begin(), p.stages.end(), [&](const Stage& s) { return s.collective == c; });
    return stage == p.stages.end() ? std::nullopt : std::optional(stage->section);
  };
  if (!p.operators || section_of(a) != section_of(b)) return true;
  return depends(*p.operators, x.op, y.op) || depends(*p.operators, y.op, x.op);
}

}  // namespace rdusim
