#include "models/units/chip.h"

#include <algorithm>
#include <utility>

namespace rdusim {
namespace {

// A small generator of our own for the shuffling test mode: the same order on every computer.
std::uint64_t draw(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Pool zeroed(std::size_t bytes) {
  return Pool(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(bytes, 1), 1)));
}

const Fault* find(const std::vector<Fault>& faults, FaultKind kind, std::uint64_t nth) {
  for (const Fault& f : faults)
    if (f.kind == kind && f.nth == nth) return &f;
  return nullptr;
}

}  // namespace

Chip::Chip(ChipState state, const MachineLaws& laws, ProvenanceTable& provenance, TensorImages& images,
           Outside& outside, std::uint64_t shuffle_seed)
    : c_(std::move(state)),
      laws_(laws),
      provenance_(provenance),
      images_(images),
      outside_(outside),
      shuffle_(shuffle_seed == 0 ? 0 : shuffle_seed + c_.chip.value + 1) {
  if (laws_.values) {
    pool_ = zeroed(c_.pool_bytes);
    scratch_.resize(c_.scratch_bytes * c_.scratch_pages);
  }
}

void Chip::start_section(SectionId section, Cycle at) {
  if (section.value < c_.section_stages.size() && !c_.section_stages[section.value].empty())
    queue_.put(at, {section_event, section.value, 0});
}

void Chip::advance(Cycle now) {
  now_ = now;
  queue_.take(now, due_);
  if (shuffle_ != 0)
    for (std::size_t i = due_.size(); i > 1; --i) std::swap(due_[i - 1], due_[draw(shuffle_) % i]);
  for (const Event& e : due_) apply(e);
  commit();
}

// ---- phase 1: what happens in this cycle
// --------------------------------------------------------------------------------

void Chip::apply(const Event& e) {
  switch (e.kind()) {
    case section_event:
      apply_section(e.unit());
      break;
    case read_done:
      apply_read_done(e.unit());
      break;
    case engine_free:
      touch_engine(c_.engines[e.unit()]);
      break;
    case completed:
      apply_completed(e.unit());
      break;
    case sent:
      apply_sent(e.unit());
      break;
    case credit: {
      SendChannel& ch = c_.send_channels[e.unit()];
      SenderState& s = c_.senders[ch.sender];
      const std::uint64_t n = ch.returned++;
      std::uint32_t copies = 1;
      if (ch.faulty) {
        for (const Fault& f : c_.edge_faults) {
          if (!f.edge || f.edge->value != ch.edge || f.instance != ch.from || f.nth != n) continue;
          if (f.kind == FaultKind::credit_drop) copies = 0;
          if (f.kind == FaultKind::credit_duplicate) copies = 2;
        }
      }
      for (std::uint32_t i = 0; i < copies; ++i) {
        ch.credits = (ch.credits + 1) & s.mask;
        tell(CreditArrived{now_, at(ch)});
      }
      touch_sender(ch.sender);
      break;
    }
    case ready: {
      SendChannel& ch = c_.send_channels[e.unit()];
      SenderState& s = c_.senders[ch.sender];
      const std::uint64_t n = ch.returned++;
      std::uint32_t copies = 1;
      if (ch.faulty) {
        for (const Fault& f : c_.edge_faults) {
          if (!f.edge || f.edge->value != ch.edge || f.instance != ch.from || f.nth != n) continue;
          if (f.kind == FaultKind::ready_drop) copies = 0;
          if (f.kind == FaultKind::ready_duplicate) copies = 2;
        }
      }
      for (std::uint32_t i = 0; i < copies; ++i) {
        s.value = (s.value + 1) & s.mask;
        tell(ReadyRaised{now_, at(ch), ch.ready++, static_cast<std::uint32_t>(s.value)});
      }
      touch_sender(ch.sender);
      break;
    }
    case barrier_arrive: {
      SendChannel& ch = c_.send_channels[e.unit()];
      ++c_.senders[ch.sender].arrived;
      touch_sender(ch.sender);
      break;
    }
    case valid: {
      ReceiveChannel& ch = c_.receive_channels[e.unit()];
      const std::uint64_t n = ch.signals++;
      std::uint32_t copies = 1;
      if (ch.fault != 0) {
        const auto& faults = c_.channel_faults[ch.fault - 1].faults;
        if (find(faults, FaultKind::valid_drop, n) != nullptr) copies = 0;
        if (find(faults, FaultKind::valid_duplicate, n) != nullptr) copies = 2;
      }
      ch.valid_seen += copies;
      touch_receive(ch.receive);
      break;
    }
    case barrier_leave: {
      ReceiveChannel& ch = c_.receive_channels[e.unit()];
      tell(BarrierLeft{now_, EdgeId{ch.edge}, ch.from, ch.member, ch.generation});
      // The second generation of a page: it may be seen.
      if (ch.generation % 2 == 1 && ch.generation / 2 % ch.period == ch.position) ++ch.pushable;
      ++ch.generation;
      ch.at_barrier = false;
      touch_receive(ch.receive);
      break;
    }
    case arrived:
      apply_arrived(e.unit());
      break;
    case push_landed:
      apply_push_landed(e.unit());
      break;
    case relay:
      work_.push_back({work_relay, e.unit(), e.number()});
      break;
    case chip_arrive:
      work_.push_back({work_chip_arrive, e.unit(), e.number()});
      break;
    case agcu_next:
      work_.push_back({work_agcu, e.unit(), 0});
      break;
    case transit:
      work_.push_back({work_transit, e.unit(), 0});
      break;
    case memory_write:
      work_.push_back({work_write, e.unit(), 0});
      break;
    default:
      break;
  }
}

