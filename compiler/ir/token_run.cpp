#include "compiler/ir/token_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/access_pattern.h"

namespace rdusim {

TokenRun::TokenRun(const SpatialProgram& p, const Cluster& cluster) : p_(p) {
  std::map<std::pair<std::uint32_t, Index>, Index> joint_of_collective;
  for (const StageId s : cluster.stages) {
    const auto instances = cluster.one_to_one ? Index{1} : static_cast<Index>(p.sites_of(p.stage(s)).sites.size());
    const bool alike = counts_alike(p, p.stage(s));
    for (Index i = 0; i < instances; ++i) {
      add_actor(s, i, alike);
      if (const auto* c = std::get_if<CollectiveStage>(&p.stage(s).kind)) {
        const auto [at, fresh] =
            joint_of_collective.try_emplace({c->collective.value, i}, static_cast<Index>(joints_.size()));
        if (fresh) joints_.emplace_back();
        joints_[at->second].push_back(static_cast<Index>(actors_.size() - 1));
        actors_.back().links.push_back({0, 0, 0, 1, nullptr, 0, at->second});
      }
    }
  }
  for (const EdgeId id : cluster.crossing) add_crossing(p.edge(id), cluster.one_to_one);
  actor_ids_ = {};
  channel_ids_ = {};
}

TokenRun::Index TokenRun::channel_of(BufferId buffer, Index instance) {
  auto& ids = channel_ids_[buffer.value];
  if (ids.size() <= instance) ids.resize(instance + std::size_t{1}, none);
  if (ids[instance] == none) {
    ids[instance] = static_cast<Index>(channels_.size());
    channels_.emplace_back().buffer = buffer;
  }
  return ids[instance];
}

void TokenRun::add_actor(StageId stage, Index instance, bool alike) {
  const Stage& s = p_.stage(stage);
  const auto index = static_cast<Index>(actors_.size());
  auto& ids = actor_ids_[stage.value];
  if (ids.size() <= instance) ids.resize(instance + std::size_t{1}, none);
  ids[instance] = index;
  Actor a{&s, instance, {}, {}, 0, 0, nullptr, nullptr, false};
  for (const Port& port : s.ports) {
    const Index c = channel_of(port.buffer, instance);
    Index slot = 0;
    if (port.direction == Direction::output) {
      channels_[c].producer = index;
    } else {
      slot = static_cast<Index>(channels_[c].consumers.size());
      channels_[c].consumers.push_back(index);
    }
    a.ports.push_back({c, slot, CyclicCursor(port.need), CyclicCursor(port.pop), CyclicCursor(port.reserve),
                       CyclicCursor(port.push), CyclicCursor(port.chunk)});
  }
  if (!alike) {
    const auto* load = std::get_if<Load>(&s.kind);
    const auto* store = std::get_if<Store>(&s.kind);
    a.pattern = load != nullptr ? &load->pattern : store != nullptr ? &store->pattern : nullptr;
    if (a.pattern != nullptr) a.tensor = &p_.tensor(load != nullptr ? load->tensor : store->tensor);
  }
  actors_.push_back(std::move(a));
}

void TokenRun::add_crossing(const Edge& e, bool one_to_one) {
  const bool together = e.handshake != Handshake::token;
  std::map<Index, Index> joint_of_sender;
  for (const StageId to : e.to) {
    const auto senders = senders_by_receiver(e, one_to_one ? 1 : p_.sites_of(p_.stage(to)).sites.size());
    for (Index r = 0; r < senders.size(); ++r) {
      const Index receiver = actor_ids_[to.value][r];
      for (const Index s : senders[r]) {
        const Index c = channel_of(e.buffer, s);
        Link link{c, static_cast<Index>(channels_[c].consumers.size()), 0, 1, &e, s, none};
        channels_[c].consumers.push_back(receiver);
        if (e.map.kind == PageMapKind::scatter) {
          const auto& targets = e.map.targets[s];
          link.first = static_cast<Index>(std::find(targets.begin(), targets.end(), r) - targets.begin());
          link.step = static_cast<Index>(targets.size());
        } else if (together &&
                   (e.to.size() > 1 || (e.map.kind == PageMapKind::multicast && e.map.targets[s].size() > 1))) {
          const auto [joint, fresh] = joint_of_sender.try_emplace(s, static_cast<Index>(joints_.size()));
          if (fresh) joints_.emplace_back();
          joints_[joint->second].push_back(receiver);
          link.joint = joint->second;
        }
        actors_[receiver].links.push_back(link);
      }
    }
  }
}

void TokenRun::start(std::uint64_t parts, std::optional<Index> instance, const std::vector<std::uint64_t>* depths) {
  for (Channel& c : channels_) {
    const Buffer& b = p_.buffer(c.buffer);
    c.depth = depths != nullptr ? (*depths)[b.id.value] : b.depth_pages;
    c.reserved = c.pushed = b.initial_pages;
    c.freed = 0;
    c.popped.assign(c.consumers.size(), 0);
  }
  unfinished_ = 0;
  queue_.clear();
  for (Actor& a : actors_) {
    if (instance) a.instance = *instance;
    a.fired = 0;
    a.due = a.stage->firings / parts;
    for (std::size_t i = 0; i < a.ports.size(); ++i) {
      const Port& port = a.stage->ports[i];
      a.ports[i].need = CyclicCursor(port.need);
      a.ports[i].pop = CyclicCursor(port.pop);
      a.ports[i].reserve = CyclicCursor(port.reserve);
      a.ports[i].push = CyclicCursor(port.push);
      a.ports[i].chunk = CyclicCursor(port.chunk);
    }
    for (Link& link : a.links) {
      if (link.edge == nullptr) continue;
      if (instance) link.sender = *instance;
      channels_[link.channel].popped[link.slot] = link.first;
    }
    if (a.due != 0) ++unfinished_;
    a.queued = false;
  }
  for (Index i = 0; i < actors_.size(); ++i) wake(i);
}

std::optional<TokenRun::Index> TokenRun::next() {
  while (!queue_.empty()) {
    const Index i = queue_.back();
    if (can_fire(actors_[i])) return i;
    queue_.pop_back();
    actors_[i].queued = false;
  }
  return std::nullopt;
}

bool TokenRun::run_to_end() {
  while (const auto actor = next()) take(*actor);
  return finished();
}

void TokenRun::wake(Index i) {
  Actor& a = actors_[i];
  if (a.queued || a.fired == a.due) return;
  a.queued = true;
  queue_.push_back(i);
}

void TokenRun::wake_producer(const Channel& c) {
  if (c.producer == none) return;
  wake(c.producer);
  // Receivers that fire together wait for the last of them.
  for (const Link& link : actors_[c.producer].links)
    if (link.joint != none)
      for (const Index other : joints_[link.joint]) wake(other);
}

bool TokenRun::moves(const Actor& a) const {
  return a.pattern == nullptr ||
         movable(page_at(*a.pattern, a.instance, a.fired / firings_per_page(*a.stage)), *a.pattern, *a.tensor);
}

const std::vector<TokenRun::Index>* TokenRun::joint_of(Index actor) const {
  const Actor& a = actors_[actor];
  if (a.links.empty()) return nullptr;
  const Index joint = link_of(a).joint;
  return joint == none ? nullptr : &joints_[joint];
}

bool TokenRun::recv_ready(const Actor& a) const {
  if (a.fired == a.due || a.links.empty()) return false;
  const Link& link = link_of(a);
  const Channel& source = channels_[link.channel];
  if (source.popped[link.slot] >= source.pushed) return false;
  const Channel& landing = channels_[a.ports[0].channel];
  return landing.depth == 0 || landing.reserved - landing.freed < landing.depth;
}

bool TokenRun::joint_ready(Index joint) const {
  std::optional<std::uint64_t> page;
  for (const Index i : joints_[joint]) {
    const Actor& a = actors_[i];
    if (std::holds_alternative<CollectiveStage>(a.stage->kind)) {
      if (blocked(a)) return false;
      if (page && *page != a.fired) return false;
      page = a.fired;
      continue;
    }
    if (!recv_ready(a)) return false;
    const Link& link = link_of(a);
    const std::uint64_t taken = channels_[link.channel].popped[link.slot];
    if (link.joint != joint || (page && *page != taken)) return false;
    page = taken;
  }
  return true;
}

bool TokenRun::can_fire(const Actor& a) const {
  if (a.fired == a.due) return false;
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (!recv_ready(a)) return false;
    const Index joint = link_of(a).joint;
    return joint == none || joint_ready(joint);
  }
  if (std::holds_alternative<CollectiveStage>(a.stage->kind)) return joint_ready(a.links[0].joint);
  return !blocked(a);
}

