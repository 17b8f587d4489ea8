// How many signals travel between two sites beside a page, before it can be used and before the next can follow: the
// laws of the crossing hand-offs.
//
//   token      the page; its credit comes back meanwhile, so as many pages are on their way as the landing holds
//   semaphore  the page with its valid; one generation at a time, so the next waits until ready has come back
//   barrier    all arrive before the page moves, and again before it may be seen: the page, the arrival, the leave; and
//              the arrival for the next
#pragma once

#include "compiler/ir/program.h"

namespace rdusim::cost {

struct CrossingTrips {
  std::uint64_t before_seen = 0;  // signals, one after the other, until a page that came is seen
  std::uint64_t before_next = 1;  // signals until the page that takes its place can leave
  bool windowed = true;           // as many pages as the landing holds share a period; else one
};

constexpr CrossingTrips trips_of(Handshake h) {
  switch (h) {
    case Handshake::semaphore:
      return {0, 1, false};
    case Handshake::barrier:
      return {2, 3, false};
    default:
      return {};
  }
}
constexpr CrossingTrips trips_of(CrossingHandshake h) {
  switch (h) {
    case CrossingHandshake::semaphore:
      return trips_of(Handshake::semaphore);
    case CrossingHandshake::barrier:
      return trips_of(Handshake::barrier);
    case CrossingHandshake::token:
      break;
  }
  return {};
}

}  // namespace rdusim::cost
