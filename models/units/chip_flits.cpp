// A chip whose network works flit by flit: pages are given to it, and what becomes of them is told later.
//
// Whatever a page does at its end it does as at the fast level, with the same times of its first and last byte: units are
// asked for when the last byte is known, for the time when the page could begin. Only a page that leaves the chip goes on
// when its first byte is at the AGCU: links are slower than the network, so the rest is there when the link wants it.
#include <algorithm>

#include "models/units/chip.h"

namespace rdusim {

std::uint32_t Chip::message(FlitMessage::What what, std::uint32_t unit, Bytes bytes, std::uint32_t leaves) {
  std::uint32_t id = 0;
  if (free_messages_.empty()) {
    id = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    id = free_messages_.back();
    free_messages_.pop_back();
  }
  FlitMessage& m = messages_[id];
  m.what = what;
  m.unit = unit;
  m.shot = 0;
  m.bytes = static_cast<std::uint32_t>(bytes);
  m.leaves = leaves;
  m.sent = now_;
  m.astray.clear();
  return id;
}

// Whether a fault sends a flit of the page astray that a shot sends next. Of what leaves the chip, that strikes there.
bool Chip::sends_astray(const Shot& shot) const {
  for (std::uint32_t i = 0; i < shot.channels; ++i) {
    const SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
    if (!ch.data.remote && c_.faults.asked(FaultKind::flit_misroute, at(ch), ch.sent)) return true;
  }
  return false;
}

void Chip::step_flits() {
  FlowNetwork& network = *c_.network.flits();
  if (flits_wake_ <= now_) flits_wake_ = FlowNetwork::never;
  if (network.next() <= now_) {
    network.advance(now_);
    for (const FlowNetwork::Left& l : network.left()) flits_left(messages_[l.page], l.at);
    for (const FlowNetwork::Head& h : network.heads()) {
      const FlitMessage& m = messages_[h.page];
      if (m.what != FlitMessage::What::shot) continue;
      const Shot& shot = c_.shots[m.shot];
      if (shot.leaves_chip && h.leaf == shot.agcu_leaf) leave_chip(m, h.at);
    }
    for (const FlowNetwork::Arrival& a : network.arrivals()) {
      FlitMessage& m = messages_[a.page];
      flits_came(m, a.leaf, a.head, a.tail);
      if (--m.leaves == 0) free_messages_.push_back(a.page);
    }
  }
  const Cycle next = network.next();
  if (next >= flits_wake_) return;
  flits_wake_ = next;
  put(next, flit_cycle, 0);
}

void Chip::flits_left(const FlitMessage& m, Cycle at) {
  if (m.what == FlitMessage::What::shot) put(at, sent, m.unit);
  if (m.what != FlitMessage::What::store) return;
  put(std::max(at, now_ + 1), read_done, m.unit);
}

void Chip::leave_chip(const FlitMessage& m, Cycle head) {
  const SenderState& s = c_.senders[m.unit];
  const Shot& shot = c_.shots[m.shot];
  const Slot door = c_.agcus[s.agcu].unit.outward(laws_.agcu, head, m.bytes);
  const Cycle first = door.begin + laws_.agcu.latency;
  const Cycle last = std::max(door.end, head + c_.network.duration(m.bytes)) + laws_.agcu.latency;
  for (std::uint32_t i = 0; i < shot.channels; ++i) {
    const SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
    if (ch.unreachable || !ch.data.remote) continue;
    const auto other = std::find_if(m.astray.begin(), m.astray.end(), [&](const auto& a) { return a.first == i; });
    hop(c_.relays[other != m.astray.end() ? other->second : ch.data.relay], first, last, m.bytes);
  }
  if (s.handshake != Handshake::semaphore) return;
  for (std::uint32_t i = 0; i < s.channels; ++i) {
    const SendChannel& ch = c_.send_channels[s.first_channel + i];
    if (!ch.unreachable && ch.signal.remote)
      hop(c_.relays[ch.signal.relay], std::max(first, m.sent + ch.signal.lead), 0, 0);
  }
}

// A page has come to one of its places.
void Chip::flits_came(const FlitMessage& m, std::uint32_t leaf, Cycle head, Cycle tail) {
  switch (m.what) {
    case FlitMessage::What::load:
      reach_member(c_.loads[c_.stages[m.unit].detail], leaf, m.bytes, head, tail);
      break;
    case FlitMessage::What::store: {
      StageState& s = c_.stages[m.unit];
      ++s.transited;
      if (spec(s).to_host) {
        come_to_host(m.unit, tail);
        break;
      }
      const Cycles streaming = laws_.agcu.port.span(m.bytes).ceil();
      const Cycle from = std::max(head, tail - std::min(tail, streaming));
      const Slot door = c_.agcus[c_.stores[s.detail].agcu].unit.outward(laws_.agcu, from, m.bytes);
      put(std::max(door.end + laws_.agcu.latency, now_ + 1), memory_write, m.unit);
      break;
    }
    case FlitMessage::What::shot: {
      const Shot& shot = c_.shots[m.shot];
      if (shot.leaves_chip && leaf == shot.agcu_leaf) break;
      for (std::uint32_t i = 0; i < shot.channels; ++i) {
        const SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
        if (!ch.data.remote && !ch.unreachable && ch.leaf == leaf) come_to(ch.there, m.bytes, head, tail);
      }
      break;
    }
    case FlitMessage::What::inward:
      come_to(m.unit, m.bytes, head, tail);
      break;
  }
}

void Chip::come_to(std::uint32_t channel, Bytes bytes, Cycle head, Cycle tail) {
  ReceiveChannel& ch = c_.receive_channels[channel];
  const ReceiveState& r = c_.receives[ch.receive];
  const BufferState& b = c_.buffers[r.buffer];
  const Cycles writing = laws_.pmu.write.span(bytes).ceil();
  const Cycle could = std::max({head, tail - std::min(tail, writing), ch.last_arrival});
  const Cycle told = std::max(could, now_ + 1);
  ch.last_arrival = could;
  staged_header(b, b.initial + ch.due++ * r.channels + ch.rank).late = static_cast<std::uint32_t>(told - could);
  put(told, arrived, channel);
}

}  // namespace rdusim
