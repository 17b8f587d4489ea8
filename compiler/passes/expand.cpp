#include "compiler/passes/expand.h"
#include "compiler/passes/crossing.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/rewrite.h"

namespace rdusim {
namespace {

Expr take(std::uint32_t port) {
  return {{ExprOp::operand, port, 0}};
}
Expr add_to_last(std::uint32_t port) {
  return {{ExprOp::accumulator, 0, 0}, {ExprOp::operand, port, 0}, {ExprOp::add, 0, 0}};
}
Expr sum_of(std::uint32_t left, std::uint32_t right) {
  return {{ExprOp::operand, left, 0}, {ExprOp::operand, right, 0}, {ExprOp::add, 0, 0}};
}

// Most bytes of one of n chunks of a page.
Bytes chunk_bytes(Bytes page, DType type, std::size_t n) {
  return ceil_div(page / bytes_of(type), std::uint64_t{n}) * bytes_of(type) -
         mutated("expand.landing_too_small", 0, bytes_of(type));
}

// A Recv and the buffer that its pages land in.
struct Landing {
  StageId recv;
  BufferId buffer;
};

class Expansion {
 public:
  Expansion(SpatialProgram& program, const Collective& collective, const std::vector<Member>& members,
            const Target& target)
      : p_(program),
        collective_(collective),
        members_(members),
        target_(target),
        n_(static_cast<std::uint32_t>(members.size())) {}

  void through_one() {
    const StageId fold = fold_at(0, Chunk{});
    const BufferId sum = output_of(fold);
    if (stores(0)) store_whole(0, fold, sum);
    std::vector<std::uint32_t> others;
    for (std::uint32_t m = 1; m < n_; ++m)
      if (stores(m)) others.push_back(m);
    if (others.empty()) return;
    const std::vector<Landing> landings = cross(fold, sum, Chunk{}, 0, others, "result", firings());
    for (std::size_t i = 0; i < others.size(); ++i) store_whole(others[i], landings[i].recv, landings[i].buffer);
  }

  void direct() {
    std::vector<StageId> folds;
    for (std::uint32_t m = 0; m < n_; ++m) folds.push_back(fold_at(m, Chunk{m, n_}));
    // source[m][d]: what stage, and through which buffer, gives member m chunk d.
    std::vector<std::vector<Landing>> source(n_, std::vector<Landing>(n_));
    for (std::uint32_t d = 0; d < n_; ++d) {
      const BufferId sum = output_of(folds[d]);
      source[d][d] = {folds[d], sum};
      std::vector<std::uint32_t> others;
      for (std::uint32_t m = 0; m < n_; ++m)
        if (m != d && stores(m)) others.push_back(m);
      if (others.empty()) continue;
      const std::vector<Landing> landings = cross(folds[d], sum, Chunk{}, d, others, "result", firings());
      for (std::size_t i = 0; i < others.size(); ++i) source[others[i]][d] = landings[i];
    }
    for (std::uint32_t m = 0; m < n_; ++m) {
      if (!stores(m)) continue;
      const StageId store = members_[m].outcomes.front().store;
      std::vector<Port> ports;
      for (std::uint32_t d = 0; d < n_; ++d) {
        ports.push_back(input_port(source[m][d].buffer, d, d + 1, n_));
        local(source[m][d].recv, source[m][d].buffer, store);
      }
      std::vector<std::uint32_t> order;
      for (std::uint32_t d = 0; d < n_; ++d) order.push_back(mutated("expand.chunks_stored_in_reverse", d, n_ - 1 - d));
      store_chunks(store, std::move(ports), order);
    }
  }

  // Chunk that member r sends, or holds, in phase t: what its left neighbour had in phase t - 1.
  std::uint32_t ring_chunk(std::uint32_t r, std::uint32_t t) const {
    return (r + 2 * n_ - t + mutated("expand.ring_chunk_off_by_one", 0u, t == 1 ? 1u : 0u)) % n_;
  }

