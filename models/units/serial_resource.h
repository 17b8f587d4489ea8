// A resource that serves one request after the other at a fixed rate: a port, a link, a channel's data bus.
//
//   law      a request of b bytes offered at t begins at s = max(t, free), takes b / rate cycles and ends at s + b /
//   rate;
//            the fraction of a cycle that is left over is carried to the next request where that follows without a gap.
//   order    requests are served in the order of the calls, whatever their t: the caller grants in canonical order.
//   never    judges. A rate of zero counts as one byte a cycle, so that a broken target cannot stop time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "compiler/support/units.h"

namespace rdusim {

// A duration: whole + part / Rate::num cycles, part < num.
struct Span {
  Cycles whole = 0;
  std::uint64_t part = 0;
  Cycles ceil() const { return whole + (part != 0 ? 1 : 0); }
};

// Bytes a cycle, as an exact fraction num / den.
class Rate {
 public:
  Rate() = default;
  explicit Rate(const Fraction& f) : num_(f.num == 0 ? 1 : f.num), den_(f.den == 0 || f.num == 0 ? 1 : f.den) {
    power_ = std::has_single_bit(num_);
    if (power_) shift_ = static_cast<std::uint32_t>(std::countr_zero(num_));
  }

  Span span(Bytes bytes) const {
    std::uint64_t n = 0;
    // Beyond 2^64 numerators the fraction is given up, never the size.
    if (__builtin_mul_overflow(bytes, den_, &n)) return {bytes / num_ * den_, 0};
    if (power_) return {n >> shift_, n & (num_ - 1)};
    return {n / num_, n % num_};
  }
  std::uint64_t parts() const { return num_; }
  // The lower of two rates, as a rate.
  friend bool operator<(const Rate& a, const Rate& b) {
    return static_cast<double>(a.num_) * static_cast<double>(b.den_) <
           static_cast<double>(b.num_) * static_cast<double>(a.den_);
  }

 private:
  std::uint64_t num_ = 1;
  std::uint64_t den_ = 1;
  std::uint32_t shift_ = 0;
  bool power_ = true;
};

// When a request is served: [begin, end) in whole cycles, rounded outwards.
struct Slot {
  Cycle begin = 0;
  Cycle end = 0;
};

class SerialResource {
 public:
  // First whole cycle at which a request would not have to wait.
  Cycle free_at() const { return free_ + (part_ != 0 ? 1 : 0); }

  // Serves a request of duration `span`, whose parts count in `parts` (Rate::parts()) a cycle.
  Slot take(Cycle now, const Span& span, std::uint64_t parts) {
    if (now > free_) {
      free_ = now;
      part_ = 0;
    }
    const Cycle begin = free_;
    part_ += span.part;
    free_ += span.whole;
    if (part_ >= parts) {
      part_ -= parts;
      ++free_;
    }
    return {begin, free_at()};
  }
  Slot take(Cycle now, const Rate& rate, Bytes bytes) { return take(now, rate.span(bytes), rate.parts()); }

  // Keeps the resource for `cycles` more, behind what it serves.
  void hold(Cycle now, Cycles cycles) {
    if (now > free_) {
      free_ = now;
      part_ = 0;
    }
    free_ += cycles;
  }

  void reset() { *this = SerialResource{}; }

 private:
  Cycle free_ = 0;          // free from free_ + part_ / parts on
  std::uint64_t part_ = 0;  // of the rate that it is used with
};

}  // namespace rdusim
