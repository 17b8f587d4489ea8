#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace rdusim {
namespace {

template <class T>
T moved(T id, std::size_t by) {
  return T(id.value + by);
}
// Gives all tensors that a Load or Store works on other ids.
template <class F>
void rename_tensors(StageKind& kind, F&& f) {
  const auto rename = [&](auto& access) {
    access.tensor = f(access.tensor);
    for (TensorId& t : access.later) t = f(t);
  };
  if (auto* load = std::get_if<Load>(&kind)) rename(*load);
  if (auto* store = std::get_if<Store>(&kind)) rename(*store);
}

// Ids before to ids after; nothing for what goes.
template <class T>
std::vector<std::optional<T>> renumber(std::size_t size, const std::vector<bool>& gone) {
  std::vector<std::optional<T>> to(size);
  std::size_t next = 0;
  for (std::size_t i = 0; i < size; ++i)
    if (i >= gone.size() || !gone[i]) to[i] = T(next++);
  return to;
}

template <class Element, class Id>
void keep(std::vector<Element>& list, const std::vector<std::optional<Id>>& to) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!to[i]) continue;
    if (next != i) list[next] = std::move(list[i]);
    list[next].id = *to[i];
    ++next;
  }
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(next), list.end());
}

}  // namespace

SpatialProgram side_by_side(const std::vector<const SpatialProgram*>& chips) {
  SpatialProgram all;
  const SpatialProgram& first = *chips.front();
  all.header = first.header;
  all.operators = first.operators;
  all.sections = first.sections;
  all.required = first.required;
  all.placement = Placement{first.placement->mesh, {}, {}};
  for (std::size_t c = 0; c < chips.size(); ++c) {
    const SpatialProgram& one = *chips[c];
    // What the chips before have of each list.
    const std::size_t tensors = all.tensors.size(), stages = all.stages.size(), buffers = all.buffers.size();
    const std::size_t edges = all.edges.size(), semaphores = all.semaphores.size(), work = all.work.size();
    const std::size_t groups = all.placement->groups.size();
    const std::string suffix = "_c" + std::to_string(c);
    for (Tensor t : one.tensors) {
      t.id = moved(t.id, tensors);
      t.name += suffix;
      t.chip = ChipId(c);
      all.tensors.push_back(std::move(t));
    }
    for (Stage s : one.stages) {
      s.id = moved(s.id, stages);
      s.name += suffix;
      rename_tensors(s.kind, [&](TensorId t) { return moved(t, tensors); });
      if (auto* recv = std::get_if<Recv>(&s.kind)) recv->edge = moved(recv->edge, edges);
      for (Port& port : s.ports) port.buffer = moved(port.buffer, buffers);
      s.group = moved(s.group, groups);
      all.stages.push_back(std::move(s));
    }
    for (Buffer b : one.buffers) {
      b.id = moved(b.id, buffers);
      b.name += suffix;
      b.group = moved(b.group, groups);
      if (b.alias_of) b.alias_of = moved(*b.alias_of, buffers);
      all.buffers.push_back(std::move(b));
    }
    for (Edge e : one.edges) {
      e.id = moved(e.id, edges);
      e.from = moved(e.from, stages);
      e.buffer = moved(e.buffer, buffers);
      for (StageId& to : e.to) to = moved(to, stages);
      if (e.semaphores) {
        e.semaphores->ready = moved(e.semaphores->ready, semaphores);
        for (SemaphoreId& v : e.semaphores->valid) v = moved(v, semaphores);
      }
      all.edges.push_back(std::move(e));
    }
    for (Semaphore s : one.semaphores) {
      s.id = moved(s.id, semaphores);
      s.group = moved(s.group, groups);
      all.semaphores.push_back(s);
    }
    for (Work w : one.work) {
      w.id = moved(w.id, work);
      w.chip = ChipId(c);
      all.work.push_back(std::move(w));
    }
    for (Group g : one.placement->groups) {
      g.id = moved(g.id, groups);
      for (Site& site : g.sites) site.chip = ChipId(c);
      all.placement->groups.push_back(std::move(g));
    }
    for (WorkAssignment a : one.placement->work) {
      a.stage = moved(a.stage, stages);
      a.work = moved(a.work, work);
      all.placement->work.push_back(std::move(a));
    }
  }
  return all;
}

