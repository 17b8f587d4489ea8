// The forms that follow the machine's shape: along a tree, and level by level.
#include <algorithm>
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {
namespace {

// Of a tree, from its leaves up: a node's own, its left subtree's, its right one's.
Sum tree_sum(const BinaryTree& tree, const std::vector<std::uint32_t>& order, const std::vector<Sum>& parts,
             std::uint32_t node) {
  std::vector<Sum> all = {parts[order[node]]};
  for (const std::uint32_t child : tree.children(node)) all.push_back(tree_sum(tree, order, parts, child));
  return left_deep(all);
}

}  // namespace

std::vector<Sum> tree_sums(const std::vector<ChipId>& members, const std::vector<Sum>& parts) {
  const std::vector<std::uint32_t> order = tree_order(members);
  return {tree_sum(BinaryTree(static_cast<std::uint32_t>(parts.size())), order, parts, 0)};
}

std::vector<Sum> hierarchical_sums(const std::vector<ChipId>& members, const std::vector<Sum>& parts,
                                   std::uint32_t node_chips) {
  const TwoLevels levels(members, node_chips);
  std::vector<Sum> nodes;
  for (const auto& node : levels.nodes()) {
    std::vector<Sum> own;
    for (const std::uint32_t m : node) own.push_back(parts[m]);
    nodes.push_back(left_deep(own));
  }
  return std::vector<Sum>(levels.chunks(), left_deep(nodes));
}

// Members fold their own partial and their children's sums and send the sum to their parent; the root's goes down again,
// each member forwarding what lands.
void Expansion::tree() {
  const BinaryTree tree(n_);
  const std::vector<std::uint32_t> order = tree_order(collective_.members);
  std::vector<Landing> sums(n_);  // by node of the tree: what gives its subtree's sum
  for (std::uint32_t i = n_; i-- > 0;) {
    const std::uint32_t m = order[i];
    sums[i] = {members_[m].source, members_[m].buffer};
    if (tree.children(i).empty()) continue;
    std::vector<Landing> sources = {sums[i]};
    for (const std::uint32_t child : tree.children(i))
      sources.push_back(
          cross(sums[child].recv, sums[child].buffer, Chunk{}, order[child], {m}, "recv", firings()).front());
    const auto phases = static_cast<std::uint32_t>(sources.size() - 1);
    Generic fold = element_wise({{1, sum_of(0, 1)}}, sources.size());
    if (phases > 1)
      fold.bodies.push_back({1, mutated("expand.tree_drops_a_subtree", false, true) ? take(2) : add_to_last(2)});
    if (i != 0) fold.result = accumulator();
    const BufferId sum = i == 0 ? add_buffer("sum", m, BufferKind::fifo, result(), partial(), 1)
                                : add_buffer("next", m, BufferKind::interm, accumulator(), partial(), 1);
    std::vector<Port> ports = {input_port(sources[0].buffer, 0, 1, phases),
                               input_port(sources[1].buffer, 0, 1, phases)};
    if (phases > 1) ports.push_back(input_port(sources[2].buffer, 1, 2, phases));
    ports.push_back(output_port(sum, phases - 1, phases, phases));
    const StageId stage =
        add_stage("fold", m, std::move(fold), {StageRole::compute, context(m)}, firings() * phases, std::move(ports));
    for (const Landing& s : sources) local(s.recv, s.buffer, stage);
    sums[i] = {stage, sum};
  }
  std::vector<Landing> results = {sums[0]};
  results.resize(n_);
  if (stores(order[0])) store_whole(order[0], sums[0].recv, sums[0].buffer);
  if (!stores(order[n_ - 1])) return;
  for (std::uint32_t i = 0; i < n_; ++i) {
    if (tree.children(i).empty()) continue;
    std::vector<std::uint32_t> below;
    for (const std::uint32_t child : tree.children(i)) below.push_back(order[child]);
    const std::vector<Landing> landings =
        cross(results[i].recv, results[i].buffer, Chunk{}, order[i], below, "result", firings());
    for (std::size_t child = 0; child < below.size(); ++child) {
      results[tree.children(i)[child]] = landings[child];
      store_whole(below[child], landings[child].recv, landings[child].buffer);
    }
  }
}

// What a member of a node has of its chunks: its node's sum of each, and then the sum over nodes.
void Expansion::hierarchical() {
  const TwoLevels levels(collective_.members, target_.node_chips);
  const auto& nodes = levels.nodes();
  const std::uint32_t chunks = levels.chunks();
  // Within a node: parts[node][chunk] gives its sum of a chunk.
  std::vector<std::vector<Landing>> parts(nodes.size(), std::vector<Landing>(chunks));
  for (std::size_t v = 0; v < nodes.size(); ++v)
    for (std::size_t i = 0; i < nodes[v].size(); ++i) fold_in_node(nodes[v], i, levels.owned(v, i), chunks, parts[v]);
  // Between nodes: each owner of a chunk adds all nodes' sums of it.
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    std::vector<Landing> sums;  // by member of the node: gives the whole sums of its chunks, in turn
    for (std::size_t i = 0; i < nodes[v].size(); ++i) sums.push_back(join_nodes(levels, v, i, parts));
    gather_in_node(levels, v, sums);
  }
}

