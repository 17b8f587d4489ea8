// What stands on the chips: units and buffers. Stages, crossings and faults have files of their own.
#include "models/units/elaborate.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/units/elaborator.h"

namespace rdusim {

namespace {

// A page needs so many bytes at most; headers count in 32 bits.
std::uint32_t slot_size(const Buffer& b) {
  return static_cast<std::uint32_t>(
      std::min<Bytes>((b.page_bytes + 15) / 16 * 16, std::numeric_limits<std::uint32_t>::max() - 15));
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

}  // namespace

Elaborator::Elaborator(const SpatialProgram& p, const Target& t, bool values, const std::vector<Fault>& faults,
                       NetworkLevel level)
    : p_(p), t_(t), faults_(faults), level_(level), frames_(page_frames(p)), all_routes_(t) {
  for (const Edge& e : p.edges) {
    if (e.to.empty() || e.to.front().value >= p.stages.size()) continue;
    const Stage& to = p.stage(e.to.front());
    const auto* m = std::get_if<MatmulTiles>(&to.kind);
    if (m != nullptr && m->transposed && to.ports.size() > 1 && to.ports[1].buffer == e.buffer)
      feeds_transposed_.insert(e.from);
  }
  Elaboration& e = out_;
  e.laws.pcu = Pcu(t.pcu, p.header.native_tile);
  e.laws.pmu = PmuLaw(t.pmu);
  e.laws.agcu = AgcuLaw(t.agcu);
  const Rate link(t.network.link_bytes_per_cycle);
  e.laws.load_rate = std::min({e.laws.agcu.port, link, e.laws.pmu.write});
  e.laws.store_rate = std::min({e.laws.agcu.port, link, e.laws.pmu.read});
  e.laws.native_tile = p.header.native_tile;
  e.laws.saturate = p.header.numerics.saturate;
  e.laws.values = values;
}

Elaboration Elaborator::run() {
  describe_stages();
  make_chips();
  make_buffers();
  make_stages();
  connect_producers_and_consumers();
  rank_loads();
  make_memory_waits();
  make_crossings();
  apply_faults();
  lay_out_pool();
  return std::move(out_);
}

ChipState& Elaborator::chip(std::uint32_t id) {
  ChipState& c = out_.chips[id];
  if (!c.used) {
    c.used = true;
    c.chip = ChipId{id};
    c.section_stages.resize(p_.sections.size());
    c.network = Network(t_, level_);
    c.memories.emplace_back(t_.hbm);
    if (t_.ddr) c.memories.emplace_back(*t_.ddr);
  }
  return c;
}

Network::Builder& Elaborator::network(std::uint32_t id) {
  auto& builder = scratch_[id].network;
  if (!builder) builder.emplace(chip(id).network, t_.mesh);
  return *builder;
}

std::uint32_t Elaborator::pmu(std::uint32_t id, Position at, std::uint32_t nth) {
  const auto [it, fresh] =
      scratch_[id].pmus.try_emplace({site_key(at), nth}, static_cast<std::uint32_t>(chip(id).pmus.size()));
  if (fresh) chip(id).pmus.emplace_back();
  return it->second;
}

std::uint32_t Elaborator::engine(std::uint32_t id, Position at, const Engine& e) {
  const std::uint64_t which = e.kind == StageRole::compute ? 0 : std::uint64_t{1} + std::min(e.index, 0xfffeu);
  const std::uint64_t key = (std::uint64_t{at.y & 0xffffffu} << 40) | (std::uint64_t{at.x & 0xffffffu} << 16) | which;
  const auto [it, fresh] = scratch_[id].engines.emplace(key, static_cast<std::uint32_t>(chip(id).engines.size()));
  if (fresh) chip(id).engines.emplace_back();
  return it->second;
}

AgcuId Elaborator::agcu_of(const Group& g, std::uint32_t instance) const {
  const AgcuId a = instance < g.agcus.size() ? g.agcus[instance] : AgcuId{};
  return a.value < t_.agcu.at.size() ? a : AgcuId{};
}

std::uint32_t Elaborator::agcu(std::uint32_t id, AgcuId a) {
  ChipState& c = chip(id);
  const auto [it, fresh] = scratch_[id].agcus.emplace(a.value, static_cast<std::uint32_t>(c.agcus.size()));
  if (fresh) {
    c.agcus.emplace_back();
    if (a.value < t_.agcu.at.size()) c.agcus.back().at = t_.agcu.at[a.value];
  }
  return it->second;
}

std::uint32_t Elaborator::link(std::uint32_t id, LinkId l) {
  ChipState& c = chip(id);
  const auto [it, fresh] = scratch_[id].links.emplace(l.value, static_cast<std::uint32_t>(c.links.size()));
  if (fresh) c.links.emplace_back(t_.links[l.value]);
  return it->second;
}

std::uint32_t Elaborator::feed(std::uint32_t id, LinkId l, Cycles back) {
  ChipState& c = chip(id);
  const auto [it, fresh] = scratch_[id].feeds.emplace(l.value, 0);
  if (!fresh) return it->second;
  const std::uint32_t other = t_.links[l.value].from.value, at = link(other, l);
  c.feeds.push_back({ChipLink(t_.links[l.value]), other, at, back});
  std::vector<PortQueue>& queues = chip(other).port_queues;
  queues.resize(std::max<std::size_t>(queues.size(), at + std::size_t{1}));
  queues[at].room = queues[at].all = t_.links[l.value].room_bytes;
  return it->second = static_cast<std::uint32_t>(c.feeds.size());
}

void Elaborator::make_chips() {
  std::uint32_t most = t_.chips;
  for (const Group& g : p_.placement->groups)
    for (const Site& s : g.sites) most = std::max(most, s.chip.value + 1);
  out_.chips.resize(most);
  scratch_.resize(most);
}

void Elaborator::make_buffers() {
  // Pages that will ever be pushed bound the slots that are worth having.
  std::vector<std::uint64_t> pages(p_.buffers.size());
  for (const StageSpec& d : out_.laws.stages)
    for (const PortSpec& ps : d.ports) {
      if (ps.direction != Direction::output) continue;
      std::uint64_t n = d.form == StageForm::receive ? d.total : ps.push.total(d.total);
      pages[ps.buffer.value] = std::max(pages[ps.buffer.value], n);
    }
  buffer_base_.resize(p_.buffers.size());
  for (const Buffer& b : p_.buffers) {
    if (group(b.group).sites.empty()) continue;
    const std::uint32_t id = chip_of(b.group);
    ChipState& c = chip(id);
    buffer_base_[b.id.value] = static_cast<std::uint32_t>(c.buffers.size());
    const std::uint64_t wanted = std::min(b.depth_pages, saturating_add(pages[b.id.value], b.initial_pages));
    const auto slots = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, std::uint64_t{1} << 24));
    for (std::uint32_t i = 0; i < group(b.group).sites.size(); ++i) {
      BufferState s;
      s.depth = b.depth_pages;
      s.slots = slots;
      s.slot_bytes = slot_size(b);
      s.initial = static_cast<std::uint32_t>(std::min<std::uint64_t>(b.initial_pages, slots));
      s.reserved = s.pushed = s.initial;
      s.id = b.id.value;
      s.instance = i;
      s.pmu = pmu(id, group(b.group).sites[i].at, b.pmu);
      s.headers = s.staged_headers = static_cast<std::uint32_t>(c.headers.size());
      c.headers.resize(c.headers.size() + slots);
      for (std::uint32_t n = 0; n < s.initial; ++n)
        c.headers[s.headers + n].bytes = static_cast<std::uint32_t>(std::min<Bytes>(b.page_bytes, s.slot_bytes));
      c.buffers.push_back(s);
    }
  }
}

