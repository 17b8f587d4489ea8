// An address generator and coalescing unit (AGCU): the door between the mesh and what lies outside it, memories and
// other chips. One serial resource each way.
//
//   law      inward (loads, pages from other chips) and outward (stores, pages to other chips) are independent. A page of
//            b bytes takes b / rate cycles of its direction, and every page passes `latency` cycles of pipeline. A load's
//            page is asked for while fewer than outstanding_bursts bursts (of pages that memory has not given yet) are in
//            flight: a stream is no faster than outstanding_bursts * burst_bytes / memory latency (Little's law), and
//            what waits for a busy memory waits here, in order of rank, and not in the memory's queues before all others.
//   lanes    a load or store that moves at most n elements a cycle (Load::lanes) is n a cycle at its movement engine: a
//            page of e elements keeps that for e / n cycles, and is there so long after its first element. AGCU, network
//            and PMU ports are taken for as long as the bytes take them.
//   order    loads of stages that hand-offs join go before those that are joined with later stages of the program (least
//            id on the chip). Among such, loads that wait are served burst by burst in turn: of their pages, the one
//            of the load that had the fewest bytes (in whole bursts, from where it came to wait) comes next, the least
//            id of equals.
//   numbers  bytes_per_cycle, latency_cycles, outstanding_bursts and burst_bytes from the target; 0 bursts: no limit.
//   never    judges; never refuses: how many pages wait is bounded by the buffers that they were reserved in.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "compiler/target/target.h"
#include "models/units/serial_resource.h"

namespace rdusim {

struct AgcuLaw {
  AgcuLaw() = default;
  explicit AgcuLaw(const AgcuParameters& p)
      : port(p.bytes_per_cycle),
        latency(p.latency_cycles),
        burst(std::max<Bytes>(p.burst_bytes, 1)),
        window(std::uint64_t{p.outstanding_bursts} * p.burst_bytes) {}
  Bytes whole_bursts(Bytes bytes) const { return (bytes + burst - 1) / burst * burst; }

  Rate port;  // every page
  Cycles latency = 0;
  Bytes burst = 1;
  Bytes window = 0;  // loads only: bytes in flight; 0: no limit
};

class Agcu {
 public:
  Slot inward(const AgcuLaw& law, Cycle now, Bytes bytes) { return inward_.take(now, law.port, bytes); }
  Slot outward(const AgcuLaw& law, Cycle now, Bytes bytes) { return outward_.take(now, law.port, bytes); }
  // A load's page of `bytes` was asked for at `now`, and the memory gives its last byte at `end`.
  void in_flight(const AgcuLaw& law, Cycle now, Cycle end, Bytes bytes) {
    if (law.window == 0) return;
    flying_.emplace_back(end, law.whole_bursts(bytes));
    std::push_heap(flying_.begin(), flying_.end(), std::greater<>{});
    bytes_flying_ += law.whole_bursts(bytes);
    // The ends are known: those that must come before the next page may be asked for are waited for at once.
    while (!flying_.empty() && (flying_.front().first <= now || bytes_flying_ >= law.window)) {
      std::pop_heap(flying_.begin(), flying_.end(), std::greater<>{});
      window_open_ = std::max(window_open_, flying_.back().first);
      bytes_flying_ -= flying_.back().second;
      flying_.pop_back();
    }
  }
  // First whole cycle at which a load would not have to wait.
  Cycle load_free_at() const { return std::max(window_open_, inward_.free_at()); }
  void reset() {
    inward_ = outward_ = {};
    flying_.clear();
    bytes_flying_ = 0;
    window_open_ = 0;
  }

 private:
  SerialResource inward_;
  SerialResource outward_;
  std::vector<std::pair<Cycle, Bytes>> flying_;  // a heap, the earliest end in front
  Bytes bytes_flying_ = 0;
  Cycle window_open_ = 0;
};

}  // namespace rdusim
