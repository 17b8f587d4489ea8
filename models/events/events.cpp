#include "models/events/events.h"

namespace rdusim {

FanOut::FanOut(std::span<EventSink* const> sinks) {
  for (EventSink* sink : sinks)
    if (count_ < most) sinks_[count_++] = sink;
}

#define RDU_DEFINE(Event)                                      \
  void FanOut::on(const Event& e) {                            \
    for (std::size_t i = 0; i < count_; ++i) sinks_[i]->on(e); \
  }
RDU_EVENTS(RDU_DEFINE)
#undef RDU_DEFINE

}  // namespace rdusim
