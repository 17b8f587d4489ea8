// All-gathers whose landings are more than a site has buffers: pages of many members follow each other through one landing,
// a train, and one store takes all that lie at equal distances in the result.
#include <algorithm>
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {
namespace {

// Of one train, at most this part of a site's memory is taken so that its pages do not wait for credits.
constexpr Bytes share_of_a_site = 8;

// Where the pages of two stores begin, seen from each other; nothing where the first's are further on, or where they
// differ in more than that.
std::optional<std::vector<std::uint64_t>> distance(const AccessPattern& from, const AccessPattern& to) {
  std::vector<std::uint64_t> by(from.page_tiles.size());
  for (std::size_t d = 0; d < by.size(); ++d) {
    if (to.first.front()[d] < from.first.front()[d]) return std::nullopt;
    by[d] = to.first.front()[d] - from.first.front()[d];
  }
  AccessPattern moved = from;
  for (auto& first : moved.first)
    for (std::size_t d = 0; d < by.size(); ++d) first[d] += by[d];
  moved.extent_tiles = to.extent_tiles;
  return moved == to ? std::optional(by) : std::nullopt;
}

// In this order, as few trains as can be.
std::vector<Train> trains_of(const std::vector<std::uint32_t>& origins, const std::vector<AccessPattern>& places) {
  std::vector<Train> trains;
  for (const std::uint32_t origin : origins) {
    if (!trains.empty()) {
      Train& last = trains.back();
      const auto step = distance(places[last.origins.back()], places[origin]);
      if (step && (last.origins.size() == 1 || last.step == *step)) {
        last.step = *step;
        last.origins.push_back(origin);
        continue;
      }
    }
    trains.push_back({{origin}, std::vector<std::uint64_t>(places[origin].page_tiles.size(), 0)});
  }
  return trains;
}

}  // namespace

// Every member has a store for every other's pages, and they are all alike: the first member's say how all lie.
std::vector<AccessPattern> Expansion::places() const {
  std::vector<AccessPattern> patterns;
  for (const Member::Outcome& o : members_.front().outcomes)
    patterns.push_back(std::get<Store>(p_.stage(o.store).kind).pattern);
  return patterns;
}

void Expansion::keep(std::uint32_t member, const Train& train, const Landing& from) {
  const StageId store = members_[member].outcomes[train.origins.front()].store;
  const StageId last = members_[member].outcomes[train.origins.back()].store;
  auto& pattern = std::get<Store>(p_.stages[store.value].kind).pattern;
  pattern.extent_tiles = std::get<Store>(p_.stage(last).kind).pattern.extent_tiles;
  pattern.loops.push_back(train.origins.size());
  pattern.stride.push_back(
      mutated("expand.train_stored_in_one_place", train.step, std::vector(train.step.size(), std::uint64_t{0})));
  p_.stages[store.value].firings *= train.origins.size();
  local(from.recv, from.buffer, store);
  p_.stages[store.value].ports = {input_port(from.buffer)};
}

Generic Expansion::forwards(const std::vector<std::uint32_t>& ports, std::size_t operands) const {
  std::vector<Expr> bodies;
  for (const std::uint32_t port : ports) bodies.push_back(take(port));
  Generic forward = element_wise(by_phase(bodies), operands);
  forward.accumulator = accumulator_of(partial().dtype);
  return forward;
}

void Expansion::holds_train(BufferId landing, std::size_t pages) {
  const Bytes room = target_.pmu.capacity_bytes / share_of_a_site;
  holds(landing, std::min<std::uint64_t>(pages, std::max<Bytes>(room / std::max<Bytes>(partial().page_bytes, 1), 2)));
}

// Members stand in the order of their chips, and each hands on to the one before it: to member r come the pages of r + 1,
// r + 2, ..., the last, then of the first, ..., r - 1.
void Expansion::ring_gather_in_trains() {
  const std::vector<std::uint32_t> by_chip = in_order_of_chips(collective_.members);
  const std::vector<AccessPattern> all_places = places();
  struct Part {
    StageId ring;
    BufferId next;
  };
  std::vector<Part> parts;
  for (std::uint32_t r = 0; r < n_; ++r) {
    const std::uint32_t m = by_chip[r];
    std::vector<std::uint32_t> origins;
    for (std::uint32_t t = 0; t < n_; ++t) origins.push_back(by_chip[(r + t) % n_]);
    std::vector<std::uint32_t> taken(n_, 1);
    taken.front() = 0;
    // The landing's buffer is known once the neighbour's stage is there to send to it.
    std::vector<Port> ports = {input_port(members_[m].buffer, 0, 1, n_), Port{}};
    const BufferId next = add_buffer("next", m, partial().kind, partial().dtype, partial(), 1);
    ports.push_back(output_port(next, 0, n_ - 1, n_));
    const std::vector<Train> trains = trains_of(origins, all_places);
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < trains.size(); ++i) {
      const auto end = begin + static_cast<std::uint32_t>(trains[i].origins.size());
      const BufferId done =
          add_buffer(i == 0 ? "done" : "done" + std::to_string(i), m, BufferKind::fifo, partial().dtype, partial(), 1);
      ports.push_back(output_port(done, begin, end, n_));
      begin = end;
    }
    const StageId ring =
        add_stage("ring", m, forwards(taken, 2), {StageRole::compute, context(m)}, firings() * n_, std::move(ports));
    local(members_[m].source, members_[m].buffer, ring);
    for (std::size_t i = 0; i < trains.size(); ++i) keep(m, trains[i], {ring, p_.stage(ring).ports[3 + i].buffer});
    parts.push_back({ring, next});
  }
  for (std::uint32_t r = 0; r < n_; ++r) {
    const std::uint32_t to = (r + n_ - 1) % n_;
    const Landing landing =
        cross(parts[r].ring, parts[r].next, Chunk{}, by_chip[r], {by_chip[to]}, "recv", firings() * (n_ - 1)).front();
    p_.stages[parts[to].ring.value].ports[1] = input_port(landing.buffer, 1, n_, n_);
    local(landing.recv, landing.buffer, parts[to].ring);
  }
}