void Chip::apply_section(std::uint32_t section) {
  for (Pmu& p : c_.pmus) p.reset();
  for (AgcuState& a : c_.agcus) a.unit.reset();
  for (Memory& m : c_.memories) m.reset(now_);
  for (ChipLink& l : c_.links) l.reset();
  c_.network.reset();
  for (const std::uint32_t i : c_.section_stages[section]) {
    StageState& s = c_.stages[i];
    s.active = true;
    s.since = now_;
    touch_stage(i);
    if (s.form == StageForm::receive) touch_receive(s.detail);
  }
}

void Chip::touch_stage(std::uint32_t stage) {
  const std::uint32_t actor = c_.stages[stage].actor;
  StageState& s = c_.stages[actor];
  if (s.touched || !s.active) return;
  s.touched = true;
  work_.push_back({work_stage, actor, 0});
}

void Chip::touch_sender(std::uint32_t sender) {
  SenderState& s = c_.senders[sender];
  if (s.touched) return;
  s.touched = true;
  work_.push_back({work_sender, sender, 0});
}

void Chip::touch_receive(std::uint32_t receive) {
  ReceiveState& r = c_.receives[receive];
  if (r.touched) return;
  r.touched = true;
  work_.push_back({work_receive, receive, 0});
}

// Whoever could have started but for the engine tries again.
void Chip::touch_engine(EngineState& e) {
  e.wake = false;
  std::uint32_t next = e.first_waiting;
  e.first_waiting = 0;
  while (next != 0) {
    StageState& s = c_.stages[next - 1];
    touch_stage(next - 1);
    next = s.next_waiting;
    s.waits_for_engine = false;
  }
}

void Chip::apply_read_done(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  for (const PortUse& use : uses(spec(s), s.read++)) {
    if (use.pop == 0) continue;
    const PortState& port = c_.ports[s.first_port + use.port];
    if (port.bound) pop(port.consumer, c_.buffers[port.buffer], use.pop);
  }
  touch_stage(stage);
  touch_engine(c_.engines[s.engine]);
}

void Chip::pop(std::uint32_t consumer, BufferState& b, std::uint32_t pages) {
  ConsumerState& me = c_.consumers[consumer];
  for (std::uint32_t i = 0; i < pages; ++i) tell(PagePopped{now_, at(b), me.number, me.popped + i});
  me.popped += pages;
  std::uint64_t slowest = me.popped;
  for (std::uint32_t i = 0; i < b.consumers; ++i)
    slowest = std::min(slowest, c_.consumers[b.first_consumer + i].popped);
  if (slowest == b.popped) return;
  b.popped = slowest;
  if (!b.produced) return;
  if (b.landing) {
    touch_receive(c_.stages[b.producer].detail);
  } else {
    touch_stage(b.producer);
  }
}

// The next page of a buffer may be seen: its header and values lie in its slot.
void Chip::see(BufferState& b) {
  const PageHeader& h = header(b, b.pushed);
  tell(PagePushed{now_, at(b), b.pushed, h.bytes, h.tag});
  ++b.pushed;
  ++pages_pushed_;
  for (std::uint32_t i = 0; i < b.consumers; ++i) {
    const ConsumerState& consumer = c_.consumers[b.first_consumer + i];
    if (consumer.sender) {
      touch_sender(consumer.actor);
    } else {
      touch_stage(consumer.actor);
    }
  }
}

void Chip::publish(BufferState& b, std::uint64_t produced) {
  header(b, b.pushed) = staged_header(b, produced);
  if (laws_.values) std::copy_n(staged_slot(b, produced), b.slot_bytes, slot(b, b.pushed));
  see(b);
}

void Chip::push(BufferState& b) {
  if (b.fault == 0 || b.landing) {
    see(b);
    return;
  }
  BufferFaults& f = c_.buffer_faults[b.fault - 1];
  const std::uint64_t n = f.produced++;
  if (find(f.faults, FaultKind::page_drop, n) != nullptr) return;
  if (find(f.faults, FaultKind::page_bit_flip, n) != nullptr && laws_.values && staged_header(b, n).bytes > 0)
    *staged_slot(b, n) ^= std::byte{1};
  if (find(f.faults, FaultKind::page_swap, n) != nullptr) {
    f.held = true;
    return;
  }
  publish(b, n);
  if (find(f.faults, FaultKind::page_duplicate, n) != nullptr) publish(b, n);
  if (f.held) {
    f.held = false;
    publish(b, n - 1);
  }
}

