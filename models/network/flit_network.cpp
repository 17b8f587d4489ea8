#include "models/network/flit_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

namespace rdusim {

namespace {

constexpr std::uint8_t head_flit = 1, tail_flit = 2;

std::uint32_t opposite(std::uint32_t direction) {
  return direction ^ 1U;
}

}  // namespace

std::optional<std::string> unsound(const FlitNetworkParameters& p) {
  const auto within = [](const char* name, std::uint32_t value, std::uint32_t least,
                         std::uint32_t most) -> std::optional<std::string> {
    if (value >= least && value <= most) return std::nullopt;
    return fmt::format("{} is {}; {} to {} is allowed", name, value, least, most);
  };
  for (const auto& problem : {
           within("width", p.width, 1, 256),
           within("height", p.height, 1, 256),
           within("vcs", p.vcs, 1, 16),
           within("buffer_flits", p.buffer_flits, 1, 4096),
           within("routing_cycles", p.routing_cycles, 0, 64),
           within("vc_allocation_cycles", p.vc_allocation_cycles, 0, 64),
           within("switch_allocation_cycles", p.switch_allocation_cycles, 1, 64),
           within("traversal_cycles", p.traversal_cycles, 0, 64),
           within("link_cycles", p.link_cycles, 0, 64),
           within("endpoint_cycles", p.endpoint_cycles, 0, 64),
           within("credit_cycles", p.credit_cycles, 0, 64),
       }) {
    if (problem) return problem;
  }
  // Node numbers travel in 16 bits, and the largest is not used.
  if (p.width * p.height > 65535) {
    return fmt::format("the mesh has {} x {} routers; at most 65535 are allowed", p.width, p.height);
  }
  // 2^27 flits are 1 GiB of buffers.
  constexpr std::uint64_t most_buffers = std::uint64_t{1} << 27;
  const std::uint64_t buffers = std::uint64_t{p.width} * p.height * 5 * p.vcs * std::bit_ceil(p.buffer_flits);
  if (buffers > most_buffers) {
    return fmt::format("the mesh has buffers for {} flits; at most {} are allowed", buffers, most_buffers);
  }
  return std::nullopt;
}

FlitNetwork::FlitNetwork(const FlitNetworkParameters& p)
    : p_(p), nodes_(p.width * p.height), ring_(std::bit_ceil(p.buffer_flits)) {
  assert(!unsound(p));
  const std::size_t vcs = std::size_t{nodes_} * ports * p_.vcs;
  routers_.resize(nodes_);
  inputs_.resize(vcs);
  buffers_.resize(vcs * ring_);
  credits_.assign(vcs, static_cast<std::uint16_t>(p_.buffer_flits));
  vc_grant_next_.resize(vcs);
  vc_accept_next_.resize(vcs);
  neighbour_.assign(std::size_t{nodes_} * 4, nodes_);
  for (std::uint32_t y = 0; y < p_.height; ++y) {
    for (std::uint32_t x = 0; x < p_.width; ++x) {
      const std::uint32_t r = y * p_.width + x;
      x_.push_back(static_cast<std::uint16_t>(x));
      y_.push_back(static_cast<std::uint16_t>(y));
      if (x + 1 < p_.width) neighbour_[r * 4 + 0] = r + 1;
      if (x > 0) neighbour_[r * 4 + 1] = r - 1;
      if (y + 1 < p_.height) neighbour_[r * 4 + 2] = r + p_.width;
      if (y > 0) neighbour_[r * 4 + 3] = r - p_.width;
    }
  }
  source_.resize(nodes_);
  for (Source& s : source_) s.last_vc = static_cast<std::uint8_t>(p_.vcs - 1);
  source_credits_.assign(std::size_t{nodes_} * p_.vcs, static_cast<std::uint16_t>(p_.buffer_flits));
  source_held_.resize(nodes_);
  awake_.resize((nodes_ + 63) / 64);
  sending_.resize((nodes_ + 63) / 64);
  const std::uint32_t furthest =
      p_.traversal_cycles + std::max(p_.link_cycles, p_.endpoint_cycles) + p_.credit_cycles + 2;
  calendar_.resize(std::bit_ceil(furthest));
  calendar_mask_ = calendar_.size() - 1;
  vc_grants_.reserve(std::size_t{ports} * p_.vcs);
  link_flits_.resize(std::size_t{nodes_} * 4);
}

void FlitNetwork::inject(const FlitPacket& packet) {
  assert(packet.from < nodes_ && packet.to < nodes_ && packet.flits >= 1 && idle(packet.from));
  assert(p_.switching == Switching::wormhole || packet.flits <= p_.buffer_flits);
  std::uint32_t id = 0;
  if (free_packets_.empty()) {
    id = static_cast<std::uint32_t>(packets_.size());
    packets_.push_back(packet);
  } else {
    id = free_packets_.back();
    free_packets_.pop_back();
    packets_[id] = packet;
  }
  Source& s = source_[packet.from];
  s.packet = id;
  s.left = packet.flits;
  s.has_vc = false;
  sending_[packet.from / 64] |= std::uint64_t{1} << (packet.from % 64);
  ++in_flight_;
}

void FlitNetwork::advance() {
  delivered_.clear();
  Slot& today = slot(now_);
  for (const FlitArrival& a : today.ejected) eject(a);
  for (const CreditArrival& c : today.source_credits) {
    ++source_credits_[c.router * p_.vcs + c.vc];
    if (c.tail && p_.wait_for_tail_credit) {
      source_held_[c.router] = static_cast<std::uint16_t>(source_held_[c.router] & ~(1U << c.vc));
    }
  }
  for (std::size_t w = 0; w < sending_.size(); ++w) {
    for (std::uint64_t bits = sending_[w]; bits != 0; bits &= bits - 1) {
      send_from(static_cast<NodeId>(w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))));
    }
  }
  for (const FlitArrival& a : today.flits) accept(a);
  for (const CreditArrival& c : today.credits) {
    ++credits_[input(c.router, c.port, c.vc)];
    if (c.tail && p_.wait_for_tail_credit) {
      std::uint16_t& held = routers_[c.router].held[c.port];
      held = static_cast<std::uint16_t>(held & ~(1U << c.vc));
    }
  }
  today.ejected.clear();
  today.source_credits.clear();
  today.flits.clear();
  today.credits.clear();
  for (std::size_t w = 0; w < awake_.size(); ++w) {
    for (std::uint64_t bits = awake_[w]; bits != 0; bits &= bits - 1) {
      const auto r = static_cast<std::uint32_t>(w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
      allocate_vcs(r);
      allocate_switch(r);
      if (routers_[r].flits == 0) awake_[w] &= ~(std::uint64_t{1} << (r % 64));
    }
  }
  ++now_;
}

