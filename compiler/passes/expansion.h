// The stages, buffers and edges of one collective, being added to a program. One form a function; the helpers name what
// they add NAME.WHAT_cN, after the collective and the chip.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/collective_order.h"
#include "compiler/passes/expand.h"
#include "compiler/passes/rewrite.h"
#include "compiler/target/topology.h"

namespace rdusim {

// Bodies of a firing.
inline Expr take(std::uint32_t port) {
  return {{ExprOp::operand, port, 0}};
}
inline Expr add_to_last(std::uint32_t port) {
  return {{ExprOp::accumulator, 0, 0}, {ExprOp::operand, port, 0}, {ExprOp::add, 0, 0}};
}
inline Expr sum_of(std::uint32_t left, std::uint32_t right) {
  return {{ExprOp::operand, left, 0}, {ExprOp::operand, right, 0}, {ExprOp::add, 0, 0}};
}

// Most bytes of one of n chunks of a page.
Bytes chunk_bytes(Bytes page, DType type, std::size_t n);

// The orders of additions of the forms that have files of their own: a sum a chunk, of the members' sums.
std::vector<Sum> halving_sums(const std::vector<ChipId>& members, const std::vector<Sum>& parts);
std::vector<Sum> tree_sums(const std::vector<ChipId>& members, const std::vector<Sum>& parts);
std::vector<Sum> hierarchical_sums(const std::vector<ChipId>& members, const std::vector<Sum>& parts,
                                   std::uint32_t node_chips);

// What an all-gather in trains adds to a site, by ring or hierarchical; without bytes.
SiteDemand train_counts(CollectiveAlgorithm algorithm, const std::vector<ChipId>& members, std::uint32_t node_chips);

// Pages that come one behind the other, of these members, and the distance in tiles from each one's to the next one's.
struct Train {
  std::vector<std::uint32_t> origins;
  std::vector<std::uint64_t> step;
};

class Expansion {
 public:
  Expansion(SpatialProgram& program, const Collective& collective, const std::vector<Member>& members,
            const Target& target);

  void through_one();
  void direct();
  void ring_all_reduce();
  void ring_reduce();
  void halving_doubling();
  void tree();
  void hierarchical();
  void scatter_through_one();
  void scatter_direct();
  void ring_scatter();
  void scatter_by_levels();
  void exchange();
  void broadcast_through_one();
  void broadcast_direct();
  void broadcast_in_line();
  void broadcast_along_tree();
  void broadcast_by_levels();
  void gather();
  void ring_gather();
  void hierarchical_gather();
  void ring_gather_in_trains();
  void hierarchical_gather_in_trains();

 private:
  // A stage and the buffer that it gives pages through: a Recv and its landing, or what stands for them.
  struct Landing {
    StageId recv;
    BufferId buffer;
  };

  const Stage& part(std::uint32_t member) const { return p_.stage(members_[member].stage); }
  const Buffer& partial() const { return p_.buffer(members_.front().buffer); }
  DType accumulator() const { return partial().dtype; }
  DType result() const { return p_.buffer(members_.front().outcomes.front().buffer).dtype; }
  std::uint64_t firings() const { return part(0).firings; }
  bool stores(std::uint32_t member) const { return !members_[member].outcomes.empty(); }
  BufferId output_of(StageId stage) const { return p_.stage(stage).ports.back().buffer; }
  std::string at(std::uint32_t member) const { return "_c" + std::to_string(collective_.members[member].value); }

  // A context of its own at the member's sites; the CollectiveStage's is the first that is free, and goes with it.
  std::uint32_t context(std::uint32_t member);
  // The movement engine with the fewest stages.
  Engine movement(std::uint32_t member);