void Chip::apply_completed(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  if (s.form == StageForm::receive) {
    ReceiveState& r = c_.receives[s.detail];
    ReceiveChannel& ch = c_.receive_channels[r.first_channel + r.landed % r.channels];
    BufferState& b = c_.buffers[r.buffer];
    const PageHeader& h = header(b, b.initial + r.landed);
    tell(PageLanded{now_, at(ch), ch.landed, h.tag});
    ++ch.landed;
    ++r.landed;
    if (r.handshake == Handshake::token) {
      push(b);
      tell(FiringCompleted{now_, at(s), s.completed++});
    }
    touch_receive(s.detail);
    return;
  }
  const std::uint64_t f = s.completed++;
  if (s.form == StageForm::load) {
    if (const PageHeader* page = loaded_page(s, f)) tell(PageLoaded{now_, at(s), f, sp.tensor->id, page->tag});
  } else if (s.form == StageForm::store) {
    StoreState& store = c_.stores[s.detail];
    const PageHeader& h = store.under_way[store.left++ % store.under_way.size()];
    tell(PageStored{now_, at(s), f, sp.tensor->id, h.tag});
  }
  for (const PortUse& use : uses(sp, f)) {
    if (use.push == 0) continue;
    const PortState& port = c_.ports[s.first_port + use.port];
    if (!port.bound) continue;
    for (std::uint32_t n = use.push; n > 0; --n) push(c_.buffers[port.buffer]);
  }
  tell(FiringCompleted{now_, at(s), f});
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

void Chip::apply_arrived(std::uint32_t channel) {
  ReceiveChannel& ch = c_.receive_channels[channel];
  ReceiveState& r = c_.receives[ch.receive];
  if (ch.fault == 0) {
    ++ch.arrived;
  } else {
    ChannelFaults& f = c_.channel_faults[ch.fault - 1];
    const std::uint64_t n = f.came++;
    BufferState& b = c_.buffers[r.buffer];
    const std::uint64_t page = b.initial + n * r.channels + ch.rank;
    if (find(f.faults, FaultKind::page_bit_flip, n) != nullptr && laws_.values && staged_header(b, page).bytes > 0)
      *staged_slot(b, page) ^= std::byte{1};
    if (find(f.faults, FaultKind::page_drop, n) != nullptr) {
      // nothing comes
    } else if (find(f.faults, FaultKind::page_swap, n) != nullptr) {
      f.held = true;
    } else {
      f.order.push_back(n);
      if (find(f.faults, FaultKind::page_duplicate, n) != nullptr) f.order.push_back(n);
      if (f.held) f.order.push_back(n - 1);
      f.held = false;
    }
    ch.arrived = f.order.size();
  }
  touch_stage(r.stage);
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

// ---- phase 2: what is granted
// -------------------------------------------------------------------------------------------

void Chip::commit() {
  if (work_.empty()) return;
  sort_events(work_);
  // Grants add no work to this cycle.
  for (std::size_t i = 0; i < work_.size(); ++i) grant(work_[i]);
  work_.clear();
}

void Chip::grant(const Event& w) {
  switch (w.kind()) {
    case work_relay:
      grant_relay(w.unit(), w.number());
      break;
    case work_chip_arrive:
      grant_chip_arrive(w.unit());
      break;
    case work_agcu:
      grant_agcu(w.unit());
      break;
    case work_transit:
      grant_transit(w.unit());
      break;
    case work_write:
      grant_write(w.unit());
      break;
    case work_receive:
      grant_receive(w.unit());
      break;
    case work_sender:
      grant_sender(w.unit());
      break;
    case work_stage:
      grant_stage(w.unit());
      break;
    default:
      break;
  }
}

// ---- links and signals

// Puts a page or signal on the relay's link; returns the cycle at which its last byte is at the other chip. `from`: its
// first byte is at the link, `last_byte`: its last one.
Cycle Chip::hop(const Relay& r, Cycle from, Cycle last_byte, std::uint32_t bytes) {
  ChipLink& link = c_.links[r.link];
  const Bytes size = r.signal ? link.signal_bytes() : std::max<Bytes>(bytes, link.signal_bytes());
  const ChipLink::Transfer t = link.send(from, size);
  tell(LinkUsed{now_, link.id(), t.slot.begin, t.slot.end, size, r.signal});
  const Cycle arrival = std::max(t.arrival, last_byte + link.latency());
  outside_.post(r.to_chip, arrival + r.tail, {r.then.kind(), r.then.unit(), bytes});
  return arrival;
}

void Chip::grant_relay(std::uint32_t n, std::uint32_t bytes) {
  hop(c_.relays[n], now_, now_, bytes);
}

void Chip::signal(const Path& path) {
  if (path.remote) {
    hop(c_.relays[path.relay], now_ + path.lead, now_ + path.lead, 0);
  } else {
    put(now_ + path.lead, static_cast<EventKind>(path.then.kind()), path.then.unit());
  }
}

void Chip::grant_chip_arrive(std::uint32_t channel) {
  ReceiveChannel& ch = c_.receive_channels[channel];
  const ReceiveState& r = c_.receives[ch.receive];
  const std::uint64_t page = ch.in_transit++;
  const BufferState& b = c_.buffers[r.buffer];
  const std::uint32_t bytes = c_.headers[b.staged_headers + (b.initial + page * r.channels + ch.rank) % b.slots].bytes;
  AgcuState& agcu = c_.agcus[r.agcu];
  const Slot door = agcu.unit.inward(laws_.agcu, now_, bytes);
  const Cycle first = door.begin + laws_.agcu.latency;
  const Cycle last = door.end + laws_.agcu.latency;
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
        if (brings(g) && ch.landed <= pages_before(g)) break;
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
    if (there && handshake_allows(s)) send(sender);
    return;
  }
  if (s.generation % 2 == 0 && !s.self_arrived && there) {
    s.self_arrived = true;
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
  const Part part = chunk_of(s, h);
  PageTag tag = h.tag;
  if (s.chunk.of > 1) tag.chunk = s.chunk.index, tag.chunks = s.chunk.of;
  const std::byte* values = laws_.values ? slot(b, s.page) + part.begin : nullptr;
  const std::span<const std::byte> bytes{values, laws_.values ? part.bytes : 0};

  const Pmu::Access out = c_.pmus[s.pmu].read(laws_.pmu, now_, part.bytes);
  Cycle left = c_.network.send(shot.route, out.first, out.last, part.bytes);
  Cycle link_first = 0, link_last = 0;
  if (shot.leaves_chip) {
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
    if (ch.to_chip == c_.chip.value) {
      accept(ch.there, page, tag, bytes, part.bytes);
    } else {
      outside_.deliver(ch.to_chip, ch.there, page, tag, bytes, part.bytes);
    }
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
        hop(c_.relays[ch.signal.relay], std::max(link_first, now_ + ch.signal.lead), 0, 0);
      } else {
        signal(ch.signal);
      }
    }
  s.busy = true;
  left = std::max(left, now_ + 1);
  put(left, sent, sender);
}

// Writes a page that is under way into the slot that its credit stands for. It is seen by nobody before it has landed.
void Chip::accept(std::uint32_t channel, std::uint64_t page, const PageTag& tag, std::span<const std::byte> values,
                  std::uint32_t bytes) {
  const ReceiveChannel& ch = c_.receive_channels[channel];
  const ReceiveState& r = c_.receives[ch.receive];
  BufferState& b = c_.buffers[r.buffer];
  const std::uint64_t n = b.initial + page * r.channels + ch.rank;
  PageHeader& h = staged_header(b, n);
  h.tag = tag;
  h.bytes = std::min(bytes, b.slot_bytes);
  if (laws_.values && !values.empty())
    std::copy_n(values.data(), std::min<std::size_t>(values.size(), b.slot_bytes), staged_slot(b, n));
}

// ---- stages

std::optional<StallCause> Chip::blocked(const StageState& s) const {
  for (const PortUse& use : uses(spec(s), s.next)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.need != 0) {
      if (!port.bound || c_.buffers[port.buffer].pushed < c_.consumers[port.consumer].claimed + use.need)
        return StallCause::input_starvation;
    }
    if (use.reserve != 0) {
      if (!port.bound) return StallCause::back_pressure;
      const BufferState& b = c_.buffers[port.buffer];
      if (b.reserved + use.reserve > b.popped + b.depth) {
        // Where most of the room is taken by pages that memory has not yet given, it is memory that holds the load up.
        const bool under_way = b.reserved - std::min(b.reserved, b.pushed) > b.pushed - std::min(b.pushed, b.popped);
        return s.form == StageForm::load && under_way ? StallCause::memory : StallCause::back_pressure;
      }
    }
  }
  return std::nullopt;
}

