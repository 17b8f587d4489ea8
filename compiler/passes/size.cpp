// A buffer of an operand is deep enough to cover the journey of a page: while one page is computed on, those on their
// way arrive. Depth 2 is the double buffer that everything else gets.
#include <algorithm>
#include <unordered_map>

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
  for (Buffer& b : program.buffers) {
    if (b.depth_pages != 0) continue;
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
  return program;
}

}  // namespace rdusim
