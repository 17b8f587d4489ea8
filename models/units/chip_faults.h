// The faults of one chip while it runs: which strike where, and how often each has. Units are marked where a fault may
// strike them; nobody else asks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/units/fault.h"
#include "models/units/page_header.h"

namespace rdusim {

// A page as a firing took it.
struct KeptPage {
  PageHeader header;
  std::uint64_t elements = 0;
  std::vector<std::byte> values;
};

class ChipFaults {
 public:
  struct Active {
    Fault what;
    std::size_t number = 0;             // in MachineOptions::faults
    std::uint64_t struck = 0;           // times that it changed what would have happened
    std::array<KeptPage, 2> kept = {};  // of a fold: pages that it took before, the last one first
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
  // Whether one would strike; it is not counted.
  bool asked(FaultKind kind, const StageAt& s, std::uint64_t nth) const {
    for (const Active& a : list_)
      if (a.what.kind == kind && a.what.stage == s && a.what.nth == nth) return true;
    return false;
  }
  // The fault of this kind that a stage has, from its nth firing on.
  Active* from(FaultKind kind, const StageAt& s, std::uint64_t nth) {
    for (Active& a : list_)
      if (a.what.kind == kind && a.what.stage == s && a.what.nth <= nth) return &a;
    return nullptr;
  }
  Active* find(FaultKind kind, const StageAt& s) { return from(kind, s, ~std::uint64_t{0}); }
  // The same as from(), counted.
  bool strikes_on(FaultKind kind, const StageAt& s, std::uint64_t nth) {
    Active* fault = from(kind, s, nth);
    if (fault != nullptr) ++fault->struck;
    return fault != nullptr;
  }
  bool asked(FaultKind kind, const ChannelAt& c, std::uint64_t nth) const {
    for (const Active& a : list_)
      if (a.what.kind == kind && a.what.edge == c.edge && a.what.instance == c.from && a.what.nth == nth) return true;
    return false;
  }
  bool strikes(FaultKind kind, LinkId l, std::uint64_t nth) {
    return strikes(kind, nth, [&](const Fault& f) { return f.link == l; });
  }
  // Whether a link is down when it is to carry its nth transfer: once down, it stays down.
  bool down(LinkId l, std::uint64_t nth) {
    bool found = false;
    for (Active& a : list_)
      if (a.what.kind == FaultKind::link_down && a.what.link == l && a.what.nth <= nth) ++a.struck, found = true;
    return found;
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
  std::uint64_t produced = 0, reserved = 0;
  std::uint64_t initial = 0;
  std::uint64_t missing = 0;           // pages of depth that it should have had
  bool held = false;                   // the page before waits to change places with the next
  std::optional<std::uint32_t> after;  // pages wait until this buffer has had one
  std::vector<std::uint32_t> before;   // the buffers that wait for this one
  std::uint64_t late = 0;              // pages that wait
};

// Of a receiving channel that a fault may strike.
struct ChannelFaults {
  // A page that lands: as sent, or one of another channel.
  struct Arrival {
    std::uint64_t page = 0;
    std::optional<std::size_t> stray;  // into strays
  };
  struct Stray {
    PageTag tag;
    std::uint32_t bytes = 0;
    std::vector<std::byte> values;
  };
  std::vector<Arrival> order;  // of what arrives
  std::vector<Stray> strays;
  std::optional<std::uint32_t> astray;  // the channel that a page goes to instead
  std::vector<std::uint64_t> valid;     // the mth valid that is seen came with generation valid[m]
  std::uint64_t came = 0;
  std::uint64_t under_way = 0;  // pages that were sent, and those that came
  bool held = false;
};

// Of a link that a fault may strike.
struct LinkFaults {
  bool faulty = false;
  std::uint64_t transfers = 0;
};

}  // namespace rdusim