std::span<const PortUse> Chip::loose_uses(const StageSpec& sp, std::uint64_t firing) const {
  loose_.clear();
  for (std::uint32_t p = 0; p < sp.ports.size(); ++p) {
    const PortSpec& port = sp.ports[p];
    const bool in = port.direction == Direction::input;
    loose_.push_back({p, port.direction, in ? port.need.at(firing) : 0, in ? port.pop.at(firing) : 0,
                      in ? 0 : port.reserve.at(firing), in ? 0 : port.push.at(firing)});
  }
  return loose_;
}

// The stage could start but for its engine: it tries again when an event tells that the engine is free.
void Chip::wait_for_engine(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  EngineState& e = c_.engines[s.engine];
  if (!s.waits_for_engine) {
    s.waits_for_engine = true;
    s.next_waiting = e.first_waiting;
    e.first_waiting = stage + 1;
  }
  if (e.wake) return;
  e.wake = true;
  put(e.free_at, engine_free, s.engine);
}

bool Chip::engine_taken(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  if (c_.engines[s.engine].free_at <= now_) return false;
  s.cause = StallCause::engine;
  wait_for_engine(stage);
  return true;
}

bool Chip::can_land(const StageState& s) const {
  const ReceiveState& r = c_.receives[s.detail];
  return r.channels != 0 && c_.receive_channels[r.first_channel + s.next % r.channels].arrived > s.next / r.channels;
}

