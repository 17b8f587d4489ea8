// Places an attention (attention.h says how it is cut):
//
//   NAME.load_q -> NAME.q -+
//                          +-> NAME.scores -> NAME.score
//   NAME.load_k -> NAME.k -+                    ~~~> NAME.recv_scores -> NAME.row -> max, sum, weights -> NAME.p
//                                                      ~~~> NAME.recv_weights -> NAME.landing_weights -+
//                                                                                              +-> NAME.values -> NAME.c
//                                                                    NAME.load_v -> NAME.v ----+            -> NAME.store
#pragma once

#include "compiler/ir/program.h"
#include "compiler/passes/sites.h"

namespace rdusim {

// Adds the section's stages, buffers and edges for `work`, whose operator is an attention, on sites of its own.
// Requires a target with a hand-off between sites.
void place_attention(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                     SiteAllocator& sites);

}  // namespace rdusim
