// Summation trees, put together and taken apart.
#pragma once

#include <vector>

#include "compiler/support/summation_tree.h"

namespace rdusim {

using Sum = std::vector<SummationNode>;  // nodes of a tree; the last is the root

// ((parts[0] + parts[1]) + parts[2]) + ... Requires at least one part, none empty.
Sum left_deep(const std::vector<Sum>& parts);

// What `chip` contributes to a sum: the subtree that holds all leaves of that chip and no other. Empty where there is
// no such subtree.
Sum part_of(const Sum& sum, ChipId chip);

// The same additions by another chip, over contraction indices `offset` further on.
Sum moved_to(Sum sum, ChipId chip, std::int64_t offset);

}  // namespace rdusim
