#include "compiler/passes/passes.h"

namespace rdusim {

Result<SpatialProgram> start(const OperatorGraph& graph, const Target& target, const ShardPlan& plan) {
  SpatialProgram program;
  program.header.name = graph.name;
  program.header.target_name = target.name;
  program.header.target_text = target.text;
  program.header.target_sha256 = target.sha256;
  program.header.native_tile = target.native_tile;
  program.header.plan = plan;
  program.operators = graph;
  return program;
}

}  // namespace rdusim
