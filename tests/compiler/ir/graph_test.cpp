#include "compiler/ir/graph.h"

#include <doctest/doctest.h>

namespace rdusim::graph_test {
namespace {

SpatialProgram stages(std::size_t count) {
  SpatialProgram p;
  p.sections.push_back({SectionId{0}, "s", 1});
  for (std::size_t i = 0; i < count; ++i) {
    Stage s;
    s.id = StageId{i};
    s.name = "s" + std::to_string(i);
    p.stages.push_back(s);
  }
  return p;
}

void join(SpatialProgram& p, std::size_t from, std::size_t to, std::uint64_t initial_pages = 0) {
  Buffer b;
  b.id = BufferId{p.buffers.size()};
  b.initial_pages = initial_pages;
  p.buffers.push_back(b);
  Edge e;
  e.id = EdgeId{p.edges.size()};
  e.from = StageId{from};
  e.buffer = b.id;
  e.to = {StageId{to}};
  p.edges.push_back(e);
}

std::vector<StageId> ids(std::initializer_list<std::size_t> list) {
  std::vector<StageId> out;
  for (std::size_t i : list) out.push_back(StageId{i});
  return out;
}

TEST_CASE("of the stages that may come next the least id comes first") {
  SpatialProgram p = stages(5);
  join(p, 4, 0);
  join(p, 3, 1);
  join(p, 1, 0);
  CHECK(StageGraph(p, SectionId{0}).topological_order() == ids({2, 3, 1, 4, 0}));
}

TEST_CASE("a cycle has no topological order and is named from its least stage") {
  SpatialProgram p = stages(5);
  join(p, 0, 3);
  join(p, 3, 2);
  join(p, 2, 4);
  join(p, 4, 3);
  const StageGraph graph(p, SectionId{0});
  CHECK_FALSE(graph.topological_order().has_value());
  CHECK(graph.cycle() == ids({2, 4, 3}));
  CHECK(graph.strong_components() == std::vector<std::vector<StageId>>{ids({0}), ids({1}), ids({2, 3, 4})});
}

TEST_CASE("an edge with initial pages does not order") {
  SpatialProgram p = stages(2);
  join(p, 0, 1);
  join(p, 1, 0, 1);
  const StageGraph graph(p, SectionId{0});
  CHECK(graph.topological_order() == ids({0, 1}));
  CHECK_FALSE(graph.cycle().has_value());
  p.buffers[1].initial_pages = 0;
  CHECK(StageGraph(p, SectionId{0}).cycle() == ids({0, 1}));
}

TEST_CASE("a stage that feeds itself is a cycle of one") {
  SpatialProgram p = stages(2);
  join(p, 1, 1);
  CHECK(StageGraph(p, SectionId{0}).cycle() == ids({1}));
}

TEST_CASE("reaching takes at least one arc and follows several") {
  SpatialProgram p = stages(4);
  join(p, 0, 1);
  join(p, 1, 2);
  const StageGraph graph(p, SectionId{0});
  CHECK(graph.reaches(StageId{0}, StageId{2}));
  CHECK_FALSE(graph.reaches(StageId{2}, StageId{0}));
  CHECK_FALSE(graph.reaches(StageId{0}, StageId{0}));
  CHECK_FALSE(graph.reaches(StageId{0}, StageId{3}));
}

TEST_CASE("a section holds its own stages only") {
  SpatialProgram p = stages(3);
  p.sections.push_back({SectionId{1}, "t", 1});
  p.stages[1].section = SectionId{1};
  join(p, 0, 1);
  CHECK(StageGraph(p, SectionId{0}).stages() == ids({0, 2}));
  CHECK(StageGraph(p, SectionId{1}).topological_order() == ids({1}));
}

TEST_CASE("an empty section has an empty order") {
  const SpatialProgram p = stages(0);
  const StageGraph graph(p, SectionId{0});
  CHECK(graph.topological_order() == ids({}));
  CHECK(graph.strong_components().empty());
}

}  // namespace
}  // namespace rdusim::graph_test
