#include <algorithm>
#include <map>

#include "compiler/cost/cost.h"
#include "compiler/cost/exact.h"
#include "compiler/cost/lower_bound.h"
#include "compiler/cost/section_cost.h"
#include "compiler/cost/stage_cost.h"
#include "compiler/cost/traffic.h"
#include "compiler/ir/trips.h"

namespace rdusim {

namespace {

// Independent instances that carry out one member's part: the sites of the widest of its stages.
std::uint64_t lanes_of(const SpatialProgram& program, CollectiveId collective) {
  std::size_t lanes = 1;
  for (const Edge& e : program.edges)
    if (e.collective == collective) lanes = std::max(lanes, program.sites_of(program.stage(e.from)).sites.size());
  return lanes;
}

// Pages that an instance of the stages before the collective hands to it, a trip.
std::uint64_t pages_into(const SpatialProgram& program, CollectiveId collective) {
  std::uint64_t pages = 1;
  for (const Edge& e : program.edges)
    if (e.collective == collective && !program.stage(e.from).collective)
      pages = std::max(pages, cost::pages_pushed(program.stage(e.from), e.buffer));
  return pages;
}

std::vector<cost::MemoryFlow> memory_of(const SpatialProgram& program) {
  std::vector<cost::MemoryFlow> flows;
  for (const Stage& s : program.stages)
    for (auto& flow : cost::memory_flows(program, s)) flows.push_back(std::move(flow));
  return flows;
}
std::vector<cost::CrossingFlow> crossings_of(const SpatialProgram& program) {
  std::vector<cost::CrossingFlow> flows;
  for (const Edge& e : program.edges)
    for (auto& flow : cost::crossing_flows(program, e)) flows.push_back(flow);
  return flows;
}

// What a section's circle of firings takes longer than all that is estimated is spent waiting for pages and room.
void no_faster_than(const std::vector<CircleClaim>& circles, SectionId section, SectionCost& cost) {
  for (const CircleClaim& circle : circles) {
    const Cycles least = cost::plus(cost.launch, circle.bound().value_or(0));
    if (circle.section == section && cost.total() < least) cost.fill = cost::plus(cost.fill, least - cost.total());
  }
}

struct Flows {
  explicit Flows(const SpatialProgram& p) : memory(memory_of(p)), crossings(crossings_of(p)) {}
  std::vector<cost::MemoryFlow> memory;
  std::vector<cost::CrossingFlow> crossings;
};

// All but the sums over sections, and what the certificate claims.
Costs estimate_parts(const SpatialProgram& program, const Flows& flows, const Target& target) {
  Costs costs;
  costs.stages = cost::stage_costs(program, target, flows.memory, flows.crossings);
  for (const Collective& c : program.collectives) {
    const Bytes bytes = c.bytes.empty() ? 0 : *std::max_element(c.bytes.begin(), c.bytes.end());
    costs.collectives.push_back(estimate_collective(c.kind, c.algorithm, bytes, lanes_of(program, c.id), c.members,
                                                    target, pages_into(program, c.id)));
  }
  for (const Section& s : program.sections)
    costs.sections.push_back(
        cost::section_cost(program, target, s.id, costs.stages, flows.memory, flows.crossings, costs.collectives));
  return costs;
}

// The program with one trip of what is relaunched.
SpatialProgram of_one_launch(SpatialProgram program) {
  program.certificate.reset();
  for (Stage& s : program.stages) {
    if (!program.sections[s.section.value].relaunched) continue;
    if (auto* load = std::get_if<Load>(&s.kind)) load->later.clear();
    if (auto* store = std::get_if<Store>(&s.kind)) store->later.clear();
  }
  for (Section& s : program.sections)
    if (s.relaunched) s.trips = 1;
  return program;
}

void repeat(std::uint64_t times, SectionCost& c) {
  for (Cycles* part : {&c.launch, &c.fill, &c.compute, &c.memory, &c.link, &c.network, &c.drain})
    *part = cost::times(*part, times);
}

Costs estimate_launches(const SpatialProgram& program, const Target& target) {
  const SpatialProgram one = of_one_launch(program);
  Costs costs = estimate_parts(one, Flows(one), target);
  for (const Section& s : program.sections) repeat(launches_of(s), costs.sections[s.id.value]);
  for (const Stage& s : program.stages) {
    Cycles& total = costs.stages[s.id.value].total_cycles;
    total = cost::times(total, launches_of(program.sections[s.section.value]));
  }
  return costs;
}

}  // namespace

std::vector<StageCost> estimate_stages(const SpatialProgram& program, const Target& target) {
  return cost::stage_costs(program, target, memory_of(program), crossings_of(program));
}

Costs estimate(const SpatialProgram& program, const Target& target) {
  const Flows flows(program);
  const bool relaunched =
      std::any_of(program.sections.begin(), program.sections.end(), [](const Section& s) { return s.relaunched; });
  Costs costs = relaunched ? estimate_launches(program, target) : estimate_parts(program, flows, target);
  for (const Section& s : program.sections) {
    if (program.certificate) no_faster_than(program.certificate->circles, s.id, costs.sections[s.id.value]);
    costs.predicted_cycles = cost::plus(costs.predicted_cycles, costs.sections[s.id.value].total());
  }
  costs.lower_bound_cycles = cost::lower_bound(program, target, flows.memory, flows.crossings);
  return costs;
}

}  // namespace rdusim
