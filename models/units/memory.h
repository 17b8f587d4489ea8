// A memory outside the mesh (HBM or DDR): channels side by side, each a data bus behind its open rows.
//
//   layout   addresses go round the channels, interleave_bytes each. A tensor lies in memory as the stream that reads
//   it
//            takes it, page after page, so a page is one run of addresses (the host lays tensors out so).
//   law      a page that is asked for at t takes on every channel c that it touches one burst of its bytes there (whole
//            accesses of access_bytes),
//                begin = max(t, c free), after the refresh that is under way
//                end   = begin + turnaround (if the bus has to turn) + row_miss * rows opened
//                        + bytes / channel rate (exact, remainder carried) + refresh for every refresh that falls in it
//            and a read is complete at the greatest end + latency, a write at the greatest end. A channel is refreshed
//            refresh_cycles long, every refresh_interval_cycles, channel i being i / channels of an interval late.
//   rows     without banks: a row is open until another one of that channel is asked for. With banks: a row is open until
//            another one of its bank is, or the channel is refreshed; it is opened at begin at the earliest, `activation`
//            after the row before it of that channel and row_cycle after the one before it in its bank, and its bytes
//            come after that. A burst that waits for its row keeps no other from the bus: of what waits at a channel,
//            the scheduler serves what is ready. So random accesses get what the least of bus, activations and banks
//            gives. (That a row's opening overlaps others' transfers is why it is not added to the bus's time.)
//            Row r of a channel lies in bank r exclusive-or r / banks, and so on: streams a power of two apart do not
//            meet in one bank (Zhang, Zhu, Zhang, "A permutation-based page interleaving scheme", MICRO 2000).
//   turning  the bus turns between a read and a write. Of what waits at a channel (the next queue_requests accesses, as
//            long as it does not run dry), reads and writes are served in groups, beginning with what was served last:
//            one turn in so many accesses at the most. A burst for which that is not enough counts alone.
//   order    bursts of a channel are served in the order of the calls, but for rows and groups.
//   numbers  all from the target. What a stream can sustain follows from them; there is no efficiency besides.
//   never    judges: any address is taken.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/target/target.h"
#include "models/units/serial_resource.h"

namespace rdusim {

class Memory {
 public:
  Memory() = default;
  explicit Memory(const MemoryParameters& p);

  // Cycle at which the page at [address, address + bytes) is read or written. `used(channel, begin, end, bytes)` is
  // called for every burst, in order of channel. Requires bytes > 0 to take time.
  template <class Used>
  Cycle access(Cycle now, Bytes address, Bytes bytes, bool write, Used&& used) {
    Cycle last = now;
    const std::uint64_t n = channels_.size();
    if (n == 0 || bytes == 0) return last;
    const std::uint64_t first_chunk = divide(address, interleave_);
    const std::uint64_t last_chunk = divide(address + bytes - 1, interleave_);
    const std::uint64_t chunks = last_chunk - first_chunk + 1;
    const Bytes short_front = address - first_chunk * interleave_.by;
    const Bytes short_back = (last_chunk + 1) * interleave_.by - (address + bytes);
    const std::uint64_t each = divide(chunks, round_);  // whole rounds of the channels
    const std::uint64_t extra = chunks - each * n;      // channels that get one more
    const std::uint64_t at_end = extra == 0 ? n - 1 : extra - 1;
    std::uint64_t stripe = divide(first_chunk, round_);
    std::uint64_t at = first_chunk - stripe * n;
    const std::uint64_t touched = chunks < n ? chunks : n;
    for (std::uint64_t i = 0; i < touched; ++i) {
      const std::uint64_t here = each + (i < extra ? 1 : 0);
      Bytes size = here * interleave_.by;
      Bytes local = stripe * interleave_.by;
      if (i == 0) size -= short_front, local += short_front;
      if (i == at_end) size -= short_back;
      const Burst b = burst(at, now, local, size, write);
      used(static_cast<std::uint32_t>(at), b.bus.begin, b.bus.end, size);
      last = last > b.done ? last : b.done;
      if (++at == n) at = 0, ++stripe;
    }
    return write ? last : last + latency_;
  }

  Cycles latency() const { return latency_; }
  Bytes interleave() const { return interleave_.by; }
  std::uint32_t channels() const { return static_cast<std::uint32_t>(channels_.size()); }

  // All rows closed, all channels free, the first refresh one interval after `start`.
  void reset(Cycle start);

 private:
  struct Channel {
    SerialResource bus;
    SerialResource activations;
    std::uint64_t open_row = 0;  // without banks
    Cycle next_refresh = 0;
    std::uint32_t group = 0;  // accesses that the present group has room for
    bool any_row = false;
    bool writes = false;  // what the present group began with
    bool turned = false;  // within the present group
  };
  struct Bank {
    std::uint64_t row = 0;  // + 1; 0: none is open
    Cycle open_at = 0;
  };
  struct Burst {
    Slot bus;
    Cycle done = 0;  // when all its bytes have crossed the bus
  };
  struct Divisor {
    std::uint64_t by = 1;
    std::uint32_t shift = 0;
    bool power = true;
  };
  static Divisor divisor(std::uint64_t by);
  static std::uint64_t divide(std::uint64_t value, const Divisor& d) {
    return d.power ? value >> d.shift : value / d.by;
  }

  Burst burst(std::uint64_t channel, Cycle now, Bytes local, Bytes size, bool write);
  Cycle wake(std::uint64_t channel, Cycle now);
  // What a burst asks of its channel, whichever it is: of a page mostly the same on all.
  struct Request {
    Bytes local = 0, size = 0;
    std::uint64_t accesses = 0;
    std::uint64_t first_row = 0, last_row = 0;
    Span span;  // of whole accesses
  };
  const Request& request(Bytes local, Bytes size);
  bool turns(Channel& c, Cycle now, bool write, std::uint64_t accesses) const;
  Cycle open_rows(std::uint64_t channel, Cycle begin, Bytes local, Bytes size, std::uint64_t& opened);
  std::span<Bank> banks_of(std::uint64_t channel) { return {banks_.data() + channel * bank_.by, bank_.by}; }

  std::vector<Channel> channels_;
  std::vector<Bank> banks_;  // of all channels; empty: without banks
  Rate rate_, activation_;
  Request request_;  // the last one
  Divisor interleave_, round_, row_, bank_, access_;
  std::uint32_t queue_ = 1;
  Cycles latency_ = 0, row_miss_ = 0, row_cycle_ = 0, turnaround_ = 0, refresh_interval_ = 0, refresh_ = 0;
};

}  // namespace rdusim
