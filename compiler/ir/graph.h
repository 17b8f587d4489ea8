// The stages of one section as a graph: who must come before whom.
//
// An arc joins an edge's from-stage to each of its to-stages. An edge whose buffer starts with initial pages does not
// order: its consumer can fire before its producer has. Every answer is a function of the ids alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

class StageGraph {
 public:
  // Requires a program whose references resolve (verify's first rules).
  StageGraph(const SpatialProgram& program, SectionId section);
  ~StageGraph();
  StageGraph(StageGraph&&) noexcept;
  StageGraph& operator=(StageGraph&&) noexcept;

  // The section's stages, rising.
  const std::vector<StageId>& stages() const;

  // Producers before consumers; of the stages that may come next, the least id. Nothing where there is a cycle.
  std::optional<std::vector<StageId>> topological_order() const;

  // The strongly connected components: each rising, in the order of their least stage.
  std::vector<std::vector<StageId>> strong_components() const;

  // A shortest cycle through the least stage that lies on one, from that stage on (the arc back to it closes it).
  // Nothing where there is none.
  std::optional<std::vector<StageId>> cycle() const;

  // Whether a path of at least one arc leads from `from` to `to`. Both in the section.
  bool reaches(StageId from, StageId to) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rdusim
