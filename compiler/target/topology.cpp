#include "compiler/target/topology.h"

#include <algorithm>
#include <limits>

namespace rdusim {
namespace {

// The places that place `at` of `size` sends to, in rising order.
std::vector<std::uint32_t> neighbours(LinkShape shape, std::uint32_t at, std::uint32_t size) {
  std::vector<std::uint32_t> to;
  if (size < 2) return to;
  switch (shape) {
    case LinkShape::full_mesh:
      for (std::uint32_t other = 0; other < size; ++other) {
        if (other != at) to.push_back(other);
      }
      break;
    case LinkShape::ring:
      to = {(at + 1) % size, (at + size - 1) % size};
      break;
    case LinkShape::line:
      if (at > 0) to.push_back(at - 1);
      if (at + 1 < size) to.push_back(at + 1);
      break;
    case LinkShape::star:
      break;
  }
  std::sort(to.begin(), to.end());
  to.erase(std::unique(to.begin(), to.end()), to.end());
  return to;
}

constexpr std::uint32_t unseen = std::numeric_limits<std::uint32_t>::max();

// Fewest hops between `origin` and every chip: to the origin where links are followed backwards (By::to), else from it.
std::vector<std::uint32_t> distances(LinksByChip::By by, std::uint32_t origin, std::uint32_t ends,
                                     const std::vector<ChipLinkParameters>& links) {
  const LinksByChip adjacent(by, ends, links);
  std::vector<std::uint32_t> distance(ends, unseen);
  std::vector<std::uint32_t> queue = {origin};
  distance[origin] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t chip = queue[head];
    for (const ChipLinkParameters* l : adjacent.at(chip)) {
      const std::uint32_t other = by == LinksByChip::By::to ? l->from.value : l->to.value;
      if (distance[other] != unseen) continue;
      distance[other] = distance[chip] + 1;
      queue.push_back(other);
    }
  }
  return distance;
}

// How many chips a set of the scope joins, how many of them a set lies apart, and how many sets there are.
struct Sets {
  std::uint32_t size = 0, step = 1, count = 0;
  std::uint32_t chip(std::uint32_t set, std::uint32_t place) const {
    return step == 1 ? set * size + place : set + place * step;
  }
};

Sets sets_of(LinkScope scope, std::uint32_t chips, std::uint32_t node_chips) {
  switch (scope) {
    case LinkScope::node:
      return {node_chips, 1, chips / node_chips};
    case LinkScope::counterparts:
      return {chips / node_chips, node_chips, node_chips};
    case LinkScope::machine:
      break;
  }
  return {chips, 1, 1};
}

}  // namespace

std::uint64_t link_count(const LinkGroup& group, std::uint32_t chips, std::uint32_t node_chips) {
  const std::uint64_t size = sets_of(group.scope, chips, node_chips).size;
  const std::uint64_t copies = chips / size;
  switch (group.shape) {
    case LinkShape::full_mesh:
      return copies * size * (size - 1);
    case LinkShape::ring:
      return size > 2 ? copies * size * 2 : copies * (size - 1) * 2;
    case LinkShape::line:
      return copies * (size - 1) * 2;
    case LinkShape::star:
      return size > 1 ? copies * size * 2 : 0;
  }
  return 0;
}

void append_links(const LinkGroup& group, std::uint32_t chips, std::uint32_t node_chips, std::uint32_t& switches,
                  std::vector<ChipLinkParameters>& links) {
  const Sets sets = sets_of(group.scope, chips, node_chips);
  const auto add = [&](std::uint32_t from, std::uint32_t to) -> ChipLinkParameters& {
    const Fraction& rate =
        to < from ? group.back_bytes_per_cycle.value_or(group.bytes_per_cycle) : group.bytes_per_cycle;
    links.push_back({LinkId{links.size()}, ChipId{from}, ChipId{to}, rate, group.latency_cycles, group.signal_bytes, 0,
                     group.error_rate, group.most_retries, group.error_seed});
    return links.back();
  };
  if (sets.size < 2) return;
  for (std::uint32_t from = 0; from < chips; ++from) {
    const std::uint32_t set = sets.step == 1 ? from / sets.size : from % sets.step;
    const std::uint32_t place = sets.step == 1 ? from % sets.size : from / sets.step;
    if (group.shape == LinkShape::star) {
      ChipLinkParameters& up = add(from, chips + switches + set);
      up.latency_cycles += group.switch_cycles;
      up.room_bytes = group.room_bytes;
      add(chips + switches + set, from);
      continue;
    }
    for (const std::uint32_t other : neighbours(group.shape, place, sets.size)) add(from, sets.chip(set, other));
  }
  if (group.shape == LinkShape::star) switches += sets.count;
}

std::optional<ChipId> unreachable_chip(std::uint32_t chips, std::uint32_t switches,
                                       const std::vector<ChipLinkParameters>& links) {
  for (const auto by : {LinksByChip::By::from, LinksByChip::By::to}) {
    const auto distance = distances(by, 0, chips + switches, links);
    const auto missing = std::find(distance.begin(), distance.begin() + chips, unseen);
    if (missing != distance.begin() + chips) return ChipId{static_cast<std::size_t>(missing - distance.begin())};
  }
  return std::nullopt;
}

LinksByChip::LinksByChip(By by, std::uint32_t ends, const std::vector<ChipLinkParameters>& links)
    : first_(ends + std::size_t{1}, 0), of_(links.size()) {
  const auto end = [by](const ChipLinkParameters& l) { return by == By::from ? l.from.value : l.to.value; };
  for (const ChipLinkParameters& l : links) ++first_[end(l) + std::size_t{1}];
  for (std::size_t c = 0; c < ends; ++c) first_[c + 1] += first_[c];
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (const ChipLinkParameters& l : links) of_[next[end(l)]++] = &l;
}

Routes::Routes(const Target& target)
    : target_(target), into_(LinksByChip::By::to, target.chips + target.switches, target.links), to_(target.chips) {}

std::vector<LinkId> Routes::between(ChipId from, ChipId to) {
  Search& s = to_[to.value];
  if (s.queue.empty()) {
    s.next.assign(target_.chips + target_.switches, unseen);
    s.distance.assign(target_.chips + target_.switches, unseen);
    s.distance[to.value] = 0;
    s.queue = {to.value};
  }
  // The least link that comes nearer begins the least route: it is known when all that are nearer have been looked at.
  for (; s.done < s.queue.size() && s.distance[s.queue[s.done]] < s.distance[from.value]; ++s.done) {
    const std::uint32_t chip = s.queue[s.done];
    for (const ChipLinkParameters* l : into_.at(chip)) {
      const std::uint32_t other = l->from.value;
      if (s.distance[other] == unseen) {
        s.distance[other] = s.distance[chip] + 1;
        s.queue.push_back(other);
      }
      if (s.distance[other] == s.distance[chip] + 1) s.next[other] = std::min(s.next[other], l->id.value);
    }
  }
  std::vector<LinkId> path;
  for (std::uint32_t at = from.value; at != to.value && s.next[at] != unseen;) {
    path.push_back(LinkId{s.next[at]});
    at = target_.links[s.next[at]].to.value;
  }
  return path;
}

std::string link_end(const Target& target, ChipId end) {
  const bool chip = end.value < target.chips;
  return (chip ? "chip" : "switch") + std::to_string(chip ? end.value : end.value - target.chips);
}

std::vector<LinkId> route(const Target& target, ChipId from, ChipId to) {
  return Routes(target).between(from, to);
}

}  // namespace rdusim
