// A buffer of an operand is deep enough to cover the journey of a page: while one page is computed on, those on their
// way arrive. Depth 2 is the double buffer that everything else gets.
#include <algorithm>
#include <map>

#include "compiler/cost/cost.h"
#include "compiler/passes/passes.h"

namespace rdusim {
namespace {

constexpr std::uint64_t double_buffer = 2;
constexpr std::uint64_t most_depth = 16;  // beyond it, pages are too small for the stream; the cost model says so

const SchedulePin* pin_of(const SpatialProgram& p, const Buffer& b) {
  if (!p.operators || !b.origin) return nullptr;
  for (const SchedulePin& pin : p.operators->pins)
    if (pin.op == *b.origin) return &pin;
  return nullptr;
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

// Bytes that `b` may grow to at one of its sites: an equal share of what the PMU has beside the buffers' least needs.
Bytes room_for(const Buffer& b, const Target& t) {
  return std::max<Bytes>(2 * b.page_bytes, t.pmu.capacity_bytes / 8);
}

}  // namespace

Result<SpatialProgram> size(SpatialProgram program, const Target& target) {
  if (std::none_of(program.buffers.begin(), program.buffers.end(), [](const Buffer& b) { return b.depth_pages == 0; }))
    return program;
  const Costs costs = estimate(program, target);
  std::vector<const Stage*> loaded_by(program.buffers.size(), nullptr);
  std::vector<const Stage*> read_by(program.buffers.size(), nullptr);
  for (const Stage& s : program.stages)
    for (const Port& port : s.ports) {
      if (port.direction == Direction::output && std::holds_alternative<Load>(s.kind))
        loaded_by[port.buffer.value] = &s;
      if (port.direction == Direction::input) read_by[port.buffer.value] = &s;
    }
  std::vector<bool> sized_here(program.buffers.size(), false);
  for (Buffer& b : program.buffers) {
    if (b.depth_pages != 0) continue;
    sized_here[b.id.value] = true;
    b.depth_pages = double_buffer;
    const Stage* load = loaded_by[b.id.value];
    const Stage* reader = read_by[b.id.value];
    if (!load || !reader) continue;
    if (const SchedulePin* pin = pin_of(program, b); pin && pin->depth) {
      b.depth_pages = *pin->depth;
      continue;
    }
    const StageCost& read = costs.stages[reader->id.value];
    const StageCost& fetch = costs.stages[load->id.value];
    const Cycles interval = std::max<Cycles>({read.initiation_interval_cycles, fetch.initiation_interval_cycles, 1});
    const std::uint64_t wanted = 1 + ceil_div(fetch.latency_cycles, interval);
    const std::uint64_t fits =
        std::max<std::uint64_t>(double_buffer, room_for(b, target) / std::max<Bytes>(1, b.page_bytes));
    b.depth_pages = std::min(
        {std::max(double_buffer, wanted), fits, most_depth, std::max<std::uint64_t>(double_buffer, load->firings)});
  }
  thin_landings(program, sized_here, target);
  return program;
}

}  // namespace rdusim
