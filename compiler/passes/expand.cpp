#include "compiler/passes/expand.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/ir/hypercube.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {

void Expansion::through_one() {
  std::vector<Landing> partials(n_);
  for (std::uint32_t m = 1; m < n_; ++m) partials[m] = send_partial(m, 0, Chunk{});
  const StageId fold = fold_at(0, Chunk{}, std::move(partials));
  const BufferId sum = output_of(fold);
  if (stores(0)) store_whole(0, fold, sum);
  std::vector<std::uint32_t> others;
  for (std::uint32_t m = 1; m < n_; ++m)
    if (stores(m)) others.push_back(m);
  if (others.empty()) return;
  const std::vector<Landing> landings = cross(fold, sum, Chunk{}, 0, others, "result", firings());
  for (std::size_t i = 0; i < others.size(); ++i) store_whole(others[i], landings[i].recv, landings[i].buffer);
}

void Expansion::direct() {
  // Each member sends to the next one first: would all begin with the same, its ports were crowded and the others' idle.
  std::vector<std::vector<Landing>> partials(n_, std::vector<Landing>(n_));  // by receiver and sender
  for (std::uint32_t step = 1; step < n_; ++step)
    for (std::uint32_t sender = 0; sender < n_; ++sender) {
      const std::uint32_t receiver = (sender + step) % n_;
      partials[receiver][sender] = send_partial(sender, receiver, Chunk{receiver, n_});
    }
  std::vector<StageId> folds;
  for (std::uint32_t m = 0; m < n_; ++m) folds.push_back(fold_at(m, Chunk{m, n_}, std::move(partials[m])));
  // source[m][d]: what stage, and through which buffer, gives member m chunk d.
  std::vector<std::vector<Landing>> source(n_, std::vector<Landing>(n_));
  for (std::uint32_t d = 0; d < n_; ++d) {
    const BufferId sum = output_of(folds[d]);
    source[d][d] = {folds[d], sum};
    std::vector<std::uint32_t> others;
    for (std::uint32_t step = 1; step < n_; ++step)
      if (const std::uint32_t m = (d + step) % n_; stores(m)) others.push_back(m);
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
    store_chunks(store, std::move(ports), order, n_);
  }
}

std::uint32_t Expansion::ring_chunk(std::uint32_t r, std::uint32_t t) const {
  return (r + 2 * n_ - t + mutated("expand.ring_chunk_off_by_one", 0u, t == 1 ? 1u : 0u)) % n_;
}

void Expansion::ring_all_reduce() {
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
    const Landing last = converted(r, rings[r], done[r], n_);
    local(last.recv, last.buffer, store);
    store_chunks(store, {input_port(last.buffer)}, order, n_);
  }
}

