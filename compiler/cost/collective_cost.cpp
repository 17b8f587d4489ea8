// Alpha-beta estimate of collectives on the target's own topology.
//
// A collective is a sequence of steps; in a step every flow moves at once. What one lane sends of one page is an
// *item*. A step takes an item alpha, the latency of its slowest flow, + beta / items, where beta is the time that the
// fullest directed link or chip port takes for all bytes of the step; flows that share a link add up, so a ring over
// chips that stand on a line pays for its closing edge, and credits load the links on which they travel back.
//
//   steps that pages run through one behind the other (all but a ring's): the first item takes all steps; the others
//     follow at the pace of the fullest link, over all steps, or of the hand-off's round trips (crossing_trips.h) where
//     they take longer; landings are taken to be double buffers
//   a ring: each page goes all the way round before the next, a step of an item following its last as soon as it has
//     come (alpha + beta / items) and the links have served the other lanes (beta)
//   a halving and doubling: as a ring, of steps that differ in bytes and in who meets whom (hypercube.h)
#include <algorithm>
#include <map>

#include "compiler/cost/cost.h"
#include "compiler/cost/crossing_trips.h"
#include "compiler/cost/exact.h"
#include "compiler/cost/link_rate.h"
#include "compiler/ir/collective_order.h"
#include "compiler/ir/hypercube.h"
#include "compiler/target/topology.h"

namespace rdusim {

namespace {

using cost::plus;
using cost::share_of;
using cost::time_of;
using cost::times;

struct Flow {
  std::size_t from = 0;  // indices into the members
  std::size_t to = 0;
  Bytes bytes = 0;
};

class Steps {
 public:
  Steps(const Target& target, const std::vector<ChipId>& members, std::uint64_t lanes, std::uint64_t pages)
      : target_(target),
        members_(members),
        lanes_(lanes),
        pages_(pages),
        all_routes_(target),
        sent_(members.size(), 0) {
    if (!target.crossing.empty()) trips_ = cost::trips_of(target.crossing.front());
  }

  // A step of flows that move at once, page after page.
  void add(const std::vector<Flow>& flows) {
    if (flows.empty()) return;
    const Step step = measure(flows);
    count_bytes(flows, 1);
    latency_ = plus(latency_, seen_after(step));
    first_item_ = plus(first_item_, plus(seen_after(step), share_of(step.beta, 1, items())));
    round_trips_ = std::max(round_trips_, between_pages(step));
    for (const auto& [resource, time] : step.busy) busy_[resource] = plus(busy_[resource], time);
  }

  // `count` steps each of which waits for the one before; a page is done with all before the next begins. What a flow
  // carries of a page crosses in `pieces`, which wait for each other where the hand-off moves one at a time.
  void add_round(const std::vector<Flow>& flows, std::uint64_t count, std::uint64_t pieces = 1) {
    if (flows.empty() || count == 0) return;
    const Step step = measure(flows);
    count_bytes(flows, count);
    const Cycles beta = share_of(step.beta, 1, pages_), lane = share_of(beta, 1, lanes_);
    // A step needs the landing that the one before filled only where the hand-off moves one page at a time; the very
    // first finds it free.
    const Cycles alpha = trips_.windowed ? seen_after(step) : times(period(step), pieces);
    latency_ = plus(latency_, plus(times(alpha, count - 1), seen_after(step)));
    const Cycles next = std::max(plus(alpha, lane), beta);
    rounds_ = plus(rounds_, plus(times(next, times(count, pages_) - 1), plus(seen_after(step), beta)));
  }

  CollectiveCost cost() const {
    Cycles fullest = 0;
    for (const auto& [resource, time] : busy_) fullest = std::max(fullest, time);
    const Cycles others = std::max(fullest - fullest / items(), round_trips_);
    const Cycles cycles = plus(rounds_, first_item_ == 0 ? 0 : plus(first_item_, items() == 1 ? 0 : others));
    return {cycles, latency_, *std::max_element(sent_.begin(), sent_.end())};
  }