// Why the next firing of `a` cannot start.
std::optional<UntimedWait> TokenRun::blocked(const Actor& a) const {
  const auto wait = [&](bool for_room, const Channel& c, Index on) {
    return UntimedWait{a.stage->id, a.instance, for_room, c.buffer, on == none ? a.stage->id : actors_[on].stage->id,
                       a.fired,     a.due};
  };
  const auto slowest = [&](const Channel& c) {
    for (std::size_t s = 0; s < c.popped.size(); ++s)
      if (c.popped[s] <= c.freed) return c.consumers[s];
    return none;
  };
  if (a.fired == a.due) return UntimedWait{a.stage->id, a.instance, false, {}, a.stage->id, a.fired, a.due};
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (a.links.empty()) return wait(false, channels_[a.ports[0].channel], none);
    const Link& link = link_of(a);
    const Channel& source = channels_[link.channel];
    if (source.popped[link.slot] >= source.pushed) return wait(false, source, source.producer);
    const Channel& landing = channels_[a.ports[0].channel];
    if (landing.depth != 0 && landing.reserved - landing.freed >= landing.depth)
      return wait(true, landing, slowest(landing));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < a.ports.size(); ++i) {
    const PortState& port = a.ports[i];
    const Channel& c = channels_[port.channel];
    if (a.stage->ports[i].direction == Direction::input) {
      if (c.pushed - c.popped[port.slot] < port.need.value()) return wait(false, c, c.producer);
    } else if (c.depth != 0 && c.reserved - c.freed + port.reserve.value() > c.depth) {
      return wait(true, c, slowest(c));
    }
  }
  return std::nullopt;
}

