// Handshake locality and counter ranges: what each edge's kind asks of the sites that it joins.
#include <algorithm>
#include <map>

#include "compiler/certificate/obligations.h"

namespace rdusim::certificate {

namespace {

bool provides(const Target& t, Handshake h) {
  const auto crosses = [&](CrossingHandshake c) {
    return std::find(t.crossing.begin(), t.crossing.end(), c) != t.crossing.end();
  };
  switch (h) {
    case Handshake::fifo:
      return false;
    case Handshake::valid_ready:
      return t.local == LocalHandshake::valid_ready;
    case Handshake::circular_buffer:
      return t.local == LocalHandshake::circular_buffer;
    case Handshake::token:
      return crosses(CrossingHandshake::token);
    case Handshake::semaphore:
      return crosses(CrossingHandshake::semaphore);
    case Handshake::barrier:
      return crosses(CrossingHandshake::barrier);
  }
  return false;
}

const char* name(Handshake h) {
  switch (h) {
    case Handshake::fifo:
      return "abstract fifo";
    case Handshake::valid_ready:
      return "valid-ready";
    case Handshake::circular_buffer:
      return "circular-buffer";
    case Handshake::token:
      return "token";
    case Handshake::semaphore:
      return "semaphore";
    case Handshake::barrier:
      return "barrier";
  }
  return "";
}

// Where the links do not lead from one chip to the other; empty: they do.
std::string off_route(const Target& t, const std::vector<LinkId>& route, ChipId from, ChipId to) {
  ChipId at = from;
  for (const LinkId id : route) {
    if (id.value >= t.links.size()) return fmt::format("the machine has no link {}", id.value);
    if (t.links[id.value].from != at) return fmt::format("link {} does not start at chip {}", id.value, at.value);
    at = t.links[id.value].to;
  }
  return at == to ? std::string() : fmt::format("its links end at chip {}, not at chip {}", at.value, to.value);
}

// Receiving instances of one sender, over all `to`.
std::uint64_t receivers(const Edge& e) {
  std::uint64_t most = e.map.kind == PageMapKind::multicast ? 0 : 1;
  if (e.map.kind == PageMapKind::multicast)
    for (const auto& targets : e.map.targets) most = std::max<std::uint64_t>(most, targets.size());
  return most * e.to.size();
}

}  // namespace

Finding handshake_locality(const Subject& s, std::uint64_t& local_edges, std::uint64_t& crossing_edges) {
  local_edges = crossing_edges = 0;
  for (const Edge& e : s.p.edges) ++(is_local(e.handshake) ? local_edges : crossing_edges);
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  for (const Edge& e : s.p.edges) {
    const Stage& from = s.p.stage(e.from);
    if (!provides(s.t, e.handshake))
      return refuted("edge {} from '{}' has a {} hand-off, which the target does not provide", e.id.value, from.name,
                     name(e.handshake));
    for (std::size_t to = 0; to < e.to.size(); ++to) {
      const Stage& end = s.p.stage(e.to[to]);
      for (std::size_t i = 0; i < s.instances(from); ++i)
        for (const std::uint32_t r : targets_of(e, i)) {
          const Site& a = s.p.sites_of(from).sites[i];
          const Site& b = s.p.sites_of(end).sites[r];
          if (is_local(e.handshake) == (a == b)) continue;
          return refuted("edge {}: a {} hand-off joins '{}' at {} and '{}' at {}", e.id.value, name(e.handshake),
                         from.name, to_string(a), end.name, to_string(b));
        }
      if (is_local(e.handshake)) continue;
      const std::vector<LinkId> route = to < e.routes.size() ? e.routes[to] : std::vector<LinkId>{};
      const std::string wrong = off_route(s.t, route, s.p.chip_of(from), s.p.chip_of(end));
      if (!wrong.empty()) return refuted("edge {} from '{}' to '{}': {}", e.id.value, from.name, end.name, wrong);
    }
  }
  return {};
}

Finding counter_range(const Subject& s, std::vector<CounterClaim>& claims) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  Finding finding;
  const auto fault = [&](Finding f) {
    if (finding.status == ProofStatus::proved) finding = std::move(f);
  };
  std::map<SemaphoreId, EdgeId> owner;
  const auto greatest_of = [](std::uint32_t bits) { return bits >= 64 ? too_many : (std::uint64_t{1} << bits) - 1; };
  for (const Edge& e : s.p.edges) {
    if (e.handshake == Handshake::circular_buffer && s.t.site.page_counter_bits != 0) {
      const Buffer& b = s.p.buffer(e.buffer);
      claims.push_back({e.id, b.initial_pages, b.depth_pages, s.t.site.page_counter_bits});
      if (b.depth_pages > greatest_of(s.t.site.page_counter_bits))
        fault(refuted("circular buffer '{}' holds {} pages, and {} bits of its counters tell {} apart", b.name,
                      b.depth_pages, s.t.site.page_counter_bits, greatest_of(s.t.site.page_counter_bits)));
    }
    if (is_local(e.handshake)) continue;
    CounterClaim claim;
    claim.edge = e.id;
    claim.width_bits = e.counter_bits;
    switch (e.handshake) {
      case Handshake::token:
        // A receiver grants as many credits as its landing buffer has pages, and gives one back only for a page that
        // came.
        for (const StageId to : e.to)
          for (const Port& port : s.p.stage(to).ports)
            if (port.direction == Direction::output)
              claim.greatest = std::max(claim.greatest, s.p.buffer(port.buffer).depth_pages);
        claim.initial = claim.greatest;
        break;
      case Handshake::semaphore: {
        // Every receiver raises ready once a generation, and not again before valid of that generation.
        claim.greatest = std::max<std::uint64_t>(receivers(e), 1);
        if (!e.semaphores || e.semaphores->valid.size() != e.to.size()) {
          fault(
              refuted("edge {} is a semaphore edge and does not own a ready, and a valid for each of its {} receivers",
                      e.id.value, e.to.size()));
          break;
        }
        std::vector<SemaphoreId> pair = e.semaphores->valid;
        pair.push_back(e.semaphores->ready);
        for (const SemaphoreId id : pair) {
          const auto [it, is_new] = owner.try_emplace(id, e.id);
          if (!is_new)
            fault(refuted("semaphore {} belongs to edges {} and {}", id.value, it->second.value, e.id.value));
          const Semaphore& semaphore = s.p.semaphores[id.value];
          claim.width_bits = std::min(claim.width_bits, semaphore.width_bits);
          if (semaphore.initial != 0)
            fault(refuted("semaphore {} of edge {} starts at {}, not at 0", id.value, e.id.value, semaphore.initial));
        }
        break;
      }
      default:
        // A barrier is wires, not a counter: each member has arrived in this generation, or has not.
        claim.greatest = 1;
        claims.push_back(claim);
        continue;
    }
    const std::uint32_t built = e.handshake == Handshake::token ? s.t.site.token_bits : s.t.site.semaphore_bits;
    if (std::max(claim.width_bits, e.counter_bits) > built)
      fault(refuted("edge {} from '{}' has a counter of {} bits, and the machine's have {}", e.id.value,
                    s.p.stage(e.from).name, std::max(claim.width_bits, e.counter_bits), built));
    const std::uint64_t most = greatest_of(claim.width_bits);
    if (claim.greatest > most)
      fault(refuted("edge {} from '{}': a counter reaches {} and its {} bits hold {}", e.id.value,
                    s.p.stage(e.from).name, claim.greatest, claim.width_bits, most));
    claims.push_back(claim);
  }
  return finding;
}

}  // namespace rdusim::certificate
