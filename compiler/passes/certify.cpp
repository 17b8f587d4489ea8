// The verifier has shown by now, or shows here, that the program keeps its rules; this pass writes down what follows
// from them, with the numbers that a run can be held against, and adds what no rule asks for: least depths, the acyclic
// order of chip links, and the bound on cycles.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/cost/cost.h"
#include "compiler/cost/least_times.h"
#include "compiler/ir/circle_bound.h"
#include "compiler/ir/clusters.h"
#include "compiler/ir/least_depths.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/trips.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"

namespace rdusim {
namespace {

// ---- counts

std::optional<std::size_t> port_of(const Stage& s, BufferId buffer, Direction direction) {
  for (std::size_t i = 0; i < s.ports.size(); ++i)
    if (s.ports[i].buffer == buffer && s.ports[i].direction == direction) return i;
  return std::nullopt;
}

// Of instance 0; the counts balance, so all instances have them.
std::vector<BufferClaim> buffer_claims(const SpatialProgram& p) {
  std::vector<BufferClaim> claims(p.buffers.size());
  for (const Buffer& b : p.buffers) {
    claims[b.id.value].buffer = b.id;
    claims[b.id.value].depth = b.depth_pages;
  }
  for (const Stage& s : p.stages)
    for (std::size_t i = 0; i < s.ports.size(); ++i) {
      if (s.ports[i].direction != Direction::output) continue;
      const PortCounts counts = count_pages(p, s, i, 0).value_or(PortCounts{});
      BufferClaim& claim = claims[s.ports[i].buffer.value];
      claim.reserved += counts.reserved;
      claim.pushed += counts.pushed + mutated("certify.push_too_many", 0, 1);
    }
  for (const Edge& e : p.edges)
    if (is_local(e.handshake))
      for (const StageId to : e.to)
        if (const auto port = port_of(p.stage(to), e.buffer, Direction::input))
          claims[e.buffer.value].popped.push_back(count_pages(p, p.stage(to), *port, 0).value_or(PortCounts{}).popped -
                                                  mutated("certify.pop_too_few", 0, 1));
  // A crossing edge takes every page that it is given: what it does not take would not balance.
  for (const Edge& e : p.edges)
    if (!is_local(e.handshake)) claims[e.buffer.value].popped.push_back(claims[e.buffer.value].pushed);
  return claims;
}

// ---- counters and outputs

std::vector<CounterClaim> counter_claims(const SpatialProgram& p, const Target& target) {
  std::vector<CounterClaim> claims;
  for (const Edge& e : p.edges) {
    if (e.handshake == Handshake::circular_buffer && target.site.page_counter_bits != 0) {
      const Buffer& b = p.buffer(e.buffer);
      claims.push_back({e.id, b.initial_pages, b.depth_pages, target.site.page_counter_bits});
    }
    if (is_local(e.handshake)) continue;
    std::uint64_t receivers = 1;  // of an instance of the sender, at each `to`
    if (e.map.kind == PageMapKind::multicast)
      for (const auto& targets : e.map.targets) receivers = std::max<std::uint64_t>(receivers, targets.size());
    receivers *= e.to.size();
    CounterClaim claim{e.id, 0, 0, e.counter_bits};
    if (e.handshake == Handshake::token) {  // credits: one a page of the landing
      for (const StageId to : e.to)
        claim.greatest = std::max(claim.greatest, p.buffer(p.stage(to).ports[0].buffer).depth_pages);
      claim.initial = claim.greatest - mutated("certify.credit_too_few", 0, 1);
    } else if (e.handshake == Handshake::semaphore) {  // ready: once a receiver and generation
      claim.greatest = receivers + mutated("certify.counter_too_high", 0, 1);
      for (const SemaphoreId id : e.semaphores->valid)
        claim.width_bits = std::min(claim.width_bits, p.semaphores[id.value].width_bits);
      claim.width_bits = std::min(claim.width_bits, p.semaphores[e.semaphores->ready.value].width_bits);
    } else {  // a barrier is wires: a member has arrived in this generation, or has not
      claim.greatest = 1;
    }
    claims.push_back(claim);
  }
  return claims;
}

std::vector<OutputClaim> output_claims(const SpatialProgram& p) {
  std::map<TensorId, TensorId> first_of;  // by what is stored: what that store writes in its first trip
  for (const Stage& s : p.stages)
    if (const auto* store = std::get_if<Store>(&s.kind))
      for_each_tensor(*store, [&](TensorId t) { first_of.try_emplace(t, store->tensor); });
  std::vector<OutputClaim> claims;
  for (const auto& [id, first] : first_of) {
    const Tensor& t = p.tensor(id);
    OutputClaim claim{
        id, static_cast<std::uint64_t>(element_count(t.shape).value_or(0)) - mutated("certify.element_too_few", 0, 1),
        t.replicas, 0};
    for (const SummationTree& tree : p.trees) {
      const bool makes_it = p.operators && tree.op.value < p.operators->operators.size() &&
                            p.operators->operators[tree.op.value].out == p.tensor(first).operand;
      // Sums of columns that other chips have say nothing of this chip's.
      const bool is_here = std::any_of(tree.nodes.begin(), tree.nodes.end(),
                                       [&](const SummationNode& n) { return n.leaf && n.chip == t.chip; });
      if (!makes_it || !is_here) continue;
      const auto leaves =
          std::count_if(tree.nodes.begin(), tree.nodes.end(), [](const SummationNode& n) { return n.leaf; });
      claim.contributions = std::max(
          claim.contributions, static_cast<std::uint64_t>(leaves) - mutated("certify.contribution_too_few", 0, 1));
    }
    claims.push_back(claim);
  }
  return claims;
}

// ---- memory

MemoryClaim memory_claim(const SpatialProgram& p, const Target& target) {
  MemoryClaim claim;
  claim.site_capacity_bytes = target.pmu.capacity_bytes;
  claim.chip_capacity_bytes = target.hbm.capacity_bytes;
  std::map<StageId, Bytes> accumulator;
  for (const AccumulatorPlace& a : p.memory->accumulators) accumulator[a.stage] = a.bytes;
  for (const Section& section : p.sections) {
    std::map<BufferId, Bytes> storage;  // of those that are no alias: the largest of it and its aliases
    std::map<GroupId, Bytes> of_group;
    for (const Stage& s : p.stages) {
      if (s.section != section.id) continue;
      if (const auto a = accumulator.find(s.id); a != accumulator.end()) of_group[s.group] += a->second;
      for (const Port& port : s.ports) {
        const Buffer& b = p.buffer(port.buffer);
        Bytes& bytes = storage[b.alias_of.value_or(b.id)];
        bytes = std::max(bytes, b.depth_pages * b.page_bytes);
      }
    }
    for (const auto& [buffer, bytes] : storage) of_group[p.buffer(buffer).group] += bytes;
    std::map<Site, Bytes> sites;
    for (const auto& [group, bytes] : of_group)
      for (const Site& site : p.group(group).sites)
        claim.busiest_site_bytes =
            std::max(claim.busiest_site_bytes, sites[site] += mutated("certify.site_holds_nothing", bytes, 0));
  }
  std::map<ChipId, Bytes> chips;
  for (const Tensor& t : p.tensors)
    if (t.space == MemorySpace::hbm)
      claim.busiest_chip_bytes =
          std::max(claim.busiest_chip_bytes, chips[t.chip] += p.memory->tensors[t.id.value].bytes);
  return claim;
}

// ---- network

// Whether an order of the chip links exists that every route follows: then no pages wait for each other in a circle.
// Takes away links that wait for none, until none is left or none can be.
bool links_are_ordered(const SpatialProgram& p) {
  std::map<LinkId, std::set<LinkId>> waits_for, waited_by;
  std::set<LinkId> links;
  for (const Edge& e : p.edges)
    for (const auto& route : e.routes) {
      links.insert(route.begin(), route.end());
      for (std::size_t i = 1; i < route.size(); ++i) {
        waits_for[route[i - 1]].insert(route[i]);
        waited_by[route[i]].insert(route[i - 1]);
      }
    }
  std::vector<LinkId> free;
  for (const LinkId link : links)
    if (waits_for[link].empty()) free.push_back(link);
  std::size_t removed = 0;
  while (!free.empty()) {
    const LinkId link = free.back();
    free.pop_back();
    ++removed;
    for (const LinkId before : waited_by[link]) {
      waits_for[before].erase(link);
      if (waits_for[before].empty()) free.push_back(before);
    }
  }
  return removed == links.size();
}

// Of each section, the circle of firings with which it takes longest, by the target's laws alone.
std::vector<CircleClaim> circle_claims(const SpatialProgram& p, const Target& target) {
  std::map<SectionId, CircleClaim> slowest;
  const std::vector<Cluster> clusters = clusters_of(p);
  const std::vector<StageTiming> least = cost::least_times(p, clusters, target);
  for (const Cluster& cluster : clusters) {
    const SectionId section = p.stage(cluster.stages.front()).section;
    const auto claim = circle_bound(p, cluster, least, p.sections[section.value].trips);
    if (!claim) continue;
    const auto [at, fresh] = slowest.try_emplace(section, *claim);
    if (!fresh && *claim->bound() > *at->second.bound()) at->second = *claim;
  }
  std::vector<CircleClaim> claims;
  for (auto& [section, claim] : slowest) {
    claim.way = mutated("certify.circle_too_slow", claim.way, 10 * claim.way);
    claims.push_back(std::move(claim));
  }
  return claims;
}

// `broken`: rules that obligations say again.
void add_certificate(SpatialProgram& program, const Target& target, const Diagnostics& broken) {
  Certificate c;
  const bool narrow =
      (program.operators && !program.operators->assumes.empty()) ||
      std::any_of(program.stages.begin(), program.stages.end(), [](const Stage& s) { return !s.assumes.empty(); });
  for (std::size_t kind = 0; kind < obligation_kinds; ++kind)
    c.obligations.push_back(
        {static_cast<ObligationKind>(kind), ProofStatus::proved,
         mutated("certify.of_every_input", narrow, false) ? ProofScope::this_input_only : ProofScope::every_schedule,
         ""});
  const auto unchecked = [&](ObligationKind kind, std::string reason) {
    Obligation& o = c.obligations[static_cast<std::size_t>(kind)];
    o.status = ProofStatus::unchecked;
    o.reason = std::move(reason);
  };
  c.buffers = buffer_claims(program);
  const std::vector<std::uint64_t> least = least_depths(program);
  for (BufferClaim& claim : c.buffers)
    claim.least_depth = least[claim.buffer.value] + mutated("certify.least_depth_too_deep", 0, 1);
  c.counters = counter_claims(program, target);
  c.outputs = output_claims(program);
  c.memory = memory_claim(program, target);
  for (const Edge& e : program.edges)
    ++(is_local(e.handshake) != mutated("certify.local_edges_cross", false, true) ? c.local_edges : c.crossing_edges);
  if (!links_are_ordered(program))
    unchecked(
        ObligationKind::network_progress,
        "the routes between chips lie on a cycle of links, so their order alone does not show that pages move on");
  for (const Diagnostic& d : broken.list()) {
    const auto kind = d.severity == Severity::error ? obligation_of(d.code) : std::nullopt;
    if (!kind) continue;
    Obligation& o = c.obligations[static_cast<std::size_t>(*kind)];
    if (o.status == ProofStatus::refuted) continue;  // the first witness
    o.status = ProofStatus::refuted;
    o.reason = d.message;
  }
  const auto refuted = [&](ObligationKind kind) {
    return c.obligations[static_cast<std::size_t>(kind)].status == ProofStatus::refuted;
  };
  if (refuted(ObligationKind::counting_balance) || refuted(ObligationKind::deadlock_freedom))
    for (const ObligationKind kind : {ObligationKind::reduction_completeness, ObligationKind::cycle_bounds})
      if (!refuted(kind)) unchecked(kind, "the program does not run to its end");
  if (std::none_of(c.obligations.begin(), c.obligations.end(),
                   [](const Obligation& o) { return o.status == ProofStatus::refuted; }))
    c.circles = circle_claims(program, target);
  program.certificate = std::move(c);
  const Costs costs = estimate(program, target);
  program.certificate->lower_bound_cycles =
      mutated("certify.bound_too_high", costs.lower_bound_cycles, 10 * costs.predicted_cycles);
  program.certificate->predicted_cycles = costs.predicted_cycles;
}

bool complete_but_for_it(const SpatialProgram& p) {
  return !p.certificate && p.placement && p.memory && p.schedule;
}

}  // namespace

Result<SpatialProgram> certify(SpatialProgram program, const Target& target) {
  if (!complete_but_for_it(program)) return program;
  // The rule says more than a refuted obligation would.
  const Diagnostics broken = verify(program, target);
  if (broken.has_errors()) return broken;
  add_certificate(program, target, broken);
  return program;
}

Result<SpatialProgram> certify_refuted(SpatialProgram program, const Target& target) {
  if (!complete_but_for_it(program)) return program;
  const Diagnostics broken = verify(program, target);
  for (const Diagnostic& d : broken.list())
    if (d.severity == Severity::error && !obligation_of(d.code)) return broken;
  add_certificate(program, target, broken);
  return program;
}

}  // namespace rdusim