  void ring_all_reduce() {
    const std::uint32_t phases = 2 * n_ - 1;
    const bool convert = accumulator() != result();
    std::vector<StageId> rings;
    std::vector<BufferId> next, done;
    for (std::uint32_t r = 0; r < n_; ++r) {
      const BufferId to_next = add_buffer("next", r, BufferKind::interm, accumulator(), partial(), n_);
      const BufferId to_store = add_buffer(convert ? "sum" : "done", r, BufferKind::fifo, accumulator(), partial(), n_);
      Generic ring;
      ring.iterators = {IteratorKind::parallel};
      ring.maps.assign(3, {{1, 0}});
      ring.accumulator = ring.result = accumulator();
      ring.bodies = {{1, take(0)},
                     {n_ - 1, mutated("expand.ring_forwards_without_adding", false, true) ? take(1) : sum_of(1, 0)},
                     {n_ - 1, take(1)}};
      Port own{Direction::input, members_[r].buffer};
      own.need = in_phases(0, n_, phases);
      own.pop = in_phases(n_ - 1, mutated("expand.page_popped_twice", n_, n_ + 1), phases);
      own.chunk.clear();
      for (std::uint32_t t = 0; t < n_; ++t) own.chunk.push_back({1, Chunk{ring_chunk(r, t), n_}});
      own.chunk.push_back({n_ - 1, Chunk{}});
      // The landing's buffer is known once the neighbour's stage is there to send to it.
      rings.push_back(add_stage(
          "ring", r, std::move(ring), {StageRole::compute, context(r)}, firings() * phases,
          {own, Port{}, output_port(to_next, 0, phases - 1, phases), output_port(to_store, n_ - 1, phases, phases)}));
      next.push_back(to_next);
      done.push_back(to_store);
      local(members_[r].source, members_[r].buffer, rings.back());
    }
    for (std::uint32_t r = 0; r < n_; ++r) {
      const std::uint32_t right = (mutated("expand.ring_neighbours_swapped", r, r ^ 1u) + 1) % n_;
      const Landing landing = cross(rings[r], next[r], Chunk{}, r, {right}, "recv",
                                    firings() * (phases - mutated("expand.receive_too_few", 1, 2)))
                                  .front();
      p_.stages[rings[right].value].ports[1] = input_port(landing.buffer, 1, phases, phases);
      local(landing.recv, landing.buffer, rings[right]);
    }
    for (std::uint32_t r = 0; r < n_; ++r) {
      const StageId store = members_[r].outcomes.front().store;
      std::vector<std::uint32_t> order;
      for (std::uint32_t t = n_ - 1; t < phases; ++t) order.push_back(ring_chunk(r, t));
      StageId from = rings[r];
      BufferId buffer = done[r];
      if (convert) {
        const BufferId converted = add_buffer("done", r, BufferKind::fifo, result(), partial(), n_);
        const StageId conversion =
            add_stage("convert", r, element_wise({{1, take(0)}}, 1), {StageRole::compute, context(r)}, firings() * n_,
                      {input_port(buffer), output_port(converted)});
        local(from, buffer, conversion);
        from = conversion;
        buffer = converted;
      }
      local(from, buffer, store);
      store_chunks(store, {input_port(buffer)}, order);
    }
  }

  // Member 1's partials go to member 2, which adds its own and sends them on; member 0 adds the last and stores.
  void ring_reduce() {
    StageId from = members_[1].source;
    BufferId buffer = members_[1].buffer;
    for (std::uint32_t m = 1; m < n_; ++m) {
      const std::uint32_t next = (m + 1) % n_;
      const Landing landing = cross(from, buffer, Chunk{}, m, {next}, "recv", firings()).front();
      const bool last = next == 0;
      const BufferId sum = last ? add_buffer("sum", next, BufferKind::fifo, result(), partial(), 1)
                                : add_buffer("next", next, BufferKind::interm, accumulator(), partial(), 1);
      Generic add =
          element_wise({{1, mutated("expand.reduce_drops_what_comes", false, true) ? take(0) : sum_of(1, 0)}}, 2);
      if (!last) add.result = mutated("expand.partial_rounded_on_its_way", accumulator(), result());
      const StageId ring = add_stage("ring", next, std::move(add), {StageRole::compute, context(next)}, firings(),
                                     {input_port(members_[next].buffer), input_port(landing.buffer), output_port(sum)});
      local(members_[next].source, members_[next].buffer, ring);
      local(landing.recv, landing.buffer, ring);
      from = ring;
      buffer = sum;
    }
    store_whole(0, from, buffer);
  }

