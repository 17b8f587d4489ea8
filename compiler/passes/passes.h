// The passes, in their pinned order, one a file. Each is a free function from a program to a program: no state, no
// registry. Each leaves alone what is there already.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

// A program that holds the graph, the target and the plan, and nothing else yet.
Result<SpatialProgram> start(const OperatorGraph& graph, const Target& target, const ShardPlan& plan);

// Operators to work: one Work an operator for chip 0, with its extents; tensors, their tile grids and value ranges.
// Refuses: RDU4104, RDU4111, RDU4113, RDU4118, RDU4145.
Result<SpatialProgram> lower(SpatialProgram program, const Target& target);

// Chooses each Work's BlockPlan, from the cost of compute and memory, within the site's buffers and memory; obeys pins.
// Refuses: RDU4112, RDU1026.
Result<SpatialProgram> tile(SpatialProgram program, const Target& target);

// By operator: the chips that alone have sites for it, rising; empty where all have.
using OnlyOn = std::vector<std::vector<ChipId>>;

// The same for what several chips do between them, all of it in one program: what some chips alone do takes no sites of
// the others.
Result<SpatialProgram> tile_for_chips(SpatialProgram program, const OnlyOn& only, const Target& target);

// The same for a slice that has part of `model`'s works, which are tiled, or differs from them in the extents along the
// axes that are cut, so that the two run side by side: where the tiles are as many the plan is the model's, else one on no
// more sites; pages of results that a collective joins, and the sites that they are on, are the model's. Refuses: RDU4112.
Result<SpatialProgram> tile_like(SpatialProgram program, const SpatialProgram& model, const Target& target);

// Stages, groups, buffers and edges come to be: for each Work loads, matmul, on-chip reduction where the contraction is
// split, store; a section each. Hand-offs are abstract (Fifo); crossings on chip carry the target's first crossing kind.
// Refuses: RDU4112, RDU4106.
Result<SpatialProgram> place(SpatialProgram program, const Target& target);

// The sections of chips that run side by side, and the operators with which they begin: operators follow the last that
// begins no later.
struct SectionPlan {
  std::vector<Section> sections;
  std::vector<OperatorId> begins;
};
// Those of a placed program.
SectionPlan sections_of(const SpatialProgram& placed);
// Those in which every chip finds sites for what it does of a program that tile_for_chips has cut.
SectionPlan sections_for_chips(const SpatialProgram& tiled, const OnlyOn& only, const Target& target);

// The same for a slice that tile_like has cut: in these sections.
Result<SpatialProgram> place_in(SpatialProgram program, const SectionPlan& sections, const Target& target);

// Splits every matmul that the plan names over plan.chips chips: slices the operands, lowers, tiles and places the slice
// again from its specification, replicates it, and adds the collective stage that makes partial sums mean something.
// plan.chips = 1: unchanged but for the plan.
// Refuses: RDU4101-RDU4110, RDU4116, RDU4117, RDU2009.
Result<SpatialProgram> shard(const SpatialProgram& program, const ShardPlan& plan, const Target& target);

// Expands collective stages into Recv and Generic stages, buffers, edges and stores; picks the algorithm where the plan
// leaves it open; writes the summation trees. Refuses: RDU4114, RDU4106.
Result<SpatialProgram> collective(SpatialProgram program, const Target& target);

// Depths and page sizes of buffers that have none.
Result<SpatialProgram> size(SpatialProgram program, const Target& target);

// The same, as shallow as the program still runs to its end with (least_depths.h), whatever that costs in cycles: pages
// then hardly ever wait, but neither does anything overlap. Pinned depths stay. Refuses: RDU4119.
Result<SpatialProgram> size_by_minimum(SpatialProgram program);

// Fifo becomes the target's local hand-off; crossing edges get semaphores, counter widths and routes; `required`.
Result<SpatialProgram> handshake(SpatialProgram program, const Target& target);

// Addresses and banks of buffers, accumulators and tensors. Refuses: RDU3016, RDU3017 (with the table of what takes room).
Result<SpatialProgram> memory(SpatialProgram program, const Target& target);

// Order and estimated initiation interval of stages; engine orders.
Result<SpatialProgram> schedule(SpatialProgram program, const Target& target);

// The certificate. Refuses what verify() refuses: a program that breaks a rule gets none.
Result<SpatialProgram> certify(SpatialProgram program, const Target& target);
// The same, but that a broken rule which an obligation says again (obligation_of) becomes a refuted obligation.
Result<SpatialProgram> certify_refuted(SpatialProgram program, const Target& target);

}  // namespace rdusim
