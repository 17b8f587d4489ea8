// How ports of the common shapes are written.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// A port that takes, or gives, one page every firing.
inline Port input_port(BufferId buffer) {
  Port p{Direction::input, buffer};
  p.need = p.pop = always(1u);
  return p;
}
inline Port output_port(BufferId buffer) {
  Port p{Direction::output, buffer};
  p.reserve = p.push = always(1u);
  return p;
}

// 1 in the phases [begin, end) of a cycle of `phases`, 0 in the others. Requires begin < end <= phases.
inline Cyclic<std::uint32_t> in_phases(std::uint32_t begin, std::uint32_t end, std::uint32_t phases) {
  Cyclic<std::uint32_t> c;
  if (begin > 0) c.push_back({begin, 0});
  c.push_back({end - begin, 1});
  if (end < phases) c.push_back({phases - end, 0});
  return c;
}

// A value a phase. Requires at least one.
template <class T>
Cyclic<T> by_phase(const std::vector<T>& values) {
  Cyclic<T> c;
  for (const T& value : values)
    if (!c.empty() && c.back().value == value)
      ++c.back().repeat;
    else
      c.push_back({1, value});
  return c;
}

// A port that takes, or gives, one page in each of the phases [begin, end) of `phases`.
inline Port input_port(BufferId buffer, std::uint32_t begin, std::uint32_t end, std::uint32_t phases) {
  Port p{Direction::input, buffer};
  p.need = p.pop = in_phases(begin, end, phases);
  return p;
}
inline Port output_port(BufferId buffer, std::uint32_t begin, std::uint32_t end, std::uint32_t phases) {
  Port p{Direction::output, buffer};
  p.reserve = p.push = in_phases(begin, end, phases);
  return p;
}

}  // namespace rdusim
