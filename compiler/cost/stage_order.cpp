#include "compiler/cost/stage_order.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ir/memory_order.h"

namespace rdusim::cost {

std::vector<StageId> stage_order(const SpatialProgram& program, SectionId section) {
  const auto in_section = [&](StageId s) { return program.stage(s).section == section; };
  std::vector<std::vector<StageId>> after(program.stages.size());
  std::vector<std::size_t> before(program.stages.size(), 0);
  for (const Edge& e : program.edges) {
    if (!in_section(e.from) || program.buffer(e.buffer).initial_pages != 0) continue;
    for (const StageId to : e.to)
      if (in_section(to) && to != e.from) {
        after[e.from.value].push_back(to);
        ++before[to.value];
      }
  }
  for (const MemoryOrder& order : memory_orders(program, section)) {
    if (order.lag != 0) continue;
    for (const StageId from : order.stores)
      for (const StageId to : order.loads) {
        after[from.value].push_back(to);
        ++before[to.value];
      }
  }
  std::set<StageId> ready, waiting;
  for (const Stage& s : program.stages)
    if (s.section == section) (before[s.id.value] == 0 ? ready : waiting).insert(s.id);
  std::vector<StageId> order;
  while (!ready.empty() || !waiting.empty()) {
    std::set<StageId>& from = ready.empty() ? waiting : ready;
    const StageId next = *from.begin();
    from.erase(from.begin());
    order.push_back(next);
    for (const StageId s : after[next.value])
      if (--before[s.value] == 0 && waiting.erase(s) != 0) ready.insert(s);
  }
  return order;
}

}  // namespace rdusim::cost
