#include "compiler/ir/memory_order.h"

#include <map>
#include <utility>

namespace rdusim {

std::vector<MemoryOrder> memory_orders(const SpatialProgram& program, std::optional<SectionId> section) {
  const auto looked_at = [&](const Stage& s) { return !section || s.section == *section; };
  std::map<std::pair<SectionId, TensorId>, MemoryOrder> found;
  for (const Stage& s : program.stages)
    if (const auto* store = std::get_if<Store>(&s.kind); store && looked_at(s))
      found[{s.section, store->tensor}].stores.push_back(s.id);
  for (const Stage& s : program.stages)
    if (const auto* load = std::get_if<Load>(&s.kind); load && looked_at(s))
      if (const auto at = found.find({s.section, load->tensor}); at != found.end()) at->second.loads.push_back(s.id);
  std::vector<MemoryOrder> orders;
  for (auto& [key, order] : found) {
    if (order.loads.empty()) continue;
    order.section = key.first;
    order.tensor = key.second;
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace rdusim
