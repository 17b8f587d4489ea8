#include "models/network/flow_network.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace rdusim {
namespace {

constexpr std::uint32_t facing(std::uint32_t direction) {
  return direction ^ 1u;
}
std::uint32_t lowest(std::uint32_t mask) {
  return static_cast<std::uint32_t>(std::countr_zero(mask));
}

}  // namespace

FlowNetwork::FlowNetwork(const FlowNetworkParameters& p) : p_(p) {
  p_.width = std::max(p.width, 1u);
  p_.height = std::max(p.height, 1u);
  p_.locals = std::clamp(p.locals, 1u, most_locals);
  p_.vcs = std::clamp(p.vcs, 1u, most_vcs);
  p_.buffer_flits = std::clamp(p.buffer_flits, 1u, 1u << 14);
  p_.hop_cycles = std::max(p.hop_cycles, 1u);
  p_.endpoint_cycles = std::max(p.endpoint_cycles, 1u);
  if (p_.period.num < p_.period.den) p_.period = {1, 1};
  nodes_ = p_.width * p_.height;
  ports_ = directions + p_.locals;
  ring_ = std::bit_ceil(p_.buffer_flits);
  routers_.resize(nodes_);
  inputs_.resize(std::size_t{nodes_} * ports_ * p_.vcs);
  buffers_.resize(inputs_.size() * ring_);
  link_free_.resize(std::size_t{nodes_} * directions);
  sources_.resize(std::size_t{nodes_} * p_.locals);
  awake_.resize((nodes_ + 63) / 64);
  calendar_.resize(std::bit_ceil(std::max(p_.hop_cycles, p_.endpoint_cycles) + 1));
  calendar_mask_ = calendar_.size() - 1;
  neighbour_.resize(std::size_t{nodes_} * directions);
  for (std::uint32_t n = 0; n < nodes_; ++n) {
    const std::uint32_t x = n % p_.width, y = n / p_.width;
    neighbour_[n * 4 + 0] = x + 1 < p_.width ? n + 1 : n;
    neighbour_[n * 4 + 1] = x > 0 ? n - 1 : n;
    neighbour_[n * 4 + 2] = y + 1 < p_.height ? n + p_.width : n;
    neighbour_[n * 4 + 3] = y > 0 ? n - p_.width : n;
  }
  credits_.assign(inputs_.size(), static_cast<std::uint16_t>(p_.buffer_flits));
}

void FlowNetwork::reset() {
  std::fill(routers_.begin(), routers_.end(), Router{});
  std::fill(inputs_.begin(), inputs_.end(), Input{});
  std::fill(credits_.begin(), credits_.end(), static_cast<std::uint16_t>(p_.buffer_flits));
  std::fill(link_free_.begin(), link_free_.end(), 0);
  std::fill(awake_.begin(), awake_.end(), 0);
  for (Source& s : sources_) {
    s.waiting.clear();
    s.free = 0;
    s.listed = false;
  }
  for (Leaf& l : leaves_) l.come = 0;
  for (Slot& s : calendar_) {
    s.flits.clear();
    s.credits.clear();
  }
  sending_.clear();
  pages_.clear();
  free_pages_.clear();
  left_.clear();
  heads_.clear();
  arrivals_.clear();
  flying_ = pages_out_ = 0;
  next_ = never;
}

// ---- flows

std::uint32_t FlowNetwork::add_flow(End from, std::span<const End> to) {
  Flow f;
  f.source = from.node * p_.locals + from.port;
  f.vc = static_cast<std::uint32_t>(flows_.size()) % p_.vcs;
  f.first_leaf = static_cast<std::uint32_t>(leaves_.size());
  f.leaves = static_cast<std::uint32_t>(to.size());
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < f.leaves; ++i) {
    names.push_back(f.first_leaf + i);
    leaves_.push_back({i, 0, 0, 0});
  }
  f.step = grow(from.node, to, names);
  flows_.push_back(f);
  return static_cast<std::uint32_t>(flows_.size()) - 1;
}

