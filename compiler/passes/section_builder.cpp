#include "compiler/passes/section_builder.h"

#include <utility>

#include "compiler/passes/extents.h"

namespace rdusim {

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

}  // namespace rdusim