std::uint32_t FlitNetwork::route(std::uint32_t router, std::uint32_t to) const {
  if (x_[to] > x_[router]) return 0;
  if (x_[to] < x_[router]) return 1;
  if (y_[to] > y_[router]) return 2;
  if (y_[to] < y_[router]) return 3;
  return local;
}

bool FlitNetwork::room(std::uint32_t credits, const Flit& flit) const {
  if (p_.switching == Switching::wormhole || (flit.flags & head_flit) == 0) return credits != 0;
  return credits >= packets_[flit.packet].flits;
}

// A flit comes to its input buffer.
void FlitNetwork::accept(const FlitArrival& arrival) {
  Router& router = routers_[arrival.router];
  const std::uint32_t i = input(arrival.router, arrival.port, arrival.flit.vc);
  InputVc& in = inputs_[i];
  buffers_[std::size_t{i} * ring_ + ((in.first + in.count) & (ring_ - 1))] = arrival.flit;
  ++in.count;
  if (router.flits++ == 0) wake(arrival.router);
  if (in.count != 1) return;
  if ((arrival.flit.flags & head_flit) != 0) {
    ask(arrival.router, arrival.port, arrival.flit.vc, arrival.flit);
  } else {
    in.ready = static_cast<std::uint32_t>(now_ + p_.switch_allocation_cycles - 1);
    router.active[arrival.port] = static_cast<std::uint16_t>(router.active[arrival.port] | (1U << arrival.flit.vc));
  }
}

