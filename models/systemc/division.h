// Which process simulates which chips: contiguous blocks, by what there is to do on them.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// Of each process, in order: the first chip, and the one after the last. Process 0 comes first; it may have none.
struct Block {
  std::uint32_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

// What a run does on each chip: firings of the stages there, of all sections.
std::vector<std::uint64_t> work_of(const SpatialProgram& program);

// What it costs to listen to a run (checkers, statistics), less what it costs the others to send it, over what it costs
// to simulate it: 0.55 measured on a decoder of Llama 3.1 70B over 16 chips, without values. With traces it is several
// times as much, with values less.
inline constexpr double listening_share = 0.55;

// Blocks whose busiest process has the least to do, as far as whole chips allow. Process 0, which listens for all, has
// `listening` times all the work beside its chips, and none where its share is used up by that; every other has at
// least one chip with work. Requires 2 <= processes <= chips with work + 1.
std::vector<Block> divide(const std::vector<std::uint64_t>& work, std::uint32_t processes, double listening);

}  // namespace rdusim