// The tree from a router on, to the ends whose leaves are named.
std::uint32_t FlowNetwork::grow(std::uint32_t node, std::span<const End> to, std::span<const std::uint32_t> leaves) {
  std::vector<End> ends[most_ports];
  std::vector<std::uint32_t> names[most_ports];
  const std::uint32_t x = node % p_.width, y = node / p_.width;
  std::uint8_t mask = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::uint32_t tx = to[i].node % p_.width, ty = to[i].node / p_.width;
    std::uint32_t out = directions + to[i].port;
    if (tx != x) {
      out = tx > x ? 0 : 1;
    } else if (ty != y) {
      out = ty > y ? 2 : 3;
    }
    ends[out].push_back(to[i]);
    names[out].push_back(leaves[i]);
    mask = static_cast<std::uint8_t>(mask | (1u << out));
  }
  const auto step = static_cast<std::uint32_t>(steps_.size());
  const auto first = static_cast<std::uint32_t>(children_.size());
  steps_.push_back({first, mask});
  children_.resize(children_.size() + static_cast<std::size_t>(std::popcount(mask)));
  std::uint32_t child = first;
  for (std::uint32_t out = 0; out < ports_; ++out) {
    if ((mask >> out & 1u) == 0) continue;
    if (out < directions) {
      const std::uint32_t further = grow(neighbour_[node * 4 + out], ends[out], names[out]);
      children_[child] = further;
    } else {
      // Leaves at one port are a chain: each names the next.
      children_[child] = names[out].front();
      for (std::size_t i = 0; i + 1 < names[out].size(); ++i) leaves_[names[out][i]].next = names[out][i + 1] + 1;
    }
    ++child;
  }
  return step;
}

// ---- sources

void FlowNetwork::send(std::uint32_t flow, std::uint32_t page, std::uint32_t flits, Cycle from, Cycle ready,
                       bool astray) {
  const Flow f = flows_[flow];
  std::uint32_t id = 0;
  if (free_pages_.empty()) {
    id = static_cast<std::uint32_t>(pages_.size());
    pages_.emplace_back();
  } else {
    id = free_pages_.back();
    free_pages_.pop_back();
  }
  flits = std::max(flits, 1u);
  pages_[id] = {page, flow, flits, f.leaves};
  std::uint32_t first_step = f.step;
  if (astray && flits > 1)
    if (const auto wrong = wrong_way(f.step, f.source / p_.locals)) {
      first_step = *wrong;
      --pages_[id].flits;
    }
  Source& s = sources_[f.source];
  s.waiting.push_back({id, f.step, f.vc, flits, first_step, from, ready == 0 ? 0 : ready - 1});
  if (!s.listed) {
    s.listed = true;
    sending_.push_back(f.source);
  }
  ++pages_out_;
  next_ = std::min(next_, std::max(from, flits == 1 && ready > 0 ? ready - 1 : 0));
}

