// An address generator and coalescing unit (AGCU): the door between the mesh and what lies outside it, memories and
// other chips. One serial resource each way.
//
//   law      inward (loads, pages from other chips) and outward (stores, pages to other chips) are independent. A page of
//            b bytes takes b / rate cycles of its direction, and every page passes `latency` cycles of pipeline. So does
//            a memory's acknowledgement of a page that it has written, with which the page counts as stored.
//   host     an output that fits a register of the host's (host.result_bytes) and that no stage reads passes no AGCU: it is
//            there when its last byte has come to the place of its store's AGCU.
//   window   outstanding_bursts bursts each way are asked for and not yet given at the most: read, or written of what has
//            come to the memory. The bursts of a page are given at an even pace from its first to its last, and another
//            page is asked for, another store started, as soon as one burst more may be: so a stream is as fast as
//            outstanding_bursts * burst_bytes / memory latency (Little's law), whatever its pages, and what waits for a
//            busy memory waits here, loads in order of rank, and not in the memory's queues before all others. Of a page
//            only the bytes that fill a window are followed, in eighths of it.
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
  // What a page takes at least where a window of it takes so long.
  Cycles paced(Bytes bytes, Cycles round_trip) const {
    return window == 0 ? 0 : ceil_div(whole_bursts(bytes) * round_trip, window);
  }
  Bytes whole_bursts(Bytes bytes) const { return (bytes + burst - 1) / burst * burst; }

  Rate port;  // every page
  Cycles latency = 0;
  Bytes burst = 1;
  Bytes window = 0;  // bytes in flight each way; 0: no limit
};

// What one direction of an AGCU has asked of a memory.
class BurstWindow {
 public:
  // A page of `bytes` was asked for at `now`, and the memory gives its bursts from `first` to `last`.
  void ask(const AgcuLaw& law, Cycle now, Cycle first, Cycle last, Bytes bytes) {
    if (law.window == 0) return;
    const Bytes all = law.whole_bursts(bytes);
    const Bytes piece = std::max(law.window / 8 / law.burst * law.burst, law.burst);
    const Cycles lasts = last - std::min(first, last);
    for (Bytes left = std::min(all, law.window); left != 0;) {
      const Bytes part = std::min(left, piece);
      left -= part;
      flying_.emplace_back(last - lasts * left / all, part);
      std::push_heap(flying_.begin(), flying_.end(), std::greater<>{});
      bytes_ += part;
    }
    // The ends are known: those that must come before the next page may be asked for are waited for at once.
    while (!flying_.empty() && (flying_.front().first <= now || bytes_ >= law.window)) {
      std::pop_heap(flying_.begin(), flying_.end(), std::greater<>{});
      opens_ = std::max(opens_, flying_.back().first);
      bytes_ -= flying_.back().second;
      flying_.pop_back();
    }
  }
  // First cycle at which a burst more may be asked for.
  Cycle opens() const { return opens_; }
  void reset() {
    flying_.clear();
    bytes_ = opens_ = 0;
  }

 private:
  std::vector<std::pair<Cycle, Bytes>> flying_;  // a heap, the earliest end in front
  Bytes bytes_ = 0;
  Cycle opens_ = 0;
};

class Agcu {
 public:
  Slot inward(const AgcuLaw& law, Cycle now, Bytes bytes) { return inward_.take(now, law.port, bytes); }
  Slot outward(const AgcuLaw& law, Cycle now, Bytes bytes) { return outward_.take(now, law.port, bytes); }
  // A page of `bytes` was asked for at `now`, and the memory gives its first byte at `first`, its last at `last`.
  void reads(const AgcuLaw& law, Cycle now, Cycle first, Cycle last, Bytes bytes) {
    reads_.ask(law, now, first, last, bytes);
  }
  void writes(const AgcuLaw& law, Cycle now, Cycle first, Cycle last, Bytes bytes) {
    writes_.ask(law, now, first, last, bytes);
  }
  // First whole cycle at which a load (a store) would not have to wait.
  Cycle load_free_at() const { return std::max(reads_.opens(), inward_.free_at()); }
  Cycle store_free_at() const { return writes_.opens(); }
  void reset() {
    inward_ = outward_ = {};
    reads_.reset();
    writes_.reset();
  }

 private:
  SerialResource inward_;
  SerialResource outward_;
  BurstWindow reads_, writes_;
};

}  // namespace rdusim
