#include "compiler/passes/expansion.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/passes/crossing.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/rewrite.h"

namespace rdusim {

Bytes chunk_bytes(Bytes page, DType type, std::size_t n) {
  return ceil_div(page / bytes_of(type), std::uint64_t{n}) * bytes_of(type) -
         mutated("expand.landing_too_small", 0, bytes_of(type));
}

Expansion::Expansion(SpatialProgram& program, const Collective& collective, const std::vector<Member>& members,
                     const Target& target)
    : p_(program),
      collective_(collective),
      members_(members),
      target_(target),
      placed_(program),
      routes_(target),
      n_(static_cast<std::uint32_t>(members.size())),
      parts_(parts_kept(collective.members)) {}

std::uint32_t Expansion::context(std::uint32_t member) {
  std::uint32_t& used = contexts_[member];
  return part(member).engine.index + used++;
}
Engine Expansion::movement(std::uint32_t member) {
  auto& load = engines_[member];
  if (load.empty())
    load = placed_.engine_load(part(member).group, part(member).section, std::max(1u, target_.site.movement_engines));
  const auto least = std::min_element(load.begin(), load.end());
  ++*least;
  return {StageRole::movement, static_cast<std::uint32_t>(least - load.begin())};
}

BufferId Expansion::add_buffer(const std::string& what, std::uint32_t member, BufferKind kind, DType type,
                               const Buffer& like, std::uint32_t chunks) {
  Buffer b;
  b.id = BufferId(p_.buffers.size());
  b.name = collective_.name + "." + what + at(member);
  b.kind = kind;
  b.page_bytes = chunk_bytes(like.page_bytes, like.dtype, chunks) / bytes_of(like.dtype) * bytes_of(type);
  b.page_tiles = ceil_div(like.page_tiles, std::uint64_t{chunks});
  b.dtype = type;
  b.group = part(member).group;
  b.origin = collective_.op;
  p_.buffers.push_back(std::move(b));
  return p_.buffers.back().id;
}

StageId Expansion::add_stage(const std::string& what, std::uint32_t member, StageKind kind, Engine engine,
                             std::uint64_t firings, std::vector<Port> ports) {
  Stage s;
  s.id = StageId(p_.stages.size());
  s.name = collective_.name + "." + what + at(member);
  s.kind = std::move(kind);
  s.role = engine.kind;
  s.ports = std::move(ports);
  s.group = part(member).group;
  s.engine = engine;
  s.firings = firings;
  s.section = part(member).section;
  s.origin = collective_.op;
  s.collective = collective_.id;
  p_.stages.push_back(std::move(s));
  return p_.stages.back().id;
}

Generic Expansion::element_wise(Cyclic<Expr> bodies, std::size_t operands) const {
  Generic g;
  g.iterators = {IteratorKind::parallel};
  g.maps.assign(operands + 1, {{1, 0}});
  g.bodies = std::move(bodies);
  g.accumulator = accumulator();
  g.result = result();
  return g;
}

EdgeId Expansion::add_edge(Edge e) {
  e.id = EdgeId(p_.edges.size());
  e.collective = collective_.id;
  p_.edges.push_back(std::move(e));
  return p_.edges.back().id;
}
void Expansion::local(StageId from, BufferId buffer, StageId to) {
  Edge e;
  e.from = from;
  e.buffer = buffer;
  e.to = {to};
  add_edge(std::move(e));
}

std::vector<Expansion::Landing> Expansion::cross(StageId from, BufferId buffer, Chunk chunk, std::uint32_t sender,
                                                 const std::vector<std::uint32_t>& receivers, const std::string& what,
                                                 std::uint64_t pages) {
  Edge e;
  e.from = from;
  e.buffer = buffer;
  e.handshake = crossing_of(target_);
  e.chunk = chunk;
  const EdgeId id(p_.edges.size());
  std::vector<Landing> landings;
  for (const std::uint32_t receiver : receivers) {
    const Buffer& source = p_.buffer(buffer);
    const BufferId landing = add_buffer((what == "recv" ? "landing" : what + "_landing") + at(sender), receiver,
                                        source.kind, source.dtype, source, chunk.of);
    const StageId recv =
        add_stage(what + at(sender), receiver, Recv{id}, movement(receiver), pages, {output_port(landing)});
    if (mutated("expand.receiver_left_out", true, e.to.empty())) e.to.push_back(recv);
    e.routes.push_back(mutated("expand.route_to_the_wrong_chip", false, true)
                           ? routes_.between(collective_.members[receiver], collective_.members[sender])
                           : routes_.between(collective_.members[sender], collective_.members[receiver]));
    landings.push_back({recv, landing});
  }
  add_edge(std::move(e));
  return landings;
}

Expansion::Landing Expansion::send_partial(std::uint32_t sender, std::uint32_t receiver, Chunk chunk) {
  return cross(members_[sender].source, members_[sender].buffer,
               mutated("expand.partial_of_another_chunk", chunk, Chunk{(chunk.index + 1) % chunk.of, chunk.of}), sender,
               {receiver}, "recv", firings())
      .front();
}

StageId Expansion::fold_at(std::uint32_t at_member, Chunk chunk, std::vector<Landing> partials) {
  Generic fold;
  fold.bodies.push_back({1, take(0)});
  std::vector<Port> ports;
  partials[at_member] = {members_[at_member].source, members_[at_member].buffer};
  for (std::uint32_t m = 0; m < n_; ++m) {
    if (m > 0) fold.bodies.push_back({1, mutated("expand.fold_skips_a_partial", m, 0) == m ? add_to_last(m) : take(m)});
    ports.push_back(input_port(partials[m].buffer, m, m + 1, n_));
    if (m == at_member && chunk.of > 1)
      ports.back().chunk = always(mutated("expand.own_chunk_wrong", chunk, Chunk{0, chunk.of}));
  }
  const BufferId sum = add_buffer("sum", at_member, BufferKind::fifo, result(), partial(), chunk.of);
  ports.push_back(output_port(sum, n_ - 1, n_, n_));
  const StageId stage = add_stage("fold", at_member, element_wise(std::move(fold.bodies), n_),
                                  {StageRole::compute, context(at_member)}, firings() * n_, std::move(ports));
  for (const Landing& s : partials) local(s.recv, s.buffer, stage);
  return stage;
}

void Expansion::store_whole(std::uint32_t member, StageId from, BufferId buffer) {
  const StageId store = members_[member].outcomes.front().store;
  local(from, buffer, store);
  p_.stages[store.value].ports = {input_port(buffer)};
}

Expansion::Landing Expansion::converted(std::uint32_t member, StageId from, BufferId buffer, std::uint32_t chunks) {
  if (accumulator() == result()) return {from, buffer};
  const BufferId done = add_buffer("done", member, BufferKind::fifo, result(), partial(), chunks);
  const StageId conversion =
      add_stage("convert", member, element_wise({{1, take(0)}}, 1), {StageRole::compute, context(member)},
                firings() * chunks, {input_port(buffer), output_port(done)});
  local(from, buffer, conversion);
  return {conversion, done};
}

void Expansion::store_chunks(StageId store, std::vector<Port> ports, const std::vector<std::uint32_t>& order,
                             std::uint32_t chunks) {
  Stage& s = p_.stages[store.value];
  s.ports = std::move(ports);
  s.firings = firings() * chunks;
  auto& cut = std::get<Store>(s.kind).chunks;
  cut.clear();
  for (const std::uint32_t chunk : order) cut.push_back({chunk, chunks});
}

}  // namespace rdusim