// A member sends to one of each other node. Who has pages of other nodes, and its own, hands them on in one train (or in
// several, where they do not lie at equal distances) to the others of its node.
void Expansion::hierarchical_gather_in_trains() {
  const TwoLevels levels(collective_.members, target_.node_chips);
  const auto& nodes = levels.nodes();
  const std::vector<AccessPattern> all_places = places();
  // By member: what it hands on, and what gives it that.
  std::vector<std::vector<std::pair<std::uint32_t, Landing>>> has(n_);
  for (std::size_t j = 0; j < levels.chunks(); ++j)
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      if (j >= nodes[v].size()) continue;
      const std::uint32_t origin = nodes[v][j];
      std::vector<std::uint32_t> to;
      for (std::size_t u = 0; u < nodes.size(); ++u)
        if (u != v) to.push_back(levels.owner(u, static_cast<std::uint32_t>(j)));
      const std::vector<Landing> landings =
          cross(members_[origin].source, members_[origin].buffer, Chunk{}, origin, to, "recv", firings());
      has[origin].push_back({origin, {members_[origin].source, members_[origin].buffer}});
      for (std::size_t i = 0; i < to.size(); ++i) has[to[i]].push_back({origin, landings[i]});
    }
  for (const auto& node : nodes)
    for (const std::uint32_t m : node) {
      std::vector<std::uint32_t> others, origins, phases;
      for (const std::uint32_t other : node)
        if (other != m) others.push_back(other);
      std::vector<Port> ports;
      const auto count = static_cast<std::uint32_t>(has[m].size());
      for (std::uint32_t i = 0; i < count; ++i) {
        origins.push_back(has[m][i].first);
        phases.push_back(mutated("expand.train_out_of_order", i, count - 1 - i));
        ports.push_back(input_port(has[m][i].second.buffer, phases.back(), phases.back() + 1, count));
      }
      const std::vector<Train> trains = trains_of(origins, all_places);
      std::vector<BufferId> joined;
      std::uint32_t begin = 0;
      for (std::size_t i = 0; i < trains.size(); ++i) {
        const auto end = begin + static_cast<std::uint32_t>(trains[i].origins.size());
        joined.push_back(add_buffer(i == 0 ? "joined" : "joined" + std::to_string(i), m, BufferKind::fifo,
                                    partial().dtype, partial(), 1));
        ports.push_back(output_port(joined.back(), begin, end, count));
        begin = end;
      }
      const StageId join = add_stage("join", m, forwards(phases, count), {StageRole::compute, context(m)},
                                     firings() * count, std::move(ports));
      for (const auto& [origin, from] : has[m]) local(from.recv, from.buffer, join);
      for (std::size_t i = 0; i < trains.size(); ++i) {
        keep(m, trains[i], {join, joined[i]});
        if (others.empty()) continue;
        const std::size_t pages = trains[i].origins.size();
        const std::vector<Landing> landings = cross(join, joined[i], Chunk{}, m, others,
                                                    i == 0 ? "train" : "train" + std::to_string(i), firings() * pages);
        for (std::size_t k = 0; k < others.size(); ++k) {
          holds_train(landings[k].buffer, pages);
          keep(others[k], trains[i], landings[k]);
        }
      }
    }
}

SiteDemand train_counts(CollectiveAlgorithm algorithm, const std::vector<ChipId>& members, std::uint32_t node_chips) {
  // Two trains at most come round a ring.
  if (algorithm == CollectiveAlgorithm::ring) return {4, 2, 1, 1, 2, 0};
  const TwoLevels levels(members, node_chips);
  const auto& nodes = levels.nodes();
  // A train for each of the members that a node has in other nodes' places.
  const auto handed_on = [&](std::size_t v, std::size_t i) { return levels.owned(v, i).size(); };
  SiteDemand most{0, 0, 1, 1, 1, 0};
  for (std::size_t v = 0; v < nodes.size(); ++v)
    for (std::size_t i = 0; i < nodes[v].size(); ++i) {
      std::uint64_t landings = 0, trains = 0;
      for (const std::uint32_t j : levels.owned(v, i))
        for (std::size_t u = 0; u < nodes.size(); ++u) landings += u != v && j < nodes[u].size() ? 1 : 0;
      for (std::size_t k = 0; k < nodes[v].size(); ++k) trains += k == i ? 0 : handed_on(v, k);
      const std::uint64_t own = handed_on(v, i), leaving = 1 + (nodes[v].size() > 1 ? own : 0);
      most.buffers = std::max(most.buffers, landings + trains + own);
      most.semaphores = std::max(most.semaphores, landings + trains + leaving);
    }
  return most;
}

}  // namespace rdusim