 private:
  // Directed chip links by id, then the chips' ports out and in.
  using Resource = std::pair<std::uint32_t, std::size_t>;
  struct Step {
    Cycles alpha = 0;   // a page's way, of the slowest flow
    Cycles signal = 0;  // a signal's way
    Cycles beta = 0;    // the greatest of `busy`
    std::map<Resource, Cycles> busy;
  };

  Step measure(const std::vector<Flow>& flows) {
    std::map<LinkId, Bytes> load;
    std::vector<Bytes> out(members_.size(), 0), in(members_.size(), 0);
    Step step;
    for (const Flow& flow : flows) {
      const auto& there = route(flow.from, flow.to);
      Cycles latency = 0;
      for (const LinkId id : there) {
        const ChipLinkParameters& link = target_.links[id.value];
        latency = plus(latency, link.latency_cycles);
        load[id] = plus(load[id], flow.bytes);
      }
      for (const LinkId id : route(flow.to, flow.from))
        load[id] = plus(load[id], times(times(lanes_, pages_), target_.links[id.value].signal_bytes));
      step.signal = std::max(step.signal, plus(latency, endpoints()));
      step.alpha = plus(step.signal, 2 * target_.pmu.access_latency_cycles + target_.pcu.simd_latency_cycles);
      out[flow.from] = plus(out[flow.from], flow.bytes);
      in[flow.to] = plus(in[flow.to], flow.bytes);
    }
    enum : std::uint32_t { link, out_port, in_port };
    for (const auto& [id, bytes] : load)
      step.busy[{link, id.value}] = time_of(bytes, cost::carried_rate(target_.links[id.value]));
    for (std::size_t m = 0; m < members_.size(); ++m) {
      step.busy[{out_port, m}] = time_of(out[m], ports());
      step.busy[{in_port, m}] = time_of(in[m], ports());
    }
    for (const auto& [resource, time] : step.busy) step.beta = std::max(step.beta, time);
    return step;
  }
  std::uint64_t items() const { return times(lanes_, pages_); }
  Cycles seen_after(const Step& step) const { return plus(step.alpha, times(step.signal, trips_.before_seen)); }
  Cycles period(const Step& step) const { return plus(step.alpha, times(step.signal, trips_.before_next)); }
  void count_bytes(const std::vector<Flow>& flows, std::uint64_t count) {
    for (const Flow& flow : flows) sent_[flow.from] = plus(sent_[flow.from], times(flow.bytes, count));
  }
  // What the hand-off takes from the first page to the last, beside their bytes.
  Cycles between_pages(const Step& step) const {
    const Cycles all = times(period(step), pages_ - 1);
    return trips_.windowed ? all / 2 : all;
  }
  const std::vector<LinkId>& route(std::size_t from, std::size_t to) {
    const auto [it, is_new] = routes_.try_emplace({from, to});
    if (is_new) it->second = all_routes_.between(members_[from], members_[to]);
    return it->second;
  }

  // Site to AGCU, AGCU to site; half the mesh's span is a mean distance.
  Cycles endpoints() const {
    const Cycles hops = (Cycles{target_.mesh.width} + target_.mesh.height) / 4;
    return 2 * (target_.agcu.latency_cycles + target_.network.endpoint_cycles * 2 + hops * target_.network.hop_cycles);
  }

  // What all AGCUs of a chip pass, each way.
  Fraction ports() const {
    const Fraction& one = target_.agcu.bytes_per_cycle;
    return {times(one.num, target_.agcu.at.size()), one.den};
  }

