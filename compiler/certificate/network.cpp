// Network progress.
//
// On a chip pages take dimension-order routes, x before y, whose channels cannot wait for each other in a cycle (Dally
// and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE Trans. Computers, 1987);
// the branches of a multicast are such routes too, and a page enters only when every one of its landings has room.
// Between chips the routes are the program's: the graph of which link a page holds while it waits for which is searched
// for a cycle.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/certificate/obligations.h"

namespace rdusim::certificate {

Finding network_progress(const Subject& s) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  std::map<LinkId, std::set<LinkId>> next;
  for (const Edge& e : s.p.edges) {
    if (is_local(e.handshake)) continue;
    for (std::size_t to = 0; to < e.to.size(); ++to) {
      const Stage& recv = s.p.stage(e.to[to]);
      bool lands = false;
      if (std::holds_alternative<Recv>(recv.kind))
        for (const Port& port : recv.ports)
          lands = lands || (port.direction == Direction::output && s.p.buffer(port.buffer).depth_pages > 0);
      if (!lands)
        return refuted("edge {} from '{}' sends pages to '{}', which has no landing buffer to reserve", e.id.value,
                       s.p.stage(e.from).name, recv.name);
      if (to < e.routes.size())
        for (std::size_t i = 0; i + 1 < e.routes[to].size(); ++i) next[e.routes[to][i]].insert(e.routes[to][i + 1]);
    }
  }
  for (const Stage& stage : s.p.stages)
    if (std::holds_alternative<Load>(stage.kind))
      for (const Port& port : stage.ports)
        if (port.direction == Direction::output && s.p.buffer(port.buffer).depth_pages == 0)
          return refuted("load '{}' streams pages into buffer '{}', which has no room", stage.name,
                         s.p.buffer(port.buffer).name);

  // Depth-first, with an explicit stack: a link on the stack that is met again closes a cycle.
  enum class Mark : std::uint8_t { fresh, open, done };
  std::map<LinkId, Mark> mark;
  for (const auto& [start, ignored] : next) {
    if (mark[start] != Mark::fresh) continue;
    std::vector<std::pair<LinkId, std::set<LinkId>::const_iterator>> stack{{start, next[start].begin()}};
    mark[start] = Mark::open;
    while (!stack.empty()) {
      auto& [link, at] = stack.back();
      if (at == next[link].end()) {
        mark[link] = Mark::done;
        stack.pop_back();
        continue;
      }
      const LinkId to = *at++;
      if (mark[to] == Mark::open)
        // Not a hang by itself: every page that is on its way has its landing reserved. But it is no proof either.
        return unchecked(
            "links {} and {} lie on a cycle of routes, so their order alone does not show that pages move on",
            link.value, to.value);
      if (mark[to] == Mark::fresh) {
        mark[to] = Mark::open;
        stack.emplace_back(to, next[to].begin());
      }
    }
  }
  return {};
}

}  // namespace rdusim::certificate