void TokenRun::push(Channel& c, std::uint32_t pages, std::uint32_t reserved) {
  c.reserved += reserved;
  c.pushed += pages;
  if (pages == 0) return;
  if (c.consumers.empty()) {
    c.freed = c.pushed;
    return;
  }
  for (const Index consumer : c.consumers) wake(consumer);
}

void TokenRun::pop(Channel& c, Index slot, std::uint64_t pages) {
  if (pages == 0) return;
  c.popped[slot] += pages;
  const std::uint64_t slowest = std::min(*std::min_element(c.popped.begin(), c.popped.end()), c.pushed);
  if (slowest == c.freed) return;
  c.freed = slowest;
  wake_producer(c);
}

void TokenRun::take_recv(Index i) {
  Actor& a = actors_[i];
  const Link& link = link_of(a);
  if (++a.fired == a.due) --unfinished_;
  push(channels_[a.ports[0].channel], 1, 1);
  pop(channels_[link.channel], link.slot, link.step);
}

void TokenRun::take_ports(Actor& a, bool moves) {
  if (++a.fired == a.due) --unfinished_;
  for (std::size_t n = 0; n < a.ports.size(); ++n) {
    PortState& port = a.ports[n];
    if (moves) {
      if (a.stage->ports[n].direction == Direction::input)
        pop(channels_[port.channel], port.slot, port.pop.value());
      else
        push(channels_[port.channel], port.push.value(), port.reserve.value());
    }
    port.need.advance();
    port.pop.advance();
    port.reserve.advance();
    port.push.advance();
    port.chunk.advance();
  }
}

