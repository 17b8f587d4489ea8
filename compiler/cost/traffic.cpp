#include "compiler/cost/traffic.h"

#include <algorithm>
#include <map>

#include "compiler/cost/exact.h"
#include "compiler/ir/access_pattern.h"

namespace rdusim::cost {

namespace {

constexpr std::uint64_t most_enumerated = std::uint64_t{1} << 16;  // tuples of loops, an instance

// Elements of axis `axis` that a page starting at tile `start` has.
std::uint64_t extent_at(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile, std::size_t axis,
                        std::uint64_t start) {
  const std::uint64_t end = std::min(plus(start, pattern.page_tiles[axis]), pattern.extent_tiles[axis]);
  if (start >= end) return 0;
  const std::uint64_t tile = step_of(pattern, tensor.shape.size(), axis, native_tile);
  const auto elements = static_cast<std::uint64_t>(tensor.shape[axis]);
  const std::uint64_t from = std::min(times(start, tile), elements);
  const std::uint64_t to = std::min(times(end, tile), elements);
  return to - from;
}

std::uint64_t first_of(const AccessPattern& pattern, std::size_t instance, std::size_t axis) {
  return instance < pattern.first.size() ? pattern.first[instance][axis] : 0;
}

// Calls f(tuple) for every tuple of the loops in `which`, others 0.
template <class F>
void for_each_tuple(const AccessPattern& pattern, const std::vector<std::size_t>& which, F&& f) {
  std::vector<std::uint64_t> tuple(pattern.loops.size(), 0);
  for (const std::size_t l : which)
    if (pattern.loops[l] == 0) return;
  while (true) {
    f(tuple);
    std::size_t i = which.size();
    while (i > 0 && ++tuple[which[i - 1]] == pattern.loops[which[i - 1]]) tuple[which[--i]] = 0;
    if (i == 0) return;
  }
}

std::uint64_t start_tile(const AccessPattern& pattern, std::size_t instance, std::size_t axis,
                         const std::vector<std::uint64_t>& tuple) {
  std::uint64_t start = first_of(pattern, instance, axis);
  for (std::size_t l = 0; l < tuple.size(); ++l) start = plus(start, times(tuple[l], pattern.stride[l][axis]));
  return start;
}

}  // namespace

std::uint64_t sum_over(const Cyclic<std::uint32_t>& rate, std::uint64_t firings) {
  const std::uint64_t cycle = cycle_length(rate);
  if (cycle == 0) return 0;
  std::uint64_t whole = 0, part = 0, left = firings % cycle;
  for (const auto& run : rate) {
    whole = plus(whole, times(run.repeat, run.value));
    const std::uint64_t taken = std::min<std::uint64_t>(left, run.repeat);
    part = plus(part, times(taken, run.value));
    left -= taken;
  }
  return plus(times(firings / cycle, whole), part);
}

std::vector<std::uint64_t> page_extents(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                        std::uint64_t firing, std::size_t instance) {
  std::vector<std::uint64_t> tuple(pattern.loops.size(), 0);
  for (std::size_t l = tuple.size(); l-- > 0;) {
    if (pattern.loops[l] == 0) continue;
    tuple[l] = firing % pattern.loops[l];
    firing /= pattern.loops[l];
  }
  std::vector<std::uint64_t> extents(tensor.shape.size());
  for (std::size_t d = 0; d < extents.size(); ++d)
    extents[d] = extent_at(pattern, tensor, native_tile, d, start_tile(pattern, instance, d, tuple));
  return extents;
}

std::optional<Bytes> pattern_bytes(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                   std::size_t instance) {
  const std::size_t rank = tensor.shape.size();
  // A loop that moves along one axis at most lets the sum over all firings be taken axis by axis: the extent of a page
  // along an axis does not depend on the loops of the others.
  std::vector<std::vector<std::size_t>> loops_of(rank);
  std::uint64_t repeats = 1;
  bool separable = true;
  for (std::size_t l = 0; l < pattern.loops.size(); ++l) {
    std::size_t moved = 0;
    for (std::size_t d = 0; d < rank; ++d)
      if (pattern.stride[l][d] != 0) {
        ++moved;
        loops_of[d].push_back(l);
      }
    if (moved == 0) repeats = times(repeats, pattern.loops[l]);
    if (moved > 1) separable = false;
  }
  const auto tuples = [&](const std::vector<std::size_t>& which) {
    std::uint64_t n = 1;
    for (const std::size_t l : which) n = times(n, pattern.loops[l]);
    return n;
  };
  if (separable) {
    std::uint64_t elements = repeats;
    for (std::size_t d = 0; d < rank; ++d) {
      if (tuples(loops_of[d]) > most_enumerated) return std::nullopt;
      std::uint64_t sum = 0;
      for_each_tuple(pattern, loops_of[d], [&](const std::vector<std::uint64_t>& tuple) {
        sum = plus(sum, extent_at(pattern, tensor, native_tile, d, start_tile(pattern, instance, d, tuple)));
      });
      elements = times(elements, sum);
    }
    return times(elements, bytes_of(tensor.dtype));
  }
  std::vector<std::size_t> all(pattern.loops.size());
  for (std::size_t l = 0; l < all.size(); ++l) all[l] = l;
  if (tuples(all) > most_enumerated) return std::nullopt;
  std::uint64_t elements = 0;
  for_each_tuple(pattern, all, [&](const std::vector<std::uint64_t>& tuple) {
    std::uint64_t page = 1;
    for (std::size_t d = 0; d < rank; ++d)
      page = times(page, extent_at(pattern, tensor, native_tile, d, start_tile(pattern, instance, d, tuple)));
    elements = plus(elements, page);
  });
  return times(elements, bytes_of(tensor.dtype));
}

Bytes page_bytes(const Buffer& buffer, std::uint32_t native_tile) {
  if (buffer.page_bytes != 0) return buffer.page_bytes;
  return times(times(buffer.page_tiles, std::uint64_t{native_tile} * native_tile), bytes_of(buffer.dtype));
}

Bytes chunk_bytes(const Buffer& buffer, const Chunk& c, std::uint32_t native_tile) {
  if (c.of <= 1) return page_bytes(buffer, native_tile);
  const std::uint64_t element = bytes_of(buffer.dtype);
  return share_of(page_bytes(buffer, native_tile) / element, 1, c.of) * element;
}

const Port* port_of(const Stage& stage, BufferId buffer, Direction direction) {
  for (const Port& port : stage.ports)
    if (port.buffer == buffer && port.direction == direction) return &port;
  return nullptr;
}

std::uint64_t pages_pushed(const Stage& stage, BufferId buffer) {
  const Port* port = port_of(stage, buffer, Direction::output);
  return port == nullptr ? 0 : sum_over(port->push, stage.firings);
}

std::vector<MemoryFlow> memory_flows(const SpatialProgram& program, const Stage& stage) {
  const auto* load = std::get_if<Load>(&stage.kind);
  const auto* store = std::get_if<Store>(&stage.kind);
  if (load == nullptr && store == nullptr) return {};
  const Tensor& tensor = program.tensor(load != nullptr ? load->tensor : store->tensor);
  const AccessPattern& pattern = load != nullptr ? load->pattern : store->pattern;
  const std::uint32_t tile = program.header.native_tile;
  const Group& group = program.sites_of(stage);
  const std::uint64_t trips = program.sections[stage.section.value].trips;

  std::vector<MemoryFlow> flows;
  std::map<std::uint32_t, std::size_t> flow_of_set;
  for (std::uint32_t i = 0; i < group.sites.size(); ++i) {
    if (load != nullptr && i < load->multicast_set.size()) {
      const auto [it, is_new] = flow_of_set.try_emplace(load->multicast_set[i], flows.size());
      if (!is_new) {
        flows[it->second].sites.push_back(i);
        continue;
      }
    }
    MemoryFlow flow;
    flow.stage = stage.id;
    flow.chip = group.sites[i].chip;
    flow.agcu = i < group.agcus.size() ? group.agcus[i] : AgcuId{};
    flow.sites = {i};
    flow.write = store != nullptr;
    const auto exact = pattern_bytes(pattern, tensor, tile, i);
    flow.exact = exact.has_value();
    if (exact) {
      flow.bytes = times(*exact, trips);
    } else {
      std::uint64_t page = bytes_of(tensor.dtype);
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        page = times(page, times(pattern.page_tiles[d], step_of(pattern, tensor.shape.size(), d, tile)));
      flow.bytes = times(times(page, stage.firings), trips);
    }
    flows.push_back(std::move(flow));
  }
  return flows;
}

std::vector<CrossingFlow> crossing_flows(const SpatialProgram& program, const Edge& edge) {
  if (is_local(edge.handshake)) return {};
  const Stage& from = program.stage(edge.from);
  const auto senders = static_cast<std::uint32_t>(program.sites_of(from).sites.size());
  const std::uint64_t pages = times(pages_pushed(from, edge.buffer), program.sections[from.section.value].trips);
  const Bytes bytes = chunk_bytes(program.buffer(edge.buffer), edge.chunk, program.header.native_tile);

  std::vector<CrossingFlow> flows;
  const auto add = [&](std::uint32_t to, std::uint32_t sender, std::uint32_t receiver, std::uint64_t n) {
    flows.push_back({edge.id, to, sender, receiver, n, times(n, bytes)});
  };
  for (std::uint32_t to = 0; to < edge.to.size(); ++to)
    for (std::uint32_t i = 0; i < senders; ++i) {
      if (edge.map.kind == PageMapKind::one_to_one) {
        add(to, i, i, pages);
        continue;
      }
      if (i >= edge.map.targets.size()) continue;
      const auto& targets = edge.map.targets[i];
      for (std::size_t t = 0; t < targets.size(); ++t)
        add(to, i, targets[t],
            edge.map.kind == PageMapKind::scatter ? pages / targets.size() + (t < pages % targets.size() ? 1 : 0)
                                                  : pages);
    }
  return flows;
}

}  // namespace rdusim::cost