const std::vector<std::optional<std::uint32_t>>& Elaborator::same_site(GroupId from, GroupId to) {
  const auto key = std::make_pair(from.value, to.value);
  if (const auto it = same_site_.find(key); it != same_site_.end()) return it->second;
  std::vector<std::optional<std::uint32_t>> map(group(from).sites.size());
  std::unordered_map<std::uint64_t, std::uint32_t> where;
  const std::uint32_t chip = chip_of(to);
  for (std::uint32_t i = 0; i < group(to).sites.size(); ++i) where.emplace(site_key(group(to).sites[i].at), i);
  for (std::uint32_t i = 0; i < map.size(); ++i) {
    const auto it = where.find(site_key(group(from).sites[i].at));
    if (it != where.end() && chip_of(from) == chip) map[i] = it->second;
  }
  return same_site_.emplace(key, std::move(map)).first->second;
}

std::optional<std::uint32_t> Elaborator::buffer_at(const Stage& s, std::uint32_t instance, BufferId b) {
  const GroupId to = p_.buffer(b).group;
  std::optional<std::uint32_t> i = instance;
  if (to != s.group) i = same_site(s.group, to)[instance];
  if (!i || *i >= group(to).sites.size()) return std::nullopt;
  return buffer_base_[b.value] + *i;
}

std::size_t Elaborator::pool(ChipState& c, Bytes bytes) {
  const std::size_t at = c.pool_bytes;
  c.pool_bytes += (bytes + 63) / 64 * 64;
  return at;
}

