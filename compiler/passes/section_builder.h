// Adds the stages, buffers and edges of one operator to the section that carries it out.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/passes/extents.h"

namespace rdusim {

// Movement stages of one site take its movement engines in turn; the schedule orders those that share one.
inline Engine movement_engine(const Target& t, std::uint32_t nth) {
  return {StageRole::movement, nth % t.site.movement_engines};
}

// What it adds is named OPERATOR.what, and comes from the operator of `work`, on its chip.
class SectionBuilder {
 public:
  // Requires a program with operators and a work with a plan.
  SectionBuilder(SpatialProgram& program, const Target& target, const Work& work, SectionId section)
      : p_(program), t_(target), w_(work), op_(program.operators->operators[work.op.value]), section_(section) {}

  const Operator& op() const { return op_; }
  // The chip's tensor of an operand of the operator; of what an append gives, that of its state.
  const Tensor& tensor_of(OperandId operand) const;
  std::uint64_t tiles(std::int64_t elements) const { return tiles_of(elements, t_.native_tile); }

  GroupId add_group(Group group);
  StageId add_stage(const std::string& what, StageKind kind, GroupId group, Engine engine, std::uint64_t firings,
                    std::vector<Port> ports);
  // For pages of at most rows x cols tiles of a tensor of m x n elements.
  BufferId add_buffer(const std::string& what, BufferKind kind, GroupId group, DType type, std::uint64_t rows,
                      std::uint64_t cols, std::int64_t m, std::int64_t n);
  // For pages of as many tiles as those of `like`.
  BufferId add_buffer_like(const std::string& what, BufferKind kind, GroupId group, BufferId like, DType type);
  EdgeId add_edge(StageId from, BufferId buffer, std::vector<StageId> to, Handshake handshake = Handshake::fifo);
  // Gives each instance of `stage` its output blocks, as BlockPlan deals them out, over contraction slice `slice`.
  void assign_work(StageId stage, std::uint64_t slice = 0);

 private:
  SpatialProgram& p_;
  const Target& t_;
  const Work& w_;
  const Operator& op_;
  SectionId section_;
};

}  // namespace rdusim
