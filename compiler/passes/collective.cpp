#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "compiler/cost/cost.h"
#include "compiler/cost/traffic.h"
#include "compiler/ir/collective_order.h"
#include "compiler/ir/print.h"
#include "compiler/passes/expand.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/sums.h"

namespace rdusim {
namespace {

constexpr std::array algorithms = {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct,
                                   CollectiveAlgorithm::ring,        CollectiveAlgorithm::halving_doubling,
                                   CollectiveAlgorithm::tree,        CollectiveAlgorithm::hierarchical};

// What is had of a site already, at the fullest site of a member's group: by the stages of its section, which alone are
// configured at the time, but for semaphores, which are given out once for all sections.
struct SiteUse {
  std::uint64_t buffers = 0;
  std::uint64_t semaphores = 0;
  std::uint64_t contexts = 0;
  Bytes bytes = 0;
};

// Whether members' pages are added; else they only go somewhere.
bool adds(CollectiveKind kind) {
  return kind == CollectiveKind::reduce || kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
}

// The kinds that an algorithm carries out.
bool carries_out(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  using A = CollectiveAlgorithm;
  const bool leaves_it_everywhere = algorithm == A::halving_doubling || algorithm == A::hierarchical;
  if (kind == CollectiveKind::all_gather)
    return algorithm == A::direct || algorithm == A::ring || algorithm == A::hierarchical;
  if (kind == CollectiveKind::all_to_all) return algorithm == A::direct;
  if (kind == CollectiveKind::broadcast) return algorithm != A::halving_doubling;
  if (kind == CollectiveKind::reduce_scatter) return algorithm != A::halving_doubling && algorithm != A::tree;
  return kind != CollectiveKind::reduce || !leaves_it_everywhere;
}

class Chooser {
 public:
  Chooser(const SpatialProgram& program, const Target& target) : p_(program), target_(target) {}

  // Why `choice` cannot be used, with limit and actual; empty where it can.
  std::string why_not(const Collective& c, const std::vector<Member>& members, Choice choice) const {
    const CollectiveAlgorithm algorithm = choice.algorithm;
    if (!carries_out(algorithm, c.kind)) {
      if (c.kind == CollectiveKind::all_gather)
        return "an all-gather is carried out directly, in a ring, or within nodes and between them";
      if (c.kind == CollectiveKind::all_to_all) return "an all-to-all is carried out directly";
      if (c.kind == CollectiveKind::broadcast)
        return "a broadcast is carried out through one chip, directly, in a ring, along a tree, or within nodes and "
               "between them";
      if (c.kind == CollectiveKind::reduce_scatter)
        return "a reduce-scatter is carried out through one chip, directly, in a ring, or within nodes and between "
               "them";
      return "it leaves the result on every chip";
    }
    if (algorithm == CollectiveAlgorithm::hierarchical && by_node(c.members, target_.node_chips).size() < 2)
      return target_.node_chips == 0 ? "the target's chips do not stand in nodes" : "all its chips are in one node";
    const SiteDemand demand = demand_of(p_, c, members, choice, target_);
    const SiteResources& site = target_.site;
    const SiteUse use = use_of(members);
    const auto lacking = [&](std::uint64_t wanted, std::uint64_t limit, std::string_view what) {
      return fmt::format("a site would have {} {} and the target gives it {}", wanted, what, limit);
    };
    if (use.buffers + demand.buffers > site.buffers)
      return lacking(use.buffers + demand.buffers, site.buffers, "buffers");
    if (target_.crossing.front() == CrossingHandshake::semaphore &&
        use.semaphores + demand.semaphores > site.semaphores)
      return lacking(use.semaphores + demand.semaphores, site.semaphores, "semaphores");
    if (use.contexts + demand.contexts > site.pcu_contexts)
      return lacking(use.contexts + demand.contexts, site.pcu_contexts, "compute stages");
    if (demand.vector_inputs > site.vector_inputs)
      return lacking(demand.vector_inputs, site.vector_inputs, "vector inputs in use at once");
    if (demand.vector_outputs > site.vector_outputs)
      return lacking(demand.vector_outputs, site.vector_outputs, "vector outputs in use at once");
    return "";
  }

  // Whether the buffers, double, will fit the PMU: `memory` has the last word, this keeps `automatic` from asking for
  // what it would refuse.
  bool fits_memory(const Collective& c, const std::vector<Member>& members, Choice choice) const {
    return use_of(members).bytes + 2 * demand_of(p_, c, members, choice, target_).bytes <= target_.pmu.capacity_bytes;
  }

