// Partial sums that slices of a contraction make on sites of their own meet on the sites of the first: the others' cross
// (NAME.recv_kl, NAME.landing_kl), and NAME.fold adds the first's own and then theirs in rising l, a slice a phase, so
// that one port is read at a time. On sites of its own all slices' cross, the first's too (NAME.recv_k0, NAME.landing_k0).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/passes/section_builder.h"

namespace rdusim {

// Adds what folds: `slices` push `rounds` pages each into `partials`. Its result, of type `result`, is in NAME.c. The
// receives take movement engines from `first_recv` on, the fold the next context after the slices' own. Requires a target
// with a hand-off between sites. `lanes`: Generic::lanes. `apart`: as many sites as a slice has, for the fold alone, if any.
// `pmus`: memory units that its buffers on a site are spread over.
std::pair<StageId, BufferId> place_fold(SpatialProgram& program, const Target& target, SectionBuilder& build,
                                        const std::vector<StageId>& slices, const std::vector<BufferId>& partials,
                                        DType result, std::uint64_t rounds, std::uint32_t first_recv,
                                        std::uint32_t lanes = 0, std::optional<GroupId> apart = {},
                                        std::uint32_t pmus = 1);

// The summation tree of such a fold: a leaf for each range of the contraction, joined from the left. `lanes`: of the
// leaves.
void add_left_deep_tree(SpatialProgram& program, OperatorId op, ChipId chip,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, std::uint32_t lanes = 1);

}  // namespace rdusim