void drop(SpatialProgram& p, const Dropped& gone) {
  const auto tensors = renumber<TensorId>(p.tensors.size(), gone.tensors);
  const auto stages = renumber<StageId>(p.stages.size(), gone.stages);
  const auto buffers = renumber<BufferId>(p.buffers.size(), gone.buffers);
  const auto edges = renumber<EdgeId>(p.edges.size(), gone.edges);
  const auto work = renumber<WorkId>(p.work.size(), gone.work);
  if (p.placement) std::erase_if(p.placement->work, [&](const WorkAssignment& a) { return !stages[a.stage.value]; });
  keep(p.tensors, tensors);
  keep(p.stages, stages);
  keep(p.buffers, buffers);
  keep(p.edges, edges);
  keep(p.work, work);

  for (Stage& s : p.stages) {
    rename_tensors(s.kind, [&](TensorId t) { return *tensors[t.value]; });
    if (auto* recv = std::get_if<Recv>(&s.kind)) recv->edge = *edges[recv->edge.value];
    // A port of a buffer that is gone (a mistake of the pass that dropped it) refers to none, whatever memory holds.
    for (Port& port : s.ports) port.buffer = buffers[port.buffer.value].value_or(BufferId(p.buffers.size()));
  }
  for (Buffer& b : p.buffers)
    if (b.alias_of) b.alias_of = *buffers[b.alias_of->value];
  for (Edge& e : p.edges) {
    e.from = *stages[e.from.value];
    e.buffer = *buffers[e.buffer.value];
    for (StageId& to : e.to) to = *stages[to.value];
  }
  if (p.placement)
    for (WorkAssignment& a : p.placement->work) a.stage = *stages[a.stage.value], a.work = *work[a.work.value];
}

bool share_sites(const Group& a, const Group& b) {
  if (a.id == b.id) return true;
  if (a.sites.empty() || b.sites.empty() || a.sites.front().chip != b.sites.front().chip) return false;
  const std::set<Site> of_a(a.sites.begin(), a.sites.end());
  return std::any_of(b.sites.begin(), b.sites.end(), [&](const Site& s) { return of_a.contains(s); });
}

StagesByChip::StagesByChip(const SpatialProgram& program) : p_(program) {
  for (const Stage& s : program.stages) add(s);
}

void StagesByChip::add(const Stage& s) {
  const std::size_t chip = p_.chip_of(s).value;
  if (chip >= by_chip_.size()) by_chip_.resize(chip + 1);
  by_chip_[chip].push_back(s.id);
}

template <class See>
void StagesByChip::each(GroupId group, SectionId section, StageRole role, See&& see) const {
  const Group& g = p_.group(group);
  const std::size_t chip = g.sites.front().chip.value;
  if (chip >= by_chip_.size()) return;
  for (const StageId id : by_chip_[chip]) {
    const Stage& s = p_.stage(id);
    if (s.section == section && s.engine.kind == role && share_sites(g, p_.sites_of(s))) see(s);
  }
}

std::uint32_t StagesByChip::free_context(GroupId group, SectionId section) const {
  std::set<std::uint32_t> taken;
  each(group, section, StageRole::compute, [&](const Stage& s) { taken.insert(s.engine.index); });
  std::uint32_t context = 0;
  while (taken.contains(context)) ++context;
  return context;
}

std::vector<std::uint32_t> StagesByChip::engine_load(GroupId group, SectionId section, std::uint32_t engines) const {
  std::vector<std::uint32_t> load(engines, 0);
  each(group, section, StageRole::movement, [&](const Stage& s) {
    if (s.engine.index < engines) ++load[s.engine.index];
  });
  return load;
}

}  // namespace rdusim
