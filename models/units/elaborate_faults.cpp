// What faults make of the units that they strike.
#include <algorithm>

#include "models/units/elaborator.h"
#include "models/units/fault_partners.h"

namespace rdusim {

namespace {

// Room for half a page more in every slot.
void lengthen(BufferState& b) {
  if (b.slot_bytes < 1u << 31) b.slot_bytes += (b.slot_bytes / 2 + 15) / 16 * 16;
}

}  // namespace

void Elaborator::stage_beside(ChipState& c, BufferState& b) {
  if (b.fault != 0) return;
  c.buffer_faults.emplace_back();
  c.buffer_faults.back().produced = c.buffer_faults.back().initial = b.initial;
  b.fault = static_cast<std::uint32_t>(c.buffer_faults.size());
  b.faulty = true;
  b.staged_headers = static_cast<std::uint32_t>(c.headers.size());
  c.headers.resize(c.headers.size() + b.slots);
  for (std::uint32_t i = 0; i < b.slots; ++i) c.headers[b.staged_headers + i] = c.headers[b.headers + i];
}

void Elaborator::apply_faults() {
  for (std::size_t n = 0; n < faults_.size(); ++n) {
    const Fault& f = faults_[n];
    if (f.buffer) break_buffer(f, n);
    if (f.stage) break_stage(f, n);
    if (f.edge) break_edge(f, n);
    if (f.link) break_link(f, n);
  }
}

void Elaborator::break_buffer(const Fault& f, std::size_t n) {
  if (f.buffer->buffer.value >= p_.buffers.size()) return;
  const GroupId g = p_.buffer(f.buffer->buffer).group;
  if (f.buffer->instance >= group(g).sites.size()) return;
  ChipState& c = chip(chip_of(g));
  BufferState& b = c.buffers[buffer_base_[f.buffer->buffer.value] + f.buffer->instance];
  if (b.landing) return;  // a landing buffer is broken by its edge
  stage_beside(c, b);
  if (f.kind == FaultKind::depth_less && b.depth > 1) --b.depth, ++c.buffer_faults[b.fault - 1].missing;
  if (f.kind == FaultKind::page_long) lengthen(b);
  if (f.kind == FaultKind::collective_order) {
    exchange_order(c, f, n);
    return;
  }
  c.faults.add(f, n);
}

void Elaborator::exchange_order(ChipState& c, Fault f, std::size_t n) {
  const auto other = other_collective(p_, f.buffer->buffer);
  if (!other) return;
  const std::uint32_t index = buffer_base_[other->value];
  stage_beside(c, c.buffers[index]);
  const auto sites = static_cast<std::uint32_t>(group(p_.buffer(f.buffer->buffer).group).sites.size());
  for (std::uint32_t i = 0; i < sites; ++i) {
    const std::uint32_t late = buffer_base_[f.buffer->buffer.value] + i;
    stage_beside(c, c.buffers[late]);
    c.buffer_faults[c.buffers[late].fault - 1].after = index;
    c.buffer_faults[c.buffers[index].fault - 1].before.push_back(late);
    f.buffer->instance = i;
    c.faults.add(f, n);
  }
}

void Elaborator::break_stage(Fault f, std::size_t n) {
  if (f.stage->stage.value >= p_.stages.size()) return;
  const GroupId g = p_.stage(f.stage->stage).group;
  if (f.stage->instance >= group(g).sites.size()) return;
  ChipState& c = chip(chip_of(g));
  StageState* s = &c.stages[stage_base_[f.stage->stage.value] + f.stage->instance];
  // What a load of a multicast set reads, its first member reads for all.
  if (law_of(f.kind).place == FaultPlace::load || law_of(f.kind).place == FaultPlace::mover) {
    s = &c.stages[s->actor];
    f.stage->instance = s->instance;
  }
  s->faulty = true;
  if (f.kind == FaultKind::shard_swap) {
    if (f.partner) {
      c.faults.add(f, n);
      return;
    }
    const auto other = other_shard(p_, f.stage->stage);
    if (!other) return;
    f.partner = other;
    c.faults.add(f, n);
    break_stage({f.kind, std::nullopt, std::nullopt, StageAt{*other, f.stage->instance}, 0, f.nth, std::nullopt,
                 f.stage->stage},
                n);
    return;
  }
  c.faults.add(f, n);
}

void Elaborator::break_link(const Fault& f, std::size_t n) {
  for (ChipState& c : out_.chips)
    for (std::size_t i = 0; i < c.links.size(); ++i) {
      if (c.links[i].id() != *f.link) continue;
      c.link_faults.resize(c.links.size());
      c.link_faults[i].faulty = true;
      c.faults.add(f, n);
    }
}

void Elaborator::break_edge(const Fault& f, std::size_t n) {
  for (ChipState& c : out_.chips) {
    bool ours = false;
    for (SendChannel& ch : c.send_channels)
      if (ch.edge == f.edge->value && ch.from == f.instance) ch.faulty = c.senders[ch.sender].faulty = ours = true;
    for (std::uint32_t i = 0; i < c.receive_channels.size(); ++i) {
      const ReceiveChannel& ch = c.receive_channels[i];
      if (ch.edge != f.edge->value || ch.from != f.instance) continue;
      ours = true;
      break_channel(c, i);
      if (f.kind == FaultKind::page_long) lengthen(c.buffers[c.receives[ch.receive].buffer]);
      if (f.kind != FaultKind::page_misroute || c.receive_channels.size() < 2) continue;
      const std::uint32_t other = (i + 1) % static_cast<std::uint32_t>(c.receive_channels.size());
      break_channel(c, other);
      c.channel_faults[ch.fault - 1].astray = other;
    }
    if (ours) c.faults.add(f, n);
  }
}

void Elaborator::break_channel(ChipState& c, std::uint32_t channel) {
  ReceiveChannel& ch = c.receive_channels[channel];
  stage_beside(c, c.buffers[c.receives[ch.receive].buffer]);
  if (ch.fault != 0) return;
  c.channel_faults.emplace_back();
  ch.fault = static_cast<std::uint32_t>(c.channel_faults.size());
}

}  // namespace rdusim
