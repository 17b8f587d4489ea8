#include "compiler/ir/clusters.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "compiler/ir/rates.h"

namespace rdusim {
namespace {

class Partition {
 public:
  explicit Partition(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);  // the least stands for all
  }

 private:
  std::vector<std::size_t> parent_;
};

std::uint64_t repeats_of(const SpatialProgram& p, const Cluster& c) {
  std::uint64_t times = 0;
  for (StageId id : c.stages) {
    const Stage& s = p.stage(id);
    const auto period = hyperperiod(s);
    if (!counts_alike(p, s) || !period || s.firings % *period != 0) return 1;
    times = std::gcd(times, s.firings / *period);
  }
  return std::max<std::uint64_t>(times, 1);
}

}  // namespace

std::vector<Cluster> clusters_of(const SpatialProgram& p) {
  Partition stages(p.stages.size());
  std::vector<std::optional<std::size_t>> user_of_buffer(p.buffers.size());
  std::map<std::uint32_t, std::size_t> stage_of_collective;
  for (const Stage& s : p.stages) {
    for (const Port& port : s.ports) {
      auto& user = user_of_buffer[port.buffer.value];
      if (!user) user = s.id.value;
      stages.join(*user, s.id.value);
    }
    if (const auto* c = std::get_if<CollectiveStage>(&s.kind))
      stages.join(stage_of_collective.try_emplace(c->collective.value, s.id.value).first->second, s.id.value);
  }
  for (const Edge& e : p.edges)
    for (StageId to : e.to) stages.join(e.from.value, to.value);

  std::vector<Cluster> clusters;
  std::vector<std::size_t> cluster_of(p.stages.size());
  for (const Stage& s : p.stages) {
    const std::size_t instances = p.sites_of(s).sites.size();
    const std::size_t least = stages.find(s.id.value);
    if (least == s.id.value) {
      cluster_of[least] = clusters.size();
      clusters.emplace_back().instances = instances;
    }
    cluster_of[s.id.value] = cluster_of[least];
    Cluster& c = clusters[cluster_of[least]];
    c.stages.push_back(s.id);
    c.one_to_one = c.one_to_one && c.instances == instances;
  }
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    Cluster& c = clusters[cluster_of[e.from.value]];
    c.crossing.push_back(e.id);
    c.one_to_one = c.one_to_one && e.map.kind == PageMapKind::one_to_one;
  }
  for (Cluster& c : clusters) {
    if (c.one_to_one)
      c.repeats = repeats_of(p, c);
    else
      c.instances = 1;
  }
  return clusters;
}

}  // namespace rdusim
