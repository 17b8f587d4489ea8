// The ways in which a collective is carried out, as Recv and Generic stages, buffers and edges.
//
//   through_one  the first member's fold adds all partials, a member a phase, in member order; all_reduce: its result
//                crosses to the others
//   direct       a page is cut in a chunk a member; member d's fold adds chunk d of all partials, in member order, and
//   its
//                result crosses to whoever stores it, whose store puts the chunks together. An all-gather sends whole
//                pages.
//   ring         all_reduce: member r starts with its own chunk r; a page goes round with each member's chunk added in
//                turn, n - 1 steps, and n - 1 more until all have it. reduce: along the line 1, 2, ..., n - 1, 0, a
//                page at a time. all_gather: a member's page goes round from landing to landing.
//   halving_doubling
//                all_reduce: partners exchange halves of a page, then quarters, ..., and add (compiler/ir/hypercube.h);
//                what is added is put together again by doubling. A step begins when the one before has wholly come.
//                Members stand in the order of their chips.
//   tree         along a binary tree whose subtrees are neighbours: a member adds its children's sums to its own part and
//                sends the sum to its parent; all_reduce: the root's goes down again, each member forwarding what lands.
//   reduce_scatter
//                a page has all rows, and each member keeps as many of them: chunk by chunk, these. through_one: the first
//                member's fold adds whole pages, and sends each its part. direct, ring: as the first half of an
//                all-reduce. hierarchical: what the j-th of any node keeps, the j-th of each adds; then who keeps it.
//   all_to_all   direct only: of pages with all rows, each member is sent its part by each other.
//   broadcast    through_one: the first member sends whole pages to each other. direct: a page is cut in a chunk a member but
//                the first, which sends each its own; from there it goes to the rest. ring: along the line 0, 1, ..., n - 1.
//                tree: as an all-reduce's goes down. hierarchical: the same from node to node, to one member of each, which
//                also sends to the others of its own.
//   hierarchical on a machine of nodes, all_reduce: as direct's first half within each node, then between those of all
//                nodes that have the same chunk, then as direct's second half. A node of fewer members than another deals
//                its chunks to them in turn. all_gather: to those of the node and to one of each other node, which sends
//                to the others of its own.
//
// In an all-gather each member's pages have a landing of their own at each other. Where those are more buffers than a site
// has, they come in trains (expand_trains.cpp): a ring has one landing for all, and hands on what comes before the next; of
// a hierarchical one, who has pages of other nodes joins them with its own, and each of its node has one landing for them.
//
// Instance i of a member's group exchanges with instance i of the others': each site does the collective of its own
// pages. Partials cross and are added in the accumulator's type; only a final value is converted to the result's type.
//
// None can block for ever with one page a buffer: a fold needs, and a store takes, the chunks of a page before any of
// the next, so all members finish page p once all finished p - 1; and every member of a ring starts by sending, so each
// step's page has left, and its landing is free, one step later at every member.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/passes/sums.h"
#include "compiler/target/target.h"

namespace rdusim {

// What a collective adds to what a site has, at the member that it asks most of.
struct SiteDemand {
  std::uint64_t buffers = 0;
  std::uint64_t semaphores = 0;  // where crossings are semaphores: one an edge that leaves, one an edge that arrives
  std::uint64_t contexts = 0;
  std::uint64_t vector_inputs = 0;  // pages of different ports that a firing takes
  std::uint64_t vector_outputs = 0;
  Bytes bytes = 0;  // of a page of each of the buffers, or of all pages that it must hold at once
  friend bool operator==(const SiteDemand&, const SiteDemand&) = default;
};

// One member's side of a collective, as the shard pass left it.
struct Member {
  StageId stage;            // its CollectiveStage
  bool contributes = true;  // else there is nothing of the next three, as of a broadcast's members but the first
  StageId source;           // pushes its partials, or its slice
  BufferId buffer;          // into this buffer
  EdgeId edge;              // which this edge hands to `stage`
  struct Outcome {
    BufferId buffer;  // what `stage` would push
    EdgeId edge;      // which this edge hands to
    StageId store;
  };
  std::vector<Outcome> outcomes;
};

// What is to be done, and how: `in_trains` for an all-gather, by ring or hierarchical, only.
struct Choice {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  bool in_trains = false;
};

// The members' sides, in the order of members; empty where a member has not just one stage.
std::vector<Member> members_of(const SpatialProgram& program, const Collective& collective);

// All of it but bytes and whole pages' sizes, before there is a program: over `chips` members, `convert` where the
// result's type is not the accumulator's. `algorithm` is not automatic, which asks for nothing, but of a gather: then it
// is direct; or of a broadcast: then it is through_one.
// Members are the first chips of the machine.
SiteDemand counts_of(CollectiveKind kind, CollectiveAlgorithm algorithm, std::uint32_t chips, bool convert,
                     const Target& target);

// Requires at least two members. The algorithm is not automatic, and one that the kind has.
SiteDemand demand_of(const SpatialProgram& program, const Collective& collective, const std::vector<Member>& members,
                     Choice choice, const Target& target);

// Adds stages, buffers and edges that carry out `collective` and lets the stores take their pages from them. What the
// shard pass left (the CollectiveStages, their edges, their outcomes' buffers and edges) stays, unused by any store.
// A store whose pages another takes still has the port that it had.
// Requires as above, and a target that provides a crossing hand-off.
void expand(SpatialProgram& program, const Collective& collective, const std::vector<Member>& members, Choice choice,
            const Target& target);

// The order of additions, a sum a chunk (one sum where pages are not cut), of the members' own sums. `algorithm` is not
// automatic.
std::vector<Sum> sums_of(const Collective& collective, const std::vector<Sum>& parts, const Target& target);

}  // namespace rdusim
