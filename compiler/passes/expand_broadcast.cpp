// The forms of a broadcast: every member is given the pages that the first one has.
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {

void Expansion::broadcast_through_one() {
  const Member& root = members_.front();
  store_whole(0, root.source, root.buffer);
  std::vector<std::uint32_t> others;
  for (std::uint32_t m = 1; m < n_; ++m) others.push_back(m);
  const std::vector<Landing> landings = cross(root.source, root.buffer, Chunk{}, 0, others, "recv", firings());
  for (std::size_t i = 0; i < others.size(); ++i) store_whole(others[i], landings[i].recv, landings[i].buffer);
}

// Each other member has a chunk to send to the rest of them.
void Expansion::broadcast_direct() {
  const Member& root = members_.front();
  store_whole(0, root.source, root.buffer);
  const std::uint32_t chunks = n_ - 1;
  std::vector<std::vector<Landing>> source(n_, std::vector<Landing>(chunks));  // by member and chunk: what gives it
  for (std::uint32_t d = 0; d < chunks; ++d) {
    const Chunk own{mutated("expand.broadcast_sends_one_chunk", d, 0u), chunks};
    source[d + 1][d] = cross(root.source, root.buffer, own, 0, {d + 1}, "part", firings()).front();
  }
  for (std::uint32_t d = 0; d < chunks; ++d) {
    std::vector<std::uint32_t> others;  // as in direct(), the next one first
    for (std::uint32_t step = 1; step < chunks; ++step) others.push_back((d + step) % chunks + 1);
    if (others.empty()) continue;
    const Landing own = source[d + 1][d];
    const std::vector<Landing> landings = cross(own.recv, own.buffer, Chunk{}, d + 1, others, "recv", firings());
    for (std::size_t i = 0; i < others.size(); ++i) source[others[i]][d] = landings[i];
  }
  for (std::uint32_t m = 1; m < n_; ++m) {
    const StageId store = members_[m].outcomes.front().store;
    std::vector<Port> ports;
    std::vector<std::uint32_t> order;
    for (std::uint32_t d = 0; d < chunks; ++d) {
      ports.push_back(input_port(source[m][d].buffer, d, d + 1, chunks));
      order.push_back(d);
      local(source[m][d].recv, source[m][d].buffer, store);
    }
    store_chunks(store, std::move(ports), order, chunks);
  }
}

void Expansion::broadcast_in_line() {
  Landing last = {members_.front().source, members_.front().buffer};
  store_whole(0, last.recv, last.buffer);
  for (std::uint32_t m = 1; m < n_; ++m) {
    last = cross(last.recv, last.buffer, Chunk{}, m - 1, {m}, "recv", firings()).front();
    if (mutated("expand.broadcast_skips_the_last", false, m + 1 == n_)) return;
    store_whole(m, last.recv, last.buffer);
  }
}

void Expansion::broadcast_along_tree() {
  const BinaryTree tree(n_);
  const std::vector<std::uint32_t> order = tree_order(collective_.members);
  std::vector<Landing> landings(n_);  // by place in the tree
  landings[0] = {members_.front().source, members_.front().buffer};
  for (std::uint32_t i = 0; i < n_; ++i) {  // a parent comes before its children
    store_whole(order[i], landings[i].recv, landings[i].buffer);
    std::vector<std::uint32_t> below;
    for (const std::uint32_t child : tree.children(i)) below.push_back(order[child]);
    if (below.empty()) continue;
    const std::vector<Landing> given =
        cross(landings[i].recv, landings[i].buffer, Chunk{}, order[i], below, "recv", firings());
    for (std::size_t k = 0; k < given.size(); ++k) landings[tree.children(i)[k]] = given[k];
  }
}

// The first of each node, the first member of its own, sends to those beside it and to the nodes below in a tree.
void Expansion::broadcast_by_levels() {
  const auto nodes = nodes_from_first(collective_.members, target_.node_chips);
  const BinaryTree tree(static_cast<std::uint32_t>(nodes.size()));
  std::vector<Landing> landings(nodes.size());  // of the first of each node
  landings[0] = {members_.front().source, members_.front().buffer};
  for (std::uint32_t v = 0; v < nodes.size(); ++v) {  // a parent comes before its children
    const std::uint32_t from = nodes[v].front();
    store_whole(from, landings[v].recv, landings[v].buffer);
    std::vector<std::uint32_t> to(nodes[v].begin() + 1, nodes[v].end());
    for (const std::uint32_t below : tree.children(v)) to.push_back(nodes[below].front());
    if (to.empty()) continue;
    const std::vector<Landing> given =
        cross(landings[v].recv, landings[v].buffer, Chunk{}, from, to, "recv", firings());
    const std::size_t beside = nodes[v].size() - 1;
    for (std::size_t k = 0; k < beside; ++k) store_whole(to[k], given[k].recv, given[k].buffer);
    for (std::size_t k = beside; k < given.size(); ++k) landings[tree.children(v)[k - beside]] = given[k];
  }
}

}  // namespace rdusim
