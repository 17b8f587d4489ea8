// A bound that no run can beat. A section's launch is followed by all of its work, and whatever overlaps, none of these
// resources goes faster than its peak:
//   - the PCU of a site, for the multiply-accumulates of the matmuls whose first instance stands there;
//   - a chip's HBM, for the bytes that its loads and stores move (a multicast set reads once);
//   - a directed chip link, for the data that crosses it, after which the last byte still has the link's latency to go.
// Nor is it over before the circles of its firings are gone round (pace.cpp).
#include <algorithm>
#include <map>

#include "compiler/certificate/obligations.h"
#include "compiler/certificate/pages.h"

namespace rdusim::certificate {

namespace {

constexpr std::uint64_t most_pages_moved = std::uint64_t{1} << 23;

// Bytes that `stage` moves between memory and its sites in one trip; 0 for what would take too long to count.
Bytes moved(const Subject& s, const Stage& stage) {
  const auto* load = std::get_if<Load>(&stage.kind);
  const auto* store = std::get_if<Store>(&stage.kind);
  if (load == nullptr && store == nullptr) return 0;
  const AccessPattern& pattern = load != nullptr ? load->pattern : store->pattern;
  const Tensor& t = s.p.tensor(load != nullptr ? load->tensor : store->tensor);
  const std::uint64_t pages = pages_of(pattern);
  Bytes bytes = 0;
  std::uint64_t looked_at = 0;
  std::map<std::uint32_t, bool> done;
  for (std::size_t i = 0; i < s.instances(stage); ++i) {
    if (load != nullptr && i < load->multicast_set.size() && !done.try_emplace(load->multicast_set[i], true).second)
      continue;
    looked_at = sum(looked_at, pages);
    if (looked_at > most_pages_moved) return 0;
    for (std::uint64_t page = 0; page < pages; ++page)
      if (const auto box = box_of(pattern, t, s.p.header.native_tile, i, page)) bytes = sum(bytes, box->elements());
  }
  return product(bytes, bytes_of(t.dtype));
}

}  // namespace

Cycles lower_bound(const Subject& s, const Provenance& provenance, const std::vector<CircleClaim>& circles) {
  if (!s.unreadable.empty() || !provenance.complete) return 0;
  Cycles all = 0;
  for (const Section& section : s.p.sections) {
    std::map<Site, Cycles> pcu;
    std::map<ChipId, Bytes> hbm;
    for (const Stage& stage : s.p.stages) {
      if (stage.section != section.id) continue;
      if (const auto* m = std::get_if<MatmulTiles>(&stage.kind)) {
        if (s.t.pcu.macs(m->operand) != 0) {
          Cycles& busy = pcu[s.p.sites_of(stage).sites.front()];
          const Fraction rate = s.t.pcu.mac_rate(m->operand, m->accumulator, m->lanes);
          const std::uint64_t macs = product(provenance.first_instance_macs[stage.id.value], section.trips);
          busy = sum(busy, product(macs / rate.num, rate.den) + product(macs % rate.num, rate.den) / rate.num);
        }
      }
      Bytes& bytes = hbm[s.p.chip_of(stage)];
      bytes = sum(bytes, product(moved(s, stage), section.trips));
    }
    std::map<LinkId, Bytes> links;
    for (const Edge& e : s.p.edges) {
      if (is_local(e.handshake) || s.p.stage(e.from).section != section.id) continue;
      for (std::size_t to = 0; to < std::min(e.to.size(), e.routes.size()); ++to)
        for (const LinkId id : e.routes[to])
          if (id.value < s.t.links.size()) links[id] = sum(links[id], provenance.edge_bytes[e.id.value][to]);
    }
    Cycles bound = 0;
    for (const CircleClaim& circle : circles)
      if (circle.section == section.id) bound = std::max(bound, circle.bound().value_or(0));
    for (const auto& [site, busy] : pcu) bound = std::max(bound, busy);
    const Fraction& channel = s.t.hbm.channel_bytes_per_cycle;
    const std::uint64_t peak = product(channel.num, s.t.hbm.channels);
    if (peak != 0)
      for (const auto& [chip, bytes] : hbm) bound = std::max(bound, least_cycles(bytes, peak, channel.den));
    for (const auto& [id, bytes] : links) {
      const ChipLinkParameters& link = s.t.links[id.value];
      if (bytes != 0 && link.bytes_per_cycle.num != 0)
        bound = std::max(
            bound, sum(least_cycles(bytes, link.bytes_per_cycle.num, link.bytes_per_cycle.den), link.latency_cycles));
    }
    all = sum(all, sum(product(s.t.host.section_launch_cycles, section.relaunched ? section.trips : 1), bound));
  }
  return all;
}

}  // namespace rdusim::certificate
