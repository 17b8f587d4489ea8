// The forms of an all-gather: every member is given every member's pages, whole.
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {

void Expansion::keep(std::uint32_t member, std::uint32_t origin, const Landing& from) {
  const StageId store = members_[member].outcomes[origin].store;
  local(from.recv, from.buffer, store);
  p_.stages[store.value].ports = {input_port(from.buffer)};
}

void Expansion::gather() {
  for (std::uint32_t m = 0; m < n_; ++m) {
    const Member& from = members_[m];
    keep(m, m, {from.source, from.buffer});
    std::vector<std::uint32_t> others;
    for (std::uint32_t to = 0; to < n_; ++to)
      if (to != m) others.push_back(to);
    const std::vector<Landing> landings = cross(from.source, from.buffer, Chunk{}, m, others, "recv", firings());
    for (std::size_t i = 0; i < others.size(); ++i) keep(others[i], m, landings[i]);
  }
}

// Of each member's pages, which have all rows, each other keeps its part of them.
void Expansion::exchange() {
  for (std::uint32_t m = 0; m < n_; ++m) {
    const Member& from = members_[m];
    keep(m, m, {from.source, from.buffer});
    p_.stages[from.outcomes[m].store.value].ports.front().chunk = always(kept_by(m));
    // As in direct(), each member sends to the next one first.
    for (std::uint32_t step = 1; step < n_; ++step) {
      const std::uint32_t to = (m + step) % n_;
      const Chunk part = kept_by(mutated("expand.exchange_sends_its_own", to, m));
      keep(to, m, cross(from.source, from.buffer, part, m, {to}, "recv", firings()).front());
    }
  }
}

// A member's pages go round from landing to landing, no page waiting for another's round.
void Expansion::ring_gather() {
  for (std::uint32_t origin = 0; origin < n_; ++origin) {
    Landing last = {members_[origin].source, members_[origin].buffer};
    keep(origin, origin, last);
    for (std::uint32_t step = 1; step < n_; ++step) {
      const std::uint32_t from = (origin + step - 1) % n_, to = (origin + step) % n_;
      const Landing sent =
          mutated("expand.gather_forwards_its_own", last, Landing{members_[from].source, members_[from].buffer});
      last = cross(sent.recv, sent.buffer, Chunk{}, from, {to}, "from" + at(origin), firings()).front();
      keep(to, origin, last);
    }
  }
}

// A member sends to those of its node, and to one of each other node, which sends to the others of its own.
void Expansion::hierarchical_gather() {
  const TwoLevels levels(collective_.members, target_.node_chips);
  const auto& nodes = levels.nodes();
  for (std::size_t v = 0; v < nodes.size(); ++v)
    for (std::uint32_t i = 0; i < nodes[v].size(); ++i) {
      const std::uint32_t origin = nodes[v][i];
      const Landing own = {members_[origin].source, members_[origin].buffer};
      keep(origin, origin, own);
      std::vector<std::uint32_t> to;
      for (const std::uint32_t m : nodes[v])
        if (m != origin) to.push_back(m);
      for (std::size_t u = 0; u < nodes.size(); ++u)
        if (u != v) to.push_back(levels.owner(u, i));
      const std::vector<Landing> landings = cross(own.recv, own.buffer, Chunk{}, origin, to, "recv", firings());
      for (std::size_t k = 0; k < to.size(); ++k) keep(to[k], origin, landings[k]);
      std::size_t other = nodes[v].size() - 1;  // where those of other nodes begin among the receivers
      for (std::size_t u = 0; u < nodes.size(); ++u) {
        if (u == v) continue;
        const std::uint32_t there = to[other];
        const Landing& landed = landings[other++];
        std::vector<std::uint32_t> beside;
        for (const std::uint32_t m : nodes[u])
          if (m != there) beside.push_back(m);
        if (beside.empty()) continue;
        const std::vector<Landing> further =
            cross(landed.recv, landed.buffer, Chunk{}, there, beside, "from" + at(origin), firings());
        for (std::size_t k = 0; k < beside.size(); ++k) keep(beside[k], origin, further[k]);
      }
    }
}

}  // namespace rdusim
