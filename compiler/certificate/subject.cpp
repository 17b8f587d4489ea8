#include "compiler/certificate/subject.h"

#include <algorithm>
#include <map>

#include "compiler/certificate/finding.h"
#include "compiler/certificate/pages.h"

namespace rdusim::certificate {

namespace {

template <class T>
bool readable(const Cyclic<T>& c) {
  return !c.empty() && std::all_of(c.begin(), c.end(), [](const auto& run) { return run.repeat != 0; });
}

bool readable(const Chunk& c) {
  return c.of != 0 && c.index < c.of;
}

std::string malformed(const Stage& s) {
  for (const Port& port : s.ports) {
    if (!readable(port.need) || !readable(port.pop) || !readable(port.reserve) || !readable(port.push) ||
        !readable(port.chunk))
      return fmt::format("a port of stage '{}' has an empty rate", s.name);
    for (const std::uint64_t phases : {cycle_length(port.need), cycle_length(port.pop), cycle_length(port.reserve),
                                       cycle_length(port.push), cycle_length(port.chunk)})
      if (s.firings % phases != 0)
        return fmt::format("stage '{}' fires {} times a trip, and a rate repeats after {}", s.name, s.firings, phases);
    for (const auto& run : port.chunk)
      if (!readable(run.value))
        return fmt::format("a port of stage '{}' takes chunk {} of {}", s.name, run.value.index, run.value.of);
  }
  if (std::holds_alternative<CollectiveStage>(s.kind))
    return fmt::format("collective stage '{}' is not expanded yet", s.name);
  if (const auto* g = std::get_if<Generic>(&s.kind); g != nullptr && !readable(g->bodies))
    return fmt::format("stage '{}' has no body", s.name);
  if (const auto* m = std::get_if<MatmulTiles>(&s.kind);
      m != nullptr && (m->k_pages == 0 || s.firings % m->k_pages != 0))
    return fmt::format("stage '{}' fires {} times a trip, with a contraction of {} pages", s.name, s.firings,
                       m->k_pages);
  if (const auto* w = std::get_if<Store>(&s.kind))
    for (const Chunk& c : w->chunks)
      if (!readable(c)) return fmt::format("stage '{}' stores chunk {} of {}", s.name, c.index, c.of);
  return {};
}

// A Load or Store whose pattern and firings do not fit each other, or whose multicast sets do not read the same pages.
std::string malformed(const Stage& s, const Access& a) {
  if (product(pages_of(*a.pattern), a.firings_a_page) != s.firings)
    return fmt::format("stage '{}' fires {} times a trip, and its access pattern has {} pages of {} firings", s.name,
                       s.firings, pages_of(*a.pattern), a.firings_a_page);
  const auto* load = std::get_if<Load>(&s.kind);
  if (load == nullptr) return {};
  std::map<std::uint32_t, std::size_t> first;
  for (std::size_t i = 0; i < load->multicast_set.size() && i < a.pattern->first.size(); ++i) {
    const auto [it, is_new] = first.try_emplace(load->multicast_set[i], i);
    if (!is_new && a.pattern->first[i] != a.pattern->first[it->second])
      return fmt::format("instances {} and {} of '{}' share a multicast set and read different pages", it->second, i,
                         s.name);
  }
  return {};
}

}  // namespace

Access access_of(const SpatialProgram& p, const Stage& s) {
  if (const auto* load = std::get_if<Load>(&s.kind)) return {&load->pattern, &p.tensor(load->tensor), 1};
  if (const auto* store = std::get_if<Store>(&s.kind))
    return {&store->pattern, &p.tensor(store->tensor), std::max<std::uint64_t>(store->chunks.size(), 1)};
  return {};
}

std::string to_string(const Site& site) {
  return fmt::format("chip{}.site({},{})", site.chip.value, site.at.x, site.at.y);
}

Subject::Subject(const SpatialProgram& program, const Target& target) : p(program), t(target) {
  read();
  if (unreadable.empty()) index();
}

void Subject::read() {
  if (!p.placement) {
    unreadable = "the program is not placed";
    return;
  }
  for (const Stage& s : p.stages) {
    unreadable = malformed(s);
    if (!unreadable.empty()) return;
    if (instances(s) == 0) {
      unreadable = fmt::format("stage '{}' has no site", s.name);
      return;
    }
    for (const Port& port : s.ports)
      if (p.group(p.buffer(port.buffer).group).sites.size() != instances(s)) {
        unreadable = fmt::format("stage '{}' has {} instances, its buffer '{}' has {}", s.name, instances(s),
                                 p.buffer(port.buffer).name, p.group(p.buffer(port.buffer).group).sites.size());
        return;
      }
    if (const Access a = access_of(p, s); a.pattern != nullptr) {
      unreadable = certificate::unreadable(*a.pattern, *a.tensor, instances(s), p.header.native_tile);
      if (unreadable.empty()) unreadable = malformed(s, a);
      if (!unreadable.empty()) return;
    }
  }
  for (const Edge& e : p.edges) {
    if (!readable(e.chunk)) {
      unreadable = fmt::format("edge {} sends chunk {} of {}", e.id.value, e.chunk.index, e.chunk.of);
      return;
    }
    for (const StageId to : e.to) {
      const std::size_t senders = instances(p.stage(e.from)), receivers = instances(p.stage(to));
      const bool one_to_one = e.map.kind == PageMapKind::one_to_one;
      bool fits = one_to_one ? senders == receivers : e.map.targets.size() == senders;
      if (!one_to_one)
        for (const auto& targets : e.map.targets) {
          fits = fits && !targets.empty();
          for (const std::uint32_t r : targets) fits = fits && r < receivers;
        }
      if (!fits) {
        unreadable = fmt::format("edge {} does not map the {} instances of '{}' to the {} of '{}'", e.id.value, senders,
                                 p.stage(e.from).name, receivers, p.stage(to).name);
        return;
      }
    }
  }
}

void Subject::index() {
  producers.resize(p.buffers.size());
  consumers.resize(p.buffers.size());
  short_firings_.resize(p.stages.size());
  uniform = true;
  for (const Stage& s : p.stages) {
    for (std::size_t i = 0; i < s.ports.size(); ++i)
      if (s.ports[i].direction == Direction::output) producers[s.ports[i].buffer.value].push_back({s.id, i});
    const Access a = access_of(p, s);
    if (a.pattern == nullptr) continue;
    std::vector<std::uint64_t> counts(instances(s));
    bool all = true;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      // A pattern that is too irregular to count moves nothing that could be proved.
      const std::uint64_t pages = movable_pages(*a.pattern, *a.tensor, i).value_or(0);
      counts[i] = std::min(s.firings, product(pages, a.firings_a_page));
      all = all && counts[i] == s.firings;
    }
    if (!all) {
      short_firings_[s.id.value] = std::move(counts);
      uniform = false;
    }
  }
  const auto input_of = [&](StageId id, BufferId buffer) -> std::optional<std::size_t> {
    const Stage& s = p.stage(id);
    for (std::size_t i = 0; i < s.ports.size(); ++i)
      if (s.ports[i].direction == Direction::input && s.ports[i].buffer == buffer) return i;
    return std::nullopt;
  };
  for (const Edge& e : p.edges) {
    if (!is_local(e.handshake)) continue;
    for (const StageId to : e.to)
      if (const auto port = input_of(to, e.buffer)) consumers[e.buffer.value].push_back({false, to, *port, e.id});
  }
  for (const Edge& e : p.edges) {
    if (e.map.kind != PageMapKind::one_to_one) uniform = false;
    if (!is_local(e.handshake)) consumers[e.buffer.value].push_back({true, {}, 0, e.id});
  }
}

std::uint64_t Subject::firings(const Stage& s, std::size_t instance) const {
  const auto& fewer = short_firings_[s.id.value];
  return fewer.empty() ? s.firings : fewer[instance];
}

std::uint64_t total(const Cyclic<std::uint32_t>& rate, std::uint64_t n) {
  std::uint64_t length = 0, cycle = 0;
  for (const auto& run : rate) {
    length += run.repeat;
    cycle = sum(cycle, product(run.repeat, run.value));
  }
  std::uint64_t rest = n % length, part = 0;
  for (const auto& run : rate) {
    const std::uint64_t here = std::min<std::uint64_t>(rest, run.repeat);
    part = sum(part, product(here, run.value));
    rest -= here;
  }
  return sum(product(n / length, cycle), part);
}

std::vector<std::uint32_t> targets_of(const Edge& edge, std::size_t sender) {
  if (edge.map.kind == PageMapKind::one_to_one) return {static_cast<std::uint32_t>(sender)};
  if (edge.map.kind == PageMapKind::gather) return {edge.map.targets[sender].front()};
  return edge.map.targets[sender];
}

}  // namespace rdusim::certificate
