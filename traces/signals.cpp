#include "traces/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace rdusim {

namespace {

constexpr std::uint64_t waiting = 0, busy = 1, completed = 2;
constexpr std::uint32_t firing_bits = 32;

std::uint32_t bits_for(std::uint64_t most) {
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::bit_width(most)));
}

}  // namespace

Signals::Signals(const Roster& roster, const TraceScope& scope, SignalSink& sink)
    : roster_(roster), scope_(scope), sink_(sink), state_(roster), chip_(roster.chips) {
  add_stages();
  add_buffers();
  add_crossings();
  add_resources();
  level_.reserve(tree_.signals().size());
  for (const Signal& s : tree_.signals()) level_.push_back({s.initial, s.initial});
  touched_.resize(level_.size());
}

SignalTree::Scope Signals::scope_of(const Site& site) {
  Number& chip = chip_[site.chip.value];
  if (!chip) chip = tree_.add_scope(SignalTree::top, fmt::format("chip{}", site.chip.value));
  const std::uint64_t key =
      std::uint64_t{site.chip.value} << 32 | std::uint64_t{site.at.x & 0xffffU} << 16 | (site.at.y & 0xffffU);
  const auto [at, fresh] = site_.try_emplace(key);
  if (fresh) at->second = tree_.add_scope(*chip, fmt::format("site_{}_{}", site.at.x, site.at.y));
  return at->second;
}

bool Signals::keeps_any(std::initializer_list<EventKind> kinds) const {
  return std::any_of(kinds.begin(), kinds.end(), [&](EventKind k) { return scope_.selection.keeps(k); });
}

void Signals::add_stages() {
  stage_.resize(roster_.stage_instances());
  if (!keeps_any({EventKind::FiringStarted, EventKind::FiringCompleted})) return;
  std::string unit;
  for (std::uint32_t n = 0; n < stage_.size(); ++n) {
    const StageAt at = roster_.stage_at(n);
    if (at.instance == 0) unit = roster_.unit(at);
    if (!scope_.selection.keeps(EventSubject::stage, n)) continue;
    const SignalTree::Scope scope =
        tree_.add_scope(tree_.scope_in(scope_of(roster_.site(at)), unit), roster_.stages[at.stage.value].name);
    stage_[n] = tree_.add(scope, {"state", 2, waiting});
    tree_.add(scope, {"firing", firing_bits, 0});
  }
}

void Signals::add_buffers() {
  buffer_.resize(roster_.buffer_instances());
  valid_.resize(roster_.buffer_instances());
  const bool pages = keeps_any({EventKind::PageReserved, EventKind::PagePushed, EventKind::PagePopped});
  const bool semaphores = scope_.selection.keeps(EventKind::ValidRaised);
  std::vector<bool> behind_semaphore(buffer_.size());
  for (std::uint32_t c = 0; c < roster_.channels(); ++c) {
    const ChannelAt& at = roster_.channel_at(c);
    if (roster_.edges[at.edge.value].handshake != Handshake::semaphore) continue;
    if (const auto landing = roster_.landing(at)) behind_semaphore[roster_.of(*landing)] = true;
  }
  for (std::uint32_t n = 0; n < buffer_.size(); ++n) {
    const bool semaphore = semaphores && behind_semaphore[n];
    if (!scope_.selection.keeps(EventSubject::buffer, n) || !(pages || semaphore)) continue;
    const BufferAt at = roster_.buffer_at(n);
    const RosterBuffer& b = roster_.buffers[at.buffer.value];
    const SignalTree::Scope scope = tree_.add_scope(tree_.scope_in(scope_of(roster_.site(at)), "pmu"), b.name);
    if (pages) {
      // One bit more than the depth needs: a machine that was broken on purpose may exceed it.
      const std::uint32_t bits = bits_for(b.depth) + 1;
      buffer_[n] = tree_.add(scope, {"valid", 1, b.initial > 0 ? 1U : 0U});
      tree_.add(scope, {"ready", 1, b.initial < b.depth ? 1U : 0U});
      tree_.add(scope, {"occupancy", bits, b.initial});
      tree_.add(scope, {"claimed", bits, b.initial});
    }
    if (semaphore) valid_[n] = tree_.add(scope, {"valid_semaphore", 32, state_.valid(n)});
  }
}

