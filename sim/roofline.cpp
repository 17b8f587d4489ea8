#include "sim/roofline.h"

#include <algorithm>
#include <map>
#include <set>

namespace rdusim {

namespace {

ChipId chip_of(const SpatialProgram& p, const Stage& s) {
  return p.group(s.group).sites.front().chip;
}

Bytes moved_by(const Stage& s, const Instances& instances, const HandshakeChecker& counts) {
  const auto* load = std::get_if<Load>(&s.kind);
  const bool stores = std::holds_alternative<Store>(s.kind);
  std::set<std::uint32_t> buffers;
  for (const Port& port : s.ports)
    if (!stores || port.direction == Direction::input) buffers.insert(port.buffer.value);
  Bytes bytes = 0;
  for (const std::uint32_t b : buffers) {
    std::set<std::uint32_t> read;
    for (std::uint32_t i = 0; i < instances.instances(BufferId{b}); ++i) {
      if (load != nullptr && i < load->multicast_set.size() && !read.insert(load->multicast_set[i]).second) continue;
      bytes += counts.counts(instances.of(BufferAt{BufferId{b}, i})).bytes;
    }
  }
  return bytes;
}

RooflinePeaks peaks_of(const SpatialProgram& p, const Target& t) {
  std::map<std::uint32_t, std::set<Position>> multipliers;  // by chip
  std::uint32_t rate = 0;
  for (const Stage& s : p.stages) {
    const auto* m = std::get_if<MatmulTiles>(&s.kind);
    if (m == nullptr) continue;
    rate = std::max(rate, t.pcu.macs(m->operand));
    for (const Site& site : p.group(s.group).sites) multipliers[site.chip.value].insert(site.at);
  }
  std::size_t sites = 0;
  for (const auto& [chip, at] : multipliers) sites = std::max(sites, at.size());
  std::map<std::uint32_t, double> leaving;  // by chip
  for (const LinkId id : p.links)
    if (id.value < t.links.size() && t.links[id.value].from.value < t.chips)
      leaving[t.links[id.value].from.value] += to_double(t.links[id.value].bytes_per_cycle);
  RooflinePeaks peaks;
  peaks.macs_per_cycle = static_cast<double>(sites) * rate;
  peaks.hbm_bytes_per_cycle = to_double(t.hbm.peak_bytes_per_cycle());
  peaks.pmu_bytes_per_cycle = static_cast<double>(sites) * to_double(t.pmu.read_bytes_per_cycle);
  for (const auto& [chip, bytes] : leaving) peaks.link_bytes_per_cycle = std::max(peaks.link_bytes_per_cycle, bytes);
  return peaks;
}

}  // namespace

void add_roofline(const LoadedProgram& loaded, const Instances& instances, const HandshakeChecker& counts,
                  Report& report) {
  const SpatialProgram& p = loaded.program;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> macs;  // by operator and chip
  for (const Work& w : p.work)
    macs[{w.op.value, w.chip.value}] +=
        static_cast<std::uint64_t>(w.m) * static_cast<std::uint64_t>(w.n) * static_cast<std::uint64_t>(w.k);
  for (const Stage& s : p.stages) {
    StageRow& row = report.stages[s.id.value];
    row.moved = moved_by(s, instances, counts);
    if (!s.origin) continue;
    const auto found = macs.find({s.origin->value, chip_of(p, s).value});
    if (found != macs.end()) row.macs = found->second;
  }
  report.peaks = peaks_of(p, loaded.target);
}

}  // namespace rdusim
