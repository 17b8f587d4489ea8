#include "traces/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/ir/print.h"

namespace rdusim {

std::string_view cause_name(StallCause cause) {
  static constexpr std::array<std::string_view, stall_causes> names = {
      "input_starvation", "back_pressure", "memory", "network_contention", "link", "bank_conflict", "engine"};
  return names[static_cast<std::size_t>(cause)];
}

namespace {

// One number for a page and hop: the sender, channel or landing buffer that it passes, and its number there.
enum class Hop : std::uint64_t { to_sender = 1, to_receiver = 2, to_consumer = 3 };
constexpr std::uint64_t flow(Hop hop, std::uint32_t unit, std::uint64_t page) {
  return static_cast<std::uint64_t>(hop) << 62U | std::uint64_t{unit} << 36U | (page & 0xfffffffffU);
}

std::string on_chip(const Site& s) {
  return fmt::format("site({},{})", s.at.x, s.at.y);
}

}  // namespace

Slices::Slices(const Roster& roster, const TraceScope& scope, SliceSink& sink)
    : roster_(roster),
      scope_(scope),
      sink_(sink),
      state_(roster),
      stages_(roster.stage_instances()),
      senders_(roster.senders()),
      lands_(roster.buffer_instances()),
      held_(roster.buffer_instances()),
      credits_(roster.channels()) {
  const TraceSelection& selection = scope.selection;
  const auto track = [](std::vector<Track>& list, std::uint32_t chip, std::string name) {
    list.push_back({chip, std::move(name)});
    return static_cast<std::uint32_t>(list.size() - 1);
  };
  for (const RosterStage& s : roster.stages) names_.push_back(s.name);
  for (std::uint32_t e = 0; e < roster.edges.size(); ++e) names_.push_back(fmt::format("send edge{}", e));
  for (std::uint32_t n = 0; n < stages_.size(); ++n) {
    if (!selection.keeps(EventSubject::stage, n) || !selection.keeps(EventKind::FiringStarted)) continue;
    const StageAt at = roster.stage_at(n);
    stages_[n].track =
        track(tracks_, roster.site(at).chip.value,
              fmt::format("{}.{} {}", on_chip(roster.site(at)), roster.unit(at), roster.stages[at.stage.value].name));
  }
  for (std::uint32_t n = 0; n < senders_.size(); ++n) {
    if (!selection.keeps(EventSubject::sender, n) || !selection.keeps(EventKind::PageSent)) continue;
    const auto at = roster.sender_at(n);
    const Site& site = roster.site(StageAt{StageId{roster.edges[at.edge.value].from}, at.from});
    senders_[n].track =
        track(tracks_, site.chip.value, fmt::format("{}.crossing edge{}", on_chip(site), at.edge.value));
  }
  for (std::uint32_t n = 0; n < held_.size(); ++n) {
    const BufferAt at = roster.buffer_at(n);
    const RosterBuffer& b = roster.buffers[at.buffer.value];
    if (!selection.keeps(EventSubject::buffer, n) || !selection.keeps(EventKind::PagePushed)) continue;
    held_[n] =
        track(counters_, roster.site(at).chip.value, fmt::format("{}.pmu {} pages", on_chip(roster.site(at)), b.name));
  }
  for (std::uint32_t n = 0; n < credits_.size(); ++n) {
    const ChannelAt& c = roster.channel_at(n);
    if (const auto landing = roster.landing(c)) lands_[roster.of(*landing)] = true;
    if (roster.edges[c.edge.value].handshake != Handshake::token) continue;
    if (!selection.keeps(EventSubject::channel, n) || !selection.keeps(EventKind::CreditTaken)) continue;
    const Site& from = roster.site(roster.from_of(c));
    credits_[n] = track(counters_, from.chip.value,
                        fmt::format("{}.crossing edge{} credits to {}", on_chip(from), c.edge.value,
                                    to_string(roster.site(roster.to_of(c)))));
  }
  counted_.resize(counters_.size(), ~std::uint64_t{0});
}

void Slices::tell(Slice& s) {
  const bool inside = s.begin <= scope_.to && s.end >= scope_.from;
  if (!inside) return;
  sink_.slice(s);
}

void Slices::count(const Number& counter, Cycle at, std::uint64_t value) {
  if (!counter || counted_[*counter] == value || at < scope_.from || at > scope_.to) return;
  counted_[*counter] = value;
  sink_.counter(*counter, at, value);
}

void Slices::started(const FiringStarted& e) {
  Stage& s = stages_[roster_.of(e.stage)];
  if (!s.track) return;
  Slice slice;
  slice.track = *s.track;
  slice.name = e.stage.stage.value;
  slice.begin = e.at;
  slice.end = e.at + e.busy;
  slice.number = e.firing;
  slice.stall = e.stall;
  slice.cause = e.cause;
  s.open.push_back(std::move(slice));
}

void Slices::completed(const FiringCompleted& e) {
  Stage& s = stages_[roster_.of(e.stage)];
  if (s.open.empty()) return;
  s.open.front().completed = e.at;
  tell(s.open.front());
  s.open.pop_front();
}

// The page is of the firing that completes: the oldest.
void Slices::pushed(const PagePushed& e) {
  const std::uint32_t n = roster_.of(e.buffer);
  count(held_[n], e.at, state_.buffer(n).held());
  const RosterBuffer& b = roster_.buffers[e.buffer.buffer.value];
  if (!b.producer || e.buffer.instance >= roster_.instances(StageId{*b.producer})) return;
  Stage& s = stages_[roster_.of(StageAt{StageId{*b.producer}, e.buffer.instance})];
  if (s.open.empty()) return;
  for (const std::uint32_t edge : b.crossings)
    if (e.buffer.instance < roster_.edges[edge].targets.size())
      s.open.front().flows_out.push_back(flow(Hop::to_sender, roster_.sender(EdgeId{edge}, e.buffer.instance), e.page));
  if (!lands_[n]) return;
  for (std::uint32_t consumer = 0; consumer < b.stages.size(); ++consumer)
    s.open.front().flows_out.push_back(flow(Hop::to_consumer, n, e.page * b.stages.size() + consumer));
}

void Slices::popped(const PagePopped& e) {
  const std::uint32_t n = roster_.of(e.buffer);
  count(held_[n], e.at, state_.buffer(n).held());
  const RosterBuffer& b = roster_.buffers[e.buffer.buffer.value];
  if (e.consumer < b.stages.size()) {
    // The firing that reads now is the one that started last.
    const StageAt by{StageId{b.stages[e.consumer]}, e.buffer.instance};
    if (!lands_[n] || by.instance >= roster_.instances(by.stage)) return;
    Stage& s = stages_[roster_.of(by)];
    if (!s.open.empty())
      s.open.back().flows_in.push_back(flow(Hop::to_consumer, n, e.page * b.stages.size() + e.consumer));
    return;
  }
  const EdgeId edge{b.crossings[e.consumer - b.stages.size()]};
  if (e.buffer.instance >= roster_.edges[edge.value].targets.size()) return;
  Sender& s = senders_[roster_.sender(edge, e.buffer.instance)];
  if (!s.track) return;
  Slice slice;
  slice.track = *s.track;
  slice.name = static_cast<std::uint32_t>(roster_.stages.size()) + edge.value;
  slice.firing = false;
  slice.begin = std::min(s.begin, e.at);
  slice.end = std::max(e.at, slice.begin + 1);
  slice.number = e.page;
  slice.completed = e.at;
  slice.flows_in.push_back(flow(Hop::to_sender, roster_.sender(edge, e.buffer.instance), e.page));
  slice.flows_out = std::move(s.flows);
  s.flows.clear();
  tell(slice);
}

void Slices::sending(EdgeId edge, std::uint32_t from, Cycle at) {
  senders_[roster_.sender(edge, from)].begin = at;
}

void Slices::sent(const PageSent& e) {
  Sender& s = senders_[roster_.sender(e.channel.edge, e.channel.from)];
  // What is left out is never told, and its flows would be kept to the end.
  if (s.track) s.flows.push_back(flow(Hop::to_receiver, roster_.of(e.channel), e.page));
}

void Slices::landed(const PageLanded& e) {
  Stage& s = stages_[roster_.of(roster_.to_of(e.channel))];
  if (!s.open.empty()) s.open.front().flows_in.push_back(flow(Hop::to_receiver, roster_.of(e.channel), e.page));
}

template <class E>
void Slices::show(const E& e) {
  if constexpr (std::is_same_v<E, FiringStarted>) started(e);
  if constexpr (std::is_same_v<E, FiringCompleted>) completed(e);
  if constexpr (std::is_same_v<E, PagePushed>) pushed(e);
  if constexpr (std::is_same_v<E, PagePopped>) popped(e);
  if constexpr (std::is_same_v<E, PageSent>) sent(e);
  if constexpr (std::is_same_v<E, PageLanded>) landed(e);
  if constexpr (std::is_same_v<E, CreditTaken>) sending(e.channel.edge, e.channel.from, e.at);
  if constexpr (std::is_same_v<E, ReadyConsumed>) sending(e.edge, e.from, e.at);
  if constexpr (std::is_same_v<E, BarrierLeft>)
    if (e.member == 0 && e.generation % 2 == 0) sending(e.edge, e.from, e.at);
  if constexpr (std::is_same_v<E, CreditTaken> || std::is_same_v<E, CreditArrived>)
    count(credits_[roster_.of(e.channel)], e.at, state_.channel(roster_.of(e.channel)).credits);
}

template <class E>
void Slices::take(const E& e) {
  state_.on(e);
  switch (wanted(e, scope_, roster_)) {
    case Wanted::yes:
      ++events_;
      break;
    case Wanted::filtered:
      ++dropped_.filter;
      break;
    case Wanted::outside:
      ++dropped_.window;
      break;
  }
  // What is left out has no track; its pages may still be where a slice that is kept leads.
  show(e);
}

void Slices::finish() {
  for (Stage& s : stages_)
    for (Slice& open : s.open) tell(open);
}

#define RDU_DEFINE(Event)           \
  void Slices::on(const Event& e) { \
    take(e);                        \
  }
RDU_EVENTS(RDU_DEFINE)
#undef RDU_DEFINE

}  // namespace rdusim
