// What a buffer's slot says of the page in it.
#pragma once

#include <cstdint>

#include "models/events/events.h"

namespace rdusim {

struct PageHeader {
  PageTag tag;
  std::uint32_t bytes = 0;
  std::uint32_t late = 0;  // cycles by which its arrival is told later than its writing could begin (flit level)
  std::uint64_t origin =
      0;  // address in memory of a page that is loaded or stored; cycle of sending of one that crosses
};

}  // namespace rdusim
