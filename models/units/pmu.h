// A memory unit (PMU): a scratchpad with one read port and one write port, each a serial resource.
//
//   law      a page of b bytes that is read from t on begins at s = max(t, port free); its first byte leaves at
//            s + access, its last at s + b / read rate + access. A page that is written from t on is visible at
//            max(t, port free) + b / write rate + access. Reads do not delay writes: the two halves of a double buffer
//            lie in different banks (SN40L, arXiv 2405.07518). A site that works with several memory units, its own and
//            those of sites that have nothing to do, has the ports of each; the way between them is not counted.
//   numbers  read_bytes_per_cycle, write_bytes_per_cycle and access_latency_cycles from the target.
//   never    judges, and never keeps what is stored: pages live in the chip's pool.
#pragma once

#include "compiler/target/target.h"
#include "models/units/serial_resource.h"

namespace rdusim {

// What all PMUs of a machine have in common.
struct PmuLaw {
  PmuLaw() = default;
  explicit PmuLaw(const PmuParameters& p)
      : read(p.read_bytes_per_cycle), write(p.write_bytes_per_cycle), access(p.access_latency_cycles) {}
  Rate read, write;
  Cycles access = 0;
};

class Pmu {
 public:
  // `first` and `last` are the cycles at which the first and the last byte are out (read) or visible (write).
  struct Access {
    Cycle begin = 0;
    Cycle first = 0;
    Cycle last = 0;
  };

  Access read(const PmuLaw& law, Cycle now, Bytes bytes) {
    const Slot s = read_.take(now, law.read, bytes);
    return {s.begin, s.begin + law.access, s.end + law.access};
  }
  Access write(const PmuLaw& law, Cycle now, Bytes bytes) {
    const Slot s = write_.take(now, law.write, bytes);
    return {s.begin, s.begin + law.access, s.end + law.access};
  }
  void reset() { *this = Pmu{}; }

 private:
  SerialResource read_;
  SerialResource write_;
};

}  // namespace rdusim
