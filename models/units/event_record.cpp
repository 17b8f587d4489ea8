#include "models/units/event_record.h"

#include <cstddef>

namespace rdusim {

#define RDU_TIME_FIRST(Event) static_assert(offsetof(Event, at) == 0);
RDU_EVENTS(RDU_TIME_FIRST)
#undef RDU_TIME_FIRST

void EventRecord::hand_on(EventSink& sink) {
  switch (data_[read_]) {
#define RDU_HAND_ON(Event)                                            \
  case n##Event: {                                                    \
    Event e{};                                                        \
    std::memcpy(static_cast<void*>(&e), &data_[read_ + 1], sizeof e); \
    read_ += 1 + (sizeof e + 7) / 8;                                  \
    sink.on(e);                                                       \
    break;                                                            \
  }
    RDU_EVENTS(RDU_HAND_ON)
#undef RDU_HAND_ON
    default:
      clear();
  }
}

}  // namespace rdusim
