// Counting, instance by instance: sums of rates, no execution.
#include <algorithm>

#include "compiler/certificate/obligations.h"

namespace rdusim::certificate {

namespace {

// Pages that the receivers of `edge` take from instance `sender`, a page counted once however many take it: the least
// that any of its receivers takes, as the source page stays until all have it.
class Crossings {
 public:
  explicit Crossings(const Subject& s) : s_(s) {}

  std::uint64_t taken(const Edge& e, std::size_t sender, std::uint64_t offered) const {
    std::uint64_t least = too_many;
    for (std::size_t to = 0; to < e.to.size(); ++to) {
      const Stage& recv = s_.p.stage(e.to[to]);
      const auto targets = targets_of(e, sender);
      std::uint64_t from_all = 0;
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const std::uint64_t lands = landed(recv);
        switch (e.map.kind) {
          case PageMapKind::one_to_one:
          case PageMapKind::multicast:
            least = std::min(least, lands);
            break;
          case PageMapKind::gather: {
            const std::uint64_t senders = senders_to(e, targets[i]);
            least = std::min(least, lands % senders == 0 ? lands / senders : too_many);
            break;
          }
          case PageMapKind::scatter: {
            const std::uint64_t senders = senders_to(e, targets[i]);
            from_all = sum(from_all, lands / senders);
            break;
          }
        }
      }
      if (e.map.kind == PageMapKind::scatter) least = std::min(least, from_all);
    }
    return e.to.empty() ? offered : least;
  }

 private:
  std::uint64_t landed(const Stage& recv) const {
    std::uint64_t n = 0;
    for (const Port& port : recv.ports)
      if (port.direction == Direction::output) n = total(port.push, recv.firings);
    return product(n, s_.trips(recv));
  }
  static std::uint64_t senders_to(const Edge& e, std::uint32_t receiver) {
    std::uint64_t n = 0;
    for (const auto& targets : e.map.targets)
      n += static_cast<std::uint64_t>(std::count(targets.begin(), targets.end(), receiver));
    return std::max<std::uint64_t>(n, 1);
  }
  const Subject& s_;
};

}  // namespace

Finding counting_balance(const Subject& s, std::vector<BufferClaim>& claims) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  Finding finding;
  const Crossings crossings(s);
  for (const Buffer& b : s.p.buffers) {
    BufferClaim& claim = claims[b.id.value];
    const auto fault = [&](std::size_t instance, std::string what) {
      if (finding.status == ProofStatus::refuted) return;
      finding = refuted("buffer '{}', instance {}: {}", b.name, instance, std::move(what));
    };
    bool differs = false;
    const std::size_t instances = s.p.group(b.group).sites.size();
    for (std::size_t i = 0; i < instances && !differs; ++i) {
      BufferClaim here = claim;
      here.popped.clear();
      here.reserved = here.pushed = 0;
      for (const Producer& from : s.producers[b.id.value]) {
        const Stage& stage = s.p.stage(from.stage);
        const std::uint64_t firings = s.firings(stage, i);
        here.reserved = sum(here.reserved, product(total(stage.ports[from.port].reserve, firings), s.trips(stage)));
        here.pushed = sum(here.pushed, product(total(stage.ports[from.port].push, firings), s.trips(stage)));
      }
      if (here.reserved != here.pushed) {
        fault(i, fmt::format("{} pages reserved, {} pushed", here.reserved, here.pushed));
        differs = true;
      }
      for (const Consumer& c : s.consumers[b.id.value]) {
        std::uint64_t popped = 0;
        if (c.crossing) {
          popped = crossings.taken(s.p.edge(c.edge), i, here.pushed);
        } else {
          const Stage& stage = s.p.stage(c.stage);
          popped = product(total(stage.ports[c.port].pop, s.firings(stage, i)), s.trips(stage));
        }
        here.popped.push_back(popped);
        if (popped != here.pushed) {
          const std::string who =
              c.crossing ? fmt::format("edge {}", c.edge.value) : fmt::format("stage '{}'", s.p.stage(c.stage).name);
          fault(i, fmt::format("{} pages pushed, {} popped by {}", here.pushed, popped, who));
          differs = true;
        }
      }
      if (i == 0 || differs) claim = std::move(here);
    }
    if (s.consumers[b.id.value].empty() || s.producers[b.id.value].size() != 1)
      if (finding.status == ProofStatus::proved)
        finding = refuted("buffer '{}' has {} producers and {} consumers", b.name, s.producers[b.id.value].size(),
                          s.consumers[b.id.value].size());
  }
  return finding;
}

}  // namespace rdusim::certificate
