#include "compiler/passes/section_builder.h"

#include <algorithm>
#include <utility>

#include "compiler/passes/mutate.h"

namespace rdusim {

const Tensor& SectionBuilder::tensor_of(OperandId of) const {
  const OperandId operand = storage_of(*p_.operators, of);
  return *std::find_if(p_.tensors.begin(), p_.tensors.end(),
                       [&](const Tensor& t) { return t.operand == operand && t.chip == w_.chip; });
}

GroupId SectionBuilder::add_group(Group group) {
  group.id = GroupId(p_.placement->groups.size());
  p_.placement->groups.push_back(std::move(group));
  return p_.placement->groups.back().id;
}

StageId SectionBuilder::add_stage(const std::string& what, StageKind kind, GroupId group, Engine engine,
                                  std::uint64_t firings, std::vector<Port> ports) {
  Stage s;
  s.id = StageId(p_.stages.size());
  s.name = op_.name + "." + what;
  s.kind = std::move(kind);
  s.role = engine.kind;
  s.ports = std::move(ports);
  s.group = group;
  s.engine = engine;
  s.firings = firings;
  s.section = section_;
  s.origin = op_.id;
  p_.stages.push_back(std::move(s));
  return p_.stages.back().id;
}

BufferId SectionBuilder::add_buffer(const std::string& what, BufferKind kind, GroupId group, DType type,
                                    std::uint64_t rows, std::uint64_t cols, std::int64_t m, std::int64_t n) {
  Buffer b;
  b.id = BufferId(p_.buffers.size());
  b.name = op_.name + "." + what;
  b.kind = kind;
  b.page_tiles = rows * cols;
  b.page_bytes = page_bytes(rows, cols, m, n, type, t_.native_tile);
  b.dtype = type;
  b.group = group;
  b.origin = op_.id;
  p_.buffers.push_back(std::move(b));
  return p_.buffers.back().id;
}

BufferId SectionBuilder::add_buffer_like(const std::string& what, BufferKind kind, GroupId group, BufferId like,
                                         DType type) {
  Buffer b = p_.buffer(like);
  b.id = BufferId(p_.buffers.size());
  b.name = op_.name + "." + what;
  b.kind = kind;
  b.page_bytes = b.page_bytes / bytes_of(b.dtype) * bytes_of(type);
  b.dtype = type;
  b.group = group;
  p_.buffers.push_back(std::move(b));
  return p_.buffers.back().id;
}

EdgeId SectionBuilder::add_edge(StageId from, BufferId buffer, std::vector<StageId> to, Handshake handshake) {
  Edge e;
  e.id = EdgeId(p_.edges.size());
  e.from = from;
  e.buffer = buffer;
  e.to = std::move(to);
  e.handshake = handshake;
  if (!is_local(handshake)) e.routes.resize(e.to.size());
  p_.edges.push_back(std::move(e));
  return p_.edges.back().id;
}

void SectionBuilder::assign_work(StageId stage, std::uint64_t slice) {
  const BlockPlan& plan = *w_.plan;
  const std::uint64_t blocks_m = plan.sites_m * plan.rounds_m, blocks_n = plan.sites_n * plan.rounds_n;
  WorkAssignment assignment{stage, w_.id, {}};
  for (std::uint64_t i = 0; i < plan.sites_m; ++i)
    for (std::uint64_t j = 0; j < plan.sites_n; ++j) {
      std::vector<std::uint64_t> items;
      for (std::uint64_t r = 0; r < plan.rounds_m; ++r)
        for (std::uint64_t s = 0; s < plan.rounds_n; ++s)
          items.push_back((mutated("place.work_of_another_slice", slice, 0) * blocks_m + i + r * plan.sites_m) *
                              blocks_n +
                          j + s * plan.sites_n);
      assignment.items.push_back(std::move(items));
    }
  p_.placement->work.push_back(std::move(assignment));
}

}  // namespace rdusim
