// How much the stages and edges of a program move: pages and bytes, from the access patterns and rates alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::cost {

// Sum of a cyclic rate over `firings` firings, from phase 0.
std::uint64_t sum_over(const Cyclic<std::uint32_t>& rate, std::uint64_t firings);

// Elements of the page that firing tuple `at` of `instance` touches, clipped to the tensor; empty axes give 0. One
// extent an axis.
std::vector<std::uint64_t> page_extents(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                        std::uint64_t firing, std::size_t instance);

// Bytes of all the pages that one instance of a Load or Store moves in one trip, ragged pages as they are. Nothing
// where the pattern is too irregular to sum in bounded time.
std::optional<Bytes> pattern_bytes(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                   std::size_t instance);

// Largest page of a buffer, bytes.
Bytes page_bytes(const Buffer& buffer, std::uint32_t native_tile);
// The part of such a page that is chunk `c`, bytes.
Bytes chunk_bytes(const Buffer& buffer, const Chunk& c, std::uint32_t native_tile);

// The output port of `stage` into `buffer`, or the input port out of it.
const Port* port_of(const Stage& stage, BufferId buffer, Direction direction);

// Pages that one instance of `stage` pushes into `buffer` in a trip of its section.
std::uint64_t pages_pushed(const Stage& stage, BufferId buffer);

// Bytes between one memory and one site (or one multicast set of sites) in a run of the section.
struct MemoryFlow {
  StageId stage;
  ChipId chip;
  AgcuId agcu;                       // of the set's first member
  std::vector<std::uint32_t> sites;  // instances of the stage that share it
  Bytes bytes = 0;
  bool exact = true;  // false: an estimate, not to be used in a bound
  bool write = false;
};
// All flows of a Load or Store; none for other kinds.
std::vector<MemoryFlow> memory_flows(const SpatialProgram& program, const Stage& stage);

// Bytes from one instance of an edge's sender to one receiver instance in a run of the section.
struct CrossingFlow {
  EdgeId edge;
  std::uint32_t to = 0;      // index into Edge::to
  std::uint32_t sender = 0;  // instances
  std::uint32_t receiver = 0;
  std::uint64_t pages = 0;
  Bytes bytes = 0;
};
// All flows of a crossing edge; none for a local one.
std::vector<CrossingFlow> crossing_flows(const SpatialProgram& program, const Edge& edge);

}  // namespace rdusim::cost
