// The two levels of the on-chip network (network.h), chosen when a machine is elaborated.
#pragma once

#include <cstdint>

namespace rdusim {

enum class NetworkLevel : std::uint8_t { fast, flit };

}  // namespace rdusim
