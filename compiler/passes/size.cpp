// Depth 2 is the double buffer that every hand-off gets. A buffer of an operand is deeper where its pages take longer
// to come than one is computed on: it covers the journey of a page, and, where results are stored while the next are
// computed, the burst of all sites' stores, behind which loads queue in memory. That of a result which is stored is
// deeper where a page, from the firing that reserves it until the store has read it, stays longer than two take to be
// made: it is written after it was computed and read after it was written. Where one operand waits for what another
// operator stores, all pages of both are wanted: the other streams in meanwhile. It grows as far as the site has room.
// Where a section's double buffers alone would not fit a site, its landing buffers, of which a collective has many,
// make do with one page each.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/cost/cost.h"
#include "compiler/ir/least_depths.h"
#include "compiler/ir/memory_order.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"

namespace rdusim {
namespace {

constexpr std::uint64_t double_buffer = 2;
constexpr std::uint64_t most_depth = 16;   // beyond it, pages are too small for the stream; the cost model says so
constexpr std::uint64_t most_ahead = 256;  // while an operand waits

// Pages that are pinned of a buffer, if any are.
std::optional<std::uint32_t> pinned_depth(const SpatialProgram& p, const Buffer& b) {
  if (!p.operators || !b.origin) return std::nullopt;
  return pin_of(*p.operators, *b.origin).depth;
}

// By buffer: the load that fills it, if any does.
std::vector<const Stage*> loads_of(const SpatialProgram& p) {
  std::vector<const Stage*> loads(p.buffers.size(), nullptr);
  for (const Stage& s : p.stages)
    for (const Port& port : s.ports)
      if (std::holds_alternative<Load>(s.kind) && port.direction == Direction::output) loads[port.buffer.value] = &s;
  return loads;
}

// The buffers of a stage whose depth `depth` pins: both operands of a matmul, else what loads bring.
std::vector<BufferId> operands_of(const Stage& s, const std::vector<const Stage*>& loads) {
  std::vector<BufferId> operands;
  const bool multiplies = std::holds_alternative<MatmulTiles>(s.kind);
  for (const Port& port : s.ports)
    if (port.direction == Direction::input && (multiplies || loads[port.buffer.value] != nullptr))
      operands.push_back(port.buffer);
  return operands;
}

// Bytes that each site of each chip would hold in a section, accumulators included.
class SiteBytes {
 public:
  SiteBytes(const SpatialProgram& p, SectionId section) : p_(p) {
    std::vector<bool> counted(p.buffers.size(), false);
    for (const Stage& s : p.stages) {
      if (s.section != section) continue;
      for (const Port& port : s.ports) {
        const Buffer& b = p.buffer(port.buffer);
        if (!counted[b.id.value]) add(b.group, b.depth_pages * b.page_bytes);
        counted[b.id.value] = true;
      }
      if (const auto* m = std::get_if<MatmulTiles>(&s.kind))
        add(s.group, p.buffer(s.ports.back().buffer).page_bytes / bytes_of(m->result) * bytes_of(m->accumulator));
    }
  }
  Bytes most(GroupId group) const {
    Bytes most = 0;
    for (const Site& s : p_.group(group).sites) most = std::max(most, at_.at(s));
    return most;
  }