  void gather() {
    for (std::uint32_t m = 0; m < n_; ++m) {
      const Member& from = members_[m];
      const StageId own = from.outcomes[m].store;
      local(from.source, from.buffer, own);
      p_.stages[own.value].ports = {input_port(from.buffer)};
      std::vector<std::uint32_t> others;
      for (std::uint32_t to = 0; to < n_; ++to)
        if (to != m) others.push_back(to);
      const std::vector<Landing> landings = cross(from.source, from.buffer, Chunk{}, m, others, "recv", firings());
      for (std::size_t i = 0; i < others.size(); ++i) {
        const StageId store = members_[others[i]].outcomes[m].store;
        local(landings[i].recv, landings[i].buffer, store);
        p_.stages[store.value].ports = {input_port(landings[i].buffer)};
      }
    }
  }

 private:
  const Stage& part(std::uint32_t member) const { return p_.stage(members_[member].stage); }
  const Buffer& partial() const { return p_.buffer(members_.front().buffer); }
  DType accumulator() const { return partial().dtype; }
  DType result() const { return p_.buffer(members_.front().outcomes.front().buffer).dtype; }
  std::uint64_t firings() const { return part(0).firings; }
  bool stores(std::uint32_t member) const { return !members_[member].outcomes.empty(); }
  BufferId output_of(StageId stage) const { return p_.stage(stage).ports.back().buffer; }
  std::string at(std::uint32_t member) const { return "_c" + std::to_string(collective_.members[member].value); }

  // A context of its own at the member's sites; the CollectiveStage's is the first that is free, and goes with it.
  std::uint32_t context(std::uint32_t member) {
    std::uint32_t& used = contexts_[member];
    return part(member).engine.index + used++;
  }
  // The movement engine with the fewest stages.
  Engine movement(std::uint32_t member) {
    auto& load = engines_[member];
    if (load.empty())
      load = engine_load(p_, part(member).group, part(member).section, std::max(1u, target_.site.movement_engines));
    const auto least = std::min_element(load.begin(), load.end());
    ++*least;
    return {StageRole::movement, static_cast<std::uint32_t>(least - load.begin())};
  }

  // A buffer at the member's sites for chunks of `like`'s pages (for whole pages, where `chunks` is 1).
  BufferId add_buffer(const std::string& what, std::uint32_t member, BufferKind kind, DType type, const Buffer& like,
                      std::uint32_t chunks) {
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

  StageId add_stage(const std::string& what, std::uint32_t member, StageKind kind, Engine engine, std::uint64_t firings,
                    std::vector<Port> ports) {
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

  Generic element_wise(Cyclic<Expr> bodies, std::size_t operands) const {
    Generic g;
    g.iterators = {IteratorKind::parallel};
    g.maps.assign(operands + 1, {{1, 0}});
    g.bodies = std::move(bodies);
    g.accumulator = accumulator();
    g.result = result();
    return g;
  }

  EdgeId add_edge(Edge e) {
    e.id = EdgeId(p_.edges.size());
    e.collective = collective_.id;
    p_.edges.push_back(std::move(e));
    return p_.edges.back().id;
  }
  void local(StageId from, BufferId buffer, StageId to) {
    Edge e;
    e.from = from;
    e.buffer = buffer;
    e.to = {to};
    add_edge(std::move(e));
  }

  // One crossing edge from `from` at member `sender` to a Recv at each receiver, with landings like `buffer`'s pages,
  // or like the chunk of them that is sent.
  std::vector<Landing> cross(StageId from, BufferId buffer, Chunk chunk, std::uint32_t sender,
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
                             ? route(target_, collective_.members[receiver], collective_.members[sender])
                             : route(target_, collective_.members[sender], collective_.members[receiver]));
      landings.push_back({recv, landing});
    }
    add_edge(std::move(e));
    return landings;
  }

