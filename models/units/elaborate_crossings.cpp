// Crossing edges: senders, their channels and shots, receivers, and the ways that pages and signals take between them.
#include <algorithm>
#include <tuple>
#include <utility>

#include "models/units/elaborator.h"

namespace rdusim {

namespace {

std::uint64_t counter_mask(std::uint32_t bits) {
  return bits == 0 || bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

}  // namespace

const std::vector<LinkId>& Elaborator::route_between(std::uint32_t from, std::uint32_t to) {
  const auto key = std::make_pair(from, to);
  if (const auto it = routes_.find(key); it != routes_.end()) return it->second;
  std::vector<LinkId> r;
  if (from < t_.chips && to < t_.chips) r = all_routes_.between(ChipId{from}, ChipId{to});
  return routes_.emplace(key, std::move(r)).first->second;
}

bool Elaborator::is_route(const std::vector<LinkId>& links, std::uint32_t from, std::uint32_t to) const {
  std::uint32_t at = from;
  for (const LinkId l : links) {
    if (l.value >= t_.links.size() || t_.links[l.value].from.value != at) return false;
    at = t_.links[l.value].to.value;
  }
  return !links.empty() && at == to;
}

Path Elaborator::over_links(std::uint32_t from, const std::vector<LinkId>& links, Event then, Cycles lead, Cycles tail,
                            bool signal) {
  Path path;
  path.lead = lead;
  path.remote = true;
  // From the far end: each relay names the next one.
  for (std::size_t i = links.size(); i-- > 0;) {
    const ChipLinkParameters& l = t_.links[links[i].value];
    // What a switch sends to a chip is the chip's work.
    const auto owner_of = [&](std::size_t leg) {
      const ChipLinkParameters& at = t_.links[links[leg].value];
      return at.from.value < t_.chips ? at.from.value : at.to.value;
    };
    const std::uint32_t owner = i == 0 ? from : owner_of(i);
    Relay r;
    r.link = link(owner, links[i]);
    r.to_chip = l.to.value < t_.chips ? l.to.value : owner_of(i + 1);
    if (l.from.value >= t_.chips) r.feed = feed(owner, links[i - 1], l.latency_cycles);
    r.then = then;
    r.tail = i + 1 == links.size() ? tail : 0;
    r.signal = signal;
    ChipState& c = chip(owner);
    path.relay = static_cast<std::uint32_t>(c.relays.size());
    then = {Chip::relay, path.relay, 0};
    c.relays.push_back(r);
  }
  return path;
}

Elaborator::Place Elaborator::place_of(const Stage& s, std::uint32_t instance) {
  const Group& g = group(s.group);
  Place p{chip_of(s.group), g.sites[instance].at, {}};
  const AgcuId a = agcu_of(g, instance);
  if (a.value < t_.agcu.at.size()) p.agcu = t_.agcu.at[a.value];
  return p;
}

Path Elaborator::signal_path(const Place& from, const Place& to, const std::vector<LinkId>& links, Event then) {
  const Network& wires = chip(from.chip).network;
  if (from.chip == to.chip) {
    Path path;
    path.lead = wires.control(from.site, to.site);
    path.then = then;
    return path;
  }
  const Cycles lead = wires.control(from.site, from.agcu) + t_.agcu.latency_cycles;
  const Cycles tail = wires.control(to.agcu, to.site) + t_.agcu.latency_cycles;
  return over_links(from.chip, links, then, lead, tail, true);
}

void Elaborator::make_crossings() {
  std::vector<Crossing> made;
  for (const Edge& e : p_.edges) {
    if (is_local(e.handshake)) continue;
    for (std::uint32_t i = 0; i < group(p_.stage(e.from).group).sites.size(); ++i) make_sender(e, i, made);
  }
  make_receive_channels(std::move(made));
  give_credits();
}

void Elaborator::make_sender(const Edge& e, std::uint32_t i, std::vector<Crossing>& made) {
  const Stage& from = p_.stage(e.from);
  const auto& where = sender_consumer_[e.id.value];
  const auto b = buffer_at(from, i, e.buffer);
  if (!b) return;
  const std::uint32_t id = chip_of(from.group);
  ChipState& c = chip(id);
  const std::uint32_t local = c.buffers[*b].instance;
  if (local >= where.size()) return;
  SenderState s;
  s.edge = e.id.value;
  s.from = i;
  s.buffer = *b;
  s.consumer = where[local];
  s.handshake = e.handshake;
  s.chunk = e.chunk;
  s.element_bytes = bytes_of(p_.buffer(e.buffer).dtype);
  s.pmu = c.buffers[*b].pmu;
  s.agcu = agcu(id, agcu_of(group(from.group), i));
  s.launch = pages_into(from, e.buffer);
  s.total = c.buffers[*b].initial + s.launch;
  std::uint32_t bits = e.counter_bits;
  if (e.semaphores && e.semaphores->ready.value < p_.semaphores.size()) {
    bits = p_.semaphores[e.semaphores->ready.value].width_bits;
    s.initial = s.value = p_.semaphores[e.semaphores->ready.value].initial;
  }
  s.mask = counter_mask(bits);
  s.first_channel = static_cast<std::uint32_t>(c.send_channels.size());
  s.first_shot = static_cast<std::uint32_t>(c.shots.size());
  const auto sender = static_cast<std::uint32_t>(c.senders.size());
  c.consumers[s.consumer].actor = sender;

  // The receivers of each `to`, rising, and which of the pages they get.
  std::vector<std::uint32_t> listed;
  if (e.map.kind == PageMapKind::one_to_one) {
    listed.push_back(i);
  } else if (i < e.map.targets.size()) {
    listed = e.map.targets[i];
    if (e.map.kind == PageMapKind::gather && listed.size() > 1) listed.erase(listed.begin() + 1, listed.end());
  }
  const bool scatter = e.map.kind == PageMapKind::scatter;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> receivers;  // instance, position
  for (std::uint32_t n = 0; n < listed.size(); ++n) receivers.emplace_back(listed[n], n);
  std::sort(receivers.begin(), receivers.end());
  std::vector<std::vector<std::uint32_t>> of_shot(scatter ? listed.size() : listed.empty() ? 0 : 1);
  for (std::uint32_t to = 0; to < e.to.size(); ++to) {
    const Stage& receiver = p_.stage(e.to[to]);
    for (const auto& [instance, position] : receivers) {
      if (instance >= group(receiver.group).sites.size()) continue;
      const ChipState& there = chip(chip_of(receiver.group));
      if (there.stages[stage_base_[receiver.id.value] + instance].form != StageForm::receive) continue;
      SendChannel ch;
      ch.edge = e.id.value;
      ch.from = i;
      ch.to = to;
      ch.receiver = instance;
      ch.sender = sender;
      ch.to_chip = chip_of(receiver.group);
      const auto n = static_cast<std::uint32_t>(c.send_channels.size());
      of_shot[scatter ? position : 0].push_back(n);
      made.push_back({id, n, ch.to_chip, stage_base_[receiver.id.value] + instance, i, scatter ? position : 0,
                      scatter ? static_cast<std::uint32_t>(listed.size()) : 1, e.id});
      c.send_channels.push_back(ch);
      ++s.channels;
    }
  }
  for (const auto& channels : of_shot) make_shot(c, id, s, from, i, channels);
  c.senders.push_back(s);
}

void Elaborator::make_receive_channels(std::vector<Crossing> made) {
  // The channels of a receiver lie together, by rising sender.
  std::stable_sort(made.begin(), made.end(), [](const Crossing& a, const Crossing& b) {
    return std::tie(a.to_chip, a.to_stage, a.from, a.position) < std::tie(b.to_chip, b.to_stage, b.from, b.position);
  });
  for (const Crossing& m : made) {
    ChipState& there = chip(m.to_chip);
    ChipState& here = chip(m.from_chip);
    SendChannel& send = here.send_channels[m.send];
    const Edge& e = p_.edge(m.edge);
    const std::uint32_t receive = there.stages[m.to_stage].detail;
    ReceiveState& r = there.receives[receive];
    const auto n = static_cast<std::uint32_t>(there.receive_channels.size());
    if (r.channels == 0) {
      r.first_channel = n;
      r.handshake = e.handshake;
      std::uint32_t bits = e.counter_bits;
      if (e.semaphores && send.to < e.semaphores->valid.size() &&
          e.semaphores->valid[send.to].value < p_.semaphores.size()) {
        const Semaphore& valid = p_.semaphores[e.semaphores->valid[send.to].value];
        bits = valid.width_bits;
        r.initial = r.value = valid.initial;
      }
      r.mask = counter_mask(bits);
    }
    ReceiveChannel ch;
    ch.edge = send.edge;
    ch.from = send.from;
    ch.to = send.to;
    ch.receiver = send.receiver;
    ch.receive = receive;
    ch.rank = r.channels++;
    ch.member = m.send - here.senders[send.sender].first_channel + 1;
    ch.position = m.position;
    ch.period = m.period;
    ch.there = m.send;
    ch.generations = here.senders[send.sender].total;
    ch.generations_a_launch = here.senders[send.sender].launch;
    send.there = n;

    const Stage& from = p_.stage(e.from);
    const Stage& to = p_.stage(e.to[send.to]);
    const Place a = place_of(from, send.from);
    const Place b = place_of(to, send.receiver);
    if (a.chip != b.chip) {
      const Position site[] = {b.site};
      ch.inward = network(b.chip).route(b.agcu, site, {true, std::nullopt});
    }
    there.receive_channels.push_back(ch);
    connect(e, send, n, m.send, a, b);
  }
}

void Elaborator::give_credits() {
  for (ChipState& c : out_.chips)
    for (const ReceiveState& r : c.receives) {
      if (r.handshake != Handshake::token || r.channels == 0) continue;
      const BufferState& b = c.buffers[r.buffer];
      const std::uint64_t room = b.depth - std::min<std::uint64_t>(b.depth, b.initial);
      for (std::uint32_t rank = 0; rank < r.channels; ++rank) {
        const ReceiveChannel& ch = c.receive_channels[r.first_channel + rank];
        ChipState& there = out_.chips[chip_of(p_.stage(p_.edge(EdgeId{ch.edge}).from).group)];
        SendChannel& send = there.send_channels[ch.there];
        send.credits = (room / r.channels + (rank < room % r.channels ? 1 : 0)) & there.senders[send.sender].mask;
      }
    }
}

void Elaborator::connect(const Edge& e, SendChannel& send, std::uint32_t there, std::uint32_t here, const Place& a,
                         const Place& b) {
  std::vector<LinkId> forward, backward;
  if (a.chip != b.chip) {
    if (send.to < e.routes.size() && is_route(e.routes[send.to], a.chip, b.chip)) {
      forward = e.routes[send.to];
    } else {
      forward = route_between(a.chip, b.chip);
    }
    backward = route_between(b.chip, a.chip);
    // Chips that nothing joins cannot hear each other.
    if (forward.empty() || backward.empty()) {
      send.unreachable = true;
      out_.chips[b.chip].receives[out_.chips[b.chip].receive_channels[there].receive].unreachable = true;
      return;
    }
    send.data = over_links(a.chip, forward, {Chip::chip_arrive, there, 0}, 0, 0, false);
  }
  const auto back = [&](Chip::EventKind kind) {
    out_.chips[b.chip].receive_channels[there].back = signal_path(b, a, backward, {kind, here, 0});
  };
  switch (e.handshake) {
    case Handshake::semaphore:
      send.signal = signal_path(a, b, forward, {Chip::valid, there, 0});
      back(Chip::ready);
      break;
    case Handshake::barrier:
      send.signal = signal_path(a, b, forward, {Chip::barrier_leave, there, 0});
      back(Chip::barrier_arrive);
      break;
    default:
      back(Chip::credit);
  }
}

void Elaborator::make_shot(ChipState& c, std::uint32_t id, SenderState& s, const Stage& from, std::uint32_t instance,
                           const std::vector<std::uint32_t>& channels) {
  Shot shot;
  shot.first_channel = static_cast<std::uint32_t>(c.shot_channels.size());
  shot.channels = static_cast<std::uint32_t>(channels.size());
  std::vector<Position> to;
  const Place here = place_of(from, instance);
  for (const std::uint32_t n : channels) {
    SendChannel& ch = c.send_channels[n];
    c.shot_channels.push_back(n);
    if (ch.to_chip == id) {
      ch.leaf = static_cast<std::uint32_t>(to.size());
      to.push_back(group(p_.stage(p_.edges[ch.edge].to[ch.to]).group).sites[ch.receiver].at);
    } else {
      shot.leaves_chip = true;
    }
  }
  if (shot.leaves_chip) {
    shot.agcu_leaf = static_cast<std::uint32_t>(to.size());
    to.push_back(here.agcu);
  }
  const std::optional<std::size_t> door = shot.leaves_chip ? std::optional<std::size_t>(shot.agcu_leaf) : std::nullopt;
  shot.leaves = static_cast<std::uint32_t>(to.size());
  shot.route = network(id).route(here.site, to, {false, door});
  c.shots.push_back(shot);
  ++s.shots;
}

std::uint64_t Elaborator::pages_into(const Stage& from, BufferId b) const {
  const StageSpec& d = out_.laws.stages[from.id.value];
  if (d.form == StageForm::receive) return d.total;
  for (const PortSpec& ps : d.ports)
    if (ps.direction == Direction::output && ps.buffer == b) return ps.push.total(d.total);
  return 0;
}

}  // namespace rdusim
