// The analytical cost model: what the compiler expects, from the target's numbers alone. Kept apart from the simulator
// and never tuned to it; models/ never includes this.
#pragma once

#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// One stage, the slowest instance, over one run of its section (all trips). It waits for no other stage here: what it
// waits for is the section's matter.
//
//   matmul   a firing takes the PCU for whole tiles, block_m block_n page_k tile^3 / macs_per_cycle, or the PMU's read
//            port for both operand pages, whichever is longer; the latency is the array's fill and drain. In SIMD lanes:
//            whole vectors along the contraction, and the pipeline with its reduction tree.
//   generic  elements of the page times operations of the body / SIMD operations a cycle, or the PMU's read port.
//   load     its bytes at the least of AGCU, mesh link and PMU write port; in steady state it has the share of its AGCU
//            and of the memory's sustainable rate that all streams of the chip leave it (a multicast set is one
//            stream); and no faster than its lanes move elements.
//   store    the same, with the PMU's read port.
//   recv     its bytes at the least of mesh link, PMU write port and AGCU; in steady state its share of the chip links
//            that its pages travel.
struct StageCost {
  Cycles busy_cycles = 0;                 // its engine, at the stage's own full rate
  Cycles initiation_interval_cycles = 0;  // steady distance of two firings, with its share of what it shares
  Cycles latency_cycles = 0;              // start of a firing to its pages being visible
  Cycles total_cycles = 0;                // firings (of all trips) * interval + latency
};

struct CollectiveCost {
  Cycles cycles = 0;          // alpha-beta estimate on the topology
  Cycles latency_cycles = 0;  // the alpha part of its first page: what no overlap with other work hides
  Bytes bytes_per_chip = 0;   // sent by the busiest chip
  friend bool operator==(const CollectiveCost&, const CollectiveCost&) = default;
};

// The predicted total of a section, split into the causes of machine.md that apply to a prediction. Adds up. A section
// runs at the pace of its busiest resource; exactly one of compute, memory and network is not 0, unless there is no
// work. Where loads wait for stores, it takes no less than its chain of operators, and where the certificate claims a circle
// of firings, no less than that: what they are longer counts as fill.
//
// Of a relaunched section each trip is estimated by itself; all parts are those of all trips.
struct SectionCost {
  Cycles launch = 0;   // by the host: configuration and arguments
  Cycles fill = 0;     // until the bottleneck runs
  Cycles compute = 0;  // bottleneck: a PCU
  Cycles memory = 0;   // bottleneck: HBM, or an AGCU before it
  Cycles link = 0;     // collectives: their latency, and what the others do not hide
  Cycles network = 0;  // bottleneck: on-chip, a mesh link, a PMU port, or the lanes of a load or store
  Cycles drain = 0;    // after the bottleneck
  Cycles total() const { return launch + fill + compute + memory + link + network + drain; }
  friend bool operator==(const SectionCost&, const SectionCost&) = default;
};

struct Costs {
  std::vector<StageCost> stages;            // by stage id
  std::vector<CollectiveCost> collectives;  // by collective id
  std::vector<SectionCost> sections;        // by section id
  Cycles predicted_cycles = 0;              // sum over sections
  // No run can be faster. Sum over sections of: the host's launches + the greatest of
  //   - for the first instance of any matmul whose operands come from loads: its multiply-accumulates (of elements that
  //     exist) over the PCU's peak (in SIMD lanes: theirs), summed over the stages of one site;
  //   - bytes that a chip's loads and stores move, over its HBM's peak (a multicast set reads once);
  //   - bytes that cross a chip link (no page counted larger than the smallest of its instance), over its rate, + its
  //   latency;
  //   - the circle of firings that its certificate claims, if it has one.
  Cycles lower_bound_cycles = 0;
};

// Costs of the stages alone: what passes need that come before the program is whole. Requires a placed program.
std::vector<StageCost> estimate_stages(const SpatialProgram& program, const Target& target);  // by stage id

// Requires a placed program.
Costs estimate(const SpatialProgram& program, const Target& target);

// Alpha-beta estimate of a collective of `bytes` (a member's whole contribution, spread over `lanes` independent
// instances, each of which contributes `pages` pages one after the other) over `members` on the target's topology, with
// the crossing hand-off that the target prefers. One member: 0. A ring takes a page all the way round before the next;
// the others take page after page, as far as the hand-off lets them follow each other.
CollectiveCost estimate_collective(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes, std::uint64_t lanes,
                                   const std::vector<ChipId>& members, const Target& target, std::uint64_t pages = 1);

}  // namespace rdusim
