// The hand-off that crosses sites on a target.
#pragma once

#include "compiler/ir/program.h"

namespace rdusim {

// The first of the target's crossing hand-offs. Requires that it has one.
inline Handshake crossing_of(const Target& target) {
  switch (target.crossing.front()) {
    case CrossingHandshake::token:
      return Handshake::token;
    case CrossingHandshake::semaphore:
      return Handshake::semaphore;
    case CrossingHandshake::barrier:
      return Handshake::barrier;
  }
  return Handshake::token;
}

}  // namespace rdusim