  const Target& target_;
  const std::vector<ChipId>& members_;
  std::uint64_t lanes_;
  std::uint64_t pages_;
  cost::CrossingTrips trips_;
  Routes all_routes_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<LinkId>> routes_;
  std::vector<Bytes> sent_;
  std::map<Resource, Cycles> busy_;  // of all steps that pages run through
  Cycles first_item_ = 0;            // through all of those
  Cycles round_trips_ = 0;
  Cycles rounds_ = 0;
  Cycles latency_ = 0;
};

std::vector<Flow> ring(std::size_t n, Bytes bytes) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < n; ++i) flows.push_back({i, (i + 1) % n, bytes});
  return flows;
}
std::vector<Flow> all_to_all(std::size_t n, Bytes bytes) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j) flows.push_back({i, j, bytes});
  return flows;
}
// Blocks that the partners of a step exchange.
std::vector<Flow> exchange(const Hypercube& cube, const std::vector<std::uint32_t>& by_chip, std::uint32_t step,
                           Bytes block) {
  std::vector<Flow> flows;
  for (std::uint32_t c = 0; c < cube.corners(); ++c)
    flows.push_back({by_chip[cube.member(c)], by_chip[cube.member(c ^ 1u << step)], times(block, cube.crossing(step))});
  return flows;
}
// Guests to their corners, or back.
std::vector<Flow> guests(const Hypercube& cube, const std::vector<std::uint32_t>& by_chip, bool back, Bytes bytes) {
  std::vector<Flow> flows;
  for (std::uint32_t c = 0; c < cube.guests(); ++c) {
    const std::size_t corner = by_chip[cube.member(c)], guest = by_chip[*cube.guest(c)];
    flows.push_back(back ? Flow{corner, guest, bytes} : Flow{guest, corner, bytes});
  }
  return flows;
}
void halving_doubling(Steps& steps, const std::vector<ChipId>& members, Bytes lane, std::uint64_t lanes) {
  const Hypercube cube(static_cast<std::uint32_t>(members.size()));
  const std::vector<std::uint32_t> by_chip = in_order_of_chips(members);
  const Bytes whole = times(lane, lanes), block = times(share_of(lane, 1, cube.corners()), lanes);
  steps.add(guests(cube, by_chip, false, whole));
  for (std::uint32_t t = 0; t < cube.steps(); ++t)
    steps.add_round(exchange(cube, by_chip, t, block), 1, cube.crossing(t));
  for (std::uint32_t t = cube.steps(); t-- > 0;)
    steps.add_round(exchange(cube, by_chip, t, block), 1, cube.crossing(t));
  steps.add(guests(cube, by_chip, true, whole));
}
// By level of the child: what goes down a tree. `order`: the members' places, the root's first.
std::vector<std::vector<Flow>> levels_down(const std::vector<std::uint32_t>& order, Bytes whole) {
  const BinaryTree tree(static_cast<std::uint32_t>(order.size()));
  std::vector<std::vector<Flow>> down;
  for (std::uint32_t i = 1; i < tree.size(); ++i) {
    const std::uint32_t level = tree.depth(i);
    if (down.size() < level) down.resize(level);
    down[level - 1].push_back({order[*tree.parent(i)], order[i], whole});
  }
  return down;
}
void down_tree(Steps& steps, const std::vector<std::uint32_t>& order, Bytes whole) {
  for (const std::vector<Flow>& level : levels_down(order, whole)) steps.add(level);
}
// Up the tree level by level, and (all) down again.
void along_tree(Steps& steps, const std::vector<std::uint32_t>& order, bool all, Bytes whole) {
  const std::vector<std::vector<Flow>> down = levels_down(order, whole);
  for (std::size_t level = down.size(); level-- > 0;) {
    std::vector<Flow> up;
    for (const Flow& flow : down[level]) up.push_back({flow.to, flow.from, flow.bytes});
    steps.add(up);
  }
  if (all) down_tree(steps, order, whole);
}
void level_by_level(Steps& steps, const std::vector<ChipId>& members, std::uint32_t node_chips, Bytes lane,
                    std::uint64_t lanes) {
  const TwoLevels levels(members, node_chips);
  const Bytes chunk = times(share_of(lane, 1, levels.chunks()), lanes);
  std::vector<Flow> into, between, out;
  for (std::size_t v = 0; v < levels.nodes().size(); ++v)
    for (std::uint32_t j = 0; j < levels.chunks(); ++j) {
      const std::uint32_t owner = levels.owner(v, j);
      for (const std::uint32_t m : levels.nodes()[v]) {
        if (m == owner) continue;
        into.push_back({m, owner, chunk});
        out.push_back({owner, m, chunk});
      }
      for (std::size_t other = 0; other < levels.nodes().size(); ++other)
        if (other != v) between.push_back({owner, levels.owner(other, j), chunk});
    }
  steps.add(into);
  steps.add(between);
  steps.add(out);
}
// The part of the j-th of any node to the j-th of its own node, and from there to the one who keeps it.
void scatter_by_levels(Steps& steps, const std::vector<std::vector<std::uint32_t>>& nodes, Bytes chunk) {
  std::vector<Flow> within, between;
  for (const auto& kept : nodes)
    for (std::size_t j = 0; j < kept.size(); ++j)
      for (const auto& node : nodes) {
        const std::uint32_t sums = node[j % node.size()];
        for (const std::uint32_t m : node)
          if (m != sums) within.push_back({m, sums, chunk});
        if (sums != kept[j]) between.push_back({sums, kept[j], chunk});
      }
  steps.add(within);
  steps.add(between);
}
// Within nodes and to one of each other node; from there to the others of its own.
void gather_by_levels(Steps& steps, const TwoLevels& levels, Bytes whole) {
  std::vector<Flow> first, then;
  for (std::size_t v = 0; v < levels.nodes().size(); ++v)
    for (std::uint32_t i = 0; i < levels.nodes()[v].size(); ++i) {
      const std::uint32_t origin = levels.nodes()[v][i];
      for (const std::uint32_t m : levels.nodes()[v])
        if (m != origin) first.push_back({origin, m, whole});
      for (std::size_t u = 0; u < levels.nodes().size(); ++u) {
        if (u == v) continue;
        const std::uint32_t there = levels.owner(u, i);
        first.push_back({origin, there, whole});
        for (const std::uint32_t m : levels.nodes()[u])
          if (m != there) then.push_back({there, m, whole});
      }
    }
  steps.add(first);
  steps.add(then);
}
// The first of each node to those beside it and to the nodes below in a tree, level by level.
void broadcast_by_levels(Steps& steps, const std::vector<std::vector<std::uint32_t>>& nodes, Bytes whole) {
  const BinaryTree tree(static_cast<std::uint32_t>(nodes.size()));
  std::vector<std::vector<Flow>> levels;
  for (std::uint32_t v = 0; v < nodes.size(); ++v) {
    const std::uint32_t level = tree.depth(v);
    if (levels.size() <= level) levels.resize(level + 1);
    for (std::size_t i = 1; i < nodes[v].size(); ++i) levels[level].push_back({nodes[v].front(), nodes[v][i], whole});
    for (const std::uint32_t below : tree.children(v))
      levels[level].push_back({nodes[v].front(), nodes[below].front(), whole});
  }
  for (const std::vector<Flow>& level : levels) steps.add(level);
}
std::vector<Flow> to_first(std::size_t n, Bytes bytes) {
  std::vector<Flow> flows;
  for (std::size_t i = 1; i < n; ++i) flows.push_back({i, 0, bytes});
  return flows;
}
std::vector<Flow> from_first(std::size_t n, Bytes bytes) {
  std::vector<Flow> flows;
  for (std::size_t i = 1; i < n; ++i) flows.push_back({0, i, bytes});
  return flows;
}

}  // namespace

