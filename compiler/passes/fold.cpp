#include "compiler/passes/fold.h"

#include <string>

#include "compiler/passes/crossing.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {

std::pair<StageId, BufferId> place_fold(SpatialProgram& p, const Target& t, SectionBuilder& build,
                                        const std::vector<StageId>& slices, const std::vector<BufferId>& partials,
                                        DType result, std::uint64_t rounds, std::uint32_t first_recv,
                                        std::uint32_t lanes, std::optional<GroupId> apart, std::uint32_t pmus) {
  const GroupId home = apart.value_or(p.stage(slices[0]).group);
  const DType accumulator = p.buffer(partials[0]).dtype;
  std::vector<BufferId> operands;
  std::vector<StageId> sources;
  if (!apart) {
    operands.push_back(partials[0]);
    sources.push_back(slices[0]);
  }
  for (std::uint64_t l = operands.size(); l < slices.size(); ++l) {
    const BufferId landing =
        build.add_buffer_like("landing_k" + std::to_string(l), BufferKind::interm, home, partials[0], accumulator);
    p.buffers[landing.value].pmu = static_cast<std::uint32_t>(l) % pmus;
    const StageId recv =
        build.add_stage("recv_k" + std::to_string(l), Recv{}, home,
                        movement_engine(t, first_recv + static_cast<std::uint32_t>(sources.size()) - 1),
                        mutated("place.receive_too_many", rounds, 2 * rounds), {output_port(landing)});
    const std::uint64_t sender = mutated("place.receive_of_another_slice", l, 0);
    const EdgeId crossing = build.add_edge(slices[sender], partials[sender], {recv}, crossing_of(t));
    std::get<Recv>(p.stages[recv.value].kind).edge = crossing;
    operands.push_back(landing);
    sources.push_back(recv);
  }

  Generic fold;
  fold.iterators = {IteratorKind::parallel};
  fold.maps.assign(slices.size() + 1, {{1, 0}});
  fold.accumulator = accumulator;
  fold.result = result;
  fold.lanes = lanes;
  fold.bodies.push_back({1, {{ExprOp::operand, 0, 0}}});
  for (std::uint32_t l = 1; l < slices.size(); ++l)
    fold.bodies.push_back({1,
                           {{ExprOp::accumulator, 0, 0},
                            {mutated("place.fold_skips_an_operand", ExprOp::operand, ExprOp::constant), l, 0},
                            {ExprOp::add, 0, 0}}});
  const auto phases = static_cast<std::uint32_t>(slices.size());
  std::vector<Port> ports;
  for (std::uint32_t l = 0; l < phases; ++l) ports.push_back(input_port(operands[l], l, l + 1, phases));
  const BufferId out = build.add_buffer_like("c", BufferKind::fifo, home, partials[0], result);
  p.buffers[out.value].pmu = pmus - 1;
  const std::uint32_t done = mutated("place.fold_ends_early", phases - 1, phases - 2);
  ports.push_back(output_port(out, done, done + 1, phases));
  const StageId stage = build.add_stage("fold", std::move(fold), home, {StageRole::compute, apart ? 0u : 1u},
                                        rounds * phases, std::move(ports));
  for (std::size_t l = 0; l < slices.size(); ++l) build.add_edge(sources[l], operands[l], {stage});
  return {stage, out};
}

void add_left_deep_tree(SpatialProgram& p, OperatorId op, ChipId chip,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, std::uint32_t lanes) {
  SummationTree tree;
  tree.id = SummationTreeId(p.trees.size());
  tree.op = op;
  tree.lanes = lanes;
  for (std::size_t l = 0; l < ranges.size(); ++l) {
    SummationNode leaf;
    leaf.chip = chip;
    leaf.k_begin = ranges[l].first;
    leaf.k_end = ranges[l].second;
    tree.nodes.push_back(leaf);
    if (l == 0) continue;
    SummationNode sum;
    sum.leaf = false;
    sum.left = static_cast<std::uint32_t>(tree.nodes.size() - 2);  // the sum so far, or leaf 0
    sum.right = static_cast<std::uint32_t>(tree.nodes.size() - 1);
    tree.nodes.push_back(sum);
  }
  p.trees.push_back(std::move(tree));
}

}  // namespace rdusim
