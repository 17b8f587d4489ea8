// From an operator graph to a program, ready to run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

struct CompileOptions {
  ShardPlan plan;          // chips 1 and portable: one chip, to be sharded when it is loaded
  std::string stop_after;  // name of a pass; empty: all
};

// The passes in their pinned order. Errors: RDU4xxx, and RDU3xxx where a pass broke a rule.
Result<SpatialProgram> compile(const OperatorGraph& graph, const Target& target, const CompileOptions& options);

// Shards a portable, complete program over plan.chips chips as it is loaded, and runs the passes again that sharding
// leaves open. Errors: RDU4xxx.
Result<SpatialProgram> shard_loaded(const SpatialProgram& program, const ShardPlan& plan, const Target& target);

// Runs, in their order, the passes whose part is absent (size, handshake, memory, schedule, certify): for `assemble`.
// With `allow_refuted`, a program that breaks rules which obligations say again gets a certificate that says so.
Result<SpatialProgram> complete(SpatialProgram program, const Target& target, bool allow_refuted = false);

const std::vector<std::string_view>& pass_names();  // in order

}  // namespace rdusim