CollectiveCost estimate_collective(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes, std::uint64_t lanes,
                                   const std::vector<ChipId>& members, const Target& target, std::uint64_t pages) {
  const std::size_t n = members.size();
  if (n <= 1 || bytes == 0) return {};
  if (algorithm == CollectiveAlgorithm::automatic) {
    CollectiveCost best =
        estimate_collective(kind, CollectiveAlgorithm::through_one, bytes, lanes, members, target, pages);
    for (const auto other :
         {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring, CollectiveAlgorithm::halving_doubling,
          CollectiveAlgorithm::tree, CollectiveAlgorithm::hierarchical}) {
      const CollectiveCost cost = estimate_collective(kind, other, bytes, lanes, members, target, pages);
      if (cost.cycles < best.cycles) best = cost;
    }
    return best;
  }

  lanes = std::max<std::uint64_t>(lanes, 1);
  // A lane's chunk is whole bytes: the last lane is not smaller than the others.
  const Bytes lane = share_of(bytes, 1, lanes);
  const Bytes whole = times(lane, lanes);
  const Bytes chunk = times(share_of(lane, 1, n), lanes);
  const bool through_one = algorithm == CollectiveAlgorithm::through_one;
  const bool halves = algorithm == CollectiveAlgorithm::halving_doubling;
  const bool is_ring = algorithm == CollectiveAlgorithm::ring;
  Steps steps(target, members, lanes, std::max<std::uint64_t>(pages, 1));
  switch (kind) {
    case CollectiveKind::all_reduce:
      if (through_one) {
        steps.add(to_first(n, whole));
        steps.add(from_first(n, whole));
      } else if (is_ring) {
        steps.add_round(ring(n, chunk), 2 * (n - 1));
      } else if (halves) {
        halving_doubling(steps, members, lane, lanes);
      } else if (algorithm == CollectiveAlgorithm::tree) {
        along_tree(steps, tree_order(members), true, whole);
      } else if (algorithm == CollectiveAlgorithm::hierarchical) {
        level_by_level(steps, members, target.node_chips, lane, lanes);
      } else {
        steps.add(all_to_all(n, chunk));
        steps.add(all_to_all(n, chunk));
      }
      break;
    case CollectiveKind::reduce:
      if (through_one) {
        steps.add(to_first(n, whole));
      } else if (is_ring) {  // from the second member on, each adds its own; the first adds the last
        std::vector<Flow> line = ring(n, whole);
        line.erase(line.begin());
        for (const Flow& flow : line) steps.add({flow});
      } else if (algorithm == CollectiveAlgorithm::tree) {
        along_tree(steps, tree_order(members), false, whole);
      } else {
        steps.add(all_to_all(n, chunk));
        steps.add(to_first(n, chunk));
      }
      break;
    case CollectiveKind::reduce_scatter:
      if (through_one) {
        steps.add(to_first(n, whole));
        steps.add(from_first(n, chunk));
      } else if (is_ring) {
        steps.add_round(ring(n, chunk), n - 1);
      } else if (algorithm == CollectiveAlgorithm::hierarchical) {
        scatter_by_levels(steps, by_node(members, target.node_chips), chunk);
      } else {
        steps.add(all_to_all(n, chunk));
      }
      break;
    case CollectiveKind::all_gather:  // `bytes`: one member's slice, which all others get
      if (through_one) {
        steps.add(to_first(n, whole));
        steps.add(from_first(n, times(whole, n - 1)));
      } else if (is_ring && n > target.site.buffers) {  // one landing for all pages (passes/expand.h)
        steps.add_round(ring(n, whole), n - 1);
      } else if (is_ring) {
        for (std::size_t step = 1; step < n; ++step) steps.add(ring(n, whole));
      } else if (algorithm == CollectiveAlgorithm::hierarchical) {
        gather_by_levels(steps, TwoLevels(members, target.node_chips), whole);
      } else {
        steps.add(all_to_all(n, whole));
      }
      break;
    case CollectiveKind::broadcast:
      if (is_ring) {
        std::vector<Flow> line = ring(n, whole);
        line.pop_back();
        for (const Flow& flow : line) steps.add({flow});
      } else if (algorithm == CollectiveAlgorithm::tree) {
        down_tree(steps, tree_order(members), whole);
      } else if (algorithm == CollectiveAlgorithm::direct) {
        // A chunk to each other member, which sends it to the rest.
        const Bytes part = times(share_of(lane, 1, n - 1), lanes);
        steps.add(from_first(n, part));
        std::vector<Flow> flows = all_to_all(n, part);
        std::erase_if(flows, [](const Flow& f) { return f.from == 0 || f.to == 0; });
        steps.add(flows);
      } else if (algorithm == CollectiveAlgorithm::hierarchical) {
        broadcast_by_levels(steps, nodes_from_first(members, target.node_chips), whole);
      } else {
        steps.add(from_first(n, whole));
      }
      break;
    case CollectiveKind::all_to_all:
      if (through_one) {
        steps.add(to_first(n, whole));
        steps.add(from_first(n, whole));
      } else if (is_ring) {  // at each step a member passes on the slices that are not home yet
        for (std::size_t distance = n - 1; distance > 0; --distance)
          steps.add_round(ring(n, times(chunk, distance)), 1);
      } else {
        steps.add(all_to_all(n, chunk));
      }
      break;
  }
  return steps.cost();
}

}  // namespace rdusim