 private:
  SiteUse use_of(const std::vector<Member>& members) const {
    // Every member's sites are alike: the first member's group stands for all. Stages of the collective itself are not
    // there yet, but the shard pass's stand-in and what it pushes, which go.
    const Stage& stand_in = p_.stage(members.front().stage);
    const Group& group = p_.sites_of(stand_in);
    std::map<Site, SiteUse> uses;
    for (const Site& s : group.sites) uses[s] = {};
    const auto for_sites_of = [&](GroupId g, auto&& f) {
      for (const Site& s : p_.group(g).sites)
        if (const auto use = uses.find(s); use != uses.end()) f(use->second);
    };
    std::vector<bool> seen(p_.buffers.size(), false);
    for (const Member::Outcome& o : members.front().outcomes) seen[o.buffer.value] = true;
    for (const Stage& s : p_.stages) {
      if (s.section != stand_in.section || p_.chip_of(s) != group.sites.front().chip || s.id == stand_in.id) continue;
      if (s.role == StageRole::compute) for_sites_of(s.group, [](SiteUse& u) { ++u.contexts; });
      const auto* matmul = std::get_if<MatmulTiles>(&s.kind);
      for (const Port& port : s.ports) {
        if (seen[port.buffer.value]) continue;
        seen[port.buffer.value] = true;
        const Buffer& b = p_.buffer(port.buffer);
        const bool loaded = std::holds_alternative<Load>(s.kind);
        const Bytes bytes = b.depth_pages != 0 ? b.depth_pages * b.page_bytes
                            : loaded           ? std::max<Bytes>(2 * b.page_bytes, target_.pmu.capacity_bytes / 8)
                                               : 2 * b.page_bytes;
        const bool accumulates = matmul && port.direction == Direction::output;
        for_sites_of(b.group, [&](SiteUse& u) {
          ++u.buffers;
          u.bytes += bytes + (accumulates ? b.page_bytes : 0);
        });
      }
    }
    for (const Edge& e : p_.edges) {
      if (is_local(e.handshake)) continue;
      for_sites_of(p_.stage(e.from).group, [](SiteUse& u) { ++u.semaphores; });
      for (const StageId to : e.to) for_sites_of(p_.stage(to).group, [](SiteUse& u) { ++u.semaphores; });
    }
    SiteUse most;
    for (const auto& [site, use] : uses) {
      most.buffers = std::max(most.buffers, use.buffers);
      most.semaphores = std::max(most.semaphores, use.semaphores);
      most.contexts = std::max(most.contexts, use.contexts);
      most.bytes = std::max(most.bytes, use.bytes);
    }
    return most;
  }

  const SpatialProgram& p_;
  const Target& target_;
};

struct Reasoned {
  Choice choice;
  std::string reason;
};

Result<Reasoned> choose(const SpatialProgram& p, const Collective& c, const std::vector<Member>& members,
                        const Target& target) {
  Diagnostics out;
  const Chooser chooser(p, target);
  const Member& first = members.front();
  const std::uint64_t pages = cost::pages_pushed(p.stage(first.source), first.buffer);
  const std::uint64_t lanes = p.sites_of(p.stage(first.stage)).sites.size();
  const auto cost = [&](CollectiveAlgorithm a) {
    return estimate_collective(c.kind, a, c.bytes.front(), lanes, c.members, target, pages).cycles;
  };
  // A landing for each member's pages where there are so many, else trains.
  const auto way_of = [&](CollectiveAlgorithm a) {
    const Choice apart{a}, trains{a, true};
    const bool has_trains =
        c.kind == CollectiveKind::all_gather && carries_out(a, c.kind) && a != CollectiveAlgorithm::direct;
    return has_trains && !chooser.why_not(c, members, apart).empty() && chooser.why_not(c, members, trains).empty()
               ? trains
               : apart;
  };
  if (c.algorithm != CollectiveAlgorithm::automatic) {
    const Choice way = way_of(c.algorithm);
    const std::string why_not = chooser.why_not(c, members, way);
    if (why_not.empty())
      return Reasoned{way, fmt::format("asked for; {} cycles estimated", with_commas(cost(c.algorithm)))};
    auto& d = out.error(Code::RDU4114, p.header.name, "'{}' over {} chips cannot be {}: {}", c.name, members.size(),
                        name_of(c.algorithm), why_not);
    std::string others;
    for (const CollectiveAlgorithm a : algorithms)
      if (chooser.why_not(c, members, way_of(a)).empty())
        others += (others.empty() ? "--collective " : ", --collective ") + std::string(name_of(a));
    if (others.empty())
      d.suggest(
          "no other algorithm is available either: use fewer chips, or [schedule] with fewer unrolled contraction "
          "slices");
    else
      d.suggest("what works here: --collective auto, {}{}", others,
                c.kind == CollectiveKind::reduce ? ", which leave the result on every chip" : "");
    return out;
  }
  // Estimates of those that are available; where none fits the memory as well, the memory pass says what takes the
  // room.
  std::vector<std::pair<Cycles, Choice>> fit, too_large;
  std::vector<Note> notes;
  std::string others;
  for (const CollectiveAlgorithm a : algorithms) {
    if (!carries_out(a, c.kind)) continue;
    const Choice way = way_of(a);
    const std::string why_not = chooser.why_not(c, members, way);
    if (!why_not.empty()) {
      notes.push_back({std::string(name_of(a)), why_not});
      others += fmt::format("; {} not available: {}", name_of(a), why_not);
      continue;
    }
    (chooser.fits_memory(c, members, way) ? fit : too_large).push_back({cost(a), way});
  }
  if (fit.empty() && too_large.empty()) {
    auto& d = out.error(Code::RDU4114, p.header.name, "'{}' over {} chips cannot be carried out by any algorithm",
                        c.name, members.size());
    d.notes = std::move(notes);
    return out;
  }
  const bool fits = !fit.empty();
  auto& candidates = fits ? fit : too_large;
  const auto best = *std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.algorithm) < std::pair(b.first, b.second.algorithm);
  });
  std::string reason = fmt::format("{} cycles estimated", with_commas(best.first));
  for (const auto& [cycles, way] : candidates)
    if (way.algorithm != best.second.algorithm)
      reason += fmt::format("; {} {}", name_of(way.algorithm), with_commas(cycles));
  if (fits)
    for (const auto& [cycles, way] : too_large)
      reason += fmt::format("; {} {}, but its landings do not fit a site's memory", name_of(way.algorithm),
                            with_commas(cycles));
  return Reasoned{best.second, reason + others};
}

