#include "traces/timebase.h"

#include <fmt/format.h>

namespace rdusim {

Timebase timebase_of(const Fraction& clock_ghz) {
  Timebase t;
  // A cycle is den / num ns = den * 10^6 / num fs.
  constexpr std::uint64_t fs_per_ns = 1'000'000;
  const std::string clock = fmt::format("{} GHz", to_double(clock_ghz));
  const auto whole = clock_ghz.num == 0 ? std::nullopt : divide(Fraction{fs_per_ns, 1}, clock_ghz);
  const Fraction fs = whole.value_or(Fraction{0, 1});
  if (fs.den != 1 || fs.num == 0) {
    t.exact = false;
    const std::string span =
        whole ? fmt::format(", {} ns", to_string(make_fraction(clock_ghz.den, clock_ghz.num))) : "";
    t.note = fmt::format("one tick is one cycle at {}{}; the unit is a name only", clock, span);
    return t;
  }
  static constexpr const char* units[] = {"fs", "ps", "ns", "us"};
  std::uint64_t ticks = fs.num;
  int power = 0;
  while (ticks % 10 == 0 && power < 11) {
    ticks /= 10;
    ++power;
  }
  t.ticks_per_cycle = ticks;
  t.unit = fmt::format("{} {}", power % 3 == 0 ? 1 : power % 3 == 1 ? 10 : 100, units[power / 3]);
  t.note = fmt::format("one cycle is {} ticks of {}, at {}", ticks, t.unit, clock);
  return t;
}

}  // namespace rdusim
