// Deadlock and depths, by untimed execution.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/certificate/execution.h"
#include "compiler/certificate/obligations.h"
#include "compiler/certificate/trips.h"

namespace rdusim::certificate {

namespace {

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

// Least depths of the buffers of one section after the other, into the claims; 0 where one is not found.
class DepthSearch {
 public:
  DepthSearch(const Subject& s, const std::vector<std::uint64_t>& floor, std::vector<BufferClaim>& claims)
      : floor_(floor), claims_(claims) {
    for (const Buffer& b : s.p.buffers) given_.push_back(b.depth_pages);
  }

  void look_at(const Net& net) {
    for (const Net::Queue& q : net.queues) claims_[q.buffer.value].least_depth = floor_[q.buffer.value];
    for (const Net& part : net.parts()) look_at_part(part);
  }

 private:
  // Deeper buffers never hinder. So where the part ends with some buffers at their floors, those are the least depths
  // of each with the others as given; where it does not, halves of them are tried, down to one that must be deeper.
  void look_at_part(const Net& part) {
    net_ = &part;
    std::vector<BufferId> here;
    for (const Net::Queue& q : part.queues) here.push_back(q.buffer);
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    for (const BufferId b : here) claims_[b.value].least_depth = 0;
    if (ends(given_)) {
      split(here, 0, here.size());
    } else {
      for (const BufferId b : here) deepen(b);
    }
  }

  bool ends(const std::vector<std::uint64_t>& depths) {
    if (spent_ >= most_search_firings) return false;
    Execution execution(*net_, depths);
    const bool all = execution.run(most_firings);
    spent_ += std::max<std::uint64_t>(execution.fired(), 1);
    return all;
  }

  void split(const std::vector<BufferId>& list, std::size_t first, std::size_t last) {
    if (first == last || spent_ >= most_search_firings) return;
    if (last - first == 1) return deepen(list[first]);
    std::vector<std::uint64_t> depths = given_;
    for (std::size_t i = first; i < last; ++i) depths[list[i].value] = floor_[list[i].value];
    if (ends(depths)) {
      for (std::size_t i = first; i < last; ++i) claims_[list[i].value].least_depth = floor_[list[i].value];
      return;
    }
    const std::size_t middle = first + (last - first) / 2;
    split(list, first, middle);
    split(list, middle, last);
  }

  void deepen(BufferId b) {
    if (spent_ >= most_search_firings) return;
    std::vector<std::uint64_t> depths = given_;
    std::uint64_t depth = depths[b.value] = floor_[b.value];
    Execution execution(*net_, depths);
    while (!execution.run(most_firings)) {
      const auto wanted = execution.wanted(b);
      if (!wanted || execution.fired() >= most_firings) {
        depth = 0;
        break;
      }
      execution.deepen(b, depth = *wanted);
    }
    spent_ += std::max<std::uint64_t>(execution.fired(), 1);
    claims_[b.value].least_depth = depth;
  }

  const std::vector<std::uint64_t>& floor_;
  std::vector<BufferClaim>& claims_;
  std::vector<std::uint64_t> given_;
  const Net* net_ = nullptr;
  std::uint64_t spent_ = 0;
};

// A load waits for the stores of its section that write what it reads. Stages that pages join are one party: none may
// wait for itself, by way of others or not. Takes away parties that wait for nobody until all are gone. Waits for a
// trip before the own close no circle: each trip ends when those before it have ended, and all make the same waits.
Finding memory_circle(const Subject& s, const Section& section) {
  std::vector<std::size_t> party(s.p.stages.size());
  std::iota(party.begin(), party.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (party[i] != i) i = party[i] = party[party[i]];
    return i;
  };
  for (std::size_t b = 0; b < s.p.buffers.size(); ++b)
    for (const Producer& producer : s.producers[b])
      for (const Consumer& consumer : s.consumers[b])
        for (const StageId to : consumer.crossing ? s.p.edge(consumer.edge).to : std::vector<StageId>{consumer.stage})
          party[find(to.value)] = find(producer.stage.value);

  std::map<TensorId, std::vector<const Stage*>> writers;
  for (const Stage& stage : s.p.stages)
    if (const auto* store = std::get_if<Store>(&stage.kind); store != nullptr && stage.section == section.id)
      writers[store->tensor].push_back(&stage);
  std::map<std::size_t, std::map<std::size_t, std::pair<const Stage*, const Stage*>>> waits;  // by party: on whom
  for (const Stage& stage : s.p.stages) {
    const auto* load = std::get_if<Load>(&stage.kind);
    if (load == nullptr || stage.section != section.id) continue;
    const auto w = writers.find(load->tensor);
    if (w == writers.end()) continue;
    for (const Stage* store : w->second) waits[find(stage.id.value)].try_emplace(find(store->id.value), &stage, store);
  }
  for (bool less = true; less && !waits.empty();) {
    less = false;
    for (auto at = waits.begin(); at != waits.end();) {
      std::erase_if(at->second, [&](const auto& on) { return on.first != at->first && !waits.contains(on.first); });
      less = less || at->second.empty();
      at = at->second.empty() ? waits.erase(at) : std::next(at);
    }
  }
  if (waits.empty()) return {};
  const auto [load, store] = waits.begin()->second.begin()->second;
  return refuted("section '{}': '{}' waits for '{}', which waits for it in turn", section.name, load->name,
                 store->name);
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
    if (Finding order = reads_what_is_written(s, section); order.status != ProofStatus::proved) return order;
    if (Finding circle = memory_circle(s, section); circle.status != ProofStatus::proved) return circle;
  }
  return {};
}

Finding buffer_depth(const Subject& s, const Finding& balance, std::vector<BufferClaim>& claims) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  const std::vector<std::uint64_t> floor = floors(s);
  DepthSearch search(s, floor, claims);
  Finding finding;
  for (const Section& section : s.p.sections) {
    const Net net = Net::of(s, section.id, representative(s, section.id, balance));
    if (net.all_firings > most_firings) {
      finding = unchecked("section '{}' has more than {} firings to look at", section.name, most_firings);
      continue;
    }
    search.look_at(net);
  }
  for (const Buffer& b : s.p.buffers) {
    const std::uint64_t least = std::max(floor[b.id.value], claims[b.id.value].least_depth);
    if (b.depth_pages >= least) continue;
    if (least == floor[b.id.value])
      return refuted("buffer '{}' has depth {}; a firing takes {} pages of it", b.name, b.depth_pages, least);
    return refuted(
        "buffer '{}' has depth {}, and what it is joined with ends with {} at least, all other depths as given", b.name,
        b.depth_pages, least);
  }
  return finding;
}

}  // namespace rdusim::certificate
