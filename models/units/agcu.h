// An address generator and coalescing unit (AGCU): the door between the mesh and what lies outside it, memories and
// other chips. One serial resource each way.
//
//   law      inward (loads, pages from other chips) and outward (stores, pages to other chips) are independent. A page
//   of
//            b bytes takes b / rate cycles of its direction, and every page passes `latency` cycles of pipeline. Reads
//            keep at most outstanding_bursts bursts in flight, so a stream of loads is no faster than
//                outstanding_bursts * burst_bytes / memory latency
//            (Little's law with the unloaded latency; a loaded memory is itself the bottleneck).
//   numbers  bytes_per_cycle, latency_cycles, outstanding_bursts and burst_bytes from the target.
//   never    judges; never refuses: how many pages wait is bounded by the buffers that they were reserved in.
#pragma once

#include <algorithm>

#include "compiler/target/target.h"
#include "models/units/serial_resource.h"

namespace rdusim {

struct AgcuLaw {
  AgcuLaw() = default;
  // `memory_latency`: of the memory that loads read from.
  AgcuLaw(const AgcuParameters& p, Cycles memory_latency) : port(p.bytes_per_cycle), latency(p.latency_cycles) {
    if (p.outstanding_bursts == 0 || p.burst_bytes == 0 || memory_latency == 0) return;
    window = Rate(make_fraction(std::uint64_t{p.outstanding_bursts} * p.burst_bytes, memory_latency));
    windowed = window < port;
  }
  Rate port;    // every page
  Rate window;  // loads only: what the outstanding bursts allow
  bool windowed = false;
  Cycles latency = 0;
};

class Agcu {
 public:
  Slot load(const AgcuLaw& law, Cycle now, Bytes bytes) {
    if (!law.windowed) return inward_.take(now, law.port, bytes);
    const Slot w = window_.take(now, law.window, bytes);
    const Slot s = inward_.take(w.begin, law.port, bytes);
    return {s.begin, std::max(w.end, s.end)};
  }
  Slot inward(const AgcuLaw& law, Cycle now, Bytes bytes) { return inward_.take(now, law.port, bytes); }
  Slot outward(const AgcuLaw& law, Cycle now, Bytes bytes) { return outward_.take(now, law.port, bytes); }
  // First whole cycle at which a load would not have to wait.
  Cycle load_free_at() const { return std::max(window_.free_at(), inward_.free_at()); }
  void reset() { *this = Agcu{}; }

 private:
  SerialResource inward_;
  SerialResource window_;
  SerialResource outward_;
};

}  // namespace rdusim