// A head flit at the front of its buffer asks for an output VC from now (or when it has been routed) on.
void FlitNetwork::ask(std::uint32_t router, std::uint32_t port, std::uint32_t vc, const Flit& head) {
  InputVc& in = inputs_[input(router, port, vc)];
  in.out_port = static_cast<std::uint8_t>(route(router, head.to));
  in.ready = static_cast<std::uint32_t>(now_ + p_.routing_cycles);
  routers_[router].waiting[port] = static_cast<std::uint16_t>(routers_[router].waiting[port] | (1U << vc));
}

void FlitNetwork::eject(const FlitArrival& arrival) {
  ++flits_out_;
  const bool tail = (arrival.flit.flags & tail_flit) != 0;
  slot(now_ + 1 + p_.endpoint_cycles + p_.credit_cycles)
      .credits.push_back({arrival.router, static_cast<std::uint8_t>(local), arrival.flit.vc, tail});
  if (!tail) return;
  delivered_.push_back(packets_[arrival.flit.packet]);
  free_packets_.push_back(arrival.flit.packet);
  --in_flight_;
}

// The unit's side of its link: the virtual channel that follows the last one used, among those that are free and have
// room.
void FlitNetwork::send_from(NodeId node) {
  Source& s = source_[node];
  const FlitPacket& packet = packets_[s.packet];
  const bool head = s.left == packet.flits;
  const std::uint32_t needed = p_.switching == Switching::cut_through && head ? packet.flits : 1;
  if (!s.has_vc) {
    for (std::uint32_t i = 1; i <= p_.vcs; ++i) {
      const std::uint32_t vc = (s.last_vc + i) % p_.vcs;
      if ((source_held_[node] >> vc & 1U) != 0 || source_credits_[node * p_.vcs + vc] < needed) continue;
      s.vc = s.last_vc = static_cast<std::uint8_t>(vc);
      s.has_vc = true;
      source_held_[node] = static_cast<std::uint16_t>(source_held_[node] | (1U << vc));
      break;
    }
    if (!s.has_vc) return;
  }
  std::uint16_t& credits = source_credits_[node * p_.vcs + s.vc];
  if (credits < needed) return;
  --credits;
  --s.left;
  std::uint8_t flags = head ? head_flit : 0;
  if (s.left == 0) {
    flags |= tail_flit;
    if (!p_.wait_for_tail_credit) {
      source_held_[node] = static_cast<std::uint16_t>(source_held_[node] & ~(1U << s.vc));
    }
    sending_[node / 64] &= ~(std::uint64_t{1} << (node % 64));
  }
  slot(now_ + 1 + p_.endpoint_cycles)
      .flits.push_back(
          {node, static_cast<std::uint8_t>(local), Flit{s.packet, static_cast<std::uint16_t>(packet.to), s.vc, flags}});
}

