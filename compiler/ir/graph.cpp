#include "compiler/ir/graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <queue>
#include <utility>

namespace rdusim {

using Arcs = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

struct StageGraph::Impl {
  std::vector<StageId> stages;               // vertex -> stage
  std::vector<std::size_t> vertex_of_stage;  // by stage id; `no_vertex` outside the section
  Arcs arcs;

  static constexpr std::size_t no_vertex = static_cast<std::size_t>(-1);

  // The vertices on a shortest path of at least one arc from `from` to `to`, without `to`; empty where there is none.
  std::vector<std::size_t> path(std::size_t from, std::size_t to) const {
    std::vector<std::size_t> came_from(stages.size(), no_vertex);
    std::queue<std::size_t> open;
    open.push(from);
    while (!open.empty()) {
      const std::size_t v = open.front();
      open.pop();
      for (auto [a, end] = boost::out_edges(v, arcs); a != end; ++a) {
        const std::size_t w = boost::target(*a, arcs);
        if (w == to) {
          std::vector<std::size_t> back{v};
          while (back.back() != from) back.push_back(came_from[back.back()]);
          return {back.rbegin(), back.rend()};
        }
        if (w != from && came_from[w] == no_vertex) {
          came_from[w] = v;
          open.push(w);
        }
      }
    }
    return {};
  }
};

StageGraph::StageGraph(const SpatialProgram& program, SectionId section) : impl_(std::make_unique<Impl>()) {
  impl_->vertex_of_stage.assign(program.stages.size(), Impl::no_vertex);
  for (const Stage& s : program.stages) {
    if (s.section != section) continue;
    impl_->vertex_of_stage[s.id.value] = impl_->stages.size();
    impl_->stages.push_back(s.id);
  }
  std::vector<std::pair<std::size_t, std::size_t>> arcs;
  for (const Edge& e : program.edges) {
    if (program.buffer(e.buffer).initial_pages != 0) continue;
    const std::size_t from = impl_->vertex_of_stage[e.from.value];
    if (from == Impl::no_vertex) continue;
    for (StageId to : e.to) {
      const std::size_t v = impl_->vertex_of_stage[to.value];
      if (v != Impl::no_vertex) arcs.emplace_back(from, v);
    }
  }
  std::sort(arcs.begin(), arcs.end());
  arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
  for (std::size_t v = 0; v < impl_->stages.size(); ++v) boost::add_vertex(impl_->arcs);
  for (auto [from, to] : arcs) boost::add_edge(from, to, impl_->arcs);
}

StageGraph::~StageGraph() = default;
StageGraph::StageGraph(StageGraph&&) noexcept = default;
StageGraph& StageGraph::operator=(StageGraph&&) noexcept = default;

const std::vector<StageId>& StageGraph::stages() const {
  return impl_->stages;
}

std::optional<std::vector<StageId>> StageGraph::topological_order() const {
  std::vector<std::size_t> open_producers(impl_->stages.size(), 0);
  for (std::size_t v = 0; v < impl_->stages.size(); ++v)
    for (auto [a, end] = boost::out_edges(v, impl_->arcs); a != end; ++a)
      ++open_producers[boost::target(*a, impl_->arcs)];
  // boost::topological_sort follows its depth-first search; the least id first needs a heap.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < open_producers.size(); ++v)
    if (open_producers[v] == 0) ready.push(v);
  std::vector<StageId> order;
  order.reserve(impl_->stages.size());
  while (!ready.empty()) {
    const std::size_t v = ready.top();
    ready.pop();
    order.push_back(impl_->stages[v]);
    for (auto [a, end] = boost::out_edges(v, impl_->arcs); a != end; ++a) {
      const std::size_t w = boost::target(*a, impl_->arcs);
      if (--open_producers[w] == 0) ready.push(w);
    }
  }
  if (order.size() != impl_->stages.size()) return std::nullopt;
  return order;
}

std::vector<std::vector<StageId>> StageGraph::strong_components() const {
  const std::size_t n = impl_->stages.size();
  std::vector<std::size_t> component_of(n, 0);
  if (n == 0) return {};
  const std::size_t count = boost::strong_components(
      impl_->arcs,
      boost::make_iterator_property_map(component_of.begin(), boost::get(boost::vertex_index, impl_->arcs)));
  std::vector<std::vector<StageId>> components(count);
  for (std::size_t v = 0; v < n; ++v) components[component_of[v]].push_back(impl_->stages[v]);
  std::sort(components.begin(), components.end());
  return components;
}

std::optional<std::vector<StageId>> StageGraph::cycle() const {
  for (const std::vector<StageId>& component : strong_components()) {
    const std::size_t v = impl_->vertex_of_stage[component.front().value];
    const std::vector<std::size_t> path = impl_->path(v, v);
    if (path.empty()) continue;
    std::vector<StageId> stages;
    for (std::size_t w : path) stages.push_back(impl_->stages[w]);
    return stages;
  }
  return std::nullopt;
}

bool StageGraph::reaches(StageId from, StageId to) const {
  return !impl_->path(impl_->vertex_of_stage[from.value], impl_->vertex_of_stage[to.value]).empty();
}

}  // namespace rdusim
