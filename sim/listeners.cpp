#include "sim/listeners.h"

namespace rdusim {

namespace {

// A listener that has no word for an event hides that of EventSink, which does nothing.
template <class Listener, class Event>
void tell(Listener& listener, const Event& e) {
  if constexpr (requires { listener.on(e); }) listener.on(e);
}

}  // namespace

#define RDU_DEFINE(Event)                 \
  void Listeners::on(const Event& e) {    \
    tell(handshakes, e);                  \
    tell(tokens, e);                      \
    tell(semaphores, e);                  \
    tell(barriers, e);                    \
    tell(pages, e);                       \
    tell(provenance, e);                  \
    if (made.watches()) tell(made, e);    \
    tell(coverage, e);                    \
    tell(collectives, e);                 \
    if (links.watches()) tell(links, e);  \
    tell(statistics, e);                  \
    tell(flight, e);                      \
    if (traces != nullptr) traces->on(e); \
  }
RDU_EVENTS(RDU_DEFINE)
#undef RDU_DEFINE

}  // namespace rdusim
