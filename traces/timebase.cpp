#include "traces/timebase.h"

#include <fmt/format.h>

namespace rdusim {

Timebase timebase_of(const Fraction& clock_ghz) {
  Timebase t;
  // A cycle is den / num ns = den * 10^6 / num fs.
  constexpr std::uint64_t fs_per_ns = 1'000'000;
  const std::string clock = fmt::format("{} GHz", to_double(clock_ghz));
  const auto whole = clock_ghz.num == 0 ? std::nullopt : divide(Fraction{fs_per_ns, 1}, clock_ghz);
  if (!whole || whole->num < whole->den) {
    t.note = fmt::format("one tick is one cycle at {}; the unit is a name only", clock);
    return t;
  }
  if (whole->den != 1) {
    // A hundred ticks a cycle are enough to see one, and readers whose times are of 32 bits see the more of a run.
    const bool coarse = whole->num / whole->den >= 100'000;
    t.unit = coarse ? "1 ps" : "1 fs";
    t.ticks_per_cycle = coarse ? make_fraction(clock_ghz.den * 1000, clock_ghz.num) : *whole;
    t.note = fmt::format("one cycle is {} ns, at {}; times are rounded down to {}",
                         to_string(make_fraction(clock_ghz.den, clock_ghz.num)), clock, t.unit);
    return t;
  }
  static constexpr const char* units[] = {"fs", "ps", "ns", "us"};
  std::uint64_t ticks = whole->num;
  int power = 0;
  while (ticks % 10 == 0 && power < 11) {
    ticks /= 10;
    ++power;
  }
  t.ticks_per_cycle = Fraction{ticks, 1};
  t.unit = fmt::format("{} {}", power % 3 == 0 ? 1 : power % 3 == 1 ? 10 : 100, units[power / 3]);
  t.note = fmt::format("one cycle is {} ticks of {}, at {}", ticks, t.unit, clock);
  return t;
}

}  // namespace rdusim