// Every free output VC grants the first waiting head from its pointer on; every head accepts the first grant from its
// own.
void FlitNetwork::allocate_vcs(std::uint32_t r) {
  Router& router = routers_[r];
  struct Wait {
    std::uint8_t port, vc, out;
  };
  Wait waits[ports * most_vcs];
  std::uint32_t count = 0, outs = 0, shared = 0;
  vc_grants_.clear();
  for (std::uint32_t port = 0; port < ports; ++port) {
    for (std::uint32_t bits = router.waiting[port]; bits != 0; bits &= bits - 1) {
      const auto vc = static_cast<std::uint32_t>(std::countr_zero(bits));
      const InputVc& in = inputs_[input(r, port, vc)];
      if (static_cast<std::int32_t>(in.ready - static_cast<std::uint32_t>(now_)) > 0) continue;
      waits[count++] = {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(vc), in.out_port};
      shared |= outs & (1U << in.out_port);
      outs |= 1U << in.out_port;
    }
  }
  // The first head, in the order of ports and VCs from `from` on, that wants output `out`.
  const auto first_from = [&](std::uint32_t out, std::uint32_t from) {
    std::uint32_t first = count;
    for (std::uint32_t w = 0; w < count; ++w) {
      if (waits[w].out != out) continue;
      if (waits[w].port * p_.vcs + waits[w].vc >= from) return w;
      if (first == count) first = w;
    }
    return first;
  };
  const auto next = [&](std::uint32_t number) {
    return static_cast<std::uint16_t>(number + 1 == ports * p_.vcs ? 0 : number + 1);
  };
  const std::uint32_t all = (1U << p_.vcs) - 1;
  for (std::uint32_t w = 0; w < count; ++w) {
    const Wait& wait = waits[w];
    const std::uint32_t free = all & ~std::uint32_t{router.held[wait.out]};
    if (free == 0) continue;
    std::uint32_t granted = free;  // alone, it is granted all of them
    if ((shared >> wait.out & 1U) != 0) {
      granted = 0;
      for (std::uint32_t bits = free; bits != 0; bits &= bits - 1) {
        const auto vc = static_cast<std::uint32_t>(std::countr_zero(bits));
        if (first_from(wait.out, vc_grant_next_[input(r, wait.out, vc)]) == w) granted |= 1U << vc;
      }
      if (granted == 0) continue;
    }
    // Its pointer counts output VCs over all ports.
    std::uint16_t& pointer = vc_accept_next_[input(r, wait.port, wait.vc)];
    const std::uint32_t base = wait.out * p_.vcs;
    const std::uint32_t skip = pointer > base ? std::min<std::uint32_t>(pointer - base, p_.vcs) : 0;
    const std::uint32_t later = granted >> skip << skip;
    const auto vc = static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : granted));
    pointer = next(base + vc);
    vc_grants_.push_back({wait.port, wait.vc, wait.out, static_cast<std::uint8_t>(vc)});
  }
  // The outputs' pointers move only now: every grant was made from where they stood. A virtual channel that a tail
  // frees in this cycle's switch allocation is granted from the next cycle on.
  for (const VcGrant& g : vc_grants_) {
    vc_grant_next_[input(r, g.out_port, g.out_vc)] = next(g.in_port * p_.vcs + g.in_vc);
    InputVc& in = inputs_[input(r, g.in_port, g.in_vc)];
    in.out_vc = g.out_vc;
    in.ready = static_cast<std::uint32_t>(now_ + p_.vc_allocation_cycles + p_.switch_allocation_cycles - 1);
    router.waiting[g.in_port] = static_cast<std::uint16_t>(router.waiting[g.in_port] & ~(1U << g.in_vc));
    router.active[g.in_port] = static_cast<std::uint16_t>(router.active[g.in_port] | (1U << g.in_vc));
    router.held[g.out_port] = static_cast<std::uint16_t>(router.held[g.out_port] | (1U << g.out_vc));
  }
}

void FlitNetwork::allocate_switch(std::uint32_t r) {
  Router& router = routers_[r];
  std::uint8_t asking[ports] = {};         // by output: mask of inputs
  std::uint8_t chosen[ports][ports] = {};  // (input, output): the VC that asks
  std::uint32_t asks = 0, last_in = 0, last_out = 0;
  for (std::uint32_t port = 0; port < ports; ++port) {
    const std::uint32_t mask = router.active[port];
    if (mask == 0) continue;
    // From the pointer on, then from the start: the first to ask for an output is the one that asks.
    const std::uint32_t first = router.switch_first_vc[port];
    std::uint32_t asked = 0;
    for (std::uint32_t bits : {mask >> first << first, mask & ((1U << first) - 1)}) {
      for (; bits != 0; bits &= bits - 1) {
        const auto vc = static_cast<std::uint32_t>(std::countr_zero(bits));
        const std::uint32_t i = input(r, port, vc);
        const InputVc& in = inputs_[i];
        if ((asked >> in.out_port & 1U) != 0) continue;
        if (static_cast<std::int32_t>(in.ready - static_cast<std::uint32_t>(now_)) > 0) continue;
        if (!room(credits_[input(r, in.out_port, in.out_vc)], buffers_[std::size_t{i} * ring_ + in.first])) continue;
        asked |= 1U << in.out_port;
        asking[in.out_port] = static_cast<std::uint8_t>(asking[in.out_port] | (1U << port));
        chosen[port][in.out_port] = static_cast<std::uint8_t>(vc);
        ++asks;
        last_in = port;
        last_out = in.out_port;
      }
    }
  }
  const auto grant = [&](std::uint32_t in, std::uint32_t out) {
    router.grant_next[out] = static_cast<std::uint8_t>(in + 1 == ports ? 0 : in + 1);
    router.accept_next[in] = static_cast<std::uint8_t>(out + 1 == ports ? 0 : out + 1);
    const std::uint32_t vc = chosen[in][out];
    router.switch_first_vc[in] = static_cast<std::uint8_t>(vc + 1 == p_.vcs ? 0 : vc + 1);
    cross(r, in, vc);
  };
  if (asks == 0) return;
  if (asks == 1) return grant(last_in, last_out);
  const auto first_from = [](std::uint32_t mask, std::uint32_t from) {
    const std::uint32_t later = mask >> from << from;
    return static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : mask));
  };
  std::uint8_t granted[ports] = {};  // by input: mask of outputs
  for (std::uint32_t out = 0; out < ports; ++out) {
    if (asking[out] == 0) continue;
    const std::uint32_t in = first_from(asking[out], router.grant_next[out]);
    granted[in] = static_cast<std::uint8_t>(granted[in] | (1U << out));
  }
  for (std::uint32_t in = 0; in < ports; ++in) {
    if (granted[in] != 0) grant(in, first_from(granted[in], router.accept_next[in]));
  }
}

