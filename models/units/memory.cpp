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
      rate_(p.channel_bytes_per_cycle),
      interleave_(divisor(p.interleave_bytes)),
      round_(divisor(std::max(p.channels, 1u))),
      row_(divisor(p.row_bytes)),
      latency_(p.latency_cycles),
      row_miss_(p.row_miss_cycles),
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
}

Slot Memory::burst(Channel& c, Cycle now, Bytes local, Bytes size, bool write) {
  Cycle begin = std::max(now, c.bus.free_at());
  if (refresh_interval_ != 0) {
    if (c.next_refresh + refresh_ <= begin) {  // refreshes that the idle channel has had since
      const std::uint64_t missed = (begin - c.next_refresh - refresh_) / refresh_interval_ + 1;
      c.next_refresh += missed * refresh_interval_;
    }
    if (c.next_refresh <= begin) {
      begin = c.next_refresh + refresh_;
      c.bus.hold(now, begin - std::max(now, c.bus.free_at()));
      c.next_refresh += refresh_interval_;
    }
  }
  Cycles before = 0;
  if (c.any_row && c.wrote != write) before += turnaround_;
  const std::uint64_t first_row = divide(local, row_);
  const std::uint64_t last_row = divide(local + size - 1, row_);
  before += row_miss_ * (last_row - first_row + (c.any_row && c.open_row == first_row ? 0 : 1));
  c.any_row = true;
  c.open_row = last_row;
  c.wrote = write;
  if (before != 0) c.bus.hold(now, before);
  Slot s = c.bus.take(now, rate_, size);
  if (refresh_interval_ != 0) {
    while (c.next_refresh < s.end) {
      c.bus.hold(now, refresh_);
      s.end += refresh_;
      c.next_refresh += refresh_interval_;
    }
  }
  return {begin, s.end};
}

}  // namespace rdusim
