// How much a trace of a run will hold, before it runs: counted from the program, not measured.
#pragma once

#include <string_view>

#include "compiler/ir/program.h"

namespace rdusim {

// Events that a run tells, if it finishes. What memory and links split differently than assumed makes it a few per cent
// wrong.
std::uint64_t estimate_events(const SpatialProgram& program, const Target& target);

// Bytes that so many events take in a format ("event-log", "perfetto", "chrome", "vcd", "fst"): averages over shipped
// examples.
Bytes estimate_bytes(std::uint64_t events, std::string_view format);

}  // namespace rdusim