void Chip::grant_stage(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  s.touched = false;
  if (s.next == s.total) return;
  switch (s.form) {
    case StageForm::load: {
      LoadState& load = c_.loads[s.detail];
      for (std::uint32_t i = 0; i < load.members; ++i) {
        const std::uint32_t member = c_.load_members[load.first_member + i];
        if (const auto cause = blocked(c_.stages[member])) {
          s.cause = *cause;
          return;
        }
        if (engine_taken(member)) {
          s.cause = StallCause::engine;
          return;
        }
      }
      start_load(stage);
      break;
    }
    case StageForm::receive:
      if (!can_land(s)) {
        s.cause = StallCause::input_starvation;
        return;
      }
      if (!engine_taken(stage)) start_receive(stage);
      break;
    case StageForm::none:
      break;
    default:
      if (const auto cause = blocked(s)) {
        s.cause = *cause;
        return;
      }
      if (engine_taken(stage)) return;
      if (s.form == StageForm::store) start_store(stage);
      if (s.form == StageForm::matmul) start_matmul(stage);
      if (s.form == StageForm::generic) start_generic(stage);
  }
}

void Chip::claim(StageState& s, std::uint64_t firing) {
  for (const PortUse& use : uses(spec(s), firing)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.pop != 0 && port.bound) c_.consumers[port.consumer].claimed += use.pop;
  }
}

void Chip::reserve(StageState& s, std::uint64_t firing) {
  for (const PortUse& use : uses(spec(s), firing)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.reserve == 0 || !port.bound) continue;
    BufferState& b = c_.buffers[port.buffer];
    b.reserved += use.reserve;
    tell(PageReserved{now_, at(b), use.reserve});
  }
}

void Chip::started(StageState& s, Cycles busy) {
  tell(FiringStarted{now_, at(s), s.next, busy, now_ - s.since, s.cause});
  s.since = now_ + busy;
  c_.engines[s.engine].free_at = now_ + busy;
  ++s.next;
}

PageTag Chip::tag_of(const StageSpec& sp, const PageRegion& r, std::uint64_t firing) const {
  PageTag tag;
  tag.operand = sp.operand;
  tag.trip = static_cast<std::uint32_t>(sp.firings == 0 ? 0 : firing / sp.firings);
  tag.row = r.whole_row;
  tag.col = r.whole_col;
  tag.rows = static_cast<std::uint32_t>(r.rows);
  tag.cols = static_cast<std::uint32_t>(r.cols);
  return tag;
}

// Where a page lies in memory: tensors lie there page after page, as the streams that read and write them take them.
Bytes Chip::address_of(const StageSpec& sp, const PageRegion& r) const {
  const Bytes size = bytes_of(sp.tensor->dtype);
  const Bytes pitch = static_cast<Bytes>(std::max<std::int64_t>(sp.tensor->shape.back(), 1)) * size;
  return sp.tensor_address + r.row * pitch + r.col * r.rows * size;
}

// The page that firing `firing` of a load brings, while it is under way; nothing where it pushes none.
const PageHeader* Chip::loaded_page(const StageState& s, std::uint64_t firing) const {
  for (const PortUse& use : uses(spec(s), firing)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.push == 0 || !port.bound) continue;
    const BufferState& b = c_.buffers[port.buffer];
    return &c_.headers[b.staged_headers + (b.initial + firing * use.push) % b.slots];
  }
  return nullptr;
}

void Chip::start_load(std::uint32_t actor) {
  StageState& leader = c_.stages[actor];
  const StageSpec& sp = spec(leader);
  LoadState& load = c_.loads[leader.detail];
  const std::uint64_t f = leader.next;
  const PageRegion r = page_region(sp.load->pattern, *sp.tensor, laws_.native_tile, leader.instance, f % sp.firings);
  if (!r.comes) {
    leader.cause = StallCause::memory;
    return;
  }
  const std::uint64_t size = bytes_of(sp.tensor->dtype);
  const std::uint64_t bytes = r.elements() * size;
  const Cycles busy = std::max<Cycles>(laws_.load_rate.span(bytes).ceil(), 1);
  const StallCause cause = leader.cause;
  for (std::uint32_t i = 0; i < load.members; ++i) {
    StageState& s = c_.stages[c_.load_members[load.first_member + i]];
    s.cause = cause;
    reserve(s, f);
    for (const PortUse& use : uses(sp, f)) {
      PortState& port = c_.ports[s.first_port + use.port];
      if (use.push == 0 || !port.bound) continue;
      BufferState& b = c_.buffers[port.buffer];
      for (std::uint32_t n = use.push; n > 0; --n) {
        const std::uint64_t page = port.assigned++;
        PageHeader& h = staged_header(b, page);
        h.tag = tag_of(sp, r, f);
        h.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, b.slot_bytes));
        h.address = address_of(sp, r);
        if (laws_.values && bytes <= b.slot_bytes) {
          const auto& image = images_[sp.tensor->id.value];
          copy_from_image(r, *sp.tensor, image.data(), image.size(), staged_slot(b, page));
        }
      }
    }
    started(s, busy);
    s.cause = StallCause::back_pressure;
  }
  // The load waits its turn at the AGCU; loads there take turns, so that one that runs ahead keeps nobody waiting.
  ++load.waiting;
  AgcuState& agcu = c_.agcus[load.agcu];
  if (!load.listed) {
    load.listed = true;
    load.next_waiting = 0;
    if (agcu.first_waiting == 0) {
      agcu.first_waiting = leader.detail + 1;
    } else {
      c_.loads[agcu.last_waiting - 1].next_waiting = leader.detail + 1;
    }
    agcu.last_waiting = leader.detail + 1;
  }
  if (!agcu.pending) {
    if (agcu.unit.load_free_at() <= now_) {
      grant_agcu(load.agcu);
    } else {
      agcu.pending = true;
      put(agcu.unit.load_free_at(), agcu_next, load.agcu);
    }
  }
  // The next firing, where it could start but for the engine.
  if (leader.next < leader.total) {
    for (std::uint32_t i = 0; i < load.members; ++i)
      if (const auto why = blocked(c_.stages[c_.load_members[load.first_member + i]])) {
        leader.cause = *why;
        return;
      }
    // All members' engines are free at the same time; one of them is enough to tell.
    wait_for_engine(actor);
  }
}

