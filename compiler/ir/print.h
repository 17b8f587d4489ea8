// A program as text, for people: `rdusim show`, golden tests.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/program.h"

namespace rdusim {

struct PrintOptions {
  bool operators = true, tensors = true, stages = true, buffers = true, edges = true;
  bool collectives = true, work = true, placement = true, memory = true, schedule = true, trees = true,
       certificate = true;
};

// Deterministic; identical chips folded ("c0..c15") where they differ in nothing but the chip.
std::string print(const SpatialProgram& program, const PrintOptions& options = {});

// "3", "3..5", "0..45 by 3", "1, 4, 9..11": runs of three or more in even steps are folded.
std::string ids_text(const std::vector<std::uint32_t>& ids);

// One stage, buffer, tensor, edge or collective by its name ("edge 12" by number); empty where there is none.
std::string print_one(const SpatialProgram& program, std::string_view name);

// Graphviz: stages as nodes, clustered by chip, buffers on the edges.
std::string print_dot(const SpatialProgram& program);

std::string_view name_of(Handshake h);
std::string_view name_of(CollectiveKind k);
std::string_view name_of(CollectiveAlgorithm a);
std::string_view name_of(ShardKind k);
std::string_view name_of(MemorySpace s);
std::string_view name_of(ObligationKind k);
std::string_view name_of(ProofStatus s);
std::string_view name_of(ProofScope s);
std::string_view kind_name(const Stage& s);  // "Load", "MatmulTiles", ...
std::string to_string(const Site& s);        // "chip3.site(4,7)"

}  // namespace rdusim
