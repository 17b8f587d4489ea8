#include "compiler/compile.h"

#include <algorithm>

#include "compiler/ir/verify.h"
#include "compiler/passes/passes.h"

namespace rdusim {
namespace {

// In pairs where there are several matmuls. One: row-parallel where every contraction divides into whole tiles; else column-parallel where every row of outputs does;
// else row-parallel, whose refusal then says what would work.
ShardKind fitting_kind(const OperatorGraph& graph, std::uint32_t chips, std::uint32_t tile) {
  const auto is_matmul = [](const Operator& op) { return op.kind == OperatorKind::matmul && op.in.size() == 2; };
  if (std::count_if(graph.operators.begin(), graph.operators.end(), is_matmul) > 1) return ShardKind::tensor;
  const auto all = [&](auto&& extent) {
    return std::all_of(graph.operators.begin(), graph.operators.end(), [&](const Operator& op) {
      return !is_matmul(op) || extent(op) % (std::int64_t{chips} * tile) == 0;
    });
  };
  if (all([&](const Operator& op) { return graph.operand(op.in[0]).shape.back(); })) return ShardKind::row;
  if (all([&](const Operator& op) { return graph.operand(op.in[1]).shape.back(); })) return ShardKind::column;
  return ShardKind::row;
}

// A pass must leave a program that its rules accept; where it does not, the fault is told with the pass's name.
Result<SpatialProgram> verified(SpatialProgram program, const Target& target) {
  const Diagnostics found = verify(program, target);
  if (!found.has_errors()) return program;
  if (program.header.plan.chips == 1) return found;
  Diagnostics out;
  auto& d = out.error(Code::RDU4107, program.header.name, "the program for {} chips breaks {} rules",
                      program.header.plan.chips, found.error_count());
  for (const Diagnostic& cause : found.list())
    d.note(cause.where, "RDU{} {}: {}", static_cast<int>(cause.code), info(cause.code).name, cause.message);
  return out;
}

struct NamedPass {
  std::string_view name;
  Result<SpatialProgram> (*run)(SpatialProgram, const Target&);
};

Result<SpatialProgram> shard_by_plan(SpatialProgram program, const Target& target) {
  const ShardPlan plan = program.header.plan;
  program.header.plan = ShardPlan{};
  return shard(program, plan, target);
}

constexpr NamedPass pinned_order[] = {
    {"lower", lower},           {"tile", tile},       {"place", place},         {"shard", shard_by_plan},
    {"collective", collective}, {"size", size},       {"handshake", handshake}, {"memory", memory},
    {"schedule", schedule},     {"certify", certify},
};

Result<SpatialProgram> run_passes(Result<SpatialProgram> program, const Target& target, std::string_view first,
                                  std::string_view last) {
  bool on = false;
  const bool certified = program.ok() && program->certificate;
  for (const NamedPass& pass : pinned_order) {
    on = on || pass.name == first;
    if (on && pass.name == "size" && program->header.plan.least_depths)
      program = std::move(program).then([&](SpatialProgram p) { return size_by_minimum(std::move(p)); });
    if (on) program = std::move(program).then([&](SpatialProgram p) { return pass.run(std::move(p), target); });
    if (!program.ok() || pass.name == last) return program;
  }
  // certify verifies what it writes a certificate for.
  if (!certified && program.ok() && program->certificate) return program;
  return std::move(program).then([&](SpatialProgram p) { return verified(std::move(p), target); });
}

}  // namespace

const std::vector<std::string_view>& pass_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const NamedPass& pass : pinned_order) list.push_back(pass.name);
    return list;
  }();
  return names;
}

Result<SpatialProgram> compile(const OperatorGraph& graph, const Target& target, const CompileOptions& options) {
  if (!options.stop_after.empty() &&
      std::find(pass_names().begin(), pass_names().end(), options.stop_after) == pass_names().end()) {
    Diagnostics out;
    out.error(Code::RDU4115, "--stop-after", "'{}' is not a pass", options.stop_after);
    return out;
  }
  ShardPlan plan = options.plan;
  if (plan.chips > 1 && plan.kind == ShardKind::none) plan.kind = fitting_kind(graph, plan.chips, target.native_tile);
  return run_passes(start(graph, target, plan), target, "lower", options.stop_after);
}

Result<SpatialProgram> shard_loaded(const SpatialProgram& program, const ShardPlan& plan, const Target& target) {
  if (!program.operators) {
    Diagnostics out;
    out.error(Code::RDU4101, program.header.name,
              "the program carries no operators, so it cannot be sharded over {} chips as it is loaded", plan.chips);
    return out;
  }
  CompileOptions options;
  options.plan = plan;
  if (options.plan.chips > 1 && options.plan.kind == ShardKind::none)
    options.plan.kind = fitting_kind(*program.operators, plan.chips, target.native_tile);
  // What depends on the number of chips is worked out again; the placed single-chip program is what shard starts from.
  SpatialProgram placed = program;
  placed.header.plan = options.plan;
  placed.memory.reset();
  placed.schedule.reset();
  placed.certificate.reset();
  return run_passes(std::move(placed), target, "shard", {});
}

Result<SpatialProgram> complete(SpatialProgram program, const Target& target, bool allow_refuted) {
  if (!allow_refuted) return run_passes(std::move(program), target, "collective", {});
  return run_passes(std::move(program), target, "collective", "schedule").then([&](SpatialProgram p) {
    return certify_refuted(std::move(p), target);
  });
}

}  // namespace rdusim