void Elaborator::connect_producers_and_consumers() {
  // By buffer: local consumers in the order of their edge's `to`, then crossing edges by id, then any other port.
  struct Reader {
    std::optional<std::pair<StageId, std::uint32_t>> port;  // stage, port number
    std::optional<EdgeId> crossing;
  };
  std::vector<std::vector<Reader>> readers(p_.buffers.size());
  std::vector<std::vector<bool>> taken(p_.stages.size());
  for (const Stage& s : p_.stages) taken[s.id.value].resize(s.ports.size());
  for (const Edge& e : p_.edges) {
    if (!is_local(e.handshake)) continue;
    for (const StageId to : e.to)
      for (std::uint32_t p = 0; p < p_.stage(to).ports.size(); ++p) {
        const Port& port = p_.stage(to).ports[p];
        if (port.direction != Direction::input || port.buffer != e.buffer || taken[to.value][p]) continue;
        taken[to.value][p] = true;
        readers[e.buffer.value].push_back({std::make_pair(to, p), std::nullopt});
        break;
      }
  }
  for (const Edge& e : p_.edges)
    if (!is_local(e.handshake)) readers[e.buffer.value].push_back({std::nullopt, e.id});
  for (const Stage& s : p_.stages)
    for (std::uint32_t p = 0; p < s.ports.size(); ++p)
      if (s.ports[p].direction == Direction::input && !taken[s.id.value][p])
        readers[s.ports[p].buffer.value].push_back({std::make_pair(s.id, p), std::nullopt});

  sender_consumer_.resize(p_.edges.size());
  for (const Buffer& b : p_.buffers) {
    const Group& g = group(b.group);
    if (g.sites.empty()) continue;
    ChipState& c = chip(chip_of(b.group));
    const auto& list = readers[b.id.value];
    for (std::uint32_t i = 0; i < g.sites.size(); ++i) {
      BufferState& state = c.buffers[buffer_base_[b.id.value] + i];
      state.first_consumer = static_cast<std::uint32_t>(c.consumers.size());
      for (std::uint32_t n = 0; n < list.size(); ++n) {
        ConsumerState consumer;
        consumer.number = n;
        if (list[n].port) {
          const auto [stage, port] = *list[n].port;
          const auto at = stage_instance(p_.stage(stage), b.group, i);
          if (!at) continue;
          consumer.actor = stage_base_[stage.value] + *at;
          PortState& ps = c.ports[c.stages[consumer.actor].first_port + port];
          ps.bound = true;
          ps.consumer = static_cast<std::uint32_t>(c.consumers.size());
        } else {
          const Edge& e = p_.edge(*list[n].crossing);
          if (!stage_instance(p_.stage(e.from), b.group, i)) continue;
          consumer.sender = true;
          auto& where = sender_consumer_[e.id.value];
          if (where.empty()) where.assign(g.sites.size(), 0);
          where[i] = static_cast<std::uint32_t>(c.consumers.size());
        }
        c.consumers.push_back(consumer);
        ++state.consumers;
      }
    }
  }
  for (ChipState& c : out_.chips)
    for (std::uint32_t i = 0; i < c.stages.size(); ++i) {
      const StageState& s = c.stages[i];
      const StageSpec& d = out_.laws.stages[s.spec];
      for (std::uint32_t p = 0; p < d.ports.size(); ++p) {
        const PortState& port = c.ports[s.first_port + p];
        if (d.ports[p].direction != Direction::output || !port.bound) continue;
        c.buffers[port.buffer].produced = true;
        c.buffers[port.buffer].producer = i;
        c.buffers[port.buffer].landing = s.form == StageForm::receive;
      }
    }
}

std::optional<std::uint32_t> Elaborator::stage_instance(const Stage& s, GroupId g, std::uint32_t i) {
  if (s.group == g) return i;
  if (group(s.group).sites.empty() || chip_of(s.group) != chip_of(g)) return std::nullopt;
  return same_site(g, s.group)[i];
}

void Elaborator::lay_out_pool() {
  for (ChipState& c : out_.chips)
    for (BufferState& b : c.buffers) {
      const Bytes bytes = Bytes{b.slots} * b.slot_bytes;
      b.values = b.staged_values = pool(c, bytes);
      if (b.fault != 0) b.staged_values = pool(c, bytes);
    }
}

Elaboration elaborate(const SpatialProgram& program, const Target& target, bool values,
                      const std::vector<Fault>& faults, NetworkLevel network) {
  return Elaborator(program, target, values, faults, network).run();
}

}  // namespace rdusim
