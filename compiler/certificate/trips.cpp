#include "compiler/certificate/trips.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/certificate/moves.h"

namespace rdusim::certificate {

namespace {

bool same_place_and_shape(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.tiles == b.tiles && a.dtype == b.dtype && a.layout == b.layout && a.space == b.space &&
         a.chip == b.chip && a.whole == b.whole && a.offset == b.offset;
}

// Loads and Stores of a section.
struct Accesses {
  std::vector<std::pair<const Stage*, const Load*>> loads;
  std::vector<std::pair<const Stage*, const Store*>> stores;

  Accesses(const Subject& s, const Section& section) {
    for (const Stage& stage : s.p.stages) {
      if (stage.section != section.id) continue;
      if (const auto* load = std::get_if<Load>(&stage.kind)) loads.emplace_back(&stage, load);
      if (const auto* store = std::get_if<Store>(&stage.kind)) stores.emplace_back(&stage, store);
    }
  }
  template <class F>
  bool all_of(F&& f) const {
    for (const auto& [stage, load] : loads)
      if (!f(*stage, *load)) return false;
    for (const auto& [stage, store] : stores)
      if (!f(*stage, *store)) return false;
    return true;
  }
};

}  // namespace

Finding trips_are_alike(const Subject& s, const Section& section) {
  if (section.trips <= 1) return {};
  const Accesses accesses(s, section);
  Finding finding;
  const bool tensors = accesses.all_of([&](const Stage& stage, const auto& access) {
    if (access.later.empty()) return true;
    if (access.later.size() + 1 != section.trips) {
      finding = refuted("stage '{}' names tensors of {} trips, and section '{}' makes {}", stage.name,
                        access.later.size() + 1, section.name, section.trips);
      return false;
    }
    for (const TensorId later : access.later)
      if (!same_place_and_shape(s.p.tensor(access.tensor), s.p.tensor(later))) {
        finding = refuted("stage '{}' works on '{}' first and on '{}' later, which are not alike", stage.name,
                          s.p.tensor(access.tensor).name, s.p.tensor(later).name);
        return false;
      }
    return true;
  });
  if (!tensors || !s.p.operators) return finding;

  const OperatorGraph& graph = *s.p.operators;
  const std::vector<OperandId> holder = holders(graph);
  std::set<std::uint32_t> first;
  for (const Stage& stage : s.p.stages) {
    if (stage.section != section.id) continue;
    if (stage.origin && stage.origin->value < graph.operators.size()) first.insert(stage.origin->value);
    if (const auto* m = std::get_if<MatmulTiles>(&stage.kind); m != nullptr && m->op.value < graph.operators.size())
      first.insert(m->op.value);
  }
  for (std::uint64_t trip = 1; trip < section.trips; ++trip) {
    std::map<std::uint32_t, std::uint32_t> stands_for;  // operand of the first trip: which it is in this one
    for (const std::uint32_t id : first) {
      const std::uint64_t own = sum(id, product(trip, section.operators_a_trip));
      if (own >= graph.operators.size())
        return refuted("section '{}', trip {}: there is no operator {}", section.name, trip, own);
      const Operator& a = graph.operators[id];
      const Operator& b = graph.operators[own];
      bool alike = a.kind == b.kind && a.attributes == b.attributes && a.in.size() == b.in.size();
      for (std::size_t i = 0; alike && i <= a.in.size(); ++i) {
        const OperandId of_a = i < a.in.size() ? a.in[i] : a.out, of_b = i < b.in.size() ? b.in[i] : b.out;
        const Operand& operand_a = graph.operand(of_a);
        const Operand& operand_b = graph.operand(of_b);
        alike = operand_a.shape == operand_b.shape && operand_a.dtype == operand_b.dtype &&
                stands_for.try_emplace(of_a.value, of_b.value).first->second == of_b.value;
      }
      if (!alike)
        return refuted("section '{}', trip {}: operator '{}' is not to it what '{}' is to the first", section.name,
                       trip, b.name, a.name);
    }
    const bool agree = accesses.all_of([&](const Stage& stage, const auto& access) {
      const Tensor& t = s.p.tensor(of_trip(access, trip));
      const auto operand = stands_for.find(s.p.tensor(access.tensor).operand.value);
      if (operand == stands_for.end() ? of_trip(access, trip) == access.tensor : holder[operand->second] == t.operand)
        return true;
      finding = refuted("stage '{}', trip {}: works on '{}', which does not stand where '{}' does in the first",
                        stage.name, trip, t.name, s.p.tensor(access.tensor).name);
      return false;
    });
    if (!agree) return finding;
  }
  return finding;
}

Finding reads_what_is_written(const Subject& s, const Section& section) {
  const Accesses accesses(s, section);
  std::map<TensorId, std::vector<std::pair<std::size_t, std::uint64_t>>> written;  // by which store in which trip
  for (std::size_t i = 0; i < accesses.stores.size(); ++i)
    for (std::uint64_t trip = 0; trip < section.trips; ++trip) {
      written[of_trip(*accesses.stores[i].second, trip)].emplace_back(i, trip);
      if (accesses.stores[i].second->later.empty() && trip > 0) break;  // twice says it
    }
  for (const auto& [stage, load] : accesses.loads) {
    std::map<std::size_t, std::uint64_t> behind;  // by store: how many trips
    for (std::uint64_t trip = 0; trip < section.trips; ++trip) {
      const auto at = written.find(of_trip(*load, trip));
      if (at == written.end()) {
        for (const auto& [store, lag] : behind)
          return refuted("section '{}': '{}' reads what '{}' writes in trip {}, and not in trip {}", section.name,
                         stage->name, accesses.stores[store].first->name, trip - 1, trip);
        continue;
      }
      for (const auto& [store, wrote] : at->second) {
        const std::string& by = accesses.stores[store].first->name;
        if (wrote > trip)
          return refuted("section '{}': '{}' reads in trip {} what '{}' writes in trip {}", section.name, stage->name,
                         trip, by, wrote);
        const auto [lag, fresh] = behind.try_emplace(store, trip - wrote);
        if (lag->second != trip - wrote || (fresh && wrote != 0))
          return refuted(
              "section '{}': '{}' reads in trip {} what '{}' has written {} trips before, and not so in others",
              section.name, stage->name, trip, by, trip - wrote);
      }
    }
  }
  return {};
}

}  // namespace rdusim::certificate