void Chip::grant_agcu(std::uint32_t n) {
  AgcuState& agcu = c_.agcus[n];
  agcu.pending = false;
  if (agcu.first_waiting == 0) return;
  const std::uint32_t which = agcu.first_waiting - 1;
  LoadState& load = c_.loads[which];
  agcu.first_waiting = load.next_waiting;
  load.next_waiting = 0;
  issue_load(load.stage);
  if (--load.waiting != 0) {
    if (agcu.first_waiting == 0) {
      agcu.first_waiting = which + 1;
    } else {
      c_.loads[agcu.last_waiting - 1].next_waiting = which + 1;
    }
    agcu.last_waiting = which + 1;
  } else {
    load.listed = false;
  }
  if (agcu.first_waiting != 0) {
    agcu.pending = true;
    put(agcu.unit.load_free_at(), agcu_next, n);
  }
}

void Chip::issue_load(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  LoadState& load = c_.loads[s.detail];
  const PageHeader* page = loaded_page(s, load.issued++);
  if (page == nullptr) return;
  const Bytes bytes = page->bytes;
  const Slot door = c_.agcus[load.agcu].unit.load(laws_.agcu, now_, bytes);
  Memory& memory = c_.memories[load.memory];
  const auto space = static_cast<std::uint8_t>(sp.tensor->space);
  const Cycle read =
      memory.access(now_, page->address, bytes, false, [&](std::uint32_t channel, Cycle begin, Cycle end, Bytes part) {
        tell(MemoryUsed{now_, c_.chip, space, channel, begin, end, part, false});
      });
  const Cycle last = std::max(read, door.end + memory.latency()) + laws_.agcu.latency;
  // The page enters the network when the rest can follow without a gap.
  const Cycles streaming = laws_.agcu.port.span(bytes).ceil();
  s.last_transit = std::max({s.last_transit, last - std::min(last, streaming), now_ + 1});
  put(s.last_transit, transit, stage);
}

void Chip::grant_transit(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  const std::uint64_t f = s.transited++;
  if (s.form == StageForm::load) {
    LoadState& load = c_.loads[s.detail];
    const PageHeader* page = loaded_page(s, f);
    if (page == nullptr) return;
    const Bytes bytes = page->bytes;
    const Cycle last = now_ + laws_.agcu.port.span(bytes).ceil();
    c_.network.send(load.route, now_, last, bytes);
    const Cycles writing = laws_.pmu.write.span(bytes).ceil();
    for (std::uint32_t i = 0; i < load.members; ++i) {
      const std::uint32_t which = c_.load_members[load.first_member + i];
      StageState& member = c_.stages[which];
      const Cycle tail = c_.network.tail(load.route, i);
      const Cycle from = std::max(c_.network.head(load.route, i), tail - std::min(tail, writing));
      const Pmu::Access w = c_.pmus[member.pmu].write(laws_.pmu, from, bytes);
      member.last_complete = std::max({member.last_complete, w.last, now_ + 1});
      put(member.last_complete, completed, which);
    }
    return;
  }
  if (s.form == StageForm::store) {
    StoreState& store = c_.stores[s.detail];
    const Bytes bytes = store.under_way[f % store.under_way.size()].bytes;
    const Slot door = c_.agcus[store.agcu].unit.outward(laws_.agcu, now_, bytes);
    put(std::max(door.end + laws_.agcu.latency, now_ + 1), memory_write, stage);
    return;
  }
  Bytes bytes = 0;
  bool pushes = false;
  for (const PortUse& use : uses(sp, f)) {
    PortState& port = c_.ports[s.first_port + use.port];
    if (use.push == 0 || !port.bound) continue;
    for (std::uint32_t n = use.push; n > 0; --n) {
      bytes += staged_header(c_.buffers[port.buffer], port.transited++).bytes;
      pushes = true;
    }
  }
  if (!pushes && s.completed == f) {
    tell(FiringCompleted{now_, at(s), s.completed++});
    return;
  }
  const Cycle done = pushes ? c_.pmus[s.pmu].write(laws_.pmu, now_, bytes).last : now_;
  s.last_complete = std::max({s.last_complete, done, now_ + 1});
  put(s.last_complete, completed, stage);
}

