#include "sim/forecast.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

std::uint64_t expected_pages(const SpatialProgram& p, bool reuse) {
  double pages = 0;
  for (const Stage& s : p.stages) {
    const double instances = p.placement ? static_cast<double>(p.sites_of(s).sites.size()) : 1;
    const Section& section = p.sections[s.section.value];
    const std::uint64_t trips = reuse && section.relaunched ? std::min<std::uint64_t>(section.trips, 2) : section.trips;
    const double firings = static_cast<double>(s.firings) * static_cast<double>(trips);
    for (const Port& port : s.ports) {
      if (port.direction != Direction::output) continue;
      double pushed = 0;
      for (const auto& run : port.push) pushed += static_cast<double>(run.repeat) * run.value;
      pages += pushed / static_cast<double>(std::max<std::uint64_t>(cycle_length(port.push), 1)) * firings * instances;
    }
  }
  return static_cast<std::uint64_t>(std::min(pages, 1e18));
}

std::string to_text(const Forecast& f) {
  return fmt::format("forecast    about {:.0f} s and {}, after {:.1f} s: {} pages at {} a second",
                     f.seconds().value_or(0), format_bytes(f.memory), f.after_seconds, with_commas(f.expected),
                     with_commas(static_cast<std::uint64_t>(f.pages_per_second())));
}

}  // namespace rdusim
