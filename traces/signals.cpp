#include "traces/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace rdusim {

void for_each_in_scopes(const std::vector<Signal>& signals, const std::function<void(const std::string&)>& enter,
                        const std::function<void()>& leave, const std::function<void(std::uint32_t)>& signal) {
  // Signals of a unit come one after the other: their scopes are compared once.
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t i = 0; i < signals.size(); ++i)
    if (i == 0 || signals[i].scope != signals[i - 1].scope) firsts.push_back(i);
  std::stable_sort(firsts.begin(), firsts.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return signals[a].scope < signals[b].scope; });
  std::vector<std::string> open;
  const auto up_to = [&](std::size_t depth) {
    for (; open.size() > depth; open.pop_back()) leave();
  };
  for (const std::uint32_t first : firsts) {
    const std::vector<std::string>& scope = signals[first].scope;
    std::size_t same = 0;
    while (same < open.size() && same < scope.size() && open[same] == scope[same]) ++same;
    up_to(same);
    for (; same < scope.size(); ++same) {
      enter(scope[same]);
      open.push_back(scope[same]);
    }
    for (std::uint32_t i = first; i < signals.size() && (i == first || signals[i].scope == scope); ++i) signal(i);
  }
  up_to(0);
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += plain ? c : '_';
  }
  return out.empty() ? "_" : out;
}

namespace {

constexpr std::uint64_t waiting = 0, busy = 1, completed = 2;
constexpr std::uint32_t firing_bits = 32;

std::uint32_t bits_for(std::uint64_t most) {
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::bit_width(most)));
}

std::string chip_scope(std::uint32_t chip) {
  return fmt::format("chip{}", chip);
}
std::string site_scope(const Site& s) {
  return fmt::format("site_{}_{}", s.at.x, s.at.y);
}

}  // namespace

Signals::Signals(const Roster& roster, const TraceScope& scope, SignalSink& sink)
    : roster_(roster), scope_(scope), sink_(sink), state_(roster) {
  add_stages();
  add_buffers();
  add_crossings();
  add_resources();
  value_.resize(signals_.size());
  for (std::size_t i = 0; i < signals_.size(); ++i) value_[i] = signals_[i].initial;
  written_ = value_;
  touched_.resize(signals_.size());
}

std::uint32_t Signals::add(std::vector<std::string> scope, std::string name, std::uint32_t bits,
                           std::uint64_t initial) {
  signals_.push_back({std::move(scope), std::move(name), bits, initial});
  return static_cast<std::uint32_t>(signals_.size() - 1);
}

void Signals::add_stages() {
  stage_.resize(roster_.stage_instances());
  if (!scope_.selection.keeps(EventKind::FiringStarted)) return;
  for (std::uint32_t n = 0; n < stage_.size(); ++n) {
    if (!scope_.selection.keeps(EventSubject::stage, n)) continue;
    const StageAt at = roster_.stage_at(n);
    const Site& site = roster_.site(at);
    const std::vector<std::string> scope = {chip_scope(site.chip.value), site_scope(site), plain_name(roster_.unit(at)),
                                            plain_name(roster_.stages[at.stage.value].name)};
    stage_[n] = add(scope, "state", 2, waiting);
    add(scope, "firing", firing_bits, 0);
  }
}

void Signals::add_buffers() {
  buffer_.resize(roster_.buffer_instances());
  valid_.resize(roster_.buffer_instances());
  const bool pages = scope_.selection.keeps(EventKind::PagePushed);
  const bool semaphores = scope_.selection.keeps(EventKind::ValidRaised);
  std::vector<bool> behind_semaphore(buffer_.size());
  for (std::uint32_t c = 0; c < roster_.channels(); ++c) {
    const ChannelAt& at = roster_.channel_at(c);
    if (roster_.edges[at.edge.value].handshake != Handshake::semaphore) continue;
    if (const auto landing = roster_.landing(at)) behind_semaphore[roster_.of(*landing)] = true;
  }
  for (std::uint32_t n = 0; n < buffer_.size(); ++n) {
    if (!scope_.selection.keeps(EventSubject::buffer, n)) continue;
    const BufferAt at = roster_.buffer_at(n);
    const RosterBuffer& b = roster_.buffers[at.buffer.value];
    const Site& site = roster_.site(at);
    const std::vector<std::string> scope = {chip_scope(site.chip.value), site_scope(site), "pmu", plain_name(b.name)};
    if (pages) {
      // One bit more than the depth needs: a machine that was broken on purpose may exceed it.
      const std::uint32_t bits = bits_for(b.depth) + 1;
      buffer_[n] = add(scope, "valid", 1, b.initial > 0 ? 1 : 0);
      add(scope, "ready", 1, b.initial < b.depth ? 1 : 0);
      add(scope, "occupancy", bits, b.initial);
      add(scope, "claimed", bits, b.initial);
    }
    if (semaphores && behind_semaphore[n]) valid_[n] = add(scope, "valid_semaphore", 32, state_.valid(n));
  }
}