void TokenRun::take(Index actor) {
  const std::vector<Index>* const joint = joint_of(actor);
  const bool receives = std::holds_alternative<Recv>(actors_[actor].stage->kind);
  if (joint == nullptr) {
    if (receives)
      take_recv(actor);
    else
      take_ports(actors_[actor], moves(actors_[actor]));
    return;
  }
  for (const Index member : *joint) {
    if (receives)
      take_recv(member);
    else
      take_ports(actors_[member], true);
  }
  for (const Index member : *joint) wake(member);
}

std::optional<std::uint64_t> TokenRun::wanted_depth(BufferId buffer) const {
  std::optional<std::uint64_t> least;
  for (Index n = 0; n < channels_.size(); ++n) {
    const Channel& c = channels_[n];
    if (c.buffer != buffer || c.producer == none || c.depth == 0) continue;
    const Actor& a = actors_[c.producer];
    if (a.fired == a.due) continue;
    std::uint64_t wanted = c.reserved - c.freed;
    if (std::holds_alternative<Recv>(a.stage->kind)) {
      ++wanted;
    } else {
      for (const PortState& port : a.ports)
        if (port.channel == n) wanted += port.reserve.value();
    }
    if (wanted > c.depth && (!least || wanted < *least)) least = wanted;
  }
  return least;
}

void TokenRun::deepen(BufferId buffer, std::uint64_t depth) {
  for (Channel& c : channels_) {
    if (c.buffer != buffer) continue;
    c.depth = depth;
    wake_producer(c);
  }
}

void TokenRun::explain(UntimedRun& out) const {
  out.stuck += unfinished_;
  if (!out.cycle.empty()) return;
  std::map<Index, std::size_t> seen;
  std::vector<UntimedWait> chain;
  std::map<std::uint32_t, Index> actor_of_stage;  // the least instance that is stuck
  for (Index i = static_cast<Index>(actors_.size()); i-- > 0;)
    if (actors_[i].fired != actors_[i].due) actor_of_stage[actors_[i].stage->id.value] = i;
  if (actor_of_stage.empty()) return;
  Index at = actor_of_stage.begin()->second;
  while (true) {
    const auto [known, fresh] = seen.try_emplace(at, chain.size());
    if (!fresh) {
      out.cycle.assign(chain.begin() + static_cast<std::ptrdiff_t>(known->second), chain.end());
      return;
    }
    const std::optional<UntimedWait> wait = blocked(actors_[at]);
    if (!wait) {
      // It could go on but for those that it must fire with.
      const std::vector<Index>* const joint = joint_of(at);
      if (joint == nullptr) break;
      const auto other = std::find_if(joint->begin(), joint->end(), [&](Index member) {
        return member != at && actors_[member].fired != actors_[member].due && !seen.contains(member) &&
               blocked(actors_[member]).has_value();
      });
      if (other == joint->end()) break;
      seen.erase(at);
      at = *other;
      continue;
    }
    chain.push_back(*wait);
    const auto next = actor_of_stage.find(wait->on.value);
    if (next == actor_of_stage.end()) break;
    at = next->second;
  }
  if (out.starved.empty()) out.starved = chain;
}

std::uint64_t steps_of(const SpatialProgram& p, const Cluster& c) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto times = [](std::uint64_t a, std::uint64_t b) { return __builtin_mul_overflow(a, b, &a) ? most : a; };
  const auto plus = [](std::uint64_t a, std::uint64_t b) { return __builtin_add_overflow(a, b, &a) ? most : a; };
  std::uint64_t steps = 0;
  for (const StageId id : c.stages) {
    const Stage& s = p.stage(id);
    // Taking a run up costs, too: a stage that never fires is not free.
    std::uint64_t of_stage = plus(s.firings, c.one_to_one ? 1 : 16);
    for (const Port& port : s.ports)
      if (port.direction == Direction::output)
        of_stage =
            plus(plus(of_stage, sum_over(port.push, s.firings).value_or(most)), p.buffer(port.buffer).initial_pages);
    steps = plus(steps, times(of_stage, c.one_to_one ? 1 : p.sites_of(s).sites.size()));
  }
  return steps;
}

}  // namespace rdusim