void Signals::add_crossings() {
  channel_.resize(roster_.channels());
  sender_.resize(roster_.senders());
  const auto kept = [&](EventKind kind) { return scope_.selection.keeps(kind); };
  const bool pages = keeps_any({EventKind::PageSent, EventKind::PageLanded, EventKind::CreditTaken,
                                EventKind::CreditReturned, EventKind::CreditArrived});
  for (std::uint32_t s = 0; s < sender_.size(); ++s) {
    const auto sender = roster_.sender_at(s);
    const RosterEdge& e = roster_.edges[sender.edge.value];
    Number edge;
    const auto edge_scope = [&] {
      if (!edge) {
        const SignalTree::Scope site = scope_of(roster_.site(StageAt{StageId{e.from}, sender.from}));
        edge = tree_.add_scope(tree_.scope_in(site, "crossing"), fmt::format("edge{}", sender.edge.value));
      }
      return *edge;
    };
    if (scope_.selection.keeps(EventSubject::sender, s)) {
      if (e.handshake == Handshake::semaphore && kept(EventKind::ReadyRaised))
        sender_[s] = tree_.add(edge_scope(), {"ready_semaphore", 32, state_.sender(s).ready});
      if (e.handshake == Handshake::barrier && kept(EventKind::BarrierArrived))
        sender_[s] = tree_.add(edge_scope(), {"at_barrier", 32, 0});
    }
    for (std::uint32_t i = 0; pages && i < roster_.channels_of(s); ++i) {
      const std::uint32_t n = roster_.first_channel(s) + i;
      if (!scope_.selection.keeps(EventSubject::channel, n)) continue;
      const StageAt to = roster_.to_of(roster_.channel_at(n));
      const Site& there = roster_.site(to);
      const SignalTree::Scope scope =
          tree_.add_scope(edge_scope(), fmt::format("to_{}_chip{}_site_{}_{}", roster_.stages[to.stage.value].name,
                                                    there.chip.value, there.at.x, there.at.y));
      channel_[n] = tree_.add(scope, {"credits", 32, state_.channel(n).credits});
      tree_.add(scope, {"under_way", 32, 0});
    }
  }
}

void Signals::add_resources() {
  link_.resize(roster_.links.size());
  memory_.resize(roster_.memories());
  const auto kept = [&](EventKind kind) { return scope_.selection.keeps(kind); };
  const auto scope_in_chip = [&](std::uint32_t chip, std::string_view kind, const std::string& name) {
    if (!chip_[chip]) chip_[chip] = tree_.add_scope(SignalTree::top, fmt::format("chip{}", chip));
    return tree_.add_scope(tree_.scope_in(*chip_[chip], kind), name);
  };
  if (kept(EventKind::LinkUsed)) {
    for (std::uint32_t n = 0; n < link_.size(); ++n) {
      const auto& link = roster_.links[n];
      if (!link.used || !scope_.selection.keeps(EventSubject::link, n)) continue;
      const std::string name = link.into != 0     ? fmt::format("link{}_to_switch{}", n, link.into - 1)
                               : link.out_of != 0 ? fmt::format("link{}_from_switch{}", n, link.out_of - 1)
                                                  : fmt::format("link{}_to_chip{}", n, link.to);
      link_[n] = tree_.add(scope_in_chip(link.from, "links", name), {"busy", 1, 0});
    }
  }
  if (!kept(EventKind::MemoryUsed)) return;
  std::vector<bool> used(roster_.chips);
  for (const RosterTensor& t : roster_.tensors) used[t.chip] = true;
  static constexpr const char* spaces[] = {"sram", "hbm", "ddr"};
  for (std::uint32_t n = 0; n < memory_.size(); ++n) {
    const auto at = roster_.memory_at(n);
    if (!used[at.chip] || at.channel >= roster_.memory_channels[at.space]) continue;
    if (!scope_.selection.keeps(EventSubject::memory, n)) continue;
    memory_[n] =
        tree_.add(scope_in_chip(at.chip, spaces[at.space], fmt::format("channel{}", at.channel)), {"busy", 1, 0});
  }
}

// ---- values

void Signals::set(std::uint32_t signal, std::uint64_t value) {
  level_[signal].now = value;
  if (touched_[signal]) return;
  touched_[signal] = true;
  changed_.push_back(signal);
}

void Signals::later(Cycle at, std::uint32_t signal, std::uint64_t value) {
  if (at <= now_)
    set(signal, value);
  else
    later_.push({at, order_++, signal, value});
}

void Signals::write_cycle() {
  std::sort(changed_.begin(), changed_.end());
  if (now_ >= scope_.from && now_ <= scope_.to) {
    declare();
    for (const std::uint32_t s : changed_) {
      if (level_[s].now != level_[s].written) sink_.change(now_, s, level_[s].now);
    }
  }
  for (const std::uint32_t s : changed_) {
    level_[s].written = level_[s].now;
    touched_[s] = false;
  }
  changed_.clear();
}

