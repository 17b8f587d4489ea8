#include "sim/listeners.h"

namespace rdusim {

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