void Chip::start_store(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  StoreState& store = c_.stores[s.detail];
  const std::uint64_t f = s.next;
  const std::uint64_t phases = std::max<std::uint64_t>(sp.store->chunks.size(), 1);
  const std::uint64_t in_trip = f % sp.firings;
  const PageRegion r = page_region(sp.store->pattern, *sp.tensor, laws_.native_tile, s.instance, in_trip / phases);
  if (!r.comes) {
    s.cause = StallCause::memory;
    return;
  }
  const Chunk chunk = sp.store->chunks.empty() ? Chunk{} : sp.store->chunks[in_trip % phases];
  // The page comes from the port that pops in this phase.
  View page;
  for (const PortUse& use : uses(sp, f)) {
    if (use.pop == 0) continue;
    page = view(s, use.port, f);
    if (page.header != nullptr) break;
  }
  const std::uint32_t of = std::max(chunk.of, 1u);
  const ElementRange range = chunk_range(r.elements(), std::min(chunk.index, of - 1), of);
  const std::uint64_t size = bytes_of(sp.tensor->dtype);
  PageHeader kept;
  kept.tag = tag_of(sp, r, f);
  kept.tag.chunk = chunk.index;
  kept.tag.chunks = of;
  if (page.header != nullptr) {
    kept.tag.trip = page.tag.trip;
    kept.tag.provenance = page.tag.provenance;
  }
  kept.bytes = static_cast<std::uint32_t>(range.size() * size);
  kept.address = address_of(sp, r) + range.begin * size;
  if (page.values != nullptr) {
    auto& image = images_[sp.tensor->id.value];
    copy_to_image(r, *sp.tensor, image.data(), image.size(), page.values, range.begin,
                  std::min(range.size(), page.elements));
  }
  if (store.entered - store.left == store.under_way.size()) {
    // Grows to the most pages under way, then never again; the ring is laid out anew from the oldest.
    std::vector<PageHeader> larger(std::max<std::size_t>(4, store.under_way.size() * 2));
    for (std::uint64_t i = store.left; i < store.entered; ++i)
      larger[i % larger.size()] = store.under_way[i % store.under_way.size()];
    store.under_way = std::move(larger);
  }
  store.under_way[store.entered++ % store.under_way.size()] = kept;

  claim(s, f);
  const Pmu::Access out = c_.pmus[s.pmu].read(laws_.pmu, now_, kept.bytes);
  const Cycle left = c_.network.send(store.route, out.first, out.last, kept.bytes);
  const Cycles busy = std::max<Cycles>(left - now_, 1);
  const Cycle tail = c_.network.tail(store.route, 0);
  const Cycles streaming = laws_.agcu.port.span(kept.bytes).ceil();
  s.last_transit =
      std::max({s.last_transit, c_.network.head(store.route, 0), tail - std::min(tail, streaming), now_ + 1});
  put(s.last_transit, transit, stage);
  started(s, busy);
  s.cause = StallCause::input_starvation;
  c_.engines[s.engine].wake = true;
  put(now_ + busy, read_done, stage);
}

void Chip::grant_write(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  StoreState& store = c_.stores[s.detail];
  const std::uint64_t f = store.written++;
  const PageHeader& page = store.under_way[f % store.under_way.size()];
  const auto space = static_cast<std::uint8_t>(sp.tensor->space);
  const Cycle done = c_.memories[store.memory].access(
      now_, page.address, page.bytes, true, [&](std::uint32_t channel, Cycle begin, Cycle end, Bytes part) {
        tell(MemoryUsed{now_, c_.chip, space, channel, begin, end, part, true});
      });
  s.last_complete = std::max({s.last_complete, done, now_ + 1});
  put(s.last_complete, completed, stage);
}

void Chip::run_compute(std::uint32_t stage, Bytes read, FiringTime time) {
  StageState& s = c_.stages[stage];
  // Operands stream through the read port while the array works: the firing keeps it until both are done.
  const Pmu::Access in = c_.pmus[s.pmu].read(laws_.pmu, now_, read);
  const Cycles busy = std::max({time.busy, in.last - laws_.pmu.access - now_, Cycles{1}});
  s.last_transit = std::max(s.last_transit, now_ + busy + time.latency + laws_.pmu.access);
  put(s.last_transit, transit, stage);
  started(s, busy);
  s.cause = StallCause::input_starvation;
  c_.engines[s.engine].wake = true;
  put(now_ + busy, read_done, stage);
}

