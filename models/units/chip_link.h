// A link between chips, or between a chip and a switch; one direction.
//
//   law      a page of b bytes offered at t leaves at s = max(t, free), occupies the link for b / rate cycles (exact
//            fraction, remainder carried to the next page) and arrives at ceil(s + b / rate) + latency.
//   switch   sends on while it takes in: the page's first byte is at the link out of it when its last byte is, less
//            b / rate of the link into it, and its last one leaves no earlier than it came. Who comes first to a link out
//            goes first. Its port takes in `room` bytes that have not been sent on, and a page only where it has room for all
//            of it, or for a whole port's where the page is larger; what waits for that holds up what is behind it.
//   errors   the n-th transfer of a link comes broken where draw n of SplitMix64, by the link's seed and id, is below
//            error_rate. The other end asks again, nothing else is carried until then, so that order is kept: it is sent
//            anew `latency` after it came. After most_retries in vain the link is given up and carries nothing any more.
//   numbers  rate, latency, signal_bytes and what else a target says; for sn40l all are assumed (range in the file).
//   never    judges: an offer without a credit is carried all the same, and the token checker reports it.
#pragma once

#include "compiler/support/ids.h"
#include "compiler/support/split_mix.h"
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
        room_(p.room_bytes),
        id_(p.id),
        most_retries_(p.most_retries) {
    if (p.error_rate.num == 0) return;
    breaks_ = true;
    // The rate as a share of 2^64 draws, bit by bit; all of them where it is 1.
    std::uint64_t rest = p.error_rate.num;
    const std::uint64_t whole = p.error_rate.den;
    for (int bit = 0; bit < 64; ++bit) {
      const bool one = rest >= whole - rest;
      rest = one ? rest - (whole - rest) : rest + rest;
      threshold_ = threshold_ << 1U | (one ? 1 : 0);
    }
    seed_ = split_mix_64(p.error_seed, p.id.value);
  }

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

  // Whether what is sent next comes broken; each call is a transfer. Given up: nothing is carried any more.
  bool breaks() {
    return breaks_ && (threshold_ == ~std::uint64_t{0} || split_mix_64(seed_, transfers_++) < threshold_);
  }
  std::uint32_t most_retries() const { return most_retries_; }
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }

  // How long `size` bytes take.
  Cycles span(Bytes size) const { return rate_.span(size).ceil(); }
  // Of the switch's port that it leads to, in bytes; 0: no switch.
  Bytes room() const { return room_; }

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
  Bytes room_ = 0;
  LinkId id_;
  std::uint32_t most_retries_ = 0;
  bool breaks_ = false, given_up_ = false;
  std::uint64_t threshold_ = 0, seed_ = 0, transfers_ = 0;
};

}  // namespace rdusim