void Expansion::fold_in_node(const std::vector<std::uint32_t>& members, std::size_t i,
                             const std::vector<std::uint32_t>& owned, std::uint32_t chunks,
                             std::vector<Landing>& parts) {
  const std::uint32_t m = members[i];
  const auto each = static_cast<std::uint32_t>(members.size());
  const auto phases = static_cast<std::uint32_t>(owned.size()) * each;
  Generic fold = element_wise({}, 0);
  fold.result = accumulator();
  Port own{Direction::input, members_[m].buffer};
  std::vector<std::uint32_t> looked(phases, 0), popped(phases, 0);
  std::vector<Chunk> chunk(phases);
  std::vector<Port> ports = {own}, outputs;
  std::vector<Landing> sources = {{members_[m].source, members_[m].buffer}};
  for (std::uint32_t j = 0; j < owned.size(); ++j) {
    const Chunk cut{owned[j], chunks};
    for (std::uint32_t s = 0; s < each; ++s) {
      const std::uint32_t phase = j * each + s;
      const std::uint32_t sender = members[s];
      std::uint32_t port = 0;
      if (sender == m) {
        looked[phase] = 1;
        chunk[phase] = cut;
        popped[phase] = j + 1 == owned.size() ? 1 : 0;
      } else {
        port = static_cast<std::uint32_t>(ports.size());
        const std::string what = owned.size() > 1 ? "chunk" + std::to_string(owned[j]) : "recv";
        sources.push_back(
            cross(members_[sender].source, members_[sender].buffer, cut, sender, {m}, what, firings()).front());
        ports.push_back(input_port(sources.back().buffer, phase, phase + 1, phases));
      }
      fold.bodies.push_back({1, s == 0 ? take(port) : add_to_last(port)});
    }
    const std::string name = owned.size() > 1 ? "part" + std::to_string(owned[j]) : "part";
    const BufferId part = add_buffer(name, m, BufferKind::interm, accumulator(), partial(), chunks);
    outputs.push_back(output_port(part, (j + 1) * each - 1, (j + 1) * each, phases));
    parts[owned[j]].buffer = part;
  }
  ports[0].need = by_phase(looked);
  ports[0].pop = by_phase(popped);
  ports[0].chunk = by_phase(chunk);
  fold.maps.assign(ports.size() + 1, {{1, 0}});
  ports.insert(ports.end(), outputs.begin(), outputs.end());
  const StageId stage =
      add_stage("fold", m, std::move(fold), {StageRole::compute, context(m)}, firings() * phases, std::move(ports));
  for (const Landing& s : sources) local(s.recv, s.buffer, stage);
  for (const std::uint32_t j : owned) parts[j].recv = stage;
}

