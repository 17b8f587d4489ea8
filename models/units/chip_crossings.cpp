// Pages and signals between sites and chips: senders, links, receivers.
#include <algorithm>

#include "models/units/chip.h"

namespace rdusim {

// ---- links and signals

// Puts a page or signal on the relay's link. `from`: its first byte is at the link, `last_byte`: its last one.
void Chip::hop(const Relay& r, Cycle from, Cycle last_byte, std::uint32_t bytes) {
  if (r.link < c_.port_queues.size() && c_.port_queues[r.link].all != 0) {
    PortQueue& q = c_.port_queues[r.link];
    const Bytes takes = std::min<Bytes>(size_of(r, bytes), q.all);
    if (q.first != q.offers.size() || q.room < takes) {
      q.offers.push_back({static_cast<std::uint32_t>(&r - c_.relays.data()), bytes, from, last_byte});
      return;
    }
    q.room -= takes;
  }
  carry(r, from, last_byte, bytes);
}

Bytes Chip::size_of(const Relay& r, std::uint32_t bytes) const {
  const Bytes signal = c_.links[r.link].signal_bytes();
  return r.signal ? signal : std::max<Bytes>(bytes, signal);
}

void Chip::carry(const Relay& r, Cycle from, Cycle last_byte, std::uint32_t bytes) {
  ChipLink& link = c_.links[r.link];
  const Bytes size = size_of(r, bytes);
  if (jitter_ != 0) from += delay(link.id().value, from, most_link_delay);
  std::uint32_t times = c_.link_faults.empty() ? 1 : carried(r.link, from, size, r.signal);
  for (; times > 0; --times) {
    if (!break_transfers(link, from, size, r.signal)) return;
    const ChipLink::Transfer t = link.send(from, size);
    tell(LinkUsed{now_, link.id(), t.slot.begin, t.slot.end, size, r.signal});
    const Cycle arrival = std::max(t.arrival, last_byte + link.latency());
    // A switch sends on while it takes in.
    const Cycle there = link.room() == 0 ? arrival : arrival - link.span(size);
    outside_.post(r.to_chip, there + r.tail, {r.then.kind(), r.then.unit(), bytes});
    if (r.feed != 0) {
      const SwitchFeed& feed = c_.feeds[r.feed - 1];
      outside_.post(feed.chip, std::max(t.slot.end, last_byte) + feed.back,
                    {port_room, feed.at, static_cast<std::uint32_t>(std::min<Bytes>(size, feed.link.room()))});
    }
    from = arrival + link.latency();  // no acknowledgement has come
  }
}

// Sends what comes broken, until it is to come whole; false where the link is given up.
bool Chip::break_transfers(ChipLink& link, Cycle& from, Bytes size, bool signal) {
  for (std::uint32_t tries = 0; !link.given_up() && link.breaks(); ++tries) {
    const ChipLink::Transfer t = link.send(from, size);
    tell(LinkUsed{now_, link.id(), t.slot.begin, t.slot.end, size, signal, true});
    from = t.arrival + link.latency();  // the other end asks again
    link.hold(from, 0);
    if (tries == link.most_retries()) link.give_up();
  }
  return !link.given_up();
}

void Chip::grant_relay(std::uint32_t n, std::uint32_t bytes) {
  const Relay& r = c_.relays[n];
  // Out of a switch the last byte is there when the link into it has carried it.
  hop(r, now_, r.feed == 0 ? now_ : now_ + c_.feeds[r.feed - 1].link.span(size_of(r, bytes)), bytes);
}

void Chip::grant_port_room(std::uint32_t link, std::uint32_t bytes) {
  PortQueue& q = c_.port_queues[link];
  q.room = std::min(q.room + bytes, q.all);
  while (q.first != q.offers.size()) {
    const Offer o = q.offers[q.first];
    const Relay& r = c_.relays[o.relay];
    const Bytes takes = std::min<Bytes>(size_of(r, o.bytes), q.all);
    if (q.room < takes) break;
    q.room -= takes;
    ++q.first;
    carry(r, std::max(o.from, now_), std::max(o.last_byte, now_), o.bytes);
  }
  // What was carried goes when it is the greater part: a queue that never empties stays as small as what waits.
  if (2 * q.first < q.offers.size()) return;
  q.offers.erase(q.offers.begin(), q.offers.begin() + static_cast<std::ptrdiff_t>(q.first));
  q.first = 0;
}

void Chip::signal(const Path& path) {
  if (path.remote) {
    hop(c_.relays[path.relay], now_ + path.lead, now_ + path.lead, 0);
  } else {
    put(now_ + path.lead, static_cast<EventKind>(path.then.kind()), path.then.unit());
  }
}

void Chip::grant_chip_arrive(std::uint32_t channel, std::uint32_t bytes) {
  ReceiveChannel& ch = c_.receive_channels[channel];
  const ReceiveState& r = c_.receives[ch.receive];
  AgcuState& agcu = c_.agcus[r.agcu];
  const Slot door = agcu.unit.inward(laws_.agcu, now_, bytes);
  const Cycle first = door.begin + laws_.agcu.latency;
  const Cycle last = door.end + laws_.agcu.latency;
  if (c_.network.flits() != nullptr) {
    const bool astray = ch.fault != 0 && c_.faults.asked(FaultKind::flit_misroute, at(ch), ch.entered);
    ++ch.entered;
    c_.network.post(ch.inward, message(FlitMessage::What::inward, channel, bytes, 1), first, last, bytes, astray);
    return;
  }
  c_.network.send(ch.inward, first, last, bytes);
  const Cycle tail = c_.network.tail(ch.inward, 0);
  const Cycles writing = laws_.pmu.write.span(bytes).ceil();
  const Cycle at = std::max(c_.network.head(ch.inward, 0), tail - std::min(tail, writing));
  ch.last_arrival = std::max(ch.last_arrival, at);
  put(ch.last_arrival, arrived, channel);
}

// ---- receivers

void Chip::grant_receive(std::uint32_t receive) {
  ReceiveState& r = c_.receives[receive];
  r.touched = false;
  if (r.channels == 0 || r.unreachable) return;
  BufferState& b = c_.buffers[r.buffer];
  const StageState& stage = c_.stages[r.stage];
  if (r.handshake == Handshake::token) {
    // The slot that a pop frees is the one that page + depth will land in: the credit goes to that page's sender.
    for (; r.credited < b.popped; ++r.credited) {
      const std::uint64_t page = r.credited + b.depth - std::min<std::uint64_t>(b.initial, b.depth);
      ReceiveChannel& ch = c_.receive_channels[r.first_channel + page % r.channels];
      tell(CreditReturned{now_, at(ch)});
      signal(ch.back);
    }
    return;
  }
  if (!stage.active) return;
  for (std::uint32_t rank = 0; rank < r.channels; ++rank) {
    ReceiveChannel& ch = c_.receive_channels[r.first_channel + rank];
    const auto brings = [&](std::uint64_t generation) { return generation % ch.period == ch.position; };
    const auto pages_before = [&](std::uint64_t generation) {
      return generation / ch.period + (generation % ch.period > ch.position ? 1 : 0);
    };
    const auto room = [&](std::uint64_t page) { return b.initial + page * r.channels + rank < b.popped + b.depth; };
    if (r.handshake == Handshake::semaphore) {
      while (ch.valid_raised < ch.valid_seen) {
        const std::uint64_t g = ch.valid_raised;
        // A signal is held until the page that it came with is there.
        const std::uint64_t with = ch.fault == 0 ? g : c_.channel_faults[ch.fault - 1].valid[g];
        if (brings(with) && ch.landed <= pages_before(with) &&
            (ch.fault == 0 || !c_.faults.strikes(FaultKind::valid_early, at(ch), with)))
          break;
        r.value = (r.value + 1) & r.mask;
        ++ch.valid_raised;
        tell(ValidRaised{now_, at(ch), g, static_cast<std::uint32_t>(r.value)});
        if (brings(g)) {
          ++ch.pushable;
        } else {
          r.value = (r.value - 1) & r.mask;
          tell(ValidConsumed{now_, at(ch), ch.valid_consumed++, static_cast<std::uint32_t>(r.value)});
        }
      }
      // One ready a generation, and none before the generation before it is valid: so the sender's count is exact.
      if (ch.raised < ch.generations && ch.raised <= ch.valid_raised &&
          (!brings(ch.raised) || room(pages_before(ch.raised)))) {
        ++ch.raised;
        signal(ch.back);
      }
    } else if (!ch.at_barrier && ch.generation < 2 * ch.generations) {
      const std::uint64_t g = ch.generation / 2;
      const bool first = ch.generation % 2 == 0;
      const bool arrives = !brings(g) || (first ? room(pages_before(g)) : ch.landed > pages_before(g));
      if (arrives) {
        ch.at_barrier = true;
        tell(BarrierArrived{now_, EdgeId{ch.edge}, ch.from, ch.member, ch.generation});
        signal(ch.back);
        if (ch.fault != 0 && c_.faults.strikes(FaultKind::arrive_early, at(ch), ch.generation)) {
          tell(BarrierArrived{now_, EdgeId{ch.edge}, ch.from, ch.member, ch.generation + 1});
          signal(ch.back);
        }
      }
    }
  }
  // Pages are seen in turn, in the order in which they landed.
  while (r.scheduled < r.landed &&
         c_.receive_channels[r.first_channel + r.scheduled % r.channels].pushable > r.scheduled / r.channels) {
    ++r.scheduled;
    put(now_ + 1, push_landed, receive);
  }
}

// ---- senders

Chip::Part Chip::chunk_of(const SenderState& s, const PageHeader& h) const {
  const std::uint64_t elements = h.bytes / s.element_bytes;
  const std::uint32_t of = std::max(s.chunk.of, 1u);
  const ElementRange range = chunk_range(elements, std::min(s.chunk.index, of - 1), of);
  return {range.begin * s.element_bytes, static_cast<std::uint32_t>(range.size() * s.element_bytes)};
}

bool Chip::handshake_allows(SenderState& s) {
  const Shot& shot = c_.shots[s.first_shot + s.page % s.shots];
  switch (s.handshake) {
    case Handshake::token:
      for (std::uint32_t i = 0; i < shot.channels; ++i)
        if (c_.send_channels[c_.shot_channels[shot.first_channel + i]].credits == 0) return false;
      for (std::uint32_t i = 0; i < shot.channels; ++i) {
        SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
        --ch.credits;
        tell(CreditTaken{now_, at(ch), ch.sent});
      }
      return true;
    case Handshake::semaphore:
      if (((s.value - s.initial) & s.mask) < s.channels) return false;
      s.value = (s.value - s.channels) & s.mask;
      tell(ReadyConsumed{now_, EdgeId{s.edge}, s.from, s.consumed++, static_cast<std::uint32_t>(s.value)});
      return true;
    default:
      return true;
  }
}

void Chip::grant_sender(std::uint32_t sender) {
  SenderState& s = c_.senders[sender];
  s.touched = false;
  if (s.busy || s.shots == 0) return;
  const bool there = c_.buffers[s.buffer].pushed > s.page;
  if (s.handshake != Handshake::barrier) {
    if (!there) return;
    if (handshake_allows(s)) {
      send(sender);
    } else if (!s.held_up) {
      s.held_up = true;
      s.since = now_;
    }
    return;
  }
  if (s.generation % 2 == 0 && !s.self_arrived && there) {
    s.self_arrived = true;
    s.since = now_;
    tell(BarrierArrived{now_, EdgeId{s.edge}, s.from, 0, s.generation});
  }
  if (!s.self_arrived || s.arrived < s.channels) return;
  s.arrived -= s.channels;
  s.self_arrived = false;
  tell(BarrierLeft{now_, EdgeId{s.edge}, s.from, 0, s.generation});
  const bool moves = s.generation++ % 2 == 0;
  for (std::uint32_t i = 0; i < s.channels; ++i)
    if (!c_.send_channels[s.first_channel + i].unreachable) signal(c_.send_channels[s.first_channel + i].signal);
  if (moves) {
    send(sender);
  } else if (there || c_.buffers[s.buffer].pushed > s.page) {
    // The next page's first generation; nobody else can have arrived for it yet.
    s.self_arrived = true;
    tell(BarrierArrived{now_, EdgeId{s.edge}, s.from, 0, s.generation});
  }
}

void Chip::send(std::uint32_t sender) {
  SenderState& s = c_.senders[sender];
  BufferState& b = c_.buffers[s.buffer];
  const Shot& shot = c_.shots[s.first_shot + s.page % s.shots];
  const PageHeader& h = header(b, s.page);
  const Chunk right = s.chunk;
  if (s.faulty && s.chunk.of > 1 &&
      c_.faults.strikes(FaultKind::chunk_wrong, ChannelAt{EdgeId{s.edge}, s.from, 0, 0}, s.page))
    s.chunk.index = (s.chunk.index + 1) % s.chunk.of;
  const Part part = chunk_of(s, h);
  PageTag tag = h.tag;
  if (s.chunk.of > 1) tag.chunk = s.chunk.index, tag.chunks = s.chunk.of;
  s.chunk = right;
  const std::byte* values = laws_.values ? slot(b, s.page) + part.begin : nullptr;
  const std::span<const std::byte> bytes{values, laws_.values ? part.bytes : 0};

  const Pmu::Access out = c_.pmus[s.pmu].read(laws_.pmu, now_, part.bytes);
  const bool flits = c_.network.flits() != nullptr;
  std::uint32_t flying = 0;
  Cycle left = 0, link_first = 0, link_last = 0;
  if (flits) {
    flying = message(FlitMessage::What::shot, sender, part.bytes, shot.leaves);
    messages_[flying].shot = s.first_shot + static_cast<std::uint32_t>(s.page % s.shots);
    c_.network.post(shot.route, flying, out.first, out.last, part.bytes, s.faulty && sends_astray(shot));
  } else {
    left = c_.network.send(shot.route, out.first, out.last, part.bytes);
  }
  if (shot.leaves_chip && !flits) {
    const Slot door =
        c_.agcus[s.agcu].unit.outward(laws_.agcu, c_.network.head(shot.route, shot.agcu_leaf), part.bytes);
    link_first = door.begin + laws_.agcu.latency;
    link_last = std::max(door.end, c_.network.tail(shot.route, shot.agcu_leaf)) + laws_.agcu.latency;
  }
  const Cycles writing = laws_.pmu.write.span(part.bytes).ceil();
  for (std::uint32_t i = 0; i < shot.channels; ++i) {
    SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
    const std::uint64_t page = ch.sent++;
    if (ch.unreachable) continue;
    if (const SendChannel* other = ch.faulty ? misaddressed(ch, page) : nullptr) {
      outside_.deliver(other->to_chip, other->there, other->sent, tag, bytes, part.bytes, now_);
      if (flits) {
        messages_[flying].astray.emplace_back(i, other->data.relay);
      } else {
        hop(c_.relays[other->data.relay], link_first, link_last, part.bytes);
      }
      continue;
    }
    if (ch.to_chip == c_.chip.value) {
      accept(ch.there, page, tag, bytes, part.bytes, now_);
    } else {
      outside_.deliver(ch.to_chip, ch.there, page, tag, bytes, part.bytes, now_);
    }
    if (flits) continue;
    if (ch.data.remote) {
      hop(c_.relays[ch.data.relay], link_first, link_last, part.bytes);
    } else {
      const Cycle tail = c_.network.tail(shot.route, ch.leaf);
      const Cycle at = std::max(c_.network.head(shot.route, ch.leaf), tail - std::min(tail, writing));
      ReceiveChannel& there = c_.receive_channels[ch.there];
      there.last_arrival = std::max({there.last_arrival, at, now_ + 1});
      put(there.last_arrival, arrived, ch.there);
    }
  }
  if (s.handshake == Handshake::semaphore)
    for (std::uint32_t i = 0; i < s.channels; ++i) {
      const SendChannel& ch = c_.send_channels[s.first_channel + i];
      if (ch.unreachable) continue;
      if (ch.signal.remote) {
        if (flits && shot.leaves_chip) continue;  // behind the page
        hop(c_.relays[ch.signal.relay], std::max(link_first, now_ + ch.signal.lead), 0, 0);
      } else {
        signal(ch.signal);
      }
    }
  s.busy = true;
  s.held_up = false;
  if (flits) return;
  left = std::max(left, now_ + 1);
  put(left, sent, sender);
}

// Writes a page that is under way into the slot that its credit stands for. It is seen by nobody before it has landed.
void Chip::accept(std::uint32_t channel, std::uint64_t page, const PageTag& tag, std::span<const std::byte> values,
                  std::uint32_t bytes, Cycle when) {
  const ReceiveChannel& ch = c_.receive_channels[channel];
  const ReceiveState& r = c_.receives[ch.receive];
  BufferState& b = c_.buffers[r.buffer];
  const std::uint64_t n = b.initial + page * r.channels + ch.rank;
  PageHeader& h = staged_header(b, n);
  h.tag = tag;
  h.bytes = std::min(bytes, b.slot_bytes);
  h.origin = when;
  h.late = 0;
  if (ch.fault != 0) ++c_.channel_faults[ch.fault - 1].under_way;
  if (laws_.values && !values.empty())
    std::copy_n(values.data(), std::min<std::size_t>(values.size(), b.slot_bytes), staged_slot(b, n));
}

void Chip::apply_sent(std::uint32_t sender) {
  SenderState& s = c_.senders[sender];
  const Shot& shot = c_.shots[s.first_shot + s.page % s.shots];
  const PageHeader& h = header(c_.buffers[s.buffer], s.page);
  for (std::uint32_t i = 0; i < shot.channels; ++i) {
    const SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
    tell(PageSent{now_, at(ch), ch.sent - 1, chunk_of(s, h).bytes});
  }
  s.busy = false;
  ++s.page;
  if (s.handshake == Handshake::barrier) {
    // The second generation: the page has left.
    s.self_arrived = true;
    tell(BarrierArrived{now_, EdgeId{s.edge}, s.from, 0, s.generation});
  }
  pop(s.consumer, c_.buffers[s.buffer], 1);
  touch_sender(sender);
}

// ---- landing

void Chip::apply_arrived(std::uint32_t channel) {
  ReceiveChannel& ch = c_.receive_channels[channel];
  if (ch.fault == 0) {
    ++ch.arrived;
  } else {
    arrive_broken(channel);
  }
  touch_stage(c_.receives[ch.receive].stage);
}

bool Chip::can_land(const StageState& s) const {
  const ReceiveState& r = c_.receives[s.detail];
  return r.channels != 0 && c_.receive_channels[r.first_channel + s.next % r.channels].arrived > s.next / r.channels;
}

void Chip::start_receive(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  ReceiveState& r = c_.receives[s.detail];
  BufferState& b = c_.buffers[r.buffer];
  const std::uint64_t k = s.next;
  const ReceiveChannel& ch = c_.receive_channels[r.first_channel + k % r.channels];
  if (b.faulty) {
    take_arrival(r, ch, k);
  }
  ++b.reserved;
  tell(PageReserved{now_, at(b), 1});
  // A page that came in while nobody was in its way has been written since its bytes could follow without a gap.
  const PageHeader& page = header(b, b.initial + k);
  const Cycle from = page.late == 0 ? now_ : std::max(now_ - page.late, c_.engines[s.engine].free_at);
  const Pmu::Access w = c_.pmus[b.pmu].write(laws_.pmu, from, page.bytes);
  const Cycles busy = std::max(w.last, now_ + laws_.pmu.access + 1) - laws_.pmu.access - now_ + late(s);
  s.last_complete = std::max({s.last_complete, w.last, now_ + 1});
  put(s.last_complete, completed, stage);
  // Did it wait for the page to be sent, or for the page on its way?
  const Cycle sent_at = std::clamp<Cycle>(header(b, b.initial + k).origin, s.since, std::max(s.since, now_));
  if (s.cause == StallCause::input_starvation && now_ - sent_at > sent_at - s.since)
    s.cause = ch.back.remote ? StallCause::link : StallCause::network_contention;
  started(s, busy);
  s.cause = StallCause::input_starvation;
  if (s.next < s.total && can_land(s)) wait_for_engine(stage);
}

void Chip::apply_push_landed(std::uint32_t receive) {
  ReceiveState& r = c_.receives[receive];
  StageState& s = c_.stages[r.stage];
  if (r.handshake == Handshake::semaphore) {
    ReceiveChannel& ch = c_.receive_channels[r.first_channel + s.completed % r.channels];
    r.value = (r.value - 1) & r.mask;
    // Generations between that brought this receiver nothing were waited for when they came.
    tell(ValidConsumed{now_, at(ch), ch.valid_consumed++, static_cast<std::uint32_t>(r.value)});
  }
  push(c_.buffers[r.buffer]);
  tell(FiringCompleted{now_, at(s), s.completed++});
  touch_receive(receive);
}

}  // namespace rdusim