  // The fold at member `at_member` of `chunk` of all partials; its last port is its output.
  StageId fold_at(std::uint32_t at_member, Chunk chunk) {
    Generic fold;
    fold.bodies.push_back({1, take(0)});
    std::vector<Port> ports;
    std::vector<Landing> sources;
    for (std::uint32_t m = 0; m < n_; ++m) {
      if (m > 0)
        fold.bodies.push_back({1, mutated("expand.fold_skips_a_partial", m, 0) == m ? add_to_last(m) : take(m)});
      const bool own = m == at_member;
      sources.push_back(
          own ? Landing{members_[m].source, members_[m].buffer}
              : cross(members_[m].source, members_[m].buffer,
                      mutated("expand.partial_of_another_chunk", chunk, Chunk{(chunk.index + 1) % chunk.of, chunk.of}),
                      m, {at_member}, "recv", firings())
                    .front());
      ports.push_back(input_port(sources.back().buffer, m, m + 1, n_));
      if (own && chunk.of > 1)
        ports.back().chunk = always(mutated("expand.own_chunk_wrong", chunk, Chunk{0, chunk.of}));
    }
    const BufferId sum = add_buffer("sum", at_member, BufferKind::fifo, result(), partial(), chunk.of);
    ports.push_back(output_port(sum, n_ - 1, n_, n_));
    const StageId stage = add_stage("fold", at_member, element_wise(std::move(fold.bodies), n_),
                                    {StageRole::compute, context(at_member)}, firings() * n_, std::move(ports));
    for (const Landing& s : sources) local(s.recv, s.buffer, stage);
    return stage;
  }

  void store_whole(std::uint32_t member, StageId from, BufferId buffer) {
    const StageId store = members_[member].outcomes.front().store;
    local(from, buffer, store);
    p_.stages[store.value].ports = {input_port(buffer)};
  }

  void store_chunks(StageId store, std::vector<Port> ports, const std::vector<std::uint32_t>& order) {
    Stage& s = p_.stages[store.value];
    s.ports = std::move(ports);
    s.firings = firings() * n_;
    auto& chunks = std::get<Store>(s.kind).chunks;
    chunks.clear();
    for (const std::uint32_t chunk : order) chunks.push_back({chunk, n_});
  }

