// The faults of one chip while it runs: which strike where, and how often each has. Units are marked where a fault may
// strike them; nobody else asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/units/fault.h"

namespace rdusim {

class ChipFaults {
 public:
  struct Active {
    Fault what;
    std::size_t number = 0;    // in MachineOptions::faults
    std::uint64_t struck = 0;  // times that it changed what would have happened
  };

  void add(const Fault& f, std::size_t number) { list_.push_back({f, number, 0}); }
  bool empty() const { return list_.empty(); }
  const std::vector<Active>& all() const { return list_; }

  // Whether a fault of this kind strikes the nth page, signal or firing of a place. It is counted: ask where what it
  // does is done.
  bool strikes(FaultKind kind, const BufferAt& b, std::uint64_t nth) {
    return strikes(kind, nth, [&](const Fault& f) { return f.buffer == b; });
  }
  bool strikes(FaultKind kind, const StageAt& s, std::uint64_t nth) {
    return strikes(kind, nth, [&](const Fault& f) { return f.stage == s; });
  }
  bool strikes(FaultKind kind, const ChannelAt& c, std::uint64_t nth) {
    return strikes(kind, nth, [&](const Fault& f) { return f.edge == c.edge && f.instance == c.from; });
  }
  // How many of it come, where one should.
  template <class Place>
  std::uint32_t copies(FaultKind none, FaultKind two, const Place& place, std::uint64_t nth) {
    if (strikes(none, place, nth)) return 0;
    return strikes(two, place, nth) ? 2 : 1;
  }

 private:
  template <class At>
  bool strikes(FaultKind kind, std::uint64_t nth, At at) {
    bool found = false;
    for (Active& a : list_)
      if (a.what.kind == kind && a.what.nth == nth && at(a.what)) ++a.struck, found = true;
    return found;
  }

  std::vector<Active> list_;
};

// Of a buffer that a fault may strike: producers write beside it, so that what is pushed can differ from what was made.
struct BufferFaults {
  std::uint64_t produced = 0;
  bool held = false;  // the page before waits to change places with the next
};

// Of a receiving channel that a fault may strike.
struct ChannelFaults {
  std::vector<std::uint64_t> order;  // landing page m is page order[m] as sent
  std::vector<std::uint64_t> valid;  // the mth valid that is seen came with generation valid[m]
  std::uint64_t came = 0;
  bool held = false;
};

}  // namespace rdusim
