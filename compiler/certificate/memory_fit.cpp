// Memory fit: intervals of addresses, site by site and section by section.
#include <algorithm>
#include <map>

#include "compiler/certificate/obligations.h"

namespace rdusim::certificate {

namespace {

struct Interval {
  Bytes begin = 0, end = 0;
  const char* what = "";
  const std::string* name = nullptr;
  std::uint64_t shared = 0;  // the buffer whose storage it is; aliases share
};

Bytes tensor_bytes(const Tensor& t) {
  std::uint64_t n = bytes_of(t.dtype);
  for (const std::int64_t e : t.shape) n = product(n, static_cast<std::uint64_t>(std::max<std::int64_t>(e, 0)));
  return n;
}

// The first two that overlap, in words; empty: none.
std::string overlap(std::vector<Interval>& all) {
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  const Interval* last = nullptr;
  for (const Interval& i : all) {
    if (i.begin == i.end) continue;
    if (last != nullptr && i.begin < last->end && i.shared != last->shared)
      return fmt::format("{} '{}' [{}, {}) and {} '{}' [{}, {}) overlap", last->what, *last->name, last->begin,
                         last->end, i.what, *i.name, i.begin, i.end);
    if (last == nullptr || i.end > last->end) last = &i;
  }
  return {};
}

}  // namespace

Finding memory_fit(const Subject& s, MemoryClaim& claim) {
  claim = {};
  claim.site_capacity_bytes = s.t.pmu.capacity_bytes;
  claim.chip_capacity_bytes = s.t.hbm.capacity_bytes;
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  if (!s.p.memory) return unchecked("the program has no memory plan");
  const MemoryPlan& plan = *s.p.memory;
  if (plan.buffers.size() != s.p.buffers.size() || plan.tensors.size() != s.p.tensors.size())
    return refuted("the memory plan places {} buffers and {} tensors; the program has {} and {}", plan.buffers.size(),
                   plan.tensors.size(), s.p.buffers.size(), s.p.tensors.size());
  Finding finding;
  const auto fault = [&](Finding f) {
    if (finding.status == ProofStatus::proved) finding = std::move(f);
  };

  std::vector<const AccumulatorPlace*> accumulator(s.p.stages.size(), nullptr);
  for (const AccumulatorPlace& a : plan.accumulators)
    if (a.stage.value < accumulator.size()) accumulator[a.stage.value] = &a;

  for (const Section& section : s.p.sections) {
    std::map<Site, std::vector<Interval>> sites;
    std::vector<bool> seen(s.p.buffers.size(), false);
    for (const Stage& stage : s.p.stages) {
      if (stage.section != section.id) continue;
      if (const auto* m = std::get_if<MatmulTiles>(&stage.kind)) {
        const AccumulatorPlace* a = accumulator[stage.id.value];
        if (a == nullptr) {
          fault(refuted("matmul '{}' has no place for its accumulator", stage.name));
        } else {
          Bytes needed = 0;
          for (const Port& port : stage.ports)
            if (port.direction == Direction::output)
              needed = std::max(needed, s.p.buffer(port.buffer).page_bytes / std::max(bytes_of(m->result), 1u) *
                                            bytes_of(m->accumulator));
          if (a->bytes < needed)
            fault(refuted("the accumulator of '{}' has {} bytes and needs {}", stage.name, a->bytes, needed));
          for (const Site& site : s.p.sites_of(stage).sites)
            sites[site].push_back({a->address, sum(a->address, a->bytes), "the accumulator of", &stage.name,
                                   s.p.buffers.size() + stage.id.value});
        }
      }
      for (const Port& port : stage.ports) {
        const Buffer& b = s.p.buffer(port.buffer);
        if (seen[b.id.value]) continue;
        seen[b.id.value] = true;
        const Bytes address = plan.buffers[b.id.value].address;
        const Interval interval{address, sum(address, product(b.depth_pages, b.page_bytes)), "buffer", &b.name,
                                b.alias_of ? b.alias_of->value : b.id.value};
        for (const Site& site : s.p.group(b.group).sites) sites[site].push_back(interval);
      }
    }
    for (auto& [site, intervals] : sites) {
      const std::string wrong = overlap(intervals);
      if (!wrong.empty()) fault(refuted("{}: {}", to_string(site), wrong));
      Bytes used = 0;
      std::map<std::uint64_t, Bytes> of;  // aliases share
      for (const Interval& i : intervals) {
        of[i.shared] = std::max(of[i.shared], i.end - i.begin);
        if (i.end > s.t.pmu.capacity_bytes)
          fault(refuted("{}: {} '{}' ends at {}, and the memory has {} bytes", to_string(site), i.what, *i.name, i.end,
                        s.t.pmu.capacity_bytes));
      }
      for (const auto& [who, bytes] : of) used = sum(used, bytes);
      claim.busiest_site_bytes = std::max(claim.busiest_site_bytes, used);
    }
  }

  std::map<std::pair<ChipId, MemorySpace>, std::vector<Interval>> chips;
  for (const Tensor& t : s.p.tensors) {
    const TensorPlace& at = plan.tensors[t.id.value];
    if (at.bytes != tensor_bytes(t))
      fault(refuted("tensor '{}' has {} bytes and its place {}", t.name, tensor_bytes(t), at.bytes));
    chips[{t.chip, t.space}].push_back({at.address, sum(at.address, at.bytes), "tensor", &t.name, t.id.value});
  }
  for (auto& [where, intervals] : chips) {
    const auto& [chip, space] = where;
    const std::string wrong = overlap(intervals);
    if (!wrong.empty()) fault(refuted("chip {}: {}", chip.value, wrong));
    const Bytes capacity = space == MemorySpace::hbm              ? s.t.hbm.capacity_bytes
                           : space == MemorySpace::ddr && s.t.ddr ? s.t.ddr->capacity_bytes
                                                                  : 0;
    Bytes used = 0;
    for (const Interval& i : intervals) {
      used = sum(used, i.end - i.begin);
      if (i.end > capacity)
        fault(refuted("chip {}: tensor '{}' ends at {}, and its memory has {} bytes", chip.value, *i.name, i.end,
                      capacity));
    }
    if (space == MemorySpace::hbm) claim.busiest_chip_bytes = std::max(claim.busiest_chip_bytes, used);
  }
  return finding;
}

}  // namespace rdusim::certificate
