// Random static dataflow graphs: stages of cyclo-static rates on sites of one or several chips, joined along an order
// and now and then back, with depths between the least that a firing needs and plenty. Their counts always balance;
// whether they run to their end is anybody's guess.
#pragma once

#include <cstdint>

#include "tests/system/stream_program.h"

namespace rdusim::test {

// A function of its arguments alone. At most `stages` stages, loads, stores and receives included; at least 3.
StreamProgram random_streams(std::uint64_t seed, std::uint32_t stages, std::uint32_t chips);

}  // namespace rdusim::test
