// Alpha-beta estimate of collectives on the target's own topology.
//
// A collective is a sequence of steps; in a step every flow moves at once, and the step takes
//   alpha + beta = (latency of the slowest flow) + (bytes of the fullest directed link or chip port) / rate.
// Flows that share a link add up, so a ring over chips that stand on a line pays for its closing edge. Credits travel
// against the pages and load the links that they use.
#include <algorithm>
#include <map>

#include "compiler/cost/cost.h"
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
  Steps(const Target& target, const std::vector<ChipId>& members, std::uint64_t lanes)
      : target_(target), members_(members), lanes_(lanes), sent_(members.size(), 0) {}

  // `count` steps, each with these flows.
  void add(const std::vector<Flow>& flows, std::uint64_t count) {
    if (flows.empty() || count == 0) return;
    std::map<LinkId, Bytes> load;
    std::vector<Bytes> out(members_.size(), 0), in(members_.size(), 0);
    Cycles alpha = 0, beta = 0;
    for (const Flow& flow : flows) {
      const auto& there = route(flow.from, flow.to);
      Cycles latency = endpoints();
      for (const LinkId id : there) {
        const ChipLinkParameters& link = target_.links[id.value];
        latency = plus(latency, link.latency_cycles);
        load[id] = plus(load[id], flow.bytes);
      }
      for (const LinkId id : route(flow.to, flow.from))
        load[id] = plus(load[id], times(lanes_, target_.links[id.value].signal_bytes));
      alpha = std::max(alpha, latency);
      out[flow.from] = plus(out[flow.from], flow.bytes);
      in[flow.to] = plus(in[flow.to], flow.bytes);
    }
    for (const auto& [id, bytes] : load) beta = std::max(beta, time_of(bytes, target_.links[id.value].bytes_per_cycle));
    for (std::size_t i = 0; i < members_.size(); ++i) {
      beta = std::max({beta, time_of(out[i], ports()), time_of(in[i], ports())});
      sent_[i] = plus(sent_[i], times(out[i], count));
    }
    latency_ = plus(latency_, times(count, alpha));
    cycles_ = plus(cycles_, times(count, plus(alpha, beta)));
  }

  CollectiveCost cost() const { return {cycles_, latency_, *std::max_element(sent_.begin(), sent_.end())}; }

 private:
  const std::vector<LinkId>& route(std::size_t from, std::size_t to) {
    const auto [it, is_new] = routes_.try_emplace({from, to});
    if (is_new) it->second = rdusim::route(target_, members_[from], members_[to]);
    return it->second;
  }

  // Site to AGCU, AGCU to site, and the pages' way in and out of the PMUs; half the mesh's span is a mean distance.
  Cycles endpoints() const {
    const Cycles hops = (Cycles{target_.mesh.width} + target_.mesh.height) / 4;
    const Cycles crossing = target_.network.endpoint_cycles * 2 + hops * target_.network.hop_cycles;
    return 2 * (target_.agcu.latency_cycles + crossing + target_.pmu.access_latency_cycles) +
           target_.pcu.simd_latency_cycles;
  }

  // What all AGCUs of a chip pass, each way.
  Fraction ports() const {
    const Fraction& one = target_.agcu.bytes_per_cycle;
    return {times(one.num, target_.agcu.at.size()), one.den};
  }

  const Target& target_;
  const std::vector<ChipId>& members_;
  std::uint64_t lanes_;
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
                                   const std::vector<ChipId>& members, const Target& target) {
  const std::size_t n = members.size();
  if (n <= 1 || bytes == 0) return {};
  if (algorithm == CollectiveAlgorithm::automatic) {
    CollectiveCost best = estimate_collective(kind, CollectiveAlgorithm::through_one, bytes, lanes, members, target);
    for (const auto other : {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring}) {
      const CollectiveCost cost = estimate_collective(kind, other, bytes, lanes, members, target);
      if (cost.cycles < best.cycles) best = cost;
    }
    return best;
  }

  lanes = std::max<std::uint64_t>(lanes, 1);
  // A lane's chunk is whole bytes: the last lane is not smaller than the others.
  const Bytes lane = share_of(bytes, 1, lanes);
  const Bytes whole = times(lane, lanes);
  const Bytes chunk = times(share_of(lane, 1, n), lanes);
  const bool is_ring = algorithm == CollectiveAlgorithm::ring;
  Steps steps(target, members, lanes);
  switch (kind) {
    case CollectiveKind::all_reduce:
      if (algorithm == CollectiveAlgorithm::through_one) {
        steps.add(to_first(n, whole), 1);
        steps.add(from_first(n, whole), 1);
      } else if (is_ring) {
        steps.add(ring(n, chunk), 2 * (n - 1));
      } else {
        steps.add(all_to_all(n, chunk), 2);
      }
      break;
    case CollectiveKind::reduce:
      if (algorithm == CollectiveAlgorithm::through_one) {
        steps.add(to_first(n, whole), 1);
      } else {
        if (is_ring)
          steps.add(ring(n, chunk), n - 1);
        else
          steps.add(all_to_all(n, chunk), 1);
        steps.add(to_first(n, chunk), 1);
      }
      break;
    case CollectiveKind::reduce_scatter:
      if (algorithm == CollectiveAlgorithm::through_one) {
        steps.add(to_first(n, whole), 1);
        steps.add(from_first(n, chunk), 1);
      } else if (is_ring) {
        steps.add(ring(n, chunk), n - 1);
      } else {
        steps.add(all_to_all(n, chunk), 1);
      }
      break;
    case CollectiveKind::all_gather:  // `bytes`: one member's slice, which all others get
      if (algorithm == CollectiveAlgorithm::through_one) {
        steps.add(to_first(n, whole), 1);
        steps.add(from_first(n, times(whole, n - 1)), 1);
      } else if (is_ring) {
        steps.add(ring(n, whole), n - 1);
      } else {
        steps.add(all_to_all(n, whole), 1);
      }
      break;
    case CollectiveKind::broadcast:
      if (is_ring) {
        for (std::size_t i = 0; i + 1 < n; ++i) steps.add({{i, i + 1, whole}}, 1);
      } else {
        steps.add(from_first(n, whole), 1);
      }
      break;
    case CollectiveKind::all_to_all:
      if (algorithm == CollectiveAlgorithm::through_one) {
        steps.add(to_first(n, whole), 1);
        steps.add(from_first(n, whole), 1);
      } else if (is_ring) {  // at each step a member passes on the slices that are not home yet
        for (std::size_t distance = n - 1; distance > 0; --distance) steps.add(ring(n, times(chunk, distance)), 1);
      } else {
        steps.add(all_to_all(n, chunk), 1);
      }
      break;
  }
  return steps.cost();
}

}  // namespace rdusim