void Signals::add_crossings() {
  channel_.resize(roster_.channels());
  sender_.resize(roster_.senders());
  const auto kept = [&](EventKind kind) { return scope_.selection.keeps(kind); };
  for (std::uint32_t s = 0; s < sender_.size(); ++s) {
    const auto sender = roster_.sender_at(s);
    const RosterEdge& e = roster_.edges[sender.edge.value];
    const StageAt from{StageId{e.from}, sender.from};
    const Site& site = roster_.site(from);
    const std::vector<std::string> base = {chip_scope(site.chip.value), site_scope(site), "crossing",
                                           fmt::format("edge{}", sender.edge.value)};
    if (scope_.selection.keeps(EventSubject::sender, s)) {
      if (e.handshake == Handshake::semaphore && kept(EventKind::ReadyRaised))
        sender_[s] = add(base, "ready_semaphore", 32, state_.sender(s).ready);
      if (e.handshake == Handshake::barrier && kept(EventKind::BarrierArrived))
        sender_[s] = add(base, "at_barrier", 32, 0);
    }
    for (std::uint32_t i = 0; i < roster_.channels_of(s); ++i) {
      const std::uint32_t n = roster_.first_channel(s) + i;
      if (!scope_.selection.keeps(EventSubject::channel, n)) continue;
      if (!kept(EventKind::PageSent) || !kept(EventKind::CreditTaken)) continue;
      const StageAt to = roster_.to_of(roster_.channel_at(n));
      std::vector<std::string> scope = base;
      scope.push_back(fmt::format("to_{}_chip{}_{}", plain_name(roster_.stages[to.stage.value].name),
                                  roster_.site(to).chip.value, site_scope(roster_.site(to))));
      channel_[n] = add(scope, "credits", 32, state_.channel(n).credits);
      add(scope, "under_way", 32, 0);
    }
  }
}

void Signals::add_resources() {
  link_.resize(roster_.links.size());
  memory_.resize(roster_.memories());
  const auto kept = [&](EventKind kind) { return scope_.selection.keeps(kind); };
  if (kept(EventKind::LinkUsed)) {
    for (std::uint32_t n = 0; n < link_.size(); ++n) {
      if (!roster_.links[n].used || !scope_.selection.keeps(EventSubject::link, n)) continue;
      link_[n] =
          add({chip_scope(roster_.links[n].from), "links", fmt::format("link{}_to_chip{}", n, roster_.links[n].to)},
              "busy", 1, 0);
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
    memory_[n] = add({chip_scope(at.chip), spaces[at.space], fmt::format("channel{}", at.channel)}, "busy", 1, 0);
  }
}

// ---- values

void Signals::set(std::uint32_t signal, std::uint64_t value) {
  value_[signal] = value;
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
    if (!declared_) {
      declared_ = true;
      sink_.declare(signals_, written_, scope_.from);
    }
    for (const std::uint32_t s : changed_) {
      if (value_[s] != written_[s]) sink_.change(now_, s, value_[s]);
    }
  }
  for (const std::uint32_t s : changed_) {
    written_[s] = value_[s];
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

void Signals::finish(Cycle at) {
  advance(std::max(at, now_));
  write_cycle();
  if (!declared_) sink_.declare(signals_, written_, scope_.from);
  declared_ = true;
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
      ++dropped_.filter;
      return;
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
