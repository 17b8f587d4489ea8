// What later trips of a section do, from what its first does.
#pragma once

#include <string>

#include "compiler/certificate/finding.h"
#include "compiler/certificate/subject.h"

namespace rdusim::certificate {

// The tensor of a Load's or Store's trip.
template <class Access>
TensorId of_trip(const Access& access, std::uint64_t trip) {
  return trip == 0 || trip > access.later.size() ? access.tensor : access.later[trip - 1];
}

// Every later trip does by operators of its own just what the first does by its own: the operators are alike and joined
// alike, and each Load and Store works on a tensor of the same place and shape, of the operand that stands where the
// first trip's does. Then what is proved of the first is proved of all.
Finding trips_are_alike(const Subject& s, const Section& section);

// A Load reads in each trip what Stores of that trip or of so many before it have written, or what the section does not
// write: it waits for those (program.h), so that it never reads what is yet to be written.
Finding reads_what_is_written(const Subject& s, const Section& section);

}  // namespace rdusim::certificate
