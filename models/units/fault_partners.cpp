#include "models/units/fault_partners.h"

#include <algorithm>

namespace rdusim {
namespace {

const Stage* producer_of(const SpatialProgram& p, BufferId b) {
  for (const Stage& s : p.stages)
    for (const Port& port : s.ports)
      if (port.direction == Direction::output && port.buffer == b) return &s;
  return nullptr;
}

// The collective that a buffer's pages go into from outside, and who pushes them.
struct FedCollective {
  BufferId buffer;
  CollectiveId collective;
};

std::vector<FedCollective> contributions_of(const SpatialProgram& p) {
  std::vector<FedCollective> out;
  const auto add = [&](BufferId b, CollectiveId c) {
    const Stage* from = producer_of(p, b);
    if (from == nullptr || from->collective == c || std::holds_alternative<Recv>(from->kind)) return;
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const FedCollective& o) { return o.buffer == b && o.collective == c; });
    if (!known) out.push_back({b, c});
  };
  for (const Edge& e : p.edges)
    if (e.collective) add(e.buffer, *e.collective);
  for (const Stage& s : p.stages)
    if (s.collective)
      for (const Port& port : s.ports)
        if (port.direction == Direction::input) add(port.buffer, *s.collective);
  return out;
}

}  // namespace

std::optional<StageId> other_shard(const SpatialProgram& p, StageId load) {
  const auto* mine = std::get_if<Load>(&p.stage(load).kind);
  if (mine == nullptr || !p.placement) return std::nullopt;
  const Tensor& t = p.tensor(mine->tensor);
  for (const Stage& s : p.stages) {
    const auto* other = std::get_if<Load>(&s.kind);
    if (other == nullptr || s.id == load || s.firings != p.stage(load).firings) continue;
    const Tensor& shard = p.tensor(other->tensor);
    if (shard.operand == t.operand && shard.chip != t.chip && shard.shape == t.shape &&
        p.sites_of(s).sites.size() == p.sites_of(p.stage(load)).sites.size())
      return s.id;
  }
  return std::nullopt;
}

std::optional<BufferId> other_collective(const SpatialProgram& p, BufferId buffer) {
  const std::vector<FedCollective> all = contributions_of(p);
  const auto mine = std::find_if(all.begin(), all.end(), [&](const FedCollective& c) { return c.buffer == buffer; });
  if (mine == all.end() || !p.placement) return std::nullopt;
  const Stage& from = *producer_of(p, buffer);
  for (const FedCollective& c : all) {
    const Stage& other = *producer_of(p, c.buffer);
    if (c.collective != mine->collective && c.buffer != buffer && other.section == from.section &&
        p.chip_of(other) == p.chip_of(from))
      return c.buffer;
  }
  return std::nullopt;
}

}  // namespace rdusim