  // A buffer at the member's sites for chunks of `like`'s pages (for whole pages, where `chunks` is 1).
  BufferId add_buffer(const std::string& what, std::uint32_t member, BufferKind kind, DType type, const Buffer& like,
                      std::uint32_t chunks);
  // The buffer holds so many pages, whatever room there is: a firing waits for all of them, or they come for one firing
  // and should not wait for credits, which take a link's way there and back.
  void holds(BufferId buffer, std::uint64_t pages) {
    if (pages > 1) p_.buffers[buffer.value].depth_pages = pages;
  }
  StageId add_stage(const std::string& what, std::uint32_t member, StageKind kind, Engine engine, std::uint64_t firings,
                    std::vector<Port> ports);
  Generic element_wise(Cyclic<Expr> bodies, std::size_t operands) const;
  EdgeId add_edge(Edge e);
  void local(StageId from, BufferId buffer, StageId to);

  // One crossing edge from `from` at member `sender` to a Recv at each receiver, with landings like `buffer`'s pages,
  // or like the chunk of them that is sent.
  std::vector<Landing> cross(StageId from, BufferId buffer, Chunk chunk, std::uint32_t sender,
                             const std::vector<std::uint32_t>& receivers, const std::string& what, std::uint64_t pages);

  // `chunk` of a member's partials, which it sends to another one.
  Landing send_partial(std::uint32_t sender, std::uint32_t receiver, Chunk chunk);
  // The fold at member `at_member` of `chunk` of all partials, of which it gets by member what `partials` say, and its own;
  // its last port is its output.
  StageId fold_at(std::uint32_t at_member, Chunk chunk, std::vector<Landing> partials);

  void store_whole(std::uint32_t member, StageId from, BufferId buffer);
  // What gives the pages of `buffer` in the result's type: `from` itself, or a stage that converts them.
  Landing converted(std::uint32_t member, StageId from, BufferId buffer, std::uint32_t chunks);
  void store_chunks(StageId store, std::vector<Port> ports, const std::vector<std::uint32_t>& order,
                    std::uint32_t chunks);

  // A member stores what `from` gives of another's (or its own) pages.
  void keep(std::uint32_t member, std::uint32_t origin, const Landing& from);

  // Where the stores of all members' pages begin, before any takes a train.
  std::vector<AccessPattern> places() const;
  // A member stores what `from` gives. The store of the first of the train takes all; those of the others go.
  void keep(std::uint32_t member, const Train& train, const Landing& from);
  // Takes a page from one of its operands in each phase.
  Generic forwards(const std::vector<std::uint32_t>& ports, std::size_t operands) const;
  void holds_train(BufferId landing, std::size_t pages);

  // The steps of hierarchical(): member i of a node adds what the node's members have of its chunks, of so many (into
  // parts, by chunk), and then what the nodes have; each member is given the sums of the others.
  void fold_in_node(const std::vector<std::uint32_t>& members, std::size_t i, const std::vector<std::uint32_t>& owned,
                    std::uint32_t chunks, std::vector<Landing>& parts);
  Landing join_nodes(const TwoLevels& levels, std::size_t node, std::size_t i,
                     const std::vector<std::vector<Landing>>& parts);
  void gather_in_node(const TwoLevels& levels, std::size_t node, const std::vector<Landing>& sums);

  // The chunk of every page that a member keeps of what is scattered.
  Chunk kept_by(std::uint32_t member) const;

  // Chunk that member r of a ring sends, or holds, in phase t: what its left neighbour had in phase t - 1.
  std::uint32_t ring_chunk(std::uint32_t r, std::uint32_t t) const;

  SpatialProgram& p_;
  const Collective& collective_;
  const std::vector<Member>& members_;
  const Target& target_;
  StagesByChip placed_;
  Routes routes_;
  std::uint32_t n_;
  std::vector<std::uint32_t> parts_;                             // parts_kept() of the members
  std::map<std::uint32_t, std::uint32_t> contexts_;              // given out at each member
  std::map<std::uint32_t, std::vector<std::uint32_t>> engines_;  // stages on each movement engine of each member
};

}  // namespace rdusim
