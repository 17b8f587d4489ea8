// Small programs of stages that copy, for tests of rates and depths.
#pragma once

#include <array>

#include "tests/compiler/ir/sample_program.h"

namespace rdusim::sample {

// A load, and a stage 'split' that fills buffers 'first' and 'second' for a stage 'merge'.
inline SpatialProgram split_and_merge(std::uint64_t firings, const std::array<Cyclic<std::uint32_t>, 4>& rates,
                                      bool sink) {
  Builder b({});
  SpatialProgram& p = b.p;
  p.stages.resize(1);  // only load_a is left
  p.edges.clear();
  const BufferId out = p.stages[0].ports[0].buffer;
  const BufferId first = b.add_buffer("first", BufferKind::fifo, DType::int8, 4, 0);
  const BufferId second = b.add_buffer("second", BufferKind::fifo, DType::int8, 4, 0);
  const BufferId end = b.add_buffer("end", BufferKind::fifo, DType::int8, 4, 0);
  const auto at = [](Port port, const Cyclic<std::uint32_t>& rate) {
    (port.direction == Direction::input ? port.need : port.reserve) = rate;
    (port.direction == Direction::input ? port.pop : port.push) = rate;
    return port;
  };
  Generic copy = Builder::sum(1);
  copy.bodies = {{1, {{ExprOp::operand, 0, 0}}}};
  copy.maps = {{{1, 0}}, {{1, 0}}, {{1, 0}}};
  const StageId split = b.add_stage("split", copy, 0, {StageRole::compute, 0}, firings,
                                    {b.input(out), at(b.output(first), rates[0]), at(b.output(second), rates[2])});
  Generic merge = Builder::sum(2);
  std::vector<Port> ports{at(b.input(first), rates[1]), at(b.input(second), rates[3])};
  if (sink) {
    merge.bodies = {{2, {{ExprOp::operand, 1, 0}}}, {2, {{ExprOp::operand, 0, 0}}}};
    ports.push_back(b.output(end));
  }
  const StageId join = b.add_stage("merge", merge, 0, {StageRole::compute, 1}, firings, ports);
  b.add_edge(StageId{0u}, out, {split});
  b.add_edge(split, first, {join});
  b.add_edge(split, second, {join});
  if (sink) {
    const StageId last = b.add_stage("sink", Builder::sum(1), 0, {StageRole::compute, 1}, firings, {b.input(end)});
    b.add_edge(join, end, {last});
  }
  return p;
}

// 'split' fills 'first' in its first two phases and 'second' in the others, 'merge' empties them the other way round.
inline SpatialProgram crossed(std::uint64_t depth) {
  const Cyclic<std::uint32_t> early = {{2, 1}, {2, 0}}, late = {{2, 0}, {2, 1}};
  SpatialProgram p = split_and_merge(4, {early, late, late, early}, true);
  buffer(p, "first").depth_pages = depth;
  return p;
}

// 'split' pushes rates[0] and rates[2] pages a firing into its buffers, 'merge' pops rates[1] and rates[3].
inline SpatialProgram pair_of(std::array<std::uint32_t, 4> rates) {
  return split_and_merge(4, {always(rates[0]), always(rates[1]), always(rates[2]), always(rates[3])}, false);
}

}  // namespace rdusim::sample
