// Who has not finished when nothing can happen any more, and what it waits for.
#include <algorithm>

#include "models/units/chip.h"

namespace rdusim {

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
    if (const StageState& actor = c_.stages[s.actor]; actor.held) {
      const auto [wait, trip] = waits_for(actor);
      w.what = Waiting::For::written;
      w.have = wait->all - wait->trips[trip].to_come;
      w.want = wait->all;
      out.push_back(w);
      continue;
    }
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
