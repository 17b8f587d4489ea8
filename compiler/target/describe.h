// The text of a machine: what follows from its numbers, then every number with its source.
#pragma once

#include <string>

#include "compiler/target/target.h"

namespace rdusim {

// What is derived from a target's numbers, as data sheets quote it.
double peak_tflops(const Target& target, DType operands);  // a chip; 2 operations a multiply-accumulate
Bytes sram_bytes(const Target& target);                    // a chip, all PMUs
double peak_gb_per_s(const Target& target, const MemoryParameters& memory);         // a chip
double sustainable_gb_per_s(const Target& target, const MemoryParameters& memory);  // a chip, streaming reads
double link_gb_per_s(const Target& target, ChipId from);                            // out of a chip, all its links

// Several lines, each ended by a newline; the same text for the same target.
std::string describe(const Target& target);

}  // namespace rdusim
