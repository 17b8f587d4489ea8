// What of a chip at rest the next launch of a section depends on.
//
// Units are in their defined first state when a section starts (Chip::apply_section), so nothing of them counts. Counters of
// firings, pages and generations matter by their differences, and by where they stand in a cycle of phases, of shots or of
// channels. A difference that this cannot explain makes two launches unlike, never alike.
#include <algorithm>

#include "models/units/chip.h"

namespace rdusim {
namespace {

Cycles ahead(Cycle at, Cycle now) {
  return at > now ? at - now : 0;
}

// A counter by its distance from another. One that has not begun is not used.
std::uint64_t counted(std::uint64_t n, std::uint64_t from) {
  return n == 0 ? 0 : n - from;
}

}  // namespace

void Chip::at_rest(SectionId section, std::uint64_t launches, Cycle now, std::vector<std::uint64_t>& out) const {
  const auto put = [&](auto... numbers) { (out.push_back(static_cast<std::uint64_t>(numbers)), ...); };
  if (section.value >= c_.section_stages.size()) return;
  put(queue_.next().has_value(), work_.size(), messages_.size() - free_messages_.size());
  for (const std::uint32_t i : c_.section_stages[section.value]) {
    const StageState& s = c_.stages[i];
    const StageSpec& sp = spec(s);
    const std::uint64_t base = launches * sp.total;
    put(s.next - base, counted(s.read, base), s.completed - base, counted(s.transited, base), s.touched,
        s.waits_for_engine, ahead(s.since, now), ahead(s.last_transit, now), ahead(s.last_complete, now));
    // Where it stands in what it does in turn.
    const auto phase = [&](std::uint64_t length) {
      if (length > 1) put(s.next % length);
    };
    phase(sp.cycle);
    phase(sp.body.length());
    phase(sp.row_pages);
    const EngineState& e = c_.engines[s.engine];
    put(ahead(e.free_at, now), e.first_waiting, e.wake);
    for (std::size_t n = 0; n < sp.ports.size(); ++n) {
      const PortSpec& ps = sp.ports[n];
      for (const auto* phases : {&ps.need, &ps.pop, &ps.reserve, &ps.push}) phase(phases->length());
      phase(ps.chunk.length());
      const PortState& port = c_.ports[s.first_port + n];
      if (!port.bound) continue;
      const BufferState& b = c_.buffers[port.buffer];
      put(b.reserved - b.pushed, b.pushed - b.popped);
      if (ps.direction == Direction::output) {
        put(counted(port.assigned, b.pushed), counted(port.transited, b.pushed));
      } else {
        const ConsumerState& consumer = c_.consumers[port.consumer];
        put(counted(consumer.claimed, consumer.popped), b.pushed - consumer.popped);
      }
    }
    put_form_at_rest(s, base, now, out);
  }
  for (const SenderState& s : c_.senders) {
    const BufferState& b = c_.buffers[s.buffer];
    if (laws_.stages[c_.stages[b.producer].spec].stage->section != section) continue;
    const ConsumerState& consumer = c_.consumers[s.consumer];
    put(b.pushed - s.page, counted(consumer.claimed, consumer.popped), b.pushed - consumer.popped,
        counted(s.generation, s.handshake == Handshake::barrier ? 2 * s.page : s.page), counted(s.consumed, s.page),
        s.value, s.arrived, s.self_arrived, s.held_up, s.busy, s.touched, s.shots == 0 ? 0 : s.page % s.shots);
    for (std::uint32_t n = 0; n < s.channels; ++n) put(c_.send_channels[s.first_channel + n].credits);
  }
  for (const AgcuState& a : c_.agcus) put(a.turns.size(), a.pending);
  for (const PortQueue& q : c_.port_queues) put(q.offers.size() - q.first, q.all - q.room);
}

void Chip::put_form_at_rest(const StageState& s, std::uint64_t base, Cycle now, std::vector<std::uint64_t>& out) const {
  const auto put = [&](auto... numbers) { (out.push_back(static_cast<std::uint64_t>(numbers)), ...); };
  switch (s.form) {
    case StageForm::load: {
      const LoadState& l = c_.loads[s.detail];
      put(counted(l.issued, base), l.waiting, l.listed);
      for (std::uint32_t h = l.first_held; h != 0; h = c_.held_loads[h - 1].next)
        put(ahead(c_.memory_waits[c_.held_loads[h - 1].wait].last + c_.held_loads[h - 1].signal, now));
      break;
    }
    case StageForm::store: {
      const StoreState& st = c_.stores[s.detail];
      put(st.entered - st.left, counted(st.written, base));
      break;
    }
    case StageForm::generic:
      put(c_.generics[s.detail].elements);
      break;
    case StageForm::receive: {
      const ReceiveState& r = c_.receives[s.detail];
      const BufferState& b = c_.buffers[r.buffer];
      const std::uint64_t channels = std::max(r.channels, 1u);
      put(counted(r.credited, b.popped), r.credited % channels, counted(r.scheduled, r.landed), r.scheduled % channels,
          b.pushed - r.landed, r.landed % channels, r.value, r.touched);
      for (std::uint32_t n = 0; n < r.channels; ++n) {
        const ReceiveChannel& ch = c_.receive_channels[r.first_channel + n];
        const std::uint64_t period = std::max(ch.period, 1u);
        put(ahead(ch.last_arrival, now), ch.arrived - ch.landed, counted(ch.pushable, ch.landed),
            counted(ch.raised, ch.valid_raised), counted(ch.valid_seen, ch.valid_raised),
            counted(ch.valid_consumed, ch.valid_raised), ch.raised % period, counted(ch.generation, 2 * ch.generations),
            ch.generation % (2 * period), counted(ch.entered, ch.due), ch.at_barrier);
      }
      break;
    }
    case StageForm::matmul:
    case StageForm::none:
      break;
  }
}

}  // namespace rdusim
