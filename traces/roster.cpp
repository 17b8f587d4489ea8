#include "traces/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/ir/print.h"
#include "compiler/ir/trips.h"

namespace rdusim {

bool Roster::index() {
  stage_base_ = buffer_base_ = sender_base_ = first_channel_ = {0};
  channel_.clear();
  engine_.clear();
  engines_ = 0;
  most_channels_ = std::max({memory_channels[0], memory_channels[1], memory_channels[2], 1U});

  const auto number = [&](std::vector<std::uint32_t>& base, const auto& list) {
    std::uint64_t n = 0;
    for (const auto& x : list) {
      n += groups[x.group].size();
      if (n > most_instances) return false;
      base.push_back(static_cast<std::uint32_t>(n));
    }
    return true;
  };
  if (!number(stage_base_, stages) || !number(buffer_base_, buffers)) return false;
  if (std::uint64_t{chips} * 3 * most_channels_ > most_instances) return false;

  std::map<std::tuple<Site, StageRole, std::uint32_t>, std::uint32_t> engine_number;
  for (const RosterStage& s : stages) {
    for (const Site& site : groups[s.group]) {
      const auto [it, added] = engine_number.try_emplace({site, s.role, s.engine}, engines_);
      if (added) ++engines_;
      engine_.push_back(it->second);
    }
  }

  std::uint64_t n = 0;
  for (const RosterEdge& e : edges) n += e.targets.size();
  for (const RosterEdge& e : edges)
    for (const auto& t : e.targets) n += t.size() * e.to.size();
  if (n > most_instances) return false;
  for (const RosterEdge& e : edges) {
    const EdgeId id(static_cast<std::size_t>(&e - edges.data()));
    for (std::uint32_t from = 0; from < e.targets.size(); ++from) {
      for (std::uint32_t to = 0; to < e.to.size(); ++to)
        for (std::uint32_t t : e.targets[from]) channel_.push_back({id, from, to, t});
      first_channel_.push_back(static_cast<std::uint32_t>(channel_.size()));
    }
    sender_base_.push_back(sender_base_.back() + static_cast<std::uint32_t>(e.targets.size()));
  }
  return true;
}

std::uint32_t Roster::of_several(const ChannelAt& c, std::uint32_t sender) const {
  const auto& targets = edges[c.edge.value].targets[c.from];
  std::size_t at = 0;
  if (targets.size() > 1)
    at = static_cast<std::size_t>(std::lower_bound(targets.begin(), targets.end(), c.receiver) - targets.begin());
  return first_channel_[sender] + static_cast<std::uint32_t>(c.to * targets.size() + at);
}

namespace {

// The element of a list of bases that number `n` belongs to.
std::uint32_t owner(const std::vector<std::uint32_t>& base, std::uint32_t n) {
  return static_cast<std::uint32_t>(std::upper_bound(base.begin(), base.end(), n) - base.begin() - 1);
}

}  // namespace

StageAt Roster::stage_at(std::uint32_t n) const {
  const std::uint32_t s = owner(stage_base_, n);
  return {StageId{s}, n - stage_base_[s]};
}
BufferAt Roster::buffer_at(std::uint32_t n) const {
  const std::uint32_t b = owner(buffer_base_, n);
  return {BufferId{b}, n - buffer_base_[b]};
}
Roster::SenderAt Roster::sender_at(std::uint32_t n) const {
  const std::uint32_t e = owner(sender_base_, n);
  return {EdgeId{e}, n - sender_base_[e]};
}
Roster::MemberAt Roster::member_at(std::uint32_t n) const {
  // Member m of sender s has number s + first_channel_[s] + m.
  std::uint32_t low = 0, high = senders();
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (middle + first_channel_[middle] <= n ? low : high) = middle;
  }
  const SenderAt s = sender_at(low);
  return {s.edge, s.from, n - low - first_channel_[low]};
}
Roster::MemoryAt Roster::memory_at(std::uint32_t n) const {
  return {n / (3 * most_channels_), static_cast<std::uint8_t>(n / most_channels_ % 3), n % most_channels_};
}

