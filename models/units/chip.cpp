#include "models/units/chip.h"

#include <algorithm>
#include <utility>

#include "compiler/support/split_mix.h"

namespace rdusim {
namespace {

Pool zeroed(std::size_t bytes) {
  return Pool(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(bytes, 1), 1)));
}

}  // namespace

Chip::Chip(ChipState state, const MachineLaws& laws, ProvenanceTable& provenance, TensorImages& images,
           Outside& outside, std::uint64_t shuffle_seed, std::uint64_t jitter_seed)
    : c_(std::move(state)),
      laws_(laws),
      provenance_(provenance),
      images_(images),
      outside_(outside),
      shuffle_(shuffle_seed == 0 ? 0 : shuffle_seed + c_.chip.value + 1),
      jitter_(jitter_seed) {
  if (laws_.values) {
    pool_ = zeroed(c_.pool_bytes);
    scratch_.resize(c_.scratch_bytes * c_.scratch_pages);
  }
}

// One in four of a unit's transfers or firings is late, by up to `most` cycles: from its number, not from the order in
// which things are asked, so that every way of running delays the same ones.
Cycles Chip::delay(std::uint64_t unit, std::uint64_t nth, Cycles most) const {
  std::uint64_t state = jitter_ + unit * 0x9e3779b97f4a7c15u + nth * 0xd1342543de82ef95u;
  const std::uint64_t drawn = draw(state);
  return drawn % 4 != 0 ? 0 : (drawn >> 8) % most + 1;
}

void Chip::start_section(SectionId section, std::uint64_t trip, Cycle at) {
  if (section.value >= c_.section_stages.size() || c_.section_stages[section.value].empty()) return;
  if (trip > 0) expect_another_trip(section.value);
  queue_.put(at, {section_event, section.value, 0});
}

// What has been counted so far stays: firings, pages and generations are those of all trips. Who waited for what the last
// time does not.
void Chip::expect_another_trip(std::uint32_t section) {
  for (const std::uint32_t i : c_.section_stages[section]) {
    StageState& s = c_.stages[i];
    s.total += spec(s).total;
    s.cause = StallCause::input_starvation;
    if (s.form == StageForm::load) {
      LoadState& load = c_.loads[s.detail];
      load.served = 0;
      load.blocker = 0;
    }
    if (s.form != StageForm::receive) continue;
    const ReceiveState& r = c_.receives[s.detail];
    for (std::uint32_t n = 0; n < r.channels; ++n) {
      ReceiveChannel& ch = c_.receive_channels[r.first_channel + n];
      ch.generations += ch.generations_a_launch;
    }
  }
}

void Chip::advance(Cycle now) {
  now_ = now;
  queue_.take(now, due_);
  if (shuffle_ != 0)
    for (std::size_t i = due_.size(); i > 1; --i) std::swap(due_[i - 1], due_[draw(shuffle_) % i]);
  for (const Event& e : due_) apply(e);
  commit();
  if (c_.network.flits() != nullptr) step_flits();
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
      std::uint32_t come = copies(ch, ch.faulty, FaultKind::credit_drop, FaultKind::credit_duplicate, ch.returned++);
      for (; come > 0; --come) {
        ch.credits = (ch.credits + 1) & s.mask;
        tell(CreditArrived{now_, at(ch)});
      }
      touch_sender(ch.sender);
      break;
    }
    case ready: {
      SendChannel& ch = c_.send_channels[e.unit()];
      SenderState& s = c_.senders[ch.sender];
      std::uint32_t come = copies(ch, ch.faulty, FaultKind::ready_drop, FaultKind::ready_duplicate, ch.returned++);
      for (; come > 0; --come) {
        s.value = (s.value + 1) & s.mask;
        tell(ReadyRaised{now_, at(ch), ch.ready++, static_cast<std::uint32_t>(s.value)});
      }
      touch_sender(ch.sender);
      break;
    }
    case barrier_arrive: {
      SendChannel& ch = c_.send_channels[e.unit()];
      if (ch.faulty && c_.faults.strikes(FaultKind::arrive_drop, at(ch), ch.returned++)) break;
      ++c_.senders[ch.sender].arrived;
      touch_sender(ch.sender);
      break;
    }
    case valid: {
      ReceiveChannel& ch = c_.receive_channels[e.unit()];
      const std::uint64_t n = ch.signals++;
      const std::uint32_t come = copies(ch, ch.fault != 0, FaultKind::valid_drop, FaultKind::valid_duplicate, n);
      ch.valid_seen += come;
      if (ch.fault != 0)
        c_.channel_faults[ch.fault - 1].valid.insert(c_.channel_faults[ch.fault - 1].valid.end(), come, n);
      touch_receive(ch.receive);
      break;
    }
    case barrier_leave: {
      ReceiveChannel& ch = c_.receive_channels[e.unit()];
      if (ch.fault != 0 && c_.faults.strikes(FaultKind::leave_drop, at(ch), ch.signals++)) break;
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
    case written:
      apply_written(e.unit());
      break;
    case store_free:
      touch_stage(e.unit());
      break;
    case port_room:
      work_.push_back({work_port_room, e.unit(), e.number()});
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
  for (AgcuState& a : c_.agcus) {
    a.unit.reset();
    a.served = 0;
  }
  for (Memory& m : c_.memories) m.reset(now_);
  for (ChipLink& l : c_.links) l.reset();
  for (SwitchFeed& f : c_.feeds) f.link.reset();
  c_.network.reset();
  for (const std::uint32_t i : c_.section_stages[section]) {
    StageState& s = c_.stages[i];
    s.active = true;
    s.since = now_;
    touch_stage(i);
    if (s.form == StageForm::load && s.actor == i) hold(s);
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

void Chip::push(BufferState& b) {
  if (!b.faulty || b.landing) {
    see(b);
  } else {
    push_broken(b);
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
    if (const PageHeader* page = loaded_page(s, f)) tell(PageLoaded{now_, at(s), f, sp.held(f).tensor->id, page->tag});
  } else if (s.form == StageForm::store) {
    StoreState& store = c_.stores[s.detail];
    const PageHeader& h = store.under_way[store.left++ % store.under_way.size()];
    tell(PageStored{now_, at(s), f, sp.held(f).tensor->id, h.tag});
    if (store.memory_wait != 0) apply_stored(s, f);
  }
  for (const PortUse& use : uses(sp, f)) {
    if (use.push == 0) continue;
    const PortState& port = c_.ports[s.first_port + use.port];
    if (!port.bound) continue;
    for (std::uint32_t n = use.push; n > 0; --n) push(c_.buffers[port.buffer]);
  }
  tell(FiringCompleted{now_, at(s), f});
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
    case work_port_room:
      grant_port_room(w.unit(), w.number());
      break;
    case work_relay:
      grant_relay(w.unit(), w.number());
      break;
    case work_chip_arrive:
      grant_chip_arrive(w.unit(), w.number());
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

}  // namespace rdusim