 private:
  void add(GroupId group, Bytes bytes) {
    for (const Site& s : p_.group(group).sites) at_[s] += bytes;
  }
  const SpatialProgram& p_;
  std::map<Site, Bytes> at_;
};

void thin_landings(SpatialProgram& p, const std::vector<bool>& sized_here, const Target& t) {
  for (const Section& section : p.sections) {
    const SiteBytes before(p, section.id);
    for (const Stage& s : p.stages) {
      if (s.section != section.id || !std::holds_alternative<Recv>(s.kind)) continue;
      Buffer& landing = p.buffers[s.ports.front().buffer.value];
      if (sized_here[landing.id.value] && before.most(landing.group) > t.pmu.capacity_bytes) landing.depth_pages = 1;
    }
  }
}

// Cycles that memory is busy with one page stored from each site of a section's stores, its bus turned to that and back.
Cycles store_burst(const SpatialProgram& p, SectionId section, const Target& t) {
  Bytes bytes = 0;
  for (const Stage& s : p.stages)
    if (s.section == section && std::holds_alternative<Store>(s.kind) && p.chip_of(s) == p.chip_of(p.stages.front()))
      bytes += p.buffer(s.ports.front().buffer).page_bytes * p.sites_of(s).sites.size();
  return bytes == 0 ? 0 : ceil_div(bytes, t.hbm.sustainable_bytes_per_cycle()) + 2 * t.hbm.turnaround_cycles;
}

// Pages that operand buffers want, and room for pages beyond double buffers.
struct OperandDepth {
  std::uint64_t wanted = double_buffer;
  std::uint64_t room = most_ahead;
  std::uint64_t most = most_depth;
  std::uint64_t pages() const { return std::min({wanted, double_buffer + room, most}); }
};

// More pages of so many bytes that a PMU has room for. An eighth of it stays free: the schedule may want it, and nothing
// is gained by the last page.
std::uint64_t room_for(Bytes used, Bytes page_bytes, const Target& t) {
  const Bytes usable = t.pmu.capacity_bytes - t.pmu.capacity_bytes / 8;
  return used < usable && page_bytes > 0 ? (usable - used) / page_bytes : 0;
}

// Of one matmul; nothing where its operands are not sized here.
std::optional<OperandDepth> operand_depth(const SpatialProgram& p, const Stage& matmul,
                                          const std::vector<bool>& sized_here, const std::vector<StageCost>& costs,
                                          const std::vector<bool>& waits, const std::vector<const Stage*>& loads,
                                          const SiteBytes& held, Cycles burst, const Target& t) {
  const auto& body = std::get<MatmulTiles>(matmul.kind);
  Bytes page_bytes = 0;
  OperandDepth depth;
  for (std::size_t port = 0; port < 2; ++port) {
    const Buffer& b = p.buffer(matmul.ports[port].buffer);
    if (!sized_here[b.id.value]) return std::nullopt;
    page_bytes += b.page_bytes;
    const Stage* load = loads[b.id.value];
    if (load == nullptr) return std::nullopt;
    const StageCost& fetch = costs[load->id.value];
    const Cycles interval =
        std::max<Cycles>({costs[matmul.id.value].initiation_interval_cycles, fetch.initiation_interval_cycles, 1});
    const bool more_rounds = matmul.firings > body.k_pages;
    const Cycles away = fetch.latency_cycles + (more_rounds ? burst : 0);
    depth.wanted = std::max(depth.wanted, std::min(1 + ceil_div(away, interval), matmul.firings));
    if (!waits[load->id.value]) continue;
    depth.wanted = std::max(depth.wanted, matmul.firings);
    depth.most = most_ahead;
  }
  depth.room = room_for(held.most(matmul.group), page_bytes, t);
  return depth;
}

// Of what loads bring to other stages than matmuls of one operator, on the sites of one group, what is sized here.
struct Streams {
  std::set<BufferId> buffers;
  std::uint64_t wanted = double_buffer;  // pages
};

// Cycles between two of the pages that a load brings to another stage, or that a store takes from one.
Cycles page_interval(const Stage& other, const Stage& moves, const std::vector<StageCost>& costs) {
  const std::uint64_t pages = std::max<std::uint64_t>(moves.firings, 1);
  const Cycles a_page = ceil_div(costs[other.id.value].initiation_interval_cycles * other.firings, pages);
  return std::max<Cycles>({a_page, costs[moves.id.value].initiation_interval_cycles, 1});
}

// Deepens the buffers of what element-wise stages and moves stream from memory, so that the journey of a page is covered.
void deepen_streams(SpatialProgram& p, const std::vector<bool>& sized_here, const std::vector<StageCost>& costs,
                    const std::vector<const Stage*>& loads, const Target& t) {
  for (const Section& section : p.sections) {
    std::map<std::pair<OperatorId, GroupId>, Streams> streams;
    const Cycles burst = store_burst(p, section.id, t);
    for (const Stage& s : p.stages) {
      if (s.section != section.id || !s.origin || std::holds_alternative<MatmulTiles>(s.kind)) continue;
      for (const Port& port : s.ports) {
        const Stage* load = loads[port.buffer.value];
        if (port.direction != Direction::input || load == nullptr || !sized_here[port.buffer.value]) continue;
        Streams& all = streams[{*s.origin, s.group}];
        all.buffers.insert(port.buffer);
        const Cycles away = costs[load->id.value].latency_cycles + burst;
        const std::uint64_t pages = 1 + ceil_div(away, page_interval(s, *load, costs));
        all.wanted = std::max(all.wanted, std::min({pages, load->firings, most_depth}));
      }
    }
    // One depth an operator, whichever chip it is on, so that it can be pinned.
    const SiteBytes held(p, section.id);
    std::map<OperatorId, OperandDepth> depths;
    for (const auto& [at, all] : streams) {
      Bytes page_bytes = 0;
      for (const BufferId b : all.buffers) page_bytes += p.buffer(b).page_bytes;
      OperandDepth& depth = depths[at.first];
      depth.wanted = std::max(depth.wanted, all.wanted);
      depth.room = std::min(depth.room, room_for(held.most(at.second), page_bytes, t));
    }
    for (const auto& [at, all] : streams)
      for (const BufferId b : all.buffers) p.buffers[b.value].depth_pages = depths[at.first].pages();
  }
}

// Deepens the buffers from which results are stored, so that a page's stay there is covered.
void deepen_results(SpatialProgram& p, const std::vector<bool>& sized_here, const std::vector<StageCost>& costs,
                    const Target& t) {
  std::vector<const Stage*> makers(p.buffers.size(), nullptr);  // by buffer: the compute stage that fills it
  for (const Stage& s : p.stages)
    for (const Port& port : s.ports)
      if (port.direction == Direction::output && s.role == StageRole::compute) makers[port.buffer.value] = &s;
  for (const Section& section : p.sections) {
    const SiteBytes held(p, section.id);
    std::map<OperatorId, OperandDepth> depths;
    std::vector<std::pair<OperatorId, BufferId>> results;
    for (const Stage& store : p.stages) {
      if (store.section != section.id || !store.origin || !std::holds_alternative<Store>(store.kind)) continue;
      for (const Port& port : store.ports) {
        const Buffer& b = p.buffer(port.buffer);
        const Stage* maker = makers[b.id.value];
        if (maker == nullptr || !sized_here[b.id.value] || store.firings == 0) continue;
        const Cycles stay = costs[maker->id.value].latency_cycles + 2 * t.pmu.access_latency_cycles +
                            ceil_div(b.page_bytes, t.pmu.write_bytes_per_cycle) +
                            ceil_div(b.page_bytes, t.pmu.read_bytes_per_cycle);
        const std::uint64_t pages =
            std::min({1 + stay / page_interval(*maker, store, costs), store.firings, most_depth});
        OperandDepth& depth = depths[*store.origin];
        depth.wanted = std::max(depth.wanted, pages);
        depth.room = std::min(depth.room, room_for(held.most(b.group), b.page_bytes, t));
        results.emplace_back(*store.origin, b.id);
      }
    }
    for (const auto& [op, b] : results) p.buffers[b.value].depth_pages = depths[op].pages();
  }
}

// Deepens operand buffers: one depth an operator, whichever slice of it and on whichever chip, so that it can be
// pinned.
void deepen_operands(SpatialProgram& p, const std::vector<bool>& sized_here, const std::vector<StageCost>& costs,
                     const std::vector<const Stage*>& loads, const Target& t) {
  std::vector<bool> waits(p.stages.size(), false);
  for (const MemoryOrder& order : memory_orders(p))
    for (const StageId load : order.loads) waits[load.value] = true;
  for (const Section& section : p.sections) {
    const SiteBytes held(p, section.id);
    const Cycles burst = store_burst(p, section.id, t);
    std::map<OperatorId, OperandDepth> depths;
    std::vector<StageId> matmuls;
    for (const Stage& s : p.stages) {
      if (s.section != section.id || !std::holds_alternative<MatmulTiles>(s.kind)) continue;
      const auto own = operand_depth(p, s, sized_here, costs, waits, loads, held, burst, t);
      if (!own) continue;
      OperandDepth& all = depths[std::get<MatmulTiles>(s.kind).op];
      all.wanted = std::max(all.wanted, own->wanted);
      all.most = std::max(all.most, own->most);
      all.room = std::min(all.room, own->room);
      matmuls.push_back(s.id);
    }
    for (const StageId m : matmuls)
      for (std::size_t port = 0; port < 2; ++port)
        p.buffers[p.stage(m).ports[port].buffer.value].depth_pages =
            depths[std::get<MatmulTiles>(p.stage(m).kind).op].pages();
  }
}

}  // namespace

Result<SpatialProgram> size_by_minimum(SpatialProgram program) {
  const std::vector<const Stage*> loads = loads_of(program);
  for (const Stage& s : program.stages)
    for (const BufferId b : operands_of(s, loads)) {
      const auto pinned = pinned_depth(program, program.buffer(b));
      if (program.buffer(b).depth_pages == 0 && pinned) program.buffers[b.value].depth_pages = *pinned;
    }
  const auto depths = depths_together(program);
  if (!depths) {
    Diagnostics out;
    out.error(Code::RDU4119, program.header.name,
              "no depths of its {} buffers were found with which the program runs to its end", program.buffers.size());
    return out;
  }
  for (Buffer& b : program.buffers) b.depth_pages = (*depths)[b.id.value];
  return program;
}

Result<SpatialProgram> size(SpatialProgram program, const Target& target) {
  if (std::none_of(program.buffers.begin(), program.buffers.end(), [](const Buffer& b) { return b.depth_pages == 0; }))
    return program;
  const std::vector<StageCost> costs = estimate_stages(program, target);
  std::vector<bool> sized_here(program.buffers.size(), false);
  for (Buffer& b : program.buffers) {
    if (b.depth_pages != 0) continue;
    b.depth_pages = double_buffer - mutated("size.no_room_for_a_page", 0, b.origin ? 2 : 0);
    sized_here[b.id.value] = true;
  }
  const std::vector<const Stage*> loads = loads_of(program);
  for (const Stage& s : program.stages)
    for (const BufferId b : operands_of(s, loads)) {
      const auto pinned = pinned_depth(program, program.buffer(b));
      if (!sized_here[b.value] || !pinned) continue;
      program.buffers[b.value].depth_pages = *pinned;
      sized_here[b.value] = false;
    }
  thin_landings(program, sized_here, target);
  deepen_operands(program, sized_here, costs, loads, target);
  deepen_streams(program, sized_here, costs, loads, target);
  deepen_results(program, sized_here, costs, target);
  return program;
}

}  // namespace rdusim
