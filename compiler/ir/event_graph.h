// A part of a cluster's run as an event graph: a node a firing; an arc from what must come before to what must come
// after, with the cycles between and the number of parts that it reaches back (throughput.h, circle_bound.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/throughput.h"
#include "compiler/ir/token_run.h"

namespace rdusim {

struct FiringArc {
  std::uint32_t from = 0, to = 0;  // nodes, numbered in an order in which they can fire
  Cycles cycles = 0;
  std::int64_t parts = 0;  // not negative
  std::optional<BufferId> buffer;
};

struct Pace {  // cycles that parts take
  Cycles cycles = 0;
  std::uint64_t parts = 1;
};

class EventGraph {
 public:
  using Index = std::uint32_t;

  // Requires what throughput_of() requires.
  EventGraph(const SpatialProgram& program, const Cluster& cluster, const std::vector<StageTiming>& timing);

  // Fires all of the part, node by node; whether it came to its end within most_throughput_firings.
  bool record();

  std::size_t nodes() const { return stage_of_.size(); }
  StageId stage(Index node) const { return stage_of_[node]; }

  // All arcs, by their first nodes; the rooms of buffers as deep as `depth` says (0: no limit). A Recv's firings follow
  // each other; with `by_sender`, those of one that takes pages of several senders do not: they may come at once.
  std::vector<FiringArc> arcs(const std::function<std::uint64_t(BufferId)>& depth, bool by_sender = false) const;

  // The circle that `arcs` form, as its stages and buffers are named.
  CriticalCircle named(const std::vector<FiringArc>& arcs, const std::vector<std::size_t>& circle) const;

 private:
  static constexpr Index none = TokenRun::none;

  struct Recorded {  // of a channel, over the part; pages and rooms by number from 0
    std::vector<Index> pushes;
    std::vector<std::vector<Index>> pops;                  // by consumer
    std::vector<std::pair<Index, std::int64_t>> wants;     // a firing, and the last page that must be there
    std::vector<std::pair<Index, std::int64_t>> reserves;  // a firing, and the last page that must have room
    std::vector<std::int64_t> popped;                      // by consumer, so far
    std::int64_t reserved = 0;
  };

  void push(Index channel, Index node, std::uint32_t pages, std::uint32_t reserved);
  void pop(Index channel, Index slot, Index node, std::uint32_t need, std::uint32_t pages);
  void note(Index actor);
  // `node` waits for number `page` of `events`, which repeat part after part, and are `time` behind their firings.
  void reach(std::vector<FiringArc>& all, const std::vector<Index>& events, std::int64_t page, Index node, BufferId b,
             Cycles StageTiming::*time) const;

  const SpatialProgram& p_;
  const std::vector<StageTiming>& timing_;
  TokenRun run_;
  std::vector<StageId> stage_of_;    // by node
  std::vector<Index> first_, last_;  // by actor: nodes
  struct Following {
    Index actor = 0, from = 0, to = 0;
  };
  std::vector<Following> follows_;
  std::vector<Recorded> channels_;
};

// The exact ratio of the circle of arcs that has the most cycles a part, and its arcs; nothing where there is no circle,
// or one of no parts: that waits for itself. A greater one may exist where more than `most_steps` arcs would have been
// looked at.
struct GreatestPace {
  Pace pace;
  std::vector<std::size_t> circle;  // arcs, in order
};
std::optional<GreatestPace> greatest_pace(std::size_t nodes, const std::vector<FiringArc>& arcs,
                                          std::uint64_t most_steps = ~std::uint64_t{0});

// Whether no circle of arcs has more cycles a part than `pace`.
bool keeps(std::size_t nodes, const std::vector<FiringArc>& arcs, const Pace& pace);

}  // namespace rdusim
