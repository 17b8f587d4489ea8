// A run of one cluster (clusters.h) by counts alone: which firings can take place, who waits for whom, and how many
// pages every buffer holds. No time, no values.
//
// A stage fires as the machine's does: when every port can be served, all at once. Firing order does not change what a
// stage sees (each buffer has one producer, and consumers do not choose), so one order decides for all: whether a run
// ends, and with which buffers deep enough, is a property of the program.
//
// omits  the coupling of instances by a Load's multicast sets, whose members behave alike; engines, which serialise but
//        never hold a stage that could run.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/clusters.h"
#include "compiler/ir/program.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/untimed_run.h"

namespace rdusim {

class TokenRun {
 public:
  using Index = std::uint32_t;
  static constexpr Index none = std::numeric_limits<Index>::max();  // no actor, no channel

  struct PortState {
    Index channel;
    Index slot;  // inputs: place among the channel's consumers
    CyclicCursor<std::uint32_t> need, pop, reserve, push;
    CyclicCursor<Chunk> chunk;
  };
  struct Link {  // of a Recv: one sender
    Index channel;
    Index slot;
    Index first;  // scatter: the receiver's place among the targets
    Index step;   // scatter: how many targets
    const Edge* edge;
    Index sender;
    Index joint;  // index into joints(); none: sent to each receiver when that one is ready
  };
  struct Actor {  // a stage instance
    const Stage* stage;
    Index instance;
    std::vector<PortState> ports;
    std::vector<Link> links;
    std::uint64_t fired = 0;
    std::uint64_t due = 0;
    const AccessPattern* pattern = nullptr;  // of a Load or Store some of whose pages cannot be moved
    const Tensor* tensor = nullptr;
    bool queued = false;
  };
  struct Channel {  // a buffer instance
    BufferId buffer;
    std::uint64_t depth = 0;  // 0: not sized, any number
    std::uint64_t reserved = 0, pushed = 0, freed = 0;
    std::vector<std::uint64_t> popped;  // by consumer; of a scatter edge: the next page that is for it
    std::vector<Index> consumers;       // actors
    Index producer = none;
  };

  // An instance of every stage of a one-to-one cluster, or all instances of another.
  TokenRun(const SpatialProgram& program, const Cluster& cluster);

  // Goes to the start of a run of 1 / parts of every stage's firings of a trip, with the depths of the program or, by
  // buffer id, those given. Of a one-to-one cluster, `instance` says which.
  void start(std::uint64_t parts, std::optional<Index> instance, const std::vector<std::uint64_t>* depths = nullptr);

  // The actor whose firing takes place next, a function of the program alone; nothing when nobody can fire. Where it
  // fires with others (a Recv of a joint crossing, a CollectiveStage), joint_of() has them all.
  std::optional<Index> next();
  // Lets it (and its joint) fire. Requires what next() gave last.
  void take(Index actor);

  bool finished() const { return unfinished_ == 0; }
  std::uint64_t unfinished() const { return unfinished_; }
  // Runs until nobody can fire; whether all have finished.
  bool run_to_end();

  // After a run that has not finished: the least depth of `buffer` with which somebody could go on; nothing where its
  // room holds nobody up.
  std::optional<std::uint64_t> wanted_depth(BufferId buffer) const;
  // Deepens every instance of `buffer`, in the middle of a run: what has been fired could have been with any depth.
  void deepen(BufferId buffer, std::uint64_t depth);

  const std::vector<Actor>& actors() const { return actors_; }
  const std::vector<Channel>& channels() const { return channels_; }
  // Those that fire when `actor` does, if it does not fire alone.
  const std::vector<Index>* joint_of(Index actor) const;
  // Whether the next firing of a Load or Store moves its page: of one that does not, no port moves either.
  bool moves(const Actor& a) const;
  // The number of the page that the next firing of a Recv takes from its source buffer.
  const Link& link_of(const Actor& a) const { return a.links[a.fired % a.links.size()]; }

  // Adds who is stuck, and the chain of waits, to `out`.
  void explain(UntimedRun& out) const;

 private:
  void add_actor(StageId stage, Index instance, bool alike);
  void add_crossing(const Edge& edge, bool one_to_one);
  Index channel_of(BufferId buffer, Index instance);
  bool recv_ready(const Actor& a) const;
  bool joint_ready(Index joint) const;
  bool can_fire(const Actor& a) const;
  std::optional<UntimedWait> blocked(const Actor& a) const;
  void take_recv(Index actor);
  void take_ports(Actor& a, bool moves);
  void push(Channel& c, std::uint32_t pages, std::uint32_t reserved);
  void pop(Channel& c, Index slot, std::uint64_t pages);
  void wake(Index actor);
  void wake_producer(const Channel& c);

  const SpatialProgram& p_;
  std::vector<Actor> actors_;
  std::vector<Channel> channels_;
  std::vector<std::vector<Index>> joints_;  // actors that fire together
  std::vector<Index> queue_;
  std::uint64_t unfinished_ = 0;
  // While the net is put together, of the cluster's: by stage, or buffer, then by instance.
  std::unordered_map<std::uint32_t, std::vector<Index>> actor_ids_, channel_ids_;
};

// Steps that one run of a trip of a cluster takes: firings, pages pushed, stages taken up; the greatest number where
// that does not fit.
std::uint64_t steps_of(const SpatialProgram& program, const Cluster& cluster);

}  // namespace rdusim
