#include "tests/system/stream_program.h"

#include <doctest/doctest.h>

#include "compiler/program/program_json.h"
#include "compiler/support/file.h"
#include "compiler/target/target.h"
#include "tests/system/scenario.h"

namespace rdusim::test {

std::string single_element_target(const std::string& name) {
  const std::string path = name == "barrier" ? "tests/support/barrier.toml" : "models/targets/" + name + ".toml";
  return with_value(source_text(path), "[machine]", "native_tile_elements", "1");
}

StreamProgram::StreamProgram(const std::string& name, const std::string& target_text) {
  const auto target = read_target(target_text, "target");
  INFO(target.diagnostics().to_text());
  REQUIRE(target.ok());
  p.header = {name, target->name, target_text, sha256(std::string_view(target_text)), 1, {}, {}};
  p.header.plan.portable = false;
  p.placement = Placement{target->mesh, {}, {}};
  p.sections.push_back({SectionId{0u}, "main", 1});
}

GroupId StreamProgram::group(std::uint32_t sites, std::uint32_t chip, std::uint32_t first) {
  Group g;
  g.id = GroupId{p.placement->groups.size()};
  for (std::uint32_t i = first; i < first + sites; ++i) {
    g.sites.push_back({ChipId{chip}, {i % p.placement->mesh.width, i / p.placement->mesh.width}});
    g.agcus.push_back(AgcuId{0u});
  }
  p.placement->groups.push_back(g);
  movements_.push_back(0);
  contexts_.push_back(0);
  return g.id;
}

BufferId StreamProgram::buffer(const std::string& name, GroupId group, std::uint64_t depth) {
  Buffer b;
  b.id = BufferId{p.buffers.size()};
  b.name = name;
  b.depth_pages = depth;
  b.page_bytes = 4;
  b.dtype = DType::int32;
  b.group = group;
  p.buffers.push_back(b);
  return b.id;
}

TensorId StreamProgram::tensor(const std::string& name, TensorRole role, std::uint64_t elements, std::int64_t modulus,
                               std::uint32_t chip) {
  Tensor t;
  t.id = TensorId{p.tensors.size()};
  t.name = name;
  t.operand = OperandId{p.tensors.size()};
  t.role = role;
  t.shape = t.whole = {static_cast<std::int64_t>(elements)};
  t.offset = {0};
  t.tiles = {elements};
  t.dtype = DType::int32;
  t.chip = ChipId{chip};
  if (role != TensorRole::output) t.fill = PatternFill{modulus, 0};
  p.tensors.push_back(t);
  return t.id;
}

StageId StreamProgram::add(const std::string& name, StageKind kind, GroupId group, StageRole role,
                           std::vector<Port> ports, std::uint64_t firings) {
  Stage s;
  s.id = StageId{p.stages.size()};
  s.name = name;
  s.kind = std::move(kind);
  s.role = role;
  s.ports = std::move(ports);
  s.group = group;
  s.engine = {role, (role == StageRole::movement ? movements_ : contexts_)[group.value]++};
  s.firings = firings;
  p.stages.push_back(std::move(s));
  return p.stages.back().id;
}

Port StreamProgram::input(BufferId b, Cyclic<std::uint32_t> need, Cyclic<std::uint32_t> pop) {
  Port port{Direction::input, b};
  port.need = std::move(need);
  port.pop = std::move(pop);
  return port;
}

Port StreamProgram::output(BufferId b, Cyclic<std::uint32_t> push) {
  Port port{Direction::output, b};
  port.reserve = push;
  port.push = std::move(push);
  return port;
}

namespace {

AccessPattern stream(std::uint64_t instances, std::uint64_t firings, std::uint64_t elements, bool same) {
  AccessPattern a{{firings}, {{1}}, {}, {1}, {elements}};
  for (std::uint64_t i = 0; i < instances; ++i) a.first.push_back({same ? 0 : i * firings});
  return a;
}

Cyclic<std::uint32_t> once_at_the_end(std::uint64_t firings) {
  if (firings == 1) return always(1u);
  return {{static_cast<std::uint32_t>(firings - 1), 0}, {1, 1}};
}

const AffineMap identity = {{1, 0}}, an_item = {{1, 0, 0}, {0, 1, 0}}, all_items = {{0, 1, 0}};

}  // namespace

StageId StreamProgram::load(const std::string& name, TensorId tensor, GroupId group, BufferId out,
                            std::uint64_t firings, bool broadcast) {
  const std::size_t instances = p.group(group).sites.size();
  Load kind{tensor, stream(instances, firings, p.tensor(tensor).tiles[0], broadcast), {}};
  if (broadcast) kind.multicast_set.assign(instances, 0);
  return add(name, kind, group, StageRole::movement, {output(out, always(1u))}, firings);
}

StageId StreamProgram::store(const std::string& name, TensorId tensor, GroupId group, BufferId in,
                             std::uint64_t firings) {
  const std::size_t instances = p.group(group).sites.size();
  return add(name, Store{tensor, stream(instances, firings, p.tensor(tensor).tiles[0], false), {}}, group,
             StageRole::movement, {input(in, always(1u), always(1u))}, firings);
}

StageId StreamProgram::stage(const std::string& name, StageKind kind, GroupId group, std::vector<Port> ports,
                             std::uint64_t firings) {
  const bool computes = std::holds_alternative<MatmulTiles>(kind) || std::holds_alternative<Generic>(kind);
  return add(name, std::move(kind), group, computes ? StageRole::compute : StageRole::movement, std::move(ports),
             firings);
}

StageId StreamProgram::generic(const std::string& name, GroupId group, std::vector<Port> ports, Generic body,
                               std::uint64_t firings) {
  body.accumulator = body.result = DType::int32;
  return add(name, std::move(body), group, StageRole::compute, std::move(ports), firings);
}

StageId StreamProgram::copy(const std::string& name, GroupId group, BufferId in, std::vector<BufferId> out,
                            std::uint64_t firings) {
  Generic g{{IteratorKind::parallel}, {identity, identity}, {{1, {{ExprOp::operand, 0, 0}}}}, {}, {}, {}};
  std::vector<Port> ports{input(in, always(1u), always(1u))};
  for (const BufferId b : out) ports.push_back(output(b, always(1u)));
  return generic(name, group, std::move(ports), std::move(g), firings);
}

StageId StreamProgram::fold(const std::string& name, GroupId group, BufferId items, std::vector<BufferId> constants,
                            BufferId out, std::uint64_t firings, ExprOp op) {
  Generic g{{IteratorKind::reduction, IteratorKind::parallel}, {an_item}, {}, {}, {}, {}};
  std::vector<Port> ports{input(items, always(1u), always(1u))};
  Expr item{{ExprOp::operand, 0, 0}};
  for (const BufferId b : constants) {
    item.push_back({ExprOp::operand, static_cast<std::uint32_t>(ports.size()), 0});
    item.push_back({ExprOp::add, 0, 0});
    g.maps.push_back(all_items);
    ports.push_back(input(b, always(1u), once_at_the_end(firings)));
  }
  g.maps.push_back(all_items);
  ports.push_back(output(out, once_at_the_end(firings)));
  g.bodies.push_back({1, item});
  if (firings > 1) {
    Expr more{{ExprOp::accumulator, 0, 0}};
    more.insert(more.end(), item.begin(), item.end());
    more.push_back({op, 0, 0});
    g.bodies.push_back({static_cast<std::uint32_t>(firings - 1), more});
  }
  return generic(name, group, std::move(ports), std::move(g), firings);
}

StageId StreamProgram::receive(const std::string& name, GroupId group, BufferId landing, std::uint64_t firings) {
  return add(name, Recv{}, group, StageRole::movement, {output(landing, always(1u))}, firings);
}

EdgeId StreamProgram::cross(StageId from, BufferId buffer, StageId receive, Handshake handshake) {
  const EdgeId e = join(from, buffer, {receive});
  p.edges[e.value].handshake = handshake;
  p.edges[e.value].routes = {{}};
  std::get<Recv>(p.stages[receive.value].kind).edge = e;
  return e;
}

EdgeId StreamProgram::join(StageId from, BufferId buffer, std::vector<StageId> to) {
  Edge e;
  e.id = EdgeId{p.edges.size()};
  e.from = from;
  e.buffer = buffer;
  e.to = std::move(to);
  p.edges.push_back(e);
  return e.id;
}

std::string StreamProgram::json() const {
  return to_text(to_json(p));
}

Outcome assemble(const Folder& folder, const StreamProgram& program, bool allow_refuted) {
  folder.write("program.json", program.json());
  std::vector<std::string> request = {"assemble", "program.json", "-o", "prog.bin"};
  if (allow_refuted) request.push_back("--allow-refuted");
  return rdusim(request, folder);
}

}  // namespace rdusim::test