// Replaces the order of additions of the operator by the algorithm's.
void reorder(SpatialProgram& p, const Collective& c, const Target& target) {
  std::vector<SummationTree> trees;
  for (SummationTree& tree : p.trees) {
    if (tree.op != c.op) {
      trees.push_back(std::move(tree));
      continue;
    }
    std::vector<Sum> parts;
    for (const ChipId chip : c.members)
      parts.push_back(part_of(tree.nodes, mutated("collective.tree_of_one_chip", chip, c.members.front())));
    std::vector<Sum> sums = sums_of(c, parts, target);
    for (std::uint32_t chunk = 0; chunk < sums.size(); ++chunk)
      trees.push_back(
          {{},
           c.op,
           mutated("collective.trees_in_reverse", chunk, static_cast<std::uint32_t>(sums.size()) - 1 - chunk),
           static_cast<std::uint32_t>(sums.size()),
           std::move(sums[chunk]),
           tree.lanes});
  }
  for (std::size_t i = 0; i < trees.size(); ++i) trees[i].id = SummationTreeId(i);
  p.trees = std::move(trees);
}

void mark(Dropped& gone, const std::vector<Member>& members) {
  for (const Member& m : members) {
    gone.stages[m.stage.value] = true;
    if (m.contributes) gone.edges[m.edge.value] = true;
    for (const Member::Outcome& o : m.outcomes) {
      gone.buffers[o.buffer.value] = true;
      gone.edges[o.edge.value] = true;
    }
  }
}

// Stores whose pages others take (in_trains) still wait for what the collective's stage would have pushed.
void mark_unused(Dropped& gone, const SpatialProgram& p, const std::vector<Member>& members) {
  for (const Member& m : members)
    for (const Member::Outcome& o : m.outcomes)
      if (p.stage(o.store).ports.front().buffer == o.buffer) gone.stages[o.store.value] = true;
}

}  // namespace

Result<SpatialProgram> collective(SpatialProgram program, const Target& target) {
  const bool nothing_to_do = std::none_of(program.stages.begin(), program.stages.end(), [](const Stage& s) {
    return std::holds_alternative<CollectiveStage>(s.kind);
  });
  if (nothing_to_do) return program;
  Diagnostics out;
  if (target.crossing.empty()) {
    out.error(Code::RDU4106, program.header.name,
              "collectives cross from chip to chip, and target '{}' has no hand-off that does", target.name);
    return out;
  }
  Dropped gone(program);
  for (std::size_t i = 0; i < program.collectives.size(); ++i) {
    Collective entry = program.collectives[i];
    const std::vector<Member> members = members_of(program, entry);
    if (members.size() < 2) {
      out.error(Code::RDU3018, program.header.name,
                "collective '{}' has {} members, and not each of them just one stage in it", entry.name,
                entry.members.size());
      continue;
    }
    Result<Reasoned> chosen = choose(program, entry, members, target);
    if (!chosen.ok()) {
      out.append(chosen.diagnostics());
      continue;
    }
    const Choice choice = chosen->choice;
    entry.algorithm = mutated("collective.says_another_algorithm", choice.algorithm, CollectiveAlgorithm::through_one);
    entry.reason = chosen->reason;
    program.collectives[i] = entry;
    mark(gone, members);
    expand(program, entry, members, choice, target);
    mark_unused(gone, program, members);
    if (adds(entry.kind)) reorder(program, entry, target);
  }
  if (out.has_errors()) return out;
  drop(program, gone);
  return program;
}

}  // namespace rdusim
