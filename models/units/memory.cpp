#include "models/units/memory.h"

#include <algorithm>
#include <bit>

namespace rdusim {

Memory::Divisor Memory::divisor(std::uint64_t by) {
  by = std::max<std::uint64_t>(by, 1);
  return {by, static_cast<std::uint32_t>(std::countr_zero(by)), std::has_single_bit(by)};
}

Memory::Memory(const MemoryParameters& p)
    : channels_(std::max(p.channels, 1u)),
      banks_(std::size_t{std::max(p.channels, 1u)} * p.banks),
      rate_(p.channel_bytes_per_cycle),
      // As a rate of rows; of no time at all, so many a cycle that it does not count.
      activation_(p.activation_cycles.num == 0 ? Fraction{1u << 30, 1}
                                               : Fraction{p.activation_cycles.den, p.activation_cycles.num}),
      interleave_(divisor(p.interleave_bytes)),
      round_(divisor(std::max(p.channels, 1u))),
      row_(divisor(p.row_bytes)),
      bank_(divisor(p.banks)),
      access_(divisor(p.access_bytes)),
      queue_(std::max(p.queue_requests, 1u)),
      latency_(p.latency_cycles),
      row_miss_(p.row_miss_cycles),
      row_cycle_(p.row_cycle_cycles),
      turnaround_(p.turnaround_cycles),
      // A memory that is refreshed all the time would never answer.
      refresh_interval_(p.refresh_interval_cycles > p.refresh_cycles ? p.refresh_interval_cycles : 0),
      refresh_(p.refresh_cycles) {
  reset(0);
}

void Memory::reset(Cycle start) {
  const std::uint64_t n = channels_.size();
  for (std::uint64_t i = 0; i < n; ++i) {
    channels_[i] = Channel{};
    channels_[i].next_refresh = start + refresh_interval_ + refresh_interval_ * i / n;
  }
  std::fill(banks_.begin(), banks_.end(), Bank{});
}

// First cycle at which a channel could serve what is asked for at `now`, after the refreshes up to then.
Cycle Memory::wake(std::uint64_t channel, Cycle now) {
  Channel& c = channels_[channel];
  const Cycle begin = std::max(now, c.bus.free_at());
  if (refresh_interval_ == 0 || begin < c.next_refresh) return begin;
  if (!banks_.empty()) std::ranges::fill(banks_of(channel), Bank{});
  if (c.next_refresh + refresh_ <= begin) {  // refreshes that the idle channel has had since
    const std::uint64_t missed = (begin - c.next_refresh - refresh_) / refresh_interval_ + 1;
    c.next_refresh += missed * refresh_interval_;
  }
  if (begin < c.next_refresh) return begin;
  const Cycle awake = c.next_refresh + refresh_;
  c.next_refresh += refresh_interval_;
  c.bus.hold(now, awake - begin);
  if (c.activations.free_at() < awake) c.activations.hold(now, awake - std::max(now, c.activations.free_at()));
  return awake;
}

// Whether the bus turns round for a burst.
bool Memory::turns(Channel& c, Cycle now, bool write, std::uint64_t accesses) const {
  const bool waits = now < c.bus.free_at() || now < c.activations.free_at();
  if (!waits || accesses > c.group) {
    c.writes = c.any_row ? c.writes != c.turned : write;
    c.turned = false;
    c.group = queue_;
  }
  c.group -= static_cast<std::uint32_t>(std::min<std::uint64_t>(c.group, accesses));
  const bool turn = write != c.writes && !c.turned;
  c.turned |= turn;
  return turn;
}

// Opens the rows of a burst that begins at `begin`: the cycle at which it is done if it waits for nothing else.
Cycle Memory::open_rows(std::uint64_t channel, Cycle begin, Bytes local, Bytes size, std::uint64_t& opened) {
  const std::span<Bank> banks = banks_of(channel);
  Cycle done = begin;
  for (Bytes at = local; at < local + size;) {
    const std::uint64_t row = divide(at, row_);
    const Bytes end = std::min((row + 1) * row_.by, local + size);
    std::uint64_t folded = row;
    for (std::uint64_t high = divide(row, bank_); bank_.power && bank_.by > 1 && high != 0; high = divide(high, bank_))
      folded ^= high;
    Bank& bank = banks[folded % bank_.by];
    if (bank.row != row + 1) {
      ++opened;
      const Cycle free = bank.open_at == 0 ? 0 : bank.open_at + row_cycle_;
      bank = {row + 1, std::max(channels_[channel].activations.take(begin, activation_, 1).begin, free)};
    }
    done = std::max(done, bank.open_at) + rate_.span(end - at).ceil();
    at = end;
  }
  return done;
}

const Memory::Request& Memory::request(Bytes local, Bytes size) {
  Request& r = request_;
  if (r.local == local && r.size == size) return r;
  const Bytes first = divide(local, access_);
  const Bytes last = divide(local + size - 1, access_);
  r = {local,
       size,
       last - first + 1,
       divide(first * access_.by, row_),
       divide((last + 1) * access_.by - 1, row_),
       rate_.span((last - first + 1) * access_.by)};
  return r;
}

Memory::Burst Memory::burst(std::uint64_t channel, Cycle now, Bytes local, Bytes size, bool write) {
  Channel& c = channels_[channel];
  const Request& r = request(local, size);
  const bool turn = turns(c, now, write, r.accesses);
  const Cycle begin = wake(channel, now);
  Cycles before = turn ? turnaround_ : 0;
  Cycle done = 0;
  if (banks_.empty()) {
    before += row_miss_ * (r.last_row - r.first_row + (c.any_row && c.open_row == r.first_row ? 0 : 1));
    c.open_row = r.last_row;
  } else {
    std::uint64_t opened = 0;
    const Bytes from = divide(local, access_) * access_.by;
    done = open_rows(channel, begin, from, r.accesses * access_.by, opened);
    before += row_miss_ * opened;
  }
  c.any_row = true;
  if (before != 0) c.bus.hold(now, before);
  Slot bus = c.bus.take(now, r.span, rate_.parts());
  done = std::max(done, bus.end);
  if (refresh_interval_ != 0) {
    while (c.next_refresh < done) {
      c.bus.hold(now, refresh_);
      c.activations.hold(now, refresh_);
      bus.end += refresh_;
      done += refresh_;
      c.next_refresh += refresh_interval_;
      if (!banks_.empty()) std::ranges::fill(banks_of(channel), Bank{});
    }
  }
  return {{begin, bus.end}, done};
}

}  // namespace rdusim