Expansion::Landing Expansion::join_nodes(const TwoLevels& levels, std::size_t node, std::size_t i,
                                         const std::vector<std::vector<Landing>>& parts) {
  const std::vector<std::uint32_t> owned = levels.owned(node, i);
  const std::uint32_t m = levels.nodes()[node][i];
  const auto all = static_cast<std::uint32_t>(levels.nodes().size());
  const auto phases = static_cast<std::uint32_t>(owned.size()) * all;
  Cyclic<Expr> bodies;
  std::vector<Port> ports;
  std::vector<Landing> sources;
  for (std::uint32_t j = 0; j < owned.size(); ++j)
    for (std::uint32_t v = 0; v < all; ++v) {
      const Landing& part = parts[v][owned[j]];
      const std::string what = owned.size() > 1 ? "node" + std::to_string(owned[j]) : "node";
      sources.push_back(
          v == node ? part
                    : cross(part.recv, part.buffer, Chunk{}, levels.owner(v, owned[j]), {m}, what, firings()).front());
      const auto port = static_cast<std::uint32_t>(ports.size());
      const std::uint32_t phase = j * all + v;
      ports.push_back(input_port(sources.back().buffer, phase, phase + 1, phases));
      const bool first = v == 0 || mutated("expand.other_node_left_out", false, true);
      bodies.push_back({1, first ? take(port) : add_to_last(port)});
    }
  const BufferId sum = add_buffer("sum", m, BufferKind::fifo, result(), partial(), levels.chunks());
  Port out{Direction::output, sum};
  std::vector<std::uint32_t> given(phases, 0);
  for (std::uint32_t j = 0; j < owned.size(); ++j) given[(j + 1) * all - 1] = 1;
  out.reserve = out.push = by_phase(given);
  ports.push_back(std::move(out));
  Generic join = element_wise(std::move(bodies), sources.size());
  const StageId stage =
      add_stage("join", m, std::move(join), {StageRole::compute, context(m)}, firings() * phases, std::move(ports));
  for (const Landing& s : sources) local(s.recv, s.buffer, stage);
  return {stage, sum};
}

void Expansion::gather_in_node(const TwoLevels& levels, std::size_t node, const std::vector<Landing>& sums) {
  const std::vector<std::uint32_t>& members = levels.nodes()[node];
  const std::size_t each = members.size();
  // source[s][i]: what gives member i the sums of member s.
  std::vector<std::vector<Landing>> source(each, std::vector<Landing>(each));
  for (std::size_t s = 0; s < each; ++s) {
    source[s][s] = sums[s];
    std::vector<std::uint32_t> others;
    for (const std::uint32_t m : members)
      if (m != members[s]) others.push_back(m);
    if (others.empty()) continue;
    const std::vector<Landing> landings = cross(sums[s].recv, sums[s].buffer, Chunk{}, members[s], others, "result",
                                                firings() * levels.owned(node, s).size());
    for (std::size_t i = 0; i < others.size(); ++i) {
      holds(landings[i].buffer, levels.owned(node, s).size());
      source[s][i < s ? i : i + 1] = landings[i];
    }
  }
  std::vector<std::uint32_t> order;
  for (std::size_t s = 0; s < each; ++s)
    for (const std::uint32_t chunk : levels.owned(node, s)) order.push_back(chunk);
  if (mutated("expand.nodes_chunks_in_reverse", false, true)) std::reverse(order.begin(), order.end());
  for (std::size_t i = 0; i < each; ++i) {
    const StageId store = members_[members[i]].outcomes.front().store;
    std::vector<Port> ports;
    std::uint32_t at = 0;
    for (std::size_t s = 0; s < each; ++s) {
      const auto count = static_cast<std::uint32_t>(levels.owned(node, s).size());
      ports.push_back(input_port(source[s][i].buffer, at, at + count, levels.chunks()));
      local(source[s][i].recv, source[s][i].buffer, store);
      at += count;
    }
    store_chunks(store, std::move(ports), order, levels.chunks());
  }
}

}  // namespace rdusim