std::optional<BufferAt> Roster::landing(const ChannelAt& c) const {
  const auto& outputs = stages[edges[c.edge.value].to[c.to]].outputs;
  if (outputs.empty() || c.receiver >= groups[buffers[outputs.front()].group].size()) return std::nullopt;
  return BufferAt{BufferId{outputs.front()}, c.receiver};
}

std::string Roster::unit(const StageAt& s) const {
  const RosterStage& stage = stages[s.stage.value];
  if (stage.role == StageRole::movement) return fmt::format("movement{}", stage.engine);
  return stage.engine == 0 ? "pcu" : fmt::format("pcu.context{}", stage.engine);
}
std::string Roster::place(const StageAt& s) const {
  return fmt::format("{}.{}", to_string(site(s)), unit(s));
}
std::string Roster::place(const BufferAt& b) const {
  return to_string(site(b)) + ".pmu";
}
std::string Roster::describe(const StageAt& s) const {
  return fmt::format("'{}' at {}", stages[s.stage.value].name, to_string(site(s)));
}
std::string Roster::describe(const BufferAt& b) const {
  return fmt::format("'{}' at {}", buffers[b.buffer.value].name, to_string(site(b)));
}
std::string Roster::describe(const ChannelAt& c) const {
  return fmt::format("edge {} from {} to {}", c.edge.value, describe(from_of(c)), describe(to_of(c)));
}
std::string Roster::link_name(LinkId l) const {
  const RosterLink& link = links[l.value];
  if (link.into != 0) return fmt::format("link{} chip{}->switch{}", l.value, link.from, link.into - 1);
  if (link.out_of != 0) return fmt::format("link{} switch{}->chip{}", l.value, link.out_of - 1, link.to);
  return fmt::format("link{} chip{}->chip{}", l.value, link.from, link.to);
}

bool Roster::same_as(const Roster& o) const {
  return program == o.program && target == o.target && clock_ghz == o.clock_ghz && chips == o.chips &&
         width == o.width && height == o.height && groups == o.groups && stages == o.stages && buffers == o.buffers &&
         edges == o.edges && links == o.links && tensors == o.tensors && operands == o.operands &&
         sections == o.sections && std::equal(memory_channels, memory_channels + 3, o.memory_channels);
}

// ---- of a program

namespace {

std::string_view kind_of(const StageKind& k) {
  struct Name {
    std::string_view operator()(const Load&) const { return "load"; }
    std::string_view operator()(const Store&) const { return "store"; }
    std::string_view operator()(const MatmulTiles&) const { return "matmul"; }
    std::string_view operator()(const Generic&) const { return "generic"; }
    std::string_view operator()(const Recv&) const { return "receive"; }
    std::string_view operator()(const CollectiveStage&) const { return "collective"; }
  };
  return std::visit(Name{}, k);
}

std::vector<std::uint32_t> targets_of(const Edge& e, std::uint32_t from) {
  if (e.map.kind == PageMapKind::one_to_one) return {from};
  if (from >= e.map.targets.size()) return {};
  std::vector<std::uint32_t> t = e.map.targets[from];
  std::sort(t.begin(), t.end());
  t.erase(std::unique(t.begin(), t.end()), t.end());
  return t;
}

RosterEdge edge_of(const SpatialProgram& p, const Edge& e) {
  RosterEdge out;
  out.handshake = e.handshake;
  out.from = e.from.value;
  out.buffer = e.buffer.value;
  for (StageId to : e.to) out.to.push_back(to.value);
  if (e.collective) out.collective = p.collectives[e.collective->value].name;
  if (is_local(e.handshake)) return out;
  const std::size_t senders = p.sites_of(p.stage(e.from)).sites.size();
  for (std::uint32_t from = 0; from < senders; ++from) out.targets.push_back(targets_of(e, from));
  if (e.semaphores) {
    out.ready_initial = p.semaphores[e.semaphores->ready.value].initial;
    if (!e.semaphores->valid.empty()) out.valid_initial = p.semaphores[e.semaphores->valid.front().value].initial;
  }
  return out;
}

}  // namespace

