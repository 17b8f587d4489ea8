// Alpha-beta estimate of collectives on the target's own topology.
//
// A collective is a sequence of steps; in a step every flow moves at once, and the step takes
//   alpha + beta = (latency of the slowest flow) + (bytes of the fullest directed link or chip port) / rate.
// Flows that share a link add up, so a ring over chips that stand on a line pays for its closing edge. Credits travel
// against the pages and load the links that they use. Where pages follow each other, the hand-off's round trips may be
// longer than their bytes (crossing_trips.h); landings are taken to be double buffers.
#include <algorithm>
#include <map>

#include "compiler/cost/cost.h"
#include "compiler/cost/crossing_trips.h"
#include "compiler/cost/exact.h"

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
      : target_(target), members_(members), lanes_(lanes), pages_(pages), sent_(members.size(), 0) {
    if (!target.crossing.empty()) trips_ = cost::trips_of(target.crossing.front());
  }

  // A step of flows that move at once, page after page.
  void add(const std::vector<Flow>& flows) {
    if (flows.empty()) return;
    const Step step = measure(flows);
    count_bytes(flows, 1);
    const Cycles latency = seen_after(step);
    latency_ = plus(latency_, latency);
    cycles_ = plus(cycles_, plus(latency, std::max(step.beta, between_pages(step))));
  }

  // `count` steps of a ring, each of which waits for the one before; a page is done with all before the next begins.
  void add_round(const std::vector<Flow>& flows, std::uint64_t count) {
    if (flows.empty() || count == 0) return;
    const Step step = measure(flows);
    count_bytes(flows, count);
    // A step needs the landing that the one before filled only where the hand-off moves one page at a time; the very
    // first finds it free.
    const Cycles next = trips_.windowed ? seen_after(step) : period(step);
    latency_ = plus(latency_, plus(times(next, count - 1), seen_after(step)));
    cycles_ =
        plus(cycles_, plus(times(next, times(count, pages_) - 1), plus(seen_after(step), times(step.beta, count))));
  }

  // Flows that hand a page on from one to the next; while one passes a page the one before passes the next.
  void add_line(const std::vector<Flow>& flows) {
    if (flows.empty()) return;
    Cycles between = 0;
    for (const Flow& flow : flows) {
      const Step step = measure({flow});
      count_bytes({flow}, 1);
      const Cycles latency = seen_after(step);
      const Cycles page = step.beta / pages_ + (step.beta % pages_ != 0 ? 1 : 0);
      latency_ = plus(latency_, latency);
      cycles_ = plus(cycles_, plus(latency, page));
      between = std::max(between, std::max(times(page, pages_ - 1), between_pages(step)));
    }
    cycles_ = plus(cycles_, between);
  }

  CollectiveCost cost() const { return {cycles_, latency_, *std::max_element(sent_.begin(), sent_.end())}; }

 private:
  struct Step {
    Cycles alpha = 0;   // a page's way, of the slowest flow
    Cycles signal = 0;  // a signal's way
    Cycles beta = 0;    // of all its bytes
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
    for (const auto& [id, bytes] : load)
      step.beta = std::max(step.beta, time_of(bytes, target_.links[id.value].bytes_per_cycle));
    for (std::size_t i = 0; i < members_.size(); ++i)
      step.beta = std::max({step.beta, time_of(out[i], ports()), time_of(in[i], ports())});
    return step;
  }
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
    if (is_new) it->second = rdusim::route(target_, members_[from], members_[to]);
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
  std::map<std::pair<std::size_t, std::size_t>, std::vector<LinkId>> routes_;
  std::vector<Bytes> sent_;
  Cycles cycles_ = 0;
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
    for (const auto other : {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring}) {
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
  const bool is_ring = algorithm == CollectiveAlgorithm::ring;
  Steps steps(target, members, lanes, std::max<std::uint64_t>(pages, 1));
  switch (kind) {
    case CollectiveKind::all_reduce:
      if (through_one) {
        steps.add(to_first(n, whole));
        steps.add(from_first(n, whole));
      } else if (is_ring) {
        steps.add_round(ring(n, chunk), 2 * (n - 1));
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
        steps.add_line(line);
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
      } else {
        steps.add(all_to_all(n, chunk));
      }
      break;
    case CollectiveKind::all_gather:  // `bytes`: one member's slice, which all others get
      if (through_one) {
        steps.add(to_first(n, whole));
        steps.add(from_first(n, times(whole, n - 1)));
      } else if (is_ring) {
        steps.add_round(ring(n, whole), n - 1);
      } else {
        steps.add(all_to_all(n, whole));
      }
      break;
    case CollectiveKind::broadcast:
      if (is_ring) {
        std::vector<Flow> line = ring(n, whole);
        line.pop_back();
        steps.add_line(line);
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
