#include "compiler/ir/verify.h"

#include <map>
#include <utility>

#include "compiler/ir/rules.h"

namespace rdusim {
namespace {

void find_uses(Subject& s) {
  s.uses.resize(s.p.buffers.size());
  for (const Stage& stage : s.p.stages)
    for (std::uint32_t i = 0; i < stage.ports.size(); ++i) {
      BufferUses& u = s.uses[stage.ports[i].buffer.value];
      (stage.ports[i].direction == Direction::output ? u.producers : u.consumers).push_back({stage.id, i});
    }
  for (const Edge& e : s.p.edges) {
    BufferUses& u = s.uses[e.buffer.value];
    (is_local(e.handshake) ? u.local : u.crossing).push_back(e.id);
  }
}

// Sites start alike; each group in turn sets its own sites apart. Linear in the sites of all groups.
void find_classes(Subject& s) {
  if (!s.p.placement) return;
  const std::size_t groups = s.p.placement->groups.size();
  s.stages_of_group.resize(groups);
  s.buffers_of_group.resize(groups);
  for (const Stage& stage : s.p.stages) s.stages_of_group[stage.group.value].push_back(stage.id);
  for (const Buffer& b : s.p.buffers) s.buffers_of_group[b.group.value].push_back(b.id);
  std::map<std::uint32_t, std::vector<std::uint32_t>> class_of;  // [chip][y * width + x]
  const std::size_t sites = std::size_t{s.target.mesh.width} * s.target.mesh.height;
  s.classes.emplace_back();  // of sites in no group
  for (const Group& g : s.p.placement->groups) {
    std::map<std::uint32_t, std::uint32_t> split;  // class -> class within this group
    for (const Site& site : g.sites) {
      auto& chip = class_of[site.chip.value];
      if (chip.empty()) chip.assign(sites, 0);
      std::uint32_t& c = chip[std::size_t{site.at.y} * s.target.mesh.width + site.at.x];
      const auto [at, fresh] = split.try_emplace(c, static_cast<std::uint32_t>(s.classes.size()));
      if (fresh) {
        SiteClass next{site, 0, s.classes[c].groups};
        next.groups.push_back(g.id);
        s.classes.push_back(std::move(next));
      }
      if (c != 0) --s.classes[c].sites;
      c = at->second;
      ++s.classes[c].sites;
    }
  }
  std::erase_if(s.classes, [](const SiteClass& c) { return c.sites == 0; });
}

}  // namespace

std::string place_of(const Stage& s) {
  return fmt::format("stage '{}'", s.name);
}
std::string place_of(const Buffer& b) {
  return fmt::format("buffer '{}'", b.name);
}
std::string place_of(const Tensor& t) {
  return fmt::format("tensor '{}'", t.name);
}
std::string place_of(const Edge& e) {
  return fmt::format("edge {}", e.id.value);
}

std::string sites_text(const SpatialProgram& p, GroupId group) {
  const Group& g = p.group(group);
  const Site& s = g.sites.front();
  if (g.sites.size() == 1) return fmt::format("chip {}, site ({},{})", s.chip.value, s.at.x, s.at.y);
  return fmt::format("chip {}, {} sites from ({},{})", s.chip.value, g.sites.size(), s.at.x, s.at.y);
}

std::optional<ObligationKind> obligation_of(Code code) {
  switch (code) {
    case Code::RDU3008:
    case Code::RDU3043:
      return ObligationKind::counting_balance;
    case Code::RDU3014:
    case Code::RDU3015:
      return ObligationKind::write_coverage;
    case Code::RDU3018:
    case Code::RDU3019:
    case Code::RDU3020:
      return ObligationKind::collective_agreement;
    case Code::RDU3021:
      return ObligationKind::counter_range;
    case Code::RDU3024:
    case Code::RDU3032:
      return ObligationKind::reduction_completeness;
    case Code::RDU3029:
      return ObligationKind::buffer_depth;
    case Code::RDU3039:
      return ObligationKind::deadlock_freedom;
    default:
      return std::nullopt;
  }
}

Diagnostics verify(const SpatialProgram& program, const Target& target) {
  Diagnostics out;
  Subject s{program,
            target,
            program.schedule.has_value(),
            program.header.name.empty() ? "program" : program.header.name,
            {},
            {},
            {},
            {}};

  // A rule reads only what the rules before it have made safe to read, so each block ends where something is wrong.
  check_chips(s, out);
  check_ids(s, out);
  check_references(s, out);
  if (out.has_errors()) return out;
  check_sites(s, out);
  check_cycles(s, out);
  check_sizes(s, out);
  if (out.has_errors()) return out;

  find_uses(s);
  find_classes(s);
  check_names(s, out);
  const std::size_t before_structure = out.error_count();
  check_ports(s, out);
  check_page_maps(s, out);
  if (out.error_count() != before_structure) return out;
  check_rates(s, out);
  check_buffer_ends(s, out);
  check_landings(s, out);
  check_edge_ends(s, out);
  check_sections(s, out);
  check_trips(s, out);
  const bool runs = out.error_count() == before_structure;

  check_local_edges(s, out);
  check_crossing_edges(s, out);
  check_handshakes(s, out);
  check_engine_sharing(s, out);
  check_engine_kinds(s, out);
  check_operands(s, out);
  check_slices(s, out);
  check_outputs(s, out);
  check_site_memory(s, out);
  check_memory_units(s, out);
  check_chip_memory(s, out);
  check_membership(s, out);
  check_collective_order(s, out);
  check_collective_bytes(s, out);
  check_counters(s, out);
  check_site_resources(s, out);
  check_semaphores(s, out);
  check_requirements(s, out);
  check_routes(s, out);
  check_dtypes(s, out);
  check_addresses(s, out);
  const std::size_t before_flow = out.error_count();
  check_trees(s, out);
  if (!runs) return out;
  check_balance(s, out);
  check_depths(s, out);
  if (out.error_count() != before_flow) return out;
  check_flow(s, out);
  if (out.has_errors()) return out;  // what follows says less than the rules before it
  check_nothing_is_unsaid(s, out);
  check_work(s, out);
  check_schedule(s, out);
  return out;
}

}  // namespace rdusim