// To cycle `at`: what was to change on the way changes.
void Signals::advance(Cycle at) {
  while (!later_.empty() && later_.top().at <= at) {
    const Later next = later_.top();
    if (next.at > now_) {
      write_cycle();
      now_ = next.at;
    }
    later_.pop();
    set(next.signal, next.value);
  }
  if (at <= now_) return;
  write_cycle();
  now_ = at;
}

TraceSize Signals::finish(const TraceEnd& end) {
  advance(std::max(std::min(end.cycles, scope_.to), now_));
  write_cycle();
  declare();
  TraceSize size;
  size.events = events_;
  size.dropped = dropped_;
  size.dropped += end.lost;
  return size;
}

void Signals::declare() {
  if (declared_) return;
  declared_ = true;
  sink_.declare(tree_, values(), scope_.from);
}

std::vector<std::uint64_t> Signals::values() const {
  std::vector<std::uint64_t> values;
  values.reserve(level_.size());
  for (const Level& l : level_) values.push_back(l.written);
  return values;
}

void Signals::show_buffer(std::uint32_t n) {
  if (!buffer_[n]) return;
  const MachineState::Buffer& b = state_.buffer(n);
  const std::uint64_t depth = roster_.buffers[roster_.buffer_at(n).buffer.value].depth;
  const std::uint32_t first = *buffer_[n];
  set(first, b.held() > 0 ? 1 : 0);
  set(first + 1, b.claimed() < depth ? 1 : 0);
  set(first + 2, b.held());
  set(first + 3, b.claimed());
}

void Signals::show(const FiringStarted& e) {
  const auto first = stage_[roster_.of(e.stage)];
  if (!first) return;
  set(*first, busy);
  set(*first + 1, e.firing & 0xffffffffU);
  later(e.at + e.busy, *first, waiting);
}

void Signals::show(const FiringCompleted& e) {
  const std::uint32_t n = roster_.of(e.stage);
  if (!stage_[n]) return;
  const RosterStage& s = roster_.stages[e.stage.stage.value];
  if (state_.stage(n).completed < s.firings) return;
  // The engine may be held beyond the completion.
  later(std::max(e.at, state_.stage(n).busy_until), *stage_[n], completed);
}

void Signals::show(const LinkUsed& e) {
  if (!link_[e.link.value] || e.end <= e.begin) return;
  later(e.begin, *link_[e.link.value], 1);
  later(e.end, *link_[e.link.value], 0);
}

void Signals::show(const MemoryUsed& e) {
  const auto signal = memory_[roster_.memory(e.chip, e.space, e.channel)];
  if (!signal || e.end <= e.begin) return;
  later(e.begin, *signal, 1);
  later(e.end, *signal, 0);
}

template <class E>
void Signals::show(const E& e) {
  if constexpr (subject_of<E>() == EventSubject::buffer) {
    show_buffer(roster_.of(e.buffer));
  } else if constexpr (subject_of<E>() == EventSubject::channel) {
    const std::uint32_t n = roster_.of(e.channel);
    if (channel_[n]) {
      set(*channel_[n], state_.channel(n).credits);
      set(*channel_[n] + 1, state_.channel(n).under_way);
    }
    if constexpr (std::is_same_v<E, ReadyRaised>) {
      const std::uint32_t s = roster_.sender(e.channel.edge, e.channel.from);
      if (sender_[s]) set(*sender_[s], state_.sender(s).ready);
    }
    if constexpr (std::is_same_v<E, ValidRaised> || std::is_same_v<E, ValidConsumed>) {
      const auto landing = roster_.landing(e.channel);
      if (landing && valid_[roster_.of(*landing)]) set(*valid_[roster_.of(*landing)], e.value);
    }
  } else if constexpr (subject_of<E>() == EventSubject::sender || subject_of<E>() == EventSubject::member) {
    const std::uint32_t s = roster_.sender(e.edge, e.from);
    if (sender_[s]) {
      const bool barrier = roster_.edges[e.edge.value].handshake == Handshake::barrier;
      set(*sender_[s], barrier ? state_.sender(s).waiting : state_.sender(s).ready);
    }
  }
}

template <class E>
void Signals::take(const E& e) {
  advance(e.at);
  state_.on(e);
  switch (wanted(e, scope_, roster_)) {
    case Wanted::yes:
      ++events_;
      break;
    case Wanted::filtered:
      // Signals that are shown follow every event: what changes their values may be of another kind.
      ++dropped_.filter;
      break;
    case Wanted::outside:
      ++dropped_.window;
      break;
  }
  show(e);
}

#define RDU_DEFINE(Event)            \
  void Signals::on(const Event& e) { \
    take(e);                         \
  }
RDU_EVENTS(RDU_DEFINE)
#undef RDU_DEFINE

}  // namespace rdusim
