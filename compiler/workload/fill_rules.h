// The rules that a fill keeps to, given the tensor that it fills.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "compiler/support/diagnostics.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

inline constexpr std::int64_t exact_in_double = std::int64_t{1} << 53;  // beyond it a double skips integers

// RDU1022 fill-mismatch: every value fits the dtype (integers exactly; floats after rounding to nearest even), a list
// has as many values as the tensor, a range is a range, a file's part lies in the file. Requires a shape whose count
// fits.
void check_fill(const Operand& operand, const std::string& where, Diagnostics& out);

// Elements of the file from the first of `count` to behind the last that a fill takes; nothing where its steps are no order
// of that many.
std::optional<std::int64_t> elements_reached(const FileFill& fill, std::int64_t count);

// Least and greatest value of a fill, where it is known without reading or drawing the elements.
std::optional<std::pair<std::int64_t, std::int64_t>> value_range(const Fill& fill);

// RDU1023 pattern-hides-swaps: a warning where a pattern makes rows equal, or two shards of a split over 2 to 16 chips
// along any axis that the number of chips divides, or the tensor a whole number of periods.
void check_pattern(const Operand& operand, const std::string& where, Diagnostics& out);

}  // namespace rdusim