  SpatialProgram& p_;
  const Collective& collective_;
  const std::vector<Member>& members_;
  const Target& target_;
  std::uint32_t n_;
  std::map<std::uint32_t, std::uint32_t> contexts_;              // given out at each member
  std::map<std::uint32_t, std::vector<std::uint32_t>> engines_;  // stages on each movement engine of each member
};

}  // namespace

std::vector<Member> members_of(const SpatialProgram& p, const Collective& collective) {
  std::map<ChipId, std::vector<StageId>> stages;
  for (const Stage& s : p.stages)
    if (const auto* c = std::get_if<CollectiveStage>(&s.kind); c && c->collective == collective.id)
      stages[p.chip_of(s)].push_back(s.id);
  std::map<BufferId, EdgeId> edge_of;
  for (const Edge& e : p.edges)
    if (is_local(e.handshake)) edge_of[e.buffer] = e.id;
  std::vector<Member> members;
  for (const ChipId chip : collective.members) {
    const auto found = stages.find(chip);
    if (found == stages.end() || found->second.size() != 1) return {};
    Member m;
    m.stage = found->second.front();
    for (const Port& port : p.stage(m.stage).ports) {
      const auto edge = edge_of.find(port.buffer);
      if (edge == edge_of.end() || p.edge(edge->second).to.empty()) return {};
      if (port.direction == Direction::input) {
        m.buffer = port.buffer;
        m.edge = edge->second;
        m.source = p.edge(edge->second).from;
      } else {
        m.outcomes.push_back({port.buffer, edge->second, p.edge(edge->second).to.front()});
      }
    }
    members.push_back(std::move(m));
  }
  return members;
}

SiteDemand counts_of(CollectiveKind kind, CollectiveAlgorithm algorithm, std::uint32_t chips, bool convert) {
  const std::uint64_t n = chips, others = n - 1;
  const bool all = kind == CollectiveKind::all_reduce;
  if (kind == CollectiveKind::all_gather) return {others, others + 1, 0, 0, 0, 0};
  switch (algorithm) {
    case CollectiveAlgorithm::through_one:
      // The first member: a landing of each other member, the sum.
      return {others + 1, others + (all ? 1 : 0), 1, 1, 1, 0};
    case CollectiveAlgorithm::direct:
      // A landing of each other member's partial chunk, the sum, a landing of each other member's sum.
      return {2 * others + 1, 3 * others + (all ? 1 : 0), 1, 1, 1, 0};
    case CollectiveAlgorithm::ring: {
      if (!all) return {2, n == 2 ? 1u : 2u, 1, 2, 1, 0};
      const std::uint64_t conversion = convert ? 1 : 0;
      return {3 + conversion, 2, 1 + conversion, 2, 2, 0};
    }
    case CollectiveAlgorithm::automatic:
      break;
  }
  return {};
}

SiteDemand demand_of(const SpatialProgram& p, const Collective& collective, const std::vector<Member>& members,
                     CollectiveAlgorithm algorithm) {
  const std::uint64_t n = members.size(), others = n - 1;
  const Buffer& partial = p.buffer(members.front().buffer);
  const DType result = p.buffer(members.front().outcomes.front().buffer).dtype;
  const bool convert = partial.dtype != result;
  const Bytes page = partial.page_bytes;
  const Bytes result_page = page / bytes_of(partial.dtype) * bytes_of(result);
  const Bytes chunk = chunk_bytes(page, partial.dtype, n);
  const Bytes result_chunk = chunk / bytes_of(partial.dtype) * bytes_of(result);
  SiteDemand demand = counts_of(collective.kind, algorithm, static_cast<std::uint32_t>(n), convert);
  if (collective.kind == CollectiveKind::all_gather) {
    demand.bytes = others * page;
  } else if (algorithm == CollectiveAlgorithm::through_one) {
    demand.bytes = others * page + result_page;
  } else if (algorithm == CollectiveAlgorithm::direct) {
    demand.bytes = others * chunk + n * result_chunk;
  } else if (algorithm == CollectiveAlgorithm::ring) {
    if (collective.kind == CollectiveKind::all_reduce)
      demand.bytes = 3 * chunk + (convert ? result_chunk : 0);
    else  // of more than two, a member that hands on a partial sum
      demand.bytes = page + (n == 2 ? result_page : std::max(page, result_page));
  }
  return demand;
}

void expand(SpatialProgram& program, const Collective& collective, const std::vector<Member>& members,
            CollectiveAlgorithm algorithm, const Target& target) {
  Expansion expansion(program, collective, members, target);
  if (collective.kind == CollectiveKind::all_gather) return expansion.gather();
  switch (algorithm) {
    case CollectiveAlgorithm::through_one:
      return expansion.through_one();
    case CollectiveAlgorithm::direct:
      return expansion.direct();
    case CollectiveAlgorithm::ring:
      return collective.kind == CollectiveKind::reduce ? expansion.ring_reduce() : expansion.ring_all_reduce();
    case CollectiveAlgorithm::automatic:
      return;
  }
}

std::vector<Sum> sums_of(CollectiveKind kind, CollectiveAlgorithm algorithm, const std::vector<Sum>& parts) {
  const std::size_t n = parts.size();
  const auto from = [&](std::size_t first) {
    std::vector<Sum> order;
    for (std::size_t i = 0; i < n; ++i) order.push_back(parts[(first + i) % n]);
    return left_deep(order);
  };
  if (algorithm == CollectiveAlgorithm::through_one) return {from(0)};
  if (algorithm == CollectiveAlgorithm::ring && kind == CollectiveKind::reduce) return {from(1)};
  std::vector<Sum> sums;
  for (std::size_t chunk = 0; chunk < n; ++chunk)
    sums.push_back(from(algorithm == CollectiveAlgorithm::ring ? chunk : 0));
  return sums;
}

}  // namespace rdusim
