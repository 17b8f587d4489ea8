#include "sim/wait_graph.h"

#include <algorithm>

namespace rdusim {

WaitGraph::WaitGraph(const MachineOutcome& outcome, const Observed& o)
    : outcome_(outcome), o_(o), orders_(memory_orders(o.instances.program())) {
  entry_of_.resize(o.instances.stages() + std::size_t{o.instances.channels()});
  for (std::size_t i = 0; i < outcome.waiting.size(); ++i) {
    if (const auto n = node(outcome.waiting[i])) entry_of_[*n].push_back(i);
  }
}

std::optional<std::size_t> WaitGraph::node(const Waiting& w) const {
  if (w.stage) return o_.instances.of(*w.stage);
  if (w.channel) return o_.instances.stages() + std::size_t{o_.instances.of(*w.channel)};
  return std::nullopt;
}

std::vector<std::size_t> WaitGraph::suppliers(const Waiting& w) const {
  std::vector<std::size_t> out;
  switch (w.what) {
    case Waiting::For::page:
      if (w.buffer) {
        producers_of(*w.buffer, out);
      } else if (w.channel) {
        producers_of(source(*w.channel), out);
      } else if (w.stage) {
        channels_into(*w.stage, out);
      }
      break;
    case Waiting::For::room:
      if (w.buffer) consumers_of(*w.buffer, out);
      break;
    case Waiting::For::credit:
    case Waiting::For::ready:
      if (w.channel) {
        if (w.what == Waiting::For::ready) {
          const std::uint32_t first = o_.instances.first_channel(w.channel->edge, w.channel->from);
          const std::uint32_t count = o_.instances.channels_of(w.channel->edge, w.channel->from);
          for (std::uint32_t c = first; c < first + count; ++c) {
            if (o_.semaphores.counts(c).ready_raised <=
                o_.semaphores.ready_consumed(w.channel->edge, w.channel->from)) {
              consumers_of(landing(o_.instances.channel_at(c)), out);
            }
          }
        } else {
          consumers_of(landing(*w.channel), out);
        }
      }
      break;
    case Waiting::For::valid:
      if (w.channel) producers_of(source(*w.channel), out);
      if (!w.channel && w.stage) channels_into(*w.stage, out);
      break;
    case Waiting::For::barrier:
      if (w.channel) {
        const Edge& e = o_.instances.program().edge(w.channel->edge);
        const std::uint64_t behind = least_arrived(*w.channel);
        for (std::uint32_t m = 0; m < o_.barriers.members(e.id, w.channel->from); ++m) {
          if (o_.barriers.counts(e.id, w.channel->from, m).arrived > behind) continue;
          if (m == 0) {
            producers_of(source(*w.channel), out);
          } else {
            const std::uint32_t c = o_.instances.first_channel(e.id, w.channel->from) + m - 1;
            consumers_of(landing(o_.instances.channel_at(c)), out);
          }
        }
      }
      break;
    case Waiting::For::firing:
      if (w.stage) set_members(*w.stage, out);
      break;
    case Waiting::For::written:
      if (w.stage) stores_before(*w.stage, out);
      break;
  }
  // A channel that waits for nothing itself has nothing to carry: what is missing is missing before it.
  const std::optional<std::size_t> self = node(w);
  for (std::size_t& n : out) {
    if (n < o_.instances.stages() || waits(n) || n == self) continue;
    const ChannelAt& c = o_.instances.channel_at(static_cast<std::uint32_t>(n - o_.instances.stages()));
    if (const auto& producer = o_.instances.ends(source(c).buffer).producer)
      n = o_.instances.of(StageAt{*producer, c.from});
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string WaitGraph::name(std::size_t n) const {
  if (n < o_.instances.stages()) return o_.instances.describe(o_.instances.stage_at(static_cast<std::uint32_t>(n)));
  return o_.instances.describe(o_.instances.channel_at(static_cast<std::uint32_t>(n - o_.instances.stages())));
}

BufferAt WaitGraph::source(const ChannelAt& c) const {
  return {o_.instances.program().edge(c.edge).buffer, c.from};
}

BufferAt WaitGraph::landing(const ChannelAt& c) const {
  const Receiver& r = o_.instances.receivers()[o_.instances.receiver_of(o_.instances.of(c))];
  return o_.instances.buffer_at(r.buffer);
}

std::uint64_t WaitGraph::least_arrived(const ChannelAt& c) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::uint32_t m = 0; m < o_.barriers.members(c.edge, c.from); ++m) {
    least = std::min(least, o_.barriers.counts(c.edge, c.from, m).arrived);
  }
  return least;
}

void WaitGraph::add_stage(StageId s, std::uint32_t instance, std::vector<std::size_t>& out) const {
  if (instance < o_.instances.instances(s)) out.push_back(o_.instances.of(StageAt{s, instance}));
}

void WaitGraph::set_members(const StageAt& s, std::vector<std::size_t>& out) const {
  const auto* load = std::get_if<Load>(&o_.instances.program().stage(s.stage).kind);
  if (load == nullptr || s.instance >= load->multicast_set.size()) return;
  for (std::uint32_t i = 0; i < load->multicast_set.size() && i < o_.instances.instances(s.stage); ++i) {
    if (i != s.instance && load->multicast_set[i] == load->multicast_set[s.instance] &&
        waits_for_room(o_.instances.of(StageAt{s.stage, i})))
      out.push_back(o_.instances.of(StageAt{s.stage, i}));
  }
}

void WaitGraph::stores_before(const StageAt& s, std::vector<std::size_t>& out) const {
  for (const MemoryOrder& order : orders_) {
    if (!std::binary_search(order.loads.begin(), order.loads.end(), s.stage)) continue;
    for (const StageId store : order.stores)
      for (std::uint32_t i = 0; i < o_.instances.instances(store); ++i)
        if (const std::size_t n = o_.instances.of(StageAt{store, i}); waits(n)) out.push_back(n);
  }
}

bool WaitGraph::waits_for_room(std::size_t n) const {
  return std::any_of(entry_of_[n].begin(), entry_of_[n].end(),
                     [&](std::size_t e) { return outcome_.waiting[e].what == Waiting::For::room; });
}

void WaitGraph::channels_into(const StageAt& s, std::vector<std::size_t>& out) const {
  const auto* recv = std::get_if<Recv>(&o_.instances.program().stage(s.stage).kind);
  if (recv == nullptr) return;
  for (std::size_t r = 0; r < o_.instances.receivers().size(); ++r) {
    const Receiver& receiver = o_.instances.receivers()[r];
    if (receiver.edge != recv->edge || receiver.instance != s.instance) continue;
    if (o_.instances.program().edge(recv->edge).to[receiver.to] != s.stage) continue;
    for (std::uint32_t c : receiver.channels) out.push_back(o_.instances.stages() + std::size_t{c});
  }
}

void WaitGraph::producers_of(const BufferAt& b, std::vector<std::size_t>& out) const {
  const BufferEnds& ends = o_.instances.ends(b.buffer);
  if (ends.landing) {
    // The Recv fires when a page has landed, so what is missing is missing further back: at the channels.
    const auto into = o_.instances.receiver_into(o_.instances.of(b));
    const Receiver* receiver = into ? &o_.instances.receivers()[*into] : nullptr;
    if (receiver != nullptr) {
      // It takes its senders' pages in turn, so only the one whose turn it is can help.
      const std::uint64_t pushed = o_.handshakes.counts(receiver->buffer).pushed;
      out.push_back(o_.instances.stages() + std::size_t{receiver->channels[pushed % receiver->channels.size()]});
      return;
    }
  }
  if (ends.producer) add_stage(*ends.producer, b.instance, out);
}

void WaitGraph::consumers_of(const BufferAt& b, std::vector<std::size_t>& out) const {
  const BufferEnds& ends = o_.instances.ends(b.buffer);
  const std::uint32_t n = o_.instances.of(b);
  std::uint64_t slowest = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < ends.consumers.size(); ++i) slowest = std::min(slowest, o_.handshakes.popped(n, i));
  for (std::uint32_t i = 0; i < ends.consumers.size(); ++i) {
    if (o_.handshakes.popped(n, i) != slowest) continue;
    if (ends.consumers[i].stage) {
      add_stage(*ends.consumers[i].stage, b.instance, out);
    } else {
      const EdgeId e = *ends.consumers[i].crossing;
      const std::uint32_t first = o_.instances.first_channel(e, b.instance);
      for (std::uint32_t c = first; c < first + o_.instances.channels_of(e, b.instance); ++c) {
        out.push_back(o_.instances.stages() + std::size_t{c});
      }
    }
  }
}

}  // namespace rdusim
