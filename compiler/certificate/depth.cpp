// Deadlock and depths, by untimed execution.
#include <algorithm>

#include "compiler/certificate/execution.h"
#include "compiler/certificate/obligations.h"

namespace rdusim::certificate {

namespace {

constexpr std::uint64_t most_firings = std::uint64_t{1} << 24;         // of one execution
constexpr std::uint64_t most_search_firings = std::uint64_t{1} << 25;  // of all executions that look for least depths

// The part of a section's trip that stands for all of it.
Extent representative(const Subject& s, SectionId section, const Finding& balance) {
  const bool part = s.uniform && balance.status == ProofStatus::proved;
  Extent extent;
  if (s.uniform) extent.instances = {0};
  if (part) extent.divisor = repeats_of(s, section);
  return extent;
}

// No run can do with less: what one firing claims or looks at, beside what is there from the start.
std::vector<std::uint64_t> floors(const Subject& s) {
  const auto greatest = [](const Cyclic<std::uint32_t>& c) {
    std::uint64_t most = 0;
    for (const auto& run : c) most = std::max<std::uint64_t>(most, run.value);
    return most;
  };
  std::vector<std::uint64_t> least(s.p.buffers.size(), 1);
  for (const Buffer& b : s.p.buffers) least[b.id.value] = std::max<std::uint64_t>(1, b.initial_pages);
  for (const Stage& stage : s.p.stages)
    for (const Port& port : stage.ports) {
      const bool in = port.direction == Direction::input;
      std::uint64_t& floor = least[port.buffer.value];
      floor = std::max({floor, greatest(in ? port.need : port.reserve), greatest(in ? port.pop : port.push)});
    }
  return least;
}

}  // namespace

Finding deadlock_freedom(const Subject& s, const Finding& balance) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  for (const Section& section : s.p.sections) {
    const Net net = Net::of(s, section.id, representative(s, section.id, balance));
    if (net.all_firings > most_firings)
      return unchecked("section '{}' has more than {} firings to look at", section.name, most_firings);
    Execution execution(net);
    if (!execution.run(most_firings)) return refuted("section '{}': {}", section.name, execution.stuck(s));
  }
  return {};
}

Finding buffer_depth(const Subject& s, const Finding& balance, std::vector<BufferClaim>& claims) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  const std::vector<std::uint64_t> floor = floors(s);
  for (const Buffer& b : s.p.buffers)
    if (b.depth_pages < floor[b.id.value])
      return refuted("buffer '{}' has depth {}; a firing takes {} pages of it", b.name, b.depth_pages,
                     floor[b.id.value]);

  std::uint64_t spent = 0;
  Finding finding;
  for (const Section& section : s.p.sections) {
    const Net net = Net::of(s, section.id, representative(s, section.id, balance));
    std::vector<BufferId> here;
    for (const Net::Queue& q : net.queues)
      if (q.instance == 0) here.push_back(q.buffer);
    if (net.all_firings > most_firings) {
      finding = unchecked("section '{}' has more than {} firings to look at", section.name, most_firings);
      continue;
    }
    // Deeper buffers never hinder: where the section ends with every buffer at its floor, the floor is the least depth
    // of each with the others as given.
    if (Execution(net, floor).run(most_firings)) {
      for (const BufferId b : here) claims[b.value].least_depth = floor[b.value];
      continue;
    }
    std::vector<std::uint64_t> depths(s.p.buffers.size());
    for (const Buffer& b : s.p.buffers) depths[b.id.value] = b.depth_pages;
    if (!Execution(net, depths).run(most_firings)) continue;  // refuted by deadlock freedom
    for (const BufferId b : here) {
      std::uint64_t low = floor[b.value], high = s.p.buffer(b).depth_pages;
      while (low < high && spent < most_search_firings) {
        const std::uint64_t middle = low + (high - low) / 2;
        depths[b.value] = middle;
        Execution execution(net, depths);
        if (execution.run(most_firings))
          high = middle;
        else
          low = middle + 1;
        spent += std::max<std::uint64_t>(execution.fired(), 1);
      }
      depths[b.value] = s.p.buffer(b).depth_pages;
      if (low == high) claims[b.value].least_depth = high;
    }
  }
  return finding;
}

}  // namespace rdusim::certificate
