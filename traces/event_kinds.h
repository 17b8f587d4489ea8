// The kinds of events as numbers and names, and the events' fields one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "models/events/events.h"
#include "traces/roster.h"

namespace rdusim {

enum class EventKind : std::uint8_t {
#define RDU_KIND(Event) Event,
  RDU_EVENTS(RDU_KIND)
#undef RDU_KIND
};
#define RDU_ONE(Event) +1
inline constexpr std::size_t event_kinds = 0 RDU_EVENTS(RDU_ONE);
#undef RDU_ONE

template <class Event>
inline constexpr EventKind kind_of_event{};
#define RDU_KIND(Event) \
  template <>           \
  inline constexpr EventKind kind_of_event<Event> = EventKind::Event;
RDU_EVENTS(RDU_KIND)
#undef RDU_KIND

// "firing-started", ...
std::string_view name_of(EventKind kind);
// The group that a filter may name: "section", "firing", "page", "credit", "semaphore", "barrier", "link", "memory",
// "partial".
std::string_view group_of(EventKind kind);

// Whom an event is about, as a dense number among its like: a section, stage instance, buffer instance, channel,
// sender, member of a barrier, link or memory channel.
enum class EventSubject : std::uint8_t { section, stage, buffer, channel, sender, member, link, memory };

template <class E>
constexpr EventSubject subject_of() {
  if constexpr (std::is_same_v<E, SectionStarted> || std::is_same_v<E, SectionEnded>)
    return EventSubject::section;
  else if constexpr (std::is_same_v<E, LinkUsed>)
    return EventSubject::link;
  else if constexpr (std::is_same_v<E, MemoryUsed>)
    return EventSubject::memory;
  else if constexpr (std::is_same_v<E, ReadyConsumed>)
    return EventSubject::sender;
  else if constexpr (std::is_same_v<E, BarrierArrived> || std::is_same_v<E, BarrierLeft>)
    return EventSubject::member;
  else if constexpr (requires(E e) { e.stage; })
    return EventSubject::stage;
  else if constexpr (requires(E e) { e.buffer; })
    return EventSubject::buffer;
  else
    return EventSubject::channel;
}

inline std::uint32_t subjects(const Roster& r, EventSubject s) {
  switch (s) {
    case EventSubject::section:
      return static_cast<std::uint32_t>(r.sections.size());
    case EventSubject::stage:
      return r.stage_instances();
    case EventSubject::buffer:
      return r.buffer_instances();
    case EventSubject::channel:
      return r.channels();
    case EventSubject::sender:
      return r.senders();
    case EventSubject::member:
      return r.members();
    case EventSubject::link:
      return static_cast<std::uint32_t>(r.links.size());
    case EventSubject::memory:
      return r.memories();
  }
  return 0;
}

template <class E>
std::uint32_t subject(const E& e, const Roster& r) {
  constexpr EventSubject s = subject_of<E>();
  if constexpr (s == EventSubject::section) return e.section.value;
  if constexpr (s == EventSubject::stage) return r.of(e.stage);
  if constexpr (s == EventSubject::buffer) return r.of(e.buffer);
  if constexpr (s == EventSubject::channel) return r.of(e.channel);
  if constexpr (s == EventSubject::sender) return r.sender(e.edge, e.from);
  if constexpr (s == EventSubject::member) return r.member(e.edge, e.from, e.member);
  if constexpr (s == EventSubject::link) return e.link.value;
  if constexpr (s == EventSubject::memory) return r.memory(e.chip, e.space, e.channel);
}

template <class E>
void set_subject(E& e, std::uint32_t n, const Roster& r) {
  constexpr EventSubject s = subject_of<E>();
  if constexpr (s == EventSubject::section) e.section = SectionId{n};
  if constexpr (s == EventSubject::stage) e.stage = r.stage_at(n);
  if constexpr (s == EventSubject::buffer) e.buffer = r.buffer_at(n);
  if constexpr (s == EventSubject::channel) e.channel = r.channel_at(n);
  if constexpr (s == EventSubject::sender) {
    const auto at = r.sender_at(n);
    e.edge = at.edge;
    e.from = at.from;
  }
  if constexpr (s == EventSubject::member) {
    const auto at = r.member_at(n);
    e.edge = at.edge;
    e.from = at.from;
    e.member = at.member;
  }
  if constexpr (s == EventSubject::link) e.link = LinkId{n};
  if constexpr (s == EventSubject::memory) {
    const auto at = r.memory_at(n);
    e.chip = ChipId{at.chip};
    e.space = at.space;
    e.channel = at.channel;
  }
}

// f(field) for every field but the time and whom it is about, those that change most first.
template <class F>
constexpr void each_field(auto& t, F&& f) requires std::is_same_v<std::remove_cvref_t<decltype(t)>, PageTag> {
  f(t.col);
  f(t.row);
  f(t.provenance);
  f(t.chunk);
  f(t.rows);
  f(t.cols);
  f(t.trip);
  f(t.chunks);
  f(t.operand.value);
}

// f(name, field) of those that are no tags.
template <class F>
constexpr void each_plain_field(auto& e, F&& f) {
  using E = std::remove_cvref_t<decltype(e)>;
  if constexpr (requires { e.firing; }) f("firing", e.firing);
  if constexpr (requires { e.page; }) f("page", e.page);
  if constexpr (requires { e.generation; }) f("generation", e.generation);
  if constexpr (requires { e.value; }) f("value", e.value);
  if constexpr (std::is_same_v<E, FiringStarted>) {
    f("stall", e.stall);
    f("cause", e.cause);
    f("busy", e.busy);
  }
  if constexpr (requires { e.begin; }) {
    f("begin", e.begin);
    f("end", e.end);
  }
  if constexpr (requires { e.bytes; }) f("bytes", e.bytes);
  if constexpr (requires { e.signal; }) f("signal", e.signal);
  if constexpr (requires { e.broken; }) f("broken", e.broken);
  if constexpr (requires { e.write; }) f("write", e.write);
  if constexpr (requires { e.consumer; }) f("consumer", e.consumer);
  if constexpr (requires { e.pages; }) f("pages", e.pages);
  if constexpr (requires { e.tensor; }) f("tensor", e.tensor.value);
}

// f(name, tag)
template <class F>
constexpr void each_tag(auto& e, F&& f) {
  if constexpr (requires { e.tag; }) f("tag", e.tag);
  if constexpr (requires { e.a; }) {
    f("a", e.a);
    f("b", e.b);
  }
  if constexpr (requires { e.held; }) {
    f("held", e.held);
    f("added", e.added);
    f("sum", e.sum);
  }
}

template <class F>
constexpr void each_field(auto& e, F&& f) requires(!std::is_same_v<std::remove_cvref_t<decltype(e)>, PageTag>) {
  each_plain_field(e, [&f](const char*, auto& field) { f(field); });
  each_tag(e, [&f](const char*, auto& tag) { each_field(tag, f); });
}

template <class E>
inline constexpr std::size_t field_count = [] {
  E e{};
  std::size_t n = 0;
  each_field(e, [&n](auto&) { ++n; });
  return n;
}();

}  // namespace rdusim
