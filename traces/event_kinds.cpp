#include "traces/event_kinds.h"

#include <string>

namespace rdusim {

namespace {

// "FiringStarted" as "firing-started".
std::string with_hyphens(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '-';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::string_view name_of(EventKind kind) {
  static const std::array<std::string, event_kinds> names = {
#define RDU_NAME(Event) with_hyphens(#Event),
      RDU_EVENTS(RDU_NAME)
#undef RDU_NAME
  };
  return names[static_cast<std::size_t>(kind)];
}

std::string_view group_of(EventKind kind) {
  switch (kind) {
    case EventKind::SectionStarted:
    case EventKind::SectionEnded:
      return "section";
    case EventKind::FiringStarted:
    case EventKind::FiringCompleted:
      return "firing";
    case EventKind::OperandsJoined:
    case EventKind::PartialFolded:
      return "partial";
    case EventKind::CreditTaken:
    case EventKind::CreditReturned:
    case EventKind::CreditArrived:
      return "credit";
    case EventKind::ReadyRaised:
    case EventKind::ReadyConsumed:
    case EventKind::ValidRaised:
    case EventKind::ValidConsumed:
      return "semaphore";
    case EventKind::BarrierArrived:
    case EventKind::BarrierLeft:
      return "barrier";
    case EventKind::LinkUsed:
      return "link";
    case EventKind::MemoryUsed:
      return "memory";
    default:
      return "page";
  }
}

}  // namespace rdusim