Roster roster_of(const SpatialProgram& p, const Target& target, std::string program_sha256) {
  Roster r;
  r.program = p.header.name;
  r.program_sha256 = std::move(program_sha256);
  r.target = target.name;
  r.clock_ghz = target.clock_ghz;
  r.chips = target.chips;
  r.width = target.mesh.width;
  r.height = target.mesh.height;
  if (p.placement)
    for (const Group& g : p.placement->groups) r.groups.push_back(g.sites);
  for (const Section& s : p.sections) r.sections.push_back(s.name);
  for (const Stage& s : p.stages) {
    RosterStage out;
    out.name = s.name;
    out.kind = kind_of(s.kind);
    out.group = s.group.value;
    out.role = s.role;
    out.engine = s.engine.index;
    out.section = s.section.value;
    out.firings = s.firings * p.sections[s.section.value].trips;
    for (const Port& port : s.ports)
      (port.direction == Direction::input ? out.inputs : out.outputs).push_back(port.buffer.value);
    const auto works_on = [&](TensorId t) { out.tensors.push_back(t.value); };
    if (const auto* load = std::get_if<Load>(&s.kind)) for_each_tensor(*load, works_on);
    if (const auto* store = std::get_if<Store>(&s.kind)) for_each_tensor(*store, works_on);
    r.stages.push_back(std::move(out));
  }
  for (const Buffer& b : p.buffers) {
    RosterBuffer out;
    out.name = b.name;
    out.group = b.group.value;
    out.depth = b.depth_pages;
    out.initial = b.initial_pages;
    out.page_bytes = b.page_bytes;
    r.buffers.push_back(std::move(out));
  }
  for (const Stage& s : p.stages)
    for (const Port& port : s.ports)
      if (port.direction == Direction::output) r.buffers[port.buffer.value].producer = s.id.value;
  for (const Edge& e : p.edges) {
    RosterBuffer& b = r.buffers[e.buffer.value];
    if (is_local(e.handshake)) {
      for (StageId to : e.to) b.stages.push_back(to.value);
    } else {
      b.crossings.push_back(e.id.value);
    }
    r.edges.push_back(edge_of(p, e));
  }
  for (const ChipLinkParameters& l : target.links) {
    const auto past = [&](ChipId end) { return end.value < target.chips ? 0 : end.value - target.chips + 1; };
    const std::uint32_t into = past(l.to), out_of = past(l.from);
    r.links.push_back(
        {out_of != 0 ? l.to.value : l.from.value, into != 0 ? l.from.value : l.to.value, false, into, out_of});
  }
  for (LinkId l : p.links)
    if (l.value < r.links.size()) r.links[l.value].used = true;
  for (const Tensor& t : p.tensors) r.tensors.push_back({t.name, t.chip.value});
  std::size_t operands = 0;
  for (const Tensor& t : p.tensors) operands = std::max<std::size_t>(operands, t.operand.value + std::size_t{1});
  if (p.operators) operands = std::max(operands, p.operators->operands.size());
  for (std::size_t i = 0; i < operands; ++i) {
    const bool named = p.operators && i < p.operators->operands.size();
    r.operands.push_back(named ? p.operators->operands[i].name : fmt::format("operand{}", i));
  }
  r.memory_channels[static_cast<std::size_t>(MemorySpace::hbm)] = target.hbm.channels;
  if (target.ddr) r.memory_channels[static_cast<std::size_t>(MemorySpace::ddr)] = target.ddr->channels;
  return r;
}

}  // namespace rdusim