// Member 1's partials go to member 2, which adds its own and sends them on; member 0 adds the last and stores.
void Expansion::ring_reduce() {
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
    m.contributes = false;
    for (const Port& port : p.stage(m.stage).ports) {
      const auto edge = edge_of.find(port.buffer);
      if (edge == edge_of.end() || p.edge(edge->second).to.empty()) return {};
      if (port.direction == Direction::input) {
        m.contributes = true;
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

namespace {

// A corner with a guest, where there is one: of each step what it sends and a landing; what it keeps, what is done.
SiteDemand halving_counts(std::uint32_t chips, bool convert) {
  const Hypercube cube(chips);
  const std::uint64_t k = cube.steps(), guest = cube.guests() > 0 ? 1 : 0, conversion = convert ? 1 : 0;
  return {2 * k + guest + (k > 1 ? 2 : 1) + conversion, 2 * k + 2 * guest, 1 + conversion,
          k > 2 || (k > 1 && guest > 0) ? 3u : 2u,      k > 1 ? 3u : 2u,   0};
}

// The member with most below it that is not the root, or the root: a landing a child, their sum, the result's landing.
SiteDemand tree_counts(std::uint32_t chips, bool all) {
  const BinaryTree tree(chips);
  SiteDemand most{0, 0, 1, 2, 1, 0};
  for (std::uint32_t i = 0; i < chips; ++i) {
    const std::uint64_t children = tree.children(i).size(), result = all && i > 0 ? 1 : 0, inner = children > 0 ? 1 : 0;
    most.buffers = std::max(most.buffers, children + inner + result);
    most.semaphores = std::max(most.semaphores, children + (i > 0 ? 1 : 0) + result + (all ? inner : 0));
  }
  return most;
}

SiteDemand hierarchical_counts(std::uint32_t chips, std::uint32_t node_chips) {
  std::vector<ChipId> members;
  for (std::uint32_t c = 0; c < chips; ++c) members.push_back(ChipId(c));
  const TwoLevels levels(members, node_chips);
  SiteDemand most{0, 0, 2, 1, 1, 0};
  const std::uint64_t others = levels.nodes().size() - 1;
  for (std::size_t v = 0; v < levels.nodes().size(); ++v) {
    const std::uint64_t beside = levels.nodes()[v].size() - 1, owned = levels.owned(v, 0).size();
    const std::uint64_t landings = owned * (beside + others) + beside;
    const std::uint64_t sent = levels.chunks() - owned + owned * others + (beside > 0 ? 1 : 0);
    most.buffers = std::max(most.buffers, landings + owned + 1);
    most.semaphores = std::max(most.semaphores, landings + sent);
  }
  return most;
}

// A landing from each other member, who all are sent to; what others are to have of it is sent on.
SiteDemand gather_counts(CollectiveAlgorithm algorithm, std::uint32_t chips, std::uint32_t node_chips) {
  const std::uint64_t others = chips - 1;
  std::uint64_t forwarded = algorithm == CollectiveAlgorithm::ring ? others - 1 : 0;
  if (algorithm == CollectiveAlgorithm::hierarchical) {
    std::vector<ChipId> members;
    for (std::uint32_t c = 0; c < chips; ++c) members.push_back(ChipId(c));
    const TwoLevels levels(members, node_chips);
    for (std::size_t v = 0; v < levels.nodes().size(); ++v) {
      std::uint64_t here = 0;  // by the first of the node, which has the most to forward
      for (std::size_t u = 0; levels.nodes()[v].size() > 1 && u < levels.nodes().size(); ++u)
        if (u != v) here += ceil_div(levels.nodes()[u].size(), levels.nodes()[v].size());
      forwarded = std::max(forwarded, here);
    }
  }
  return {others, others + 1 + forwarded, 0, 0, 0, 0};
}

// Who has most: of those that send on what they are sent, each a landing; directly, one a chunk.
SiteDemand broadcast_counts(CollectiveAlgorithm algorithm, std::uint32_t chips, std::uint32_t node_chips) {
  if (algorithm == CollectiveAlgorithm::direct) {
    const std::uint64_t chunks = chips - 1;
    return {chunks, chunks + (chunks > 1 ? 1 : 0), 0, 0, 0, 0};
  }
  bool sent_on = false;
  if (algorithm == CollectiveAlgorithm::ring) sent_on = chips > 2;
  if (algorithm == CollectiveAlgorithm::tree) sent_on = chips > 3;
  if (algorithm == CollectiveAlgorithm::hierarchical)
    sent_on = (node_chips > 1 && chips > node_chips + 1) || (node_chips != 0 && ceil_div(chips, node_chips) > 3);
  return {1, sent_on ? 2u : 1u, 0, 0, 0, 0};
}

// A member that sums the parts of so many: of each a landing of each other of its node, and their sum; of its own, the other
// nodes' sums, and all of it.
SiteDemand scatter_by_levels_counts(std::uint32_t chips, std::uint32_t node_chips) {
  std::vector<ChipId> members;
  for (std::uint32_t c = 0; c < chips; ++c) members.push_back(ChipId(c));
  const auto nodes = by_node(members, node_chips);
  SiteDemand most{0, 0, 2, 1, 1, 0};
  for (const auto& node : nodes)
    for (std::size_t i = 0; i < node.size(); ++i) {
      std::uint64_t summed = 0;
      for (const auto& of : nodes)
        for (std::size_t j = i; j < of.size(); j += node.size()) ++summed;
      const std::uint64_t beside = node.size() - 1, others = nodes.size() - 1;
      most.buffers = std::max(most.buffers, summed * (beside + 1) + others + 1);
      // Each other of the node is sent all that it sums; who keeps another part is sent its sum.
      most.semaphores = std::max(most.semaphores, summed * beside + others + (chips - summed) + (summed - 1));
    }
  return most;
}

// Of the first member where all goes through it; else a landing a member, or one of the ring and what it sends and keeps.
SiteDemand scatter_counts(CollectiveAlgorithm algorithm, std::uint32_t chips, bool convert, std::uint32_t node_chips) {
  if (algorithm == CollectiveAlgorithm::hierarchical) return scatter_by_levels_counts(chips, node_chips);
  const std::uint64_t others = chips - 1, conversion = convert ? 1 : 0;
  if (algorithm == CollectiveAlgorithm::ring) return {3 + conversion, 2, 1 + conversion, 2, 1, 0};
  return {others + 1, 2 * others, 1, 1, 1, 0};
}

Bytes tree_bytes(std::uint32_t chips, bool all, Bytes page, Bytes result_page) {
  const BinaryTree tree(chips);
  Bytes most = 0;
  for (std::uint32_t i = 0; i < chips; ++i) {
    const std::uint64_t children = tree.children(i).size();
    const Bytes sum = children == 0 ? 0 : i == 0 ? result_page : page;
    most = std::max(most, children * page + sum + (all && i > 0 ? result_page : 0));
  }
  return most;
}

Bytes hierarchical_bytes(const Collective& collective, Bytes page, DType partial, DType result,
                         std::uint32_t node_chips) {
  const TwoLevels levels(collective.members, node_chips);
  const Bytes chunk = chunk_bytes(page, partial, levels.chunks());
  const Bytes result_chunk = chunk / bytes_of(partial) * bytes_of(result);
  const std::uint64_t others = levels.nodes().size() - 1;
  Bytes most = 0;
  for (std::size_t v = 0; v < levels.nodes().size(); ++v) {
    const std::size_t members = levels.nodes()[v].size();
    for (std::size_t i = 0; i < members; ++i) {
      std::uint64_t results = 1;
      for (std::size_t s = 0; s < members; ++s) results += s == i ? 0 : levels.owned(v, s).size();
      most = std::max(most, levels.owned(v, i).size() * (members + others) * chunk + results * result_chunk);
    }
  }
  return most;
}

}  // namespace

SiteDemand counts_of(CollectiveKind kind, CollectiveAlgorithm algorithm, std::uint32_t chips, bool convert,
                     const Target& target) {
  const std::uint64_t n = chips, others = n - 1;
  const bool all = kind == CollectiveKind::all_reduce;
  if (kind == CollectiveKind::all_gather) return gather_counts(algorithm, chips, target.node_chips);
  if (kind == CollectiveKind::all_to_all) return {others, 2 * others, 0, 0, 0, 0};
  if (kind == CollectiveKind::broadcast) return broadcast_counts(algorithm, chips, target.node_chips);
  if (kind == CollectiveKind::reduce_scatter) return scatter_counts(algorithm, chips, convert, target.node_chips);
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
    case CollectiveAlgorithm::halving_doubling:
      return halving_counts(chips, convert);
    case CollectiveAlgorithm::tree:
      return tree_counts(chips, all);
    case CollectiveAlgorithm::hierarchical:
      return hierarchical_counts(chips, target.node_chips);
    case CollectiveAlgorithm::automatic:
      break;
  }
  return {};
}

SiteDemand demand_of(const SpatialProgram& p, const Collective& collective, const std::vector<Member>& members,
                     Choice choice, const Target& target) {
  const CollectiveAlgorithm algorithm = choice.algorithm;
  const std::uint64_t n = members.size(), others = n - 1;
  const Buffer& partial = p.buffer(members.front().buffer);
  const DType result = p.buffer(members.front().outcomes.front().buffer).dtype;
  const bool convert = partial.dtype != result;
  const Bytes page = partial.page_bytes;
  const Bytes result_page = page / bytes_of(partial.dtype) * bytes_of(result);
  const Bytes chunk = chunk_bytes(page, partial.dtype, n);
  const Bytes result_chunk = chunk / bytes_of(partial.dtype) * bytes_of(result);
  if (choice.in_trains) {
    SiteDemand demand = train_counts(algorithm, collective.members, target.node_chips);
    demand.bytes = demand.buffers * page;
    return demand;
  }
  SiteDemand demand = counts_of(collective.kind, algorithm, static_cast<std::uint32_t>(n), convert, target);
  if (collective.kind == CollectiveKind::all_gather) {
    demand.bytes = others * page;
  } else if (collective.kind == CollectiveKind::all_to_all) {
    demand.bytes = others * chunk;
  } else if (collective.kind == CollectiveKind::broadcast) {
    const bool cut = algorithm == CollectiveAlgorithm::direct;
    demand.bytes = cut ? others * chunk_bytes(page, partial.dtype, others) : page;
  } else if (collective.kind == CollectiveKind::reduce_scatter &&
             (algorithm == CollectiveAlgorithm::direct || algorithm == CollectiveAlgorithm::hierarchical)) {
    demand.bytes = (demand.buffers - 1) * chunk + result_chunk;
  } else if (algorithm == CollectiveAlgorithm::through_one) {
    demand.bytes = others * page + result_page;
  } else if (algorithm == CollectiveAlgorithm::direct) {
    demand.bytes = others * chunk + n * result_chunk;
  } else if (algorithm == CollectiveAlgorithm::ring) {
    if (collective.kind != CollectiveKind::reduce)
      demand.bytes = 3 * chunk + (convert ? result_chunk : 0);
    else  // of more than two, a member that hands on a partial sum
      demand.bytes = page + (n == 2 ? result_page : std::max(page, result_page));
  } else if (algorithm == CollectiveAlgorithm::halving_doubling) {
    const Hypercube cube(static_cast<std::uint32_t>(n));
    const std::uint64_t k = cube.steps(), corners = cube.corners();
    const Bytes block = chunk_bytes(page, partial.dtype, corners);
    // Of each step a block to send, and its landings; what is done, and what is kept; a guest's page.
    std::uint64_t blocks = k + 1;
    for (std::uint32_t t = 0; t < k; ++t) blocks += cube.crossing(t);
    if (k > 1) blocks += corners / 4 + 2;
    demand.bytes = blocks * block + (cube.guests() > 0 ? page : 0) +
                   (convert ? block / bytes_of(partial.dtype) * bytes_of(result) : 0);
  } else if (algorithm == CollectiveAlgorithm::tree) {
    demand.bytes =
        tree_bytes(static_cast<std::uint32_t>(n), collective.kind == CollectiveKind::all_reduce, page, result_page);
  } else if (algorithm == CollectiveAlgorithm::hierarchical) {
    demand.bytes = hierarchical_bytes(collective, page, partial.dtype, result, target.node_chips);
  }
  return demand;
}

void expand(SpatialProgram& program, const Collective& collective, const std::vector<Member>& members, Choice choice,
            const Target& target) {
  Expansion expansion(program, collective, members, target);
  if (collective.kind == CollectiveKind::all_to_all) return expansion.exchange();
  if (collective.kind == CollectiveKind::all_gather) {
    if (choice.algorithm == CollectiveAlgorithm::ring)
      return choice.in_trains ? expansion.ring_gather_in_trains() : expansion.ring_gather();
    if (choice.algorithm == CollectiveAlgorithm::hierarchical)
      return choice.in_trains ? expansion.hierarchical_gather_in_trains() : expansion.hierarchical_gather();
    return expansion.gather();
  }
  if (collective.kind == CollectiveKind::broadcast) {
    if (choice.algorithm == CollectiveAlgorithm::ring) return expansion.broadcast_in_line();
    if (choice.algorithm == CollectiveAlgorithm::direct) return expansion.broadcast_direct();
    if (choice.algorithm == CollectiveAlgorithm::tree) return expansion.broadcast_along_tree();
    if (choice.algorithm == CollectiveAlgorithm::hierarchical) return expansion.broadcast_by_levels();
    return expansion.broadcast_through_one();
  }
  if (collective.kind == CollectiveKind::reduce_scatter) {
    if (choice.algorithm == CollectiveAlgorithm::ring) return expansion.ring_scatter();
    if (choice.algorithm == CollectiveAlgorithm::direct) return expansion.scatter_direct();
    if (choice.algorithm == CollectiveAlgorithm::hierarchical) return expansion.scatter_by_levels();
    return expansion.scatter_through_one();
  }
  switch (choice.algorithm) {
    case CollectiveAlgorithm::through_one:
      return expansion.through_one();
    case CollectiveAlgorithm::direct:
      return expansion.direct();
    case CollectiveAlgorithm::ring:
      return collective.kind == CollectiveKind::reduce ? expansion.ring_reduce() : expansion.ring_all_reduce();
    case CollectiveAlgorithm::halving_doubling:
      return expansion.halving_doubling();
    case CollectiveAlgorithm::tree:
      return expansion.tree();
    case CollectiveAlgorithm::hierarchical:
      return expansion.hierarchical();
    case CollectiveAlgorithm::automatic:
      return;
  }
}

std::vector<Sum> sums_of(const Collective& collective, const std::vector<Sum>& parts, const Target& target) {
  const std::size_t n = parts.size();
  const auto from = [&](std::size_t first) {
    std::vector<Sum> order;
    for (std::size_t i = 0; i < n; ++i) order.push_back(parts[(first + i) % n]);
    return left_deep(order);
  };
  std::vector<Sum> sums;
  switch (collective.algorithm) {
    case CollectiveAlgorithm::through_one:
    case CollectiveAlgorithm::automatic:
      return {from(0)};
    case CollectiveAlgorithm::direct:
      return std::vector<Sum>(n, from(0));
    case CollectiveAlgorithm::ring:
      if (collective.kind == CollectiveKind::reduce) return {from(1)};
      if (collective.kind == CollectiveKind::reduce_scatter) {
        const std::vector<std::uint32_t> parts_of = parts_kept(collective.members);
        sums.resize(n);
        for (std::size_t home = 0; home < n; ++home)
          sums[parts_of[home]] = from(mutated("collective.scattered_to_the_next", home + 1, home));
        return sums;
      }
      for (std::size_t chunk = 0; chunk < n; ++chunk) sums.push_back(from(chunk));
      return sums;
    case CollectiveAlgorithm::halving_doubling:
      return halving_sums(collective.members, parts);
    case CollectiveAlgorithm::tree:
      return tree_sums(collective.members, parts);
    case CollectiveAlgorithm::hierarchical:
      sums = hierarchical_sums(collective.members, parts, target.node_chips);
      if (collective.kind == CollectiveKind::reduce_scatter) sums.resize(n, sums.front());
      return sums;
  }
  return sums;
}

}  // namespace rdusim