// The flit at the front of an input buffer leaves for its output.
void FlitNetwork::cross(std::uint32_t r, std::uint32_t port, std::uint32_t vc) {
  Router& router = routers_[r];
  const std::uint32_t i = input(r, port, vc);
  InputVc& in = inputs_[i];
  Flit flit = buffers_[std::size_t{i} * ring_ + in.first];
  in.first = static_cast<std::uint16_t>((in.first + 1U) & (ring_ - 1));
  --in.count;
  --router.flits;
  ++traversals_;
  const bool tail = (flit.flags & tail_flit) != 0;
  const std::uint32_t out = in.out_port;
  if (port == local) {
    slot(now_ + 1 + p_.endpoint_cycles).source_credits.push_back({r, 0, static_cast<std::uint8_t>(vc), tail});
  } else {
    slot(now_ + 1 + p_.link_cycles + p_.credit_cycles)
        .credits.push_back(
            {neighbour_[r * 4 + port], static_cast<std::uint8_t>(opposite(port)), static_cast<std::uint8_t>(vc), tail});
  }
  --credits_[input(r, out, in.out_vc)];
  flit.vc = in.out_vc;
  if (out == local) {
    slot(now_ + p_.traversal_cycles + 1 + p_.endpoint_cycles).ejected.push_back({r, 0, flit});
  } else {
    ++link_flits_[r * 4 + out];
    slot(now_ + p_.traversal_cycles + 1 + p_.link_cycles)
        .flits.push_back({neighbour_[r * 4 + out], static_cast<std::uint8_t>(opposite(out)), flit});
  }
  const auto off = static_cast<std::uint16_t>(~(1U << vc));
  if (tail) {
    router.active[port] &= off;
    if (!p_.wait_for_tail_credit) {
      router.held[out] = static_cast<std::uint16_t>(router.held[out] & ~(1U << in.out_vc));
    }
    // The next packet of the same buffer starts over, a cycle later: this cycle's allocations are made.
    if (in.count != 0) {
      ask(r, port, vc, buffers_[std::size_t{i} * ring_ + in.first]);
      ++in.ready;
    }
  } else if (in.count == 0) {
    router.active[port] &= off;
  } else {
    in.ready = static_cast<std::uint32_t>(now_ + p_.switch_allocation_cycles);
  }
}

std::uint32_t FlitNetwork::routers(NodeId from, NodeId to) const {
  const auto apart = [](std::uint32_t a, std::uint32_t b) { return a > b ? a - b : b - a; };
  return apart(x_[from], x_[to]) + apart(y_[from], y_[to]) + 1;
}

Cycles FlitNetwork::unloaded(NodeId from, NodeId to, std::uint32_t flits) const {
  const std::uint64_t hops = routers(from, to) - 1;
  const std::uint64_t router = std::uint64_t{p_.routing_cycles} + p_.vc_allocation_cycles +
                               p_.switch_allocation_cycles - 1 + p_.traversal_cycles;
  return 1 + p_.endpoint_cycles + (hops + 1) * (router + 1) + hops * p_.link_cycles + p_.endpoint_cycles + flits - 1;
}

}  // namespace rdusim