void Chip::start_receive(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  ReceiveState& r = c_.receives[s.detail];
  BufferState& b = c_.buffers[r.buffer];
  const std::uint64_t k = s.next;
  const ReceiveChannel& ch = c_.receive_channels[r.first_channel + k % r.channels];
  if (b.fault != 0) {
    // The page that came is not always the one that was due.
    std::uint64_t q = k / r.channels;
    if (ch.fault != 0) {
      const auto& order = c_.channel_faults[ch.fault - 1].order;
      q = q < order.size() ? order[q] : q;
    }
    const std::uint64_t from = b.initial + q * r.channels + ch.rank;
    header(b, b.initial + k) = staged_header(b, from);
    if (laws_.values) std::copy_n(staged_slot(b, from), b.slot_bytes, slot(b, b.initial + k));
  }
  ++b.reserved;
  tell(PageReserved{now_, at(b), 1});
  const Pmu::Access w = c_.pmus[s.pmu].write(laws_.pmu, now_, header(b, b.initial + k).bytes);
  const Cycles busy = std::max<Cycles>(w.last - laws_.pmu.access - now_, 1);
  s.last_complete = std::max({s.last_complete, w.last, now_ + 1});
  put(s.last_complete, completed, stage);
  started(s, busy);
  s.cause = StallCause::input_starvation;
  if (s.next < s.total && can_land(s)) wait_for_engine(stage);
}

// ---- how it ended

bool Chip::finished(SectionId section) const {
  if (section.value >= c_.section_stages.size()) return true;
  for (const std::uint32_t i : c_.section_stages[section.value])
    if (c_.stages[i].completed != c_.stages[i].total) return false;
  return true;
}

void Chip::waiting(SectionId section, std::vector<Waiting>& out) const {
  if (section.value >= c_.section_stages.size()) return;
  for (const std::uint32_t i : c_.section_stages[section.value]) {
    const StageState& s = c_.stages[i];
    if (s.completed == s.total) continue;
    Waiting w;
    w.stage = at(s);
    w.firing = s.next;
    w.since = s.since;
    w.what = Waiting::For::firing;
    w.have = s.completed;
    w.want = s.total;
    if (s.form == StageForm::receive) {
      const ReceiveState& r = c_.receives[s.detail];
      w.buffer = at(c_.buffers[r.buffer]);
      w.what = Waiting::For::page;
      if (r.channels != 0) {
        const ReceiveChannel& ch = c_.receive_channels[r.first_channel + s.next % r.channels];
        w.channel = at(ch);
        w.have = ch.arrived;
        w.want = s.next / r.channels + 1;
        if (s.next != s.completed || s.next == s.total) {
          w.what = r.handshake == Handshake::semaphore ? Waiting::For::valid : Waiting::For::barrier;
          const ReceiveChannel& due = c_.receive_channels[r.first_channel + s.completed % r.channels];
          w.channel = at(due);
          w.firing = s.completed;
          w.have = due.pushable;
          w.want = s.completed / r.channels + 1;
        }
      }
      out.push_back(w);
      continue;
    }
    for (const PortUse& use : s.next < s.total ? uses(spec(s), s.next) : std::span<const PortUse>{}) {
      const PortState& state = c_.ports[s.first_port + use.port];
      if (!state.bound) continue;
      const BufferState& b = c_.buffers[state.buffer];
      if (use.need != 0 && b.pushed < c_.consumers[state.consumer].claimed + use.need) {
        w.what = Waiting::For::page;
        w.have = b.pushed - std::min(b.pushed, c_.consumers[state.consumer].claimed);
        w.want = use.need;
      } else if (use.reserve != 0 && b.reserved + use.reserve > b.popped + b.depth) {
        w.what = Waiting::For::room;
        const std::uint64_t taken = b.reserved - std::min(b.reserved, b.popped);
        w.have = b.depth - std::min(b.depth, taken);
        w.want = use.reserve;
      } else {
        continue;
      }
      w.buffer = at(b);
      break;
    }
    out.push_back(w);
  }
  for (const SenderState& s : c_.senders) {
    const BufferState& b = c_.buffers[s.buffer];
    if (s.busy || s.shots == 0) continue;
    const bool there = b.pushed > s.page;
    Waiting w;
    w.buffer = at(b);
    w.firing = s.page;
    w.since = s.since;
    const Shot& shot = c_.shots[s.first_shot + s.page % s.shots];
    if (s.handshake == Handshake::barrier) {
      // In a generation that not all have arrived for.
      if (!s.self_arrived && s.arrived == 0) continue;
      w.what = Waiting::For::barrier;
      w.have = s.arrived + (s.self_arrived ? 1 : 0);
      w.want = s.channels + std::uint64_t{1};
      if (s.channels != 0) w.channel = at(c_.send_channels[s.first_channel]);
      out.push_back(w);
      continue;
    }
    if (!there) continue;
    if (s.handshake == Handshake::semaphore) {
      w.what = Waiting::For::ready;
      w.have = s.value;
      w.want = s.channels;
      if (s.channels != 0) w.channel = at(c_.send_channels[s.first_channel]);
      out.push_back(w);
      continue;
    }
    for (std::uint32_t i = 0; i < shot.channels; ++i) {
      const SendChannel& ch = c_.send_channels[c_.shot_channels[shot.first_channel + i]];
      if (ch.credits != 0) continue;
      w.what = Waiting::For::credit;
      w.channel = at(ch);
      w.have = 0;
      w.want = 1;
      out.push_back(w);
    }
  }
}

}  // namespace rdusim
