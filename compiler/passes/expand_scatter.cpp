// Reductions whose result is dealt out: every page has all rows, and each member keeps its part of them. They are the first
// halves of all-reduces.
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {

Chunk Expansion::kept_by(std::uint32_t member) const {
  return {mutated("expand.part_of_the_next_member", parts_[member], parts_[(member + 1) % n_]), n_};
}

void Expansion::scatter_through_one() {
  std::vector<Landing> partials(n_);
  for (std::uint32_t m = 1; m < n_; ++m) partials[m] = send_partial(m, 0, Chunk{});
  const StageId fold = fold_at(0, Chunk{}, std::move(partials));
  const BufferId sum = output_of(fold);
  store_whole(0, fold, sum);
  p_.stages[members_[0].outcomes.front().store.value].ports.front().chunk = always(kept_by(0));
  for (std::uint32_t m = 1; m < n_; ++m) {
    const Landing part = cross(fold, sum, kept_by(m), 0, {m}, "part", firings()).front();
    store_whole(m, part.recv, part.buffer);
  }
}

void Expansion::scatter_direct() {
  // As in direct(), each member sends to the next one first.
  std::vector<std::vector<Landing>> partials(n_, std::vector<Landing>(n_));  // by receiver and sender
  for (std::uint32_t step = 1; step < n_; ++step)
    for (std::uint32_t sender = 0; sender < n_; ++sender) {
      const std::uint32_t receiver = (sender + step) % n_;
      partials[receiver][sender] = send_partial(sender, receiver, kept_by(receiver));
    }
  for (std::uint32_t m = 0; m < n_; ++m) {
    const StageId fold = fold_at(m, kept_by(m), std::move(partials[m]));
    store_whole(m, fold, output_of(fold));
  }
}

// The part of member j starts at the one after it and comes home with every member's added.
void Expansion::ring_scatter() {
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
                   {n_ - 1, mutated("expand.scattered_without_adding", false, true) ? take(1) : sum_of(1, 0)}};
    Port own{Direction::input, members_[r].buffer};
    own.need = in_phases(0, n_, n_);
    own.pop = in_phases(n_ - 1, n_, n_);
    own.chunk.clear();
    for (std::uint32_t t = 0; t < n_; ++t) own.chunk.push_back({1, kept_by((r + 2 * n_ - t - 1) % n_)});
    // The landing's buffer is known once the neighbour's stage is there to send to it.
    rings.push_back(
        add_stage("ring", r, std::move(ring), {StageRole::compute, context(r)}, firings() * n_,
                  {own, Port{}, output_port(to_next, 0, n_ - 1, n_), output_port(to_store, n_ - 1, n_, n_)}));
    next.push_back(to_next);
    done.push_back(to_store);
    local(members_[r].source, members_[r].buffer, rings.back());
  }
  for (std::uint32_t r = 0; r < n_; ++r) {
    const std::uint32_t right = (r + 1) % n_;
    const Landing landing = cross(rings[r], next[r], Chunk{}, r, {right}, "recv", firings() * (n_ - 1)).front();
    p_.stages[rings[right].value].ports[1] = input_port(landing.buffer, 1, n_, n_);
    local(landing.recv, landing.buffer, rings[right]);
  }
  for (std::uint32_t r = 0; r < n_; ++r) {
    const BufferId whole = done[r];
    if (!convert) {
      store_whole(r, rings[r], whole);
      continue;
    }
    const BufferId narrow = add_buffer("done", r, BufferKind::fifo, result(), partial(), n_);
    const StageId conversion =
        add_stage("convert", r, element_wise({{1, take(0)}}, 1), {StageRole::compute, context(r)}, firings(),
                  {input_port(whole), output_port(narrow)});
    local(rings[r], whole, conversion);
    store_whole(r, conversion, narrow);
  }
}

// What the j-th of any node keeps is summed in each node by its j-th (in one of fewer, by who has its turn), and then by
// who keeps it.
void Expansion::scatter_by_levels() {
  const auto nodes = by_node(collective_.members, target_.node_chips);
  std::vector<std::vector<Landing>> parts(nodes.size(), std::vector<Landing>(n_));  // by node and chunk: its sum
  for (std::size_t v = 0; v < nodes.size(); ++v)
    for (std::size_t i = 0; i < nodes[v].size(); ++i) {
      std::vector<std::uint32_t> summed;
      for (const auto& node : nodes)
        for (std::size_t j = i; j < node.size(); j += nodes[v].size()) summed.push_back(kept_by(node[j]).index);
      fold_in_node(nodes[v], i, summed, n_, parts[v]);
    }
  const auto all = static_cast<std::uint32_t>(nodes.size());
  for (std::size_t u = 0; u < nodes.size(); ++u)
    for (std::size_t j = 0; j < nodes[u].size(); ++j) {
      const std::uint32_t m = nodes[u][j], chunk = kept_by(m).index;
      Cyclic<Expr> bodies;
      std::vector<Port> ports;
      std::vector<Landing> sources;
      for (std::uint32_t v = 0; v < all; ++v) {
        const Landing& part = parts[v][chunk];
        sources.push_back(
            v == u ? part
                   : cross(part.recv, part.buffer, Chunk{}, nodes[v][j % nodes[v].size()], {m}, "node", firings())
                         .front());
        ports.push_back(input_port(sources.back().buffer, v, v + 1, all));
        bodies.push_back(
            {1, v == 0 || mutated("expand.scattered_in_one_node", false, true) ? take(v) : add_to_last(v)});
      }
      const BufferId sum = add_buffer("sum", m, BufferKind::fifo, result(), partial(), n_);
      ports.push_back(output_port(sum, all - 1, all, all));
      const StageId join = add_stage("join", m, element_wise(std::move(bodies), all), {StageRole::compute, context(m)},
                                     firings() * all, std::move(ports));
      for (const Landing& s : sources) local(s.recv, s.buffer, join);
      store_whole(m, join, sum);
    }
}

}  // namespace rdusim
