#include "traces/machine_state.h"

#include <algorithm>
#include <map>

namespace rdusim {

MachineState::MachineState(const Roster& roster)
    : roster_(roster),
      buffers_(roster.buffer_instances()),
      channels_(roster.channels()),
      senders_(roster.senders()),
      stages_(roster.stage_instances()),
      valid_(roster.buffer_instances()) {
  for (std::uint32_t n = 0; n < buffers_.size(); ++n) {
    const RosterBuffer& b = roster.buffers[roster.buffer_at(n).buffer.value];
    buffers_[n].reserved = buffers_[n].pushed = b.initial;
    first_consumer_.push_back(static_cast<std::uint32_t>(popped_.size()));
    popped_.resize(popped_.size() + b.consumers());
  }
  // A receiver gives its free places to its senders in turn.
  std::map<BufferAt, std::vector<std::uint32_t>> ending;
  for (std::uint32_t n = 0; n < channels_.size(); ++n) {
    const ChannelAt& c = roster.channel_at(n);
    const auto landing = roster.landing(c);
    if (landing && roster.edges[c.edge.value].handshake == Handshake::token) ending[*landing].push_back(n);
    if (landing) valid_[roster.of(*landing)] = roster.edges[c.edge.value].valid_initial;
  }
  for (const auto& [landing, list] : ending) {
    const RosterBuffer& b = roster.buffers[landing.buffer.value];
    const std::uint64_t free = b.depth - std::min(b.depth, b.initial);
    for (std::size_t rank = 0; rank < list.size(); ++rank)
      channels_[list[rank]].credits = free / list.size() + (rank < free % list.size() ? 1 : 0);
  }
  for (std::uint32_t n = 0; n < senders_.size(); ++n)
    senders_[n].ready = roster.edges[roster.sender_at(n).edge.value].ready_initial;
}

void MachineState::on(const FiringStarted& e) {
  Stage& s = stages_[roster_.of(e.stage)];
  ++s.started;
  s.last_start = e.at;
  s.busy_until = e.at + e.busy;
  s.cause = e.cause;
  s.stall = e.stall;
}
void MachineState::on(const FiringCompleted& e) {
  Stage& s = stages_[roster_.of(e.stage)];
  ++s.completed;
  s.last_completion = e.at;
}
void MachineState::on(const PageReserved& e) {
  buffers_[roster_.of(e.buffer)].reserved += e.pages;
}
void MachineState::on(const PagePushed& e) {
  ++buffers_[roster_.of(e.buffer)].pushed;
}
void MachineState::on(const PagePopped& e) {
  const std::uint32_t n = roster_.of(e.buffer);
  const std::uint32_t consumers = roster_.buffers[e.buffer.buffer.value].consumers();
  if (e.consumer >= consumers) return;
  std::uint64_t* popped = popped_.data() + first_consumer_[n];
  ++popped[e.consumer];
  buffers_[n].popped = *std::min_element(popped, popped + consumers);
}
void MachineState::on(const CreditTaken& e) {
  Channel& c = channels_[roster_.of(e.channel)];
  if (c.credits != 0) --c.credits;
}
void MachineState::on(const CreditArrived& e) {
  ++channels_[roster_.of(e.channel)].credits;
}
void MachineState::on(const PageSent& e) {
  Channel& c = channels_[roster_.of(e.channel)];
  ++c.sent;
  c.under_way = c.sent - std::min(c.sent, c.landed);
}
void MachineState::on(const PageLanded& e) {
  // Its head may land before its tail has left.
  Channel& c = channels_[roster_.of(e.channel)];
  ++c.landed;
  c.under_way = c.sent - std::min(c.sent, c.landed);
}
void MachineState::on(const ReadyRaised& e) {
  senders_[roster_.sender(e.channel.edge, e.channel.from)].ready = e.value;
}
void MachineState::on(const ReadyConsumed& e) {
  senders_[roster_.sender(e.edge, e.from)].ready = e.value;
}
void MachineState::on(const ValidRaised& e) {
  if (const auto landing = roster_.landing(e.channel)) valid_[roster_.of(*landing)] = e.value;
}
void MachineState::on(const ValidConsumed& e) {
  if (const auto landing = roster_.landing(e.channel)) valid_[roster_.of(*landing)] = e.value;
}
void MachineState::on(const BarrierArrived& e) {
  ++senders_[roster_.sender(e.edge, e.from)].waiting;
}
void MachineState::on(const BarrierLeft& e) {
  std::uint32_t& waiting = senders_[roster_.sender(e.edge, e.from)].waiting;
  if (waiting != 0) --waiting;
}

}  // namespace rdusim
