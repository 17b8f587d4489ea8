// A chip-to-chip link, one direction.
//
//   law      a page of b bytes offered at t leaves at s = max(t, free), occupies the link for b / rate cycles (exact
//            fraction, remainder carried to the next page) and arrives at ceil(s + b / rate) + latency.
//   numbers  rate, latency and signal_bytes from the target; for sn40l all three are assumed (range in the target
//   file). never    judges: an offer without a credit is carried all the same, and the token checker reports it.
#pragma once

#include "compiler/support/ids.h"
#include "compiler/target/target.h"
#include "models/units/serial_resource.h"

namespace rdusim {

class ChipLink {
 public:
  ChipLink() = default;
  explicit ChipLink(const ChipLinkParameters& p)
      : rate_(p.bytes_per_cycle),
        latency_(p.latency_cycles == 0 ? 1 : p.latency_cycles),
        signal_(p.signal_bytes),
        id_(p.id) {}

  struct Transfer {
    Slot slot;          // the time that the link is taken
    Cycle arrival = 0;  // of the last byte
  };

  // Earliest cycle at which a page offered at `now` would arrive. Changes nothing.
  Cycle arrival(Cycle now, Bytes size) const {
    SerialResource copy = wire_;
    return copy.take(now, rate_, size).end + latency_;
  }

  // Sends a page.
  Transfer send(Cycle now, Bytes size) {
    const Slot s = wire_.take(now, rate_, size);
    return {s, s.end + latency_};
  }

  // Carries nothing for `cycles`, behind what it carries.
  void hold(Cycle now, Cycles cycles) { wire_.hold(now, cycles); }

  // A latency of zero counts as one cycle: what a chip does in cycle t, another sees from t + 1.
  Cycles latency() const { return latency_; }
  Bytes signal_bytes() const { return signal_; }
  LinkId id() const { return id_; }
  void reset() { wire_.reset(); }

 private:
  SerialResource wire_;
  Rate rate_;
  Cycles latency_ = 1;
  Bytes signal_ = 0;
  LinkId id_;
};

}  // namespace rdusim