void FlowNetwork::send_from(std::uint32_t source, Cycle now) {
  Source& s = sources_[source];
  if (!link_free(s.free, now)) return;
  const std::uint32_t router = source / p_.locals, port = directions + source % p_.locals;
  std::uint32_t earlier = 0;  // channels of pages that come first
  for (std::size_t i = 0; i < s.waiting.size(); ++i) {
    Waiting& w = s.waiting[i];
    const bool first = (earlier >> w.vc & 1u) == 0;
    earlier |= 1u << w.vc;
    std::uint16_t& credits = credits_[index(router, port, w.vc)];
    if (!first || credits == 0 || w.from > now || (w.left == 1 && w.last > now)) continue;
    --credits;
    take_link(s.free, now);
    slot(now + p_.endpoint_cycles).flits.push_back({index(router, port, w.vc), {w.page, w.first_step}});
    w.first_step = w.step;
    ++flying_;
    ++w.from;
    if (--w.left == 0) {
      left_.push_back({pages_[w.page].name, now + 1 + p_.endpoint_cycles});
      s.waiting.erase(s.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return;
  }
}

// ---- routers

// Who fills an input's buffer: the neighbour's output, or the unit's own port.
std::uint32_t FlowNetwork::upstream(std::uint32_t input) const {
  const std::uint32_t vc = input % p_.vcs, port = input / p_.vcs % ports_, router = input / p_.vcs / ports_;
  return port >= directions ? input : index(neighbour_[router * directions + port], facing(port), vc);
}

// A step from `node` to a neighbour that the step does not lead to, and that knows nothing of it.
std::optional<std::uint32_t> FlowNetwork::wrong_way(std::uint32_t step, std::uint32_t node) {
  for (std::uint32_t out = 0; out < directions; ++out) {
    if ((steps_[step].mask >> out & 1u) != 0 || neighbour_[node * directions + out] == node) continue;
    const auto nowhere = static_cast<std::uint32_t>(steps_.size());
    steps_.push_back({});
    steps_.push_back({static_cast<std::uint32_t>(children_.size()), static_cast<std::uint8_t>(1u << out)});
    children_.push_back(nowhere);
    return nowhere + 1;
  }
  return std::nullopt;
}

void FlowNetwork::accept(const FlitArrival& a, Cycle now) {
  if (steps_[a.flit.step].mask == 0) {  // astray: its place is free again at once
    slot(now + p_.hop_cycles).credits.push_back(upstream(a.input));
    return;
  }
  Input& in = inputs_[a.input];
  buffers_[std::size_t{a.input} * ring_ + ((in.first + in.count) & (ring_ - 1))] = a.flit;
  const std::uint32_t vc = a.input % p_.vcs, at = a.input / p_.vcs, router = at / ports_;
  Router& r = routers_[router];
  if (++in.count == 1) {
    in.pending = steps_[a.flit.step].mask;
    r.occupied[at % ports_] = static_cast<std::uint16_t>(r.occupied[at % ports_] | (1u << vc));
  }
  if (r.flits++ == 0) awake_[router / 64] |= std::uint64_t{1} << (router % 64);
}

void FlowNetwork::allocate(std::uint32_t router, Cycle now) {
  Router& r = routers_[router];
  std::uint32_t links = (1u << ports_) - 1;  // outputs that carry a flit in this cycle
  if (p_.period.num != p_.period.den)
    for (std::uint32_t out = 0; out < directions; ++out)
      if (!link_free(link_free_[router * directions + out], now)) links &= ~(1u << out);
  std::uint8_t asking[most_ports] = {};              // by output: mask of inputs
  std::uint8_t chosen[most_ports][most_ports] = {};  // (input, output): the channel that asks
  std::uint32_t asked_at_all = 0, askers = 0;
  for (std::uint32_t port = 0; port < ports_; ++port) {
    const std::uint32_t mask = r.occupied[port];
    if (mask == 0) continue;
    const std::uint32_t first = r.vc_next[port];
    std::uint32_t asked = 0;
    for (std::uint32_t bits : {mask >> first << first, mask & ((1u << first) - 1)}) {
      for (; bits != 0; bits &= bits - 1) {
        const std::uint32_t vc = lowest(bits);
        std::uint32_t wants = inputs_[index(router, port, vc)].pending & links & ~asked;
        for (std::uint32_t w = wants & 15u; w != 0; w &= w - 1)
          if (credits_[index(router, lowest(w), vc)] == 0) wants &= ~(1u << lowest(w));
        asked |= wants;
        for (; wants != 0; wants &= wants - 1) {
          const std::uint32_t out = lowest(wants);
          asking[out] = static_cast<std::uint8_t>(asking[out] | (1u << port));
          chosen[port][out] = static_cast<std::uint8_t>(vc);
        }
      }
    }
    asked_at_all |= asked;
    if (asked != 0) askers |= 1u << port;
  }
  std::uint8_t granted[most_ports] = {};  // by input: mask of outputs
  for (std::uint32_t outs = asked_at_all; outs != 0; outs &= outs - 1) {
    const std::uint32_t out = lowest(outs);
    const std::uint32_t later = asking[out] >> r.grant_next[out] << r.grant_next[out];
    const std::uint32_t in = lowest(later != 0 ? later : asking[out]);
    granted[in] = static_cast<std::uint8_t>(granted[in] | (1u << out));
  }
  for (std::uint32_t ins = askers; ins != 0; ins &= ins - 1) {
    const std::uint32_t in = lowest(ins);
    if (granted[in] == 0) continue;
    // The channel, from the pointer on, that was granted something.
    std::uint32_t vc = p_.vcs, far = p_.vcs;
    for (std::uint32_t g = granted[in]; g != 0; g &= g - 1) {
      const std::uint32_t c = chosen[in][lowest(g)];
      const std::uint32_t distance = (c + p_.vcs - r.vc_next[in]) % p_.vcs;
      if (distance < far) far = distance, vc = c;
    }
    std::uint32_t outputs = 0;
    for (std::uint32_t g = granted[in]; g != 0; g &= g - 1)
      if (chosen[in][lowest(g)] == vc) outputs |= 1u << lowest(g);
    for (std::uint32_t o = outputs; o != 0; o &= o - 1)
      r.grant_next[lowest(o)] = static_cast<std::uint8_t>(in + 1 == ports_ ? 0 : in + 1);
    r.vc_next[in] = static_cast<std::uint8_t>(vc + 1 == p_.vcs ? 0 : vc + 1);
    cross(router, in, vc, outputs, now);
  }
}

// The flit in front of an input leaves by some outputs.
void FlowNetwork::cross(std::uint32_t router, std::uint32_t port, std::uint32_t vc, std::uint32_t outputs, Cycle now) {
  const std::uint32_t i = index(router, port, vc);
  Input& in = inputs_[i];
  const Flit flit = buffers_[std::size_t{i} * ring_ + in.first];
  const Step step = steps_[flit.step];
  for (std::uint32_t o = outputs; o != 0; o &= o - 1) {
    const std::uint32_t out = lowest(o);
    const std::uint32_t child =
        children_[step.first_child + static_cast<std::uint32_t>(std::popcount(step.mask & ((1u << out) - 1)))];
    ++traversals_;
    if (out < directions) {
      --credits_[index(router, out, vc)];
      if (p_.period.num != p_.period.den) take_link(link_free_[router * directions + out], now);
      slot(now + p_.hop_cycles)
          .flits.push_back({index(neighbour_[router * directions + out], facing(out), vc), {flit.page, child}});
      ++flying_;
    } else {
      deliver(child, flit.page, now);
    }
  }
  in.pending = static_cast<std::uint8_t>(in.pending & ~outputs);
  if (in.pending != 0) return;
  in.first = static_cast<std::uint16_t>((in.first + 1u) & (ring_ - 1));
  --in.count;
  --routers_[router].flits;
  --flying_;
  if (in.count == 0) {
    Router& r = routers_[router];
    r.occupied[port] = static_cast<std::uint16_t>(r.occupied[port] & ~(1u << vc));
  } else {
    in.pending = steps_[buffers_[std::size_t{i} * ring_ + in.first].step].mask;
  }
  slot(now + (port >= directions ? p_.endpoint_cycles : p_.hop_cycles)).credits.push_back(upstream(i));
  ++flying_;
}

void FlowNetwork::deliver(std::uint32_t leaf, std::uint32_t page, Cycle now) {
  Page& p = pages_[page];
  for (std::uint32_t n = leaf + 1; n != 0; n = leaves_[n - 1].next) {
    Leaf& l = leaves_[n - 1];
    if (l.come++ == 0) {
      l.head = now + p_.endpoint_cycles;
      heads_.push_back({p.name, l.number, l.head});
    }
    if (l.come != p.flits) continue;
    l.come = 0;
    arrivals_.push_back({p.name, l.number, l.head, now + p_.endpoint_cycles + 1});
    if (--p.leaves != 0) continue;
    free_pages_.push_back(page);
    --pages_out_;
  }
}

void FlowNetwork::advance(Cycle now) {
  left_.clear();
  heads_.clear();
  arrivals_.clear();
  Slot& today = slot(now);
  flying_ -= today.credits.size();
  for (const std::uint32_t c : today.credits) ++credits_[c];
  for (const FlitArrival& a : today.flits) accept(a, now);
  today.credits.clear();
  today.flits.clear();
  std::size_t kept = 0;
  Cycle soonest = never;
  for (const std::uint32_t source : sending_) {
    send_from(source, now);
    Source& s = sources_[source];
    s.listed = !s.waiting.empty();
    if (!s.listed) continue;
    sending_[kept++] = source;
    for (const Waiting& w : s.waiting) soonest = std::min(soonest, std::max(w.from, w.left == 1 ? w.last : 0));
  }
  sending_.resize(kept);
  for (std::size_t w = 0; w < awake_.size(); ++w) {
    for (std::uint64_t bits = awake_[w]; bits != 0; bits &= bits - 1) {
      const auto router = static_cast<std::uint32_t>(w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
      allocate(router, now);
      if (routers_[router].flits == 0) awake_[w] &= ~(std::uint64_t{1} << (router % 64));
    }
  }
  next_ = flying_ != 0 ? now + 1 : std::max(soonest, now + 1);
  if (flying_ == 0 && soonest == never) next_ = never;
}

}  // namespace rdusim
