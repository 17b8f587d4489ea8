// A program small enough to write down: y(32 x 32) = x(32 x 64) w(64 x 32), int8, the contraction split over two chips,
// reduced on chip 0. And the events of a run of it that is right, so that a test can break one and watch who notices.
#pragma once

#include <variant>
#include <vector>

#include "compiler/ir/program.h"
#include "models/events/events.h"
#include "models/events/provenance.h"

namespace rdusim::test {

// Stages and buffers by name, so that a test reads as what it breaks.
enum StageNumber : std::uint32_t { load_x0, load_w0, matmul0, load_x1, load_w1, matmul1, recv, fold, store };
enum BufferNumber : std::uint32_t { x0, w0, partial0, x1, w1, partial1, landing, sum };
inline constexpr std::uint32_t crossing_edge = 5;

// `crossing`: the hand-off from chip 1 to chip 0. `depth`: of every buffer.
SpatialProgram small_program(Handshake crossing = Handshake::token, std::uint64_t depth = 2);

using AnyEvent = std::variant<SectionStarted, SectionEnded, FiringStarted, FiringCompleted, OperandsJoined,
                              PartialFolded, PageReserved, PagePushed, PagePopped, CreditTaken, PageLanded,
                              CreditReturned, CreditArrived, PageSent, ReadyRaised, ReadyConsumed, ValidRaised,
                              ValidConsumed, BarrierArrived, BarrierLeft, LinkUsed, MemoryUsed, PageLoaded, PageStored>;

// Of a run that is right; each event in a cycle of its own.
std::vector<AnyEvent> good_run(const SpatialProgram& program, ProvenanceTable& table);

void replay(const std::vector<AnyEvent>& events, EventSink& sink);

// The position of the nth event of a kind (of those for which `matches` holds).
template <class Event, class Matches>
std::size_t find_event(const std::vector<AnyEvent>& events, Matches&& matches, std::size_t nth = 0) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto* e = std::get_if<Event>(&events[i]);
    if (e != nullptr && matches(*e) && nth-- == 0) return i;
  }
  return events.size();
}
template <class Event>
std::size_t find_event(const std::vector<AnyEvent>& events) {
  return find_event<Event>(events, [](const Event&) { return true; });
}

inline std::vector<AnyEvent> without(std::vector<AnyEvent> events, std::size_t at) {
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(at));
  return events;
}
inline std::vector<AnyEvent> doubled(std::vector<AnyEvent> events, std::size_t at) {
  const AnyEvent e = events[at];
  events.insert(events.begin() + static_cast<std::ptrdiff_t>(at), e);
  return events;
}

}  // namespace rdusim::test
