#include "compiler/ir/untimed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/clusters.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/sum_findings.h"

namespace rdusim {
namespace {

using Index = std::uint32_t;
constexpr Index none = no_box;  // no actor, no channel, no box

struct StageInstance {
  StageId stage;
  Index instance = 0;
};

// One run: an instance of every stage of a one-to-one cluster, or all instances of another.
class Execution {
 public:
  Execution(const SpatialProgram& p, SumFindings& findings, const Cluster& cluster);

  // Runs 1 / repeats of every stage's firings of a trip. With one_to_one clusters the same run serves every instance.
  void start(std::uint64_t repeats, std::optional<Index> instance);
  bool finished() const { return unfinished_ == 0; }
  std::uint64_t unfinished() const { return unfinished_; }
  void explain(UntimedRun& out) const;

 private:
  struct PortState {
    Index channel;
    Index slot;  // inputs: place among the channel's consumers
    CyclicCursor<std::uint32_t> need, pop, reserve, push;
    CyclicCursor<Chunk> chunk;
  };
  struct Link {  // of a Recv: one sender
    Index channel;
    Index slot;
    Index first;  // scatter: the receiver's place among the targets
    Index step;   // scatter: how many targets
    const Edge* edge;
    Index sender;
    Index joint;  // index in joints_; none: sent to each receiver when that one is ready
  };
  struct Actor {
    const Stage* stage;
    Index instance;
    std::vector<PortState> ports;
    std::vector<Link> links;
    std::uint64_t fired = 0;
    std::uint64_t due = 0;
    CyclicCursor<Expr> body;
    PageContent value;         // Generic: of the firing before; MatmulTiles: the range that is being added up
    std::optional<SumId> sum;  // MatmulTiles: ranges that did not join
    std::int64_t k_begin = 0, k_end = 0;
    bool queued = false;
  };
  struct Channel {
    BufferId buffer;
    std::uint64_t depth = 0;  // 0: not sized, any number
    std::uint64_t reserved = 0, pushed = 0, freed = 0;
    std::vector<std::uint64_t> popped;  // by consumer; of a scatter edge: the next page that is for it
    std::vector<Index> consumers;       // actors
    Index producer = none;
    std::deque<PageContent> pages;  // freed .. pushed
  };

  bool joint_ready(Index joint) const;
  std::optional<UntimedWait> blocked(const Actor& a) const;
  bool can_fire(const Actor& a) const;
  bool recv_ready(const Actor& a) const;
  void fire(Index actor);
  void fire_recv(Index actor);
  void fire_collective(Index joint);
  void push(Channel& c, const PageContent& content, std::uint32_t pages, std::uint32_t reserved);
  void pop(Channel& c, Index slot, std::uint64_t pages);
  void wake(Index actor);
  PageContent front(const PortState& port) const;
  PageContent evaluate(Actor& a);
  PageContent combine(Actor& a, ExprOp op, const PageContent& left, const PageContent& right);
  PageContent not_a_sum(Actor& a, PageContent content);
  void accumulate(Actor& a);
  std::uint64_t next_page(const Link& link) const { return channels_[link.channel].popped[link.slot]; }

  const SpatialProgram& p_;
  SumFindings& findings_;
  std::vector<Actor> actors_;
  std::vector<Channel> channels_;
  std::vector<std::vector<Index>> joints_;  // actors that fire together
  std::vector<Index> queue_;
  std::uint64_t unfinished_ = 0;
};

const Cyclic<Expr>& no_body() {
  static const Cyclic<Expr> none_at_all = {{1, {}}};
  return none_at_all;
}

Execution::Execution(const SpatialProgram& p, SumFindings& findings, const Cluster& cluster)
    : p_(p), findings_(findings) {
  std::vector<StageInstance> list;
  for (StageId s : cluster.stages)
    for (Index i = 0; i < (cluster.one_to_one ? 1 : p.sites_of(p.stage(s)).sites.size()); ++i) list.push_back({s, i});
  std::map<std::pair<std::uint32_t, Index>, Index> actor_of;
  std::map<std::pair<std::uint32_t, Index>, Index> channel_of;
  const auto channel = [&](BufferId buffer, Index instance) {
    const auto [at, fresh] = channel_of.try_emplace({buffer.value, instance}, static_cast<Index>(channels_.size()));
    if (fresh) {
      Channel c;
      c.buffer = buffer;
      c.depth = p.buffer(buffer).depth_pages;
      channels_.push_back(std::move(c));
    }
    return at->second;
  };
  std::map<std::pair<std::uint32_t, Index>, Index> joint_of_collective;
  actors_.reserve(list.size());
  for (const StageInstance& i : list) {
    const Stage& s = p.stage(i.stage);
    const auto index = static_cast<Index>(actors_.size());
    actor_of[{i.stage.value, i.instance}] = index;
    const auto* generic = std::get_if<Generic>(&s.kind);
    Actor a{&s, i.instance, {}, {}, 0,    0, CyclicCursor<Expr>(generic != nullptr ? generic->bodies : no_body()),
            {}, {},         0,  0,  false};
    for (const Port& port : s.ports) {
      const Index c = channel(port.buffer, i.instance);
      Index slot = 0;
      if (port.direction == Direction::output) {
        channels_[c].producer = index;
      } else {
        slot = static_cast<Index>(channels_[c].consumers.size());
        channels_[c].consumers.push_back(index);
      }
      a.ports.push_back({c, slot, CyclicCursor(port.need), CyclicCursor(port.pop), CyclicCursor(port.reserve),
                         CyclicCursor(port.push), CyclicCursor(port.chunk)});
    }
    if (const auto* c = std::get_if<CollectiveStage>(&s.kind)) {
      const auto [at, fresh] =
          joint_of_collective.try_emplace({c->collective.value, i.instance}, static_cast<Index>(joints_.size()));
      if (fresh) joints_.emplace_back();
      joints_[at->second].push_back(index);
      a.links.push_back({0, 0, 0, 1, nullptr, 0, at->second});
    }
    actors_.push_back(std::move(a));
  }
  for (EdgeId id : cluster.crossing) {
    const Edge& e = p.edge(id);
    const bool together = e.handshake != Handshake::token;
    std::map<Index, Index> joint_of_sender;
    for (StageId to : e.to) {
      const auto senders = senders_by_receiver(e, cluster.one_to_one ? 1 : p.sites_of(p.stage(to)).sites.size());
      for (Index r = 0; r < senders.size(); ++r) {
        const auto at = actor_of.find({to.value, r});
        for (Index s : senders[r]) {
          const Index c = channel(e.buffer, s);
          Link link{c, static_cast<Index>(channels_[c].consumers.size()), 0, 1, &e, s, none};
          channels_[c].consumers.push_back(at->second);
          if (e.map.kind == PageMapKind::scatter) {
            const auto& targets = e.map.targets[s];
            link.first = static_cast<Index>(std::find(targets.begin(), targets.end(), r) - targets.begin());
            link.step = static_cast<Index>(targets.size());
          } else if (together &&
                     (e.to.size() > 1 || (e.map.kind == PageMapKind::multicast && e.map.targets[s].size() > 1))) {
            const auto [joint, fresh] = joint_of_sender.try_emplace(s, static_cast<Index>(joints_.size()));
            if (fresh) joints_.emplace_back();
            joints_[joint->second].push_back(at->second);
            link.joint = joint->second;
          }
          actors_[at->second].links.push_back(link);
        }
      }
    }
  }
}

void Execution::start(std::uint64_t parts, std::optional<Index> instance) {
  for (Channel& c : channels_) {
    const std::uint64_t initial = p_.buffer(c.buffer).initial_pages;
    c.reserved = c.pushed = initial;
    c.freed = 0;
    c.popped.assign(c.consumers.size(), 0);
    c.pages.assign(initial, PageContent{});
  }
  unfinished_ = 0;
  queue_.clear();
  for (Actor& a : actors_) {
    if (instance) a.instance = *instance;
    a.fired = 0;
    a.due = a.stage->firings / parts;
    a.value = {};
    a.sum.reset();
    for (std::size_t i = 0; i < a.ports.size(); ++i) {
      const Port& port = a.stage->ports[i];
      a.ports[i].need = CyclicCursor(port.need);
      a.ports[i].pop = CyclicCursor(port.pop);
      a.ports[i].reserve = CyclicCursor(port.reserve);
      a.ports[i].push = CyclicCursor(port.push);
      a.ports[i].chunk = CyclicCursor(port.chunk);
    }
    if (const auto* g = std::get_if<Generic>(&a.stage->kind)) a.body = CyclicCursor(g->bodies);
    for (Link& link : a.links) {
      if (link.edge == nullptr) continue;
      if (instance) link.sender = *instance;
      channels_[link.channel].popped[link.slot] = link.first;
    }
    if (a.due != 0) ++unfinished_;
    a.queued = false;
  }
  for (Index i = 0; i < actors_.size(); ++i) wake(i);
  while (!queue_.empty()) {
    const Index i = queue_.back();
    queue_.pop_back();
    actors_[i].queued = false;
    while (can_fire(actors_[i])) fire(i);
  }
}

void Execution::wake(Index i) {
  Actor& a = actors_[i];
  if (a.queued || a.fired == a.due) return;
  a.queued = true;
  queue_.push_back(i);
}

bool Execution::recv_ready(const Actor& a) const {
  if (a.fired == a.due || a.links.empty()) return false;
  const Link& link = a.links[a.fired % a.links.size()];
  const Channel& source = channels_[link.channel];
  if (source.popped[link.slot] >= source.pushed) return false;
  const Channel& landing = channels_[a.ports[0].channel];
  return landing.depth == 0 || landing.reserved - landing.freed < landing.depth;
}

bool Execution::joint_ready(Index joint) const {
  std::optional<std::uint64_t> page;
  for (Index i : joints_[joint]) {
    const Actor& a = actors_[i];
    if (std::holds_alternative<CollectiveStage>(a.stage->kind)) {
      if (blocked(a)) return false;
      if (page && *page != a.fired) return false;
      page = a.fired;
      continue;
    }
    if (!recv_ready(a)) return false;
    const Link& link = a.links[a.fired % a.links.size()];
    if (link.joint != joint || (page && *page != next_page(link))) return false;
    page = next_page(link);
  }
  return true;
}

bool Execution::can_fire(const Actor& a) const {
  if (a.fired == a.due) return false;
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (!recv_ready(a)) return false;
    const Index joint = a.links[a.fired % a.links.size()].joint;
    return joint == none || joint_ready(joint);
  }
  if (std::holds_alternative<CollectiveStage>(a.stage->kind)) return joint_ready(a.links[0].joint);
  return !blocked(a);
}

// Why the next firing of `a` cannot start.
std::optional<UntimedWait> Execution::blocked(const Actor& a) const {
  const auto wait = [&](bool for_room, const Channel& c, Index on) {
    return UntimedWait{a.stage->id, a.instance, for_room, c.buffer, on == none ? a.stage->id : actors_[on].stage->id,
                       a.fired,     a.due};
  };
  const auto slowest = [&](const Channel& c) {
    Index on = none;
    for (std::size_t s = 0; s < c.popped.size(); ++s)
      if (c.popped[s] <= c.freed) {
        on = c.consumers[s];
        break;
      }
    return on;
  };
  if (a.fired == a.due) return UntimedWait{a.stage->id, a.instance, false, {}, a.stage->id, a.fired, a.due};
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (a.links.empty()) return wait(false, channels_[a.ports[0].channel], none);
    const Link& link = a.links[a.fired % a.links.size()];
    const Channel& source = channels_[link.channel];
    if (source.popped[link.slot] >= source.pushed) return wait(false, source, source.producer);
    const Channel& landing = channels_[a.ports[0].channel];
    if (landing.depth != 0 && landing.reserved - landing.freed >= landing.depth)
      return wait(true, landing, slowest(landing));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < a.ports.size(); ++i) {
    const PortState& port = a.ports[i];
    const Channel& c = channels_[port.channel];
    if (a.stage->ports[i].direction == Direction::input) {
      if (c.pushed - c.popped[port.slot] < port.need.value()) return wait(false, c, c.producer);
    } else if (c.depth != 0 && c.reserved - c.freed + port.reserve.value() > c.depth) {
      return wait(true, c, slowest(c));
    }
  }
  return std::nullopt;
}

PageContent Execution::front(const PortState& port) const {
  const Channel& c = channels_[port.channel];
  return part_of(c.pages[c.popped[port.slot] - c.freed], port.chunk.value());
}

void Execution::push(Channel& c, const PageContent& content, std::uint32_t pages, std::uint32_t reserved) {
  c.reserved += reserved;
  c.pushed += pages;
  if (pages == 0) return;
  if (c.consumers.empty()) {
    c.freed = c.pushed;
    return;
  }
  c.pages.insert(c.pages.end(), pages, content);
  for (Index consumer : c.consumers) wake(consumer);
}

void Execution::pop(Channel& c, Index slot, std::uint64_t pages) {
  if (pages == 0) return;
  c.popped[slot] += pages;
  const std::uint64_t slowest = std::min(*std::min_element(c.popped.begin(), c.popped.end()), c.pushed);
  if (slowest == c.freed) return;
  c.pages.erase(c.pages.begin(), c.pages.begin() + static_cast<std::ptrdiff_t>(slowest - c.freed));
  c.freed = slowest;
  if (c.producer != none) {
    wake(c.producer);
    // Receivers that fire together wait for the last of them.
    for (const Link& link : actors_[c.producer].links)
      if (link.joint != none)
        for (Index other : joints_[link.joint]) wake(other);
  }
}

void Execution::fire_recv(Index i) {
  Actor& a = actors_[i];
  const Link& link = a.links[a.fired % a.links.size()];
  Channel& source = channels_[link.channel];
  const PageContent content = part_of(source.pages[source.popped[link.slot] - source.freed], link.edge->chunk);
  if (++a.fired == a.due) --unfinished_;
  push(channels_[a.ports[0].channel], content, 1, 1);
  pop(source, link.slot, link.step);
}

void Execution::fire(Index i) {
  Actor& a = actors_[i];
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    const Index joint = a.links[a.fired % a.links.size()].joint;
    if (joint == none) {
      fire_recv(i);
    } else {
      const std::vector<Index> members = joints_[joint];
      for (Index member : members) fire_recv(member);
      for (Index member : members) wake(member);
    }
    return;
  }
  if (std::holds_alternative<CollectiveStage>(a.stage->kind)) {
    fire_collective(a.links[0].joint);
    return;
  }
  PageContent result;
  bool moves = true;
  if (const auto* load = std::get_if<Load>(&a.stage->kind)) {
    const Tensor& tensor = p_.tensor(load->tensor);
    const TileBox page = page_at(load->pattern, a.instance, a.fired);
    moves = movable(page, tensor.tiles);
    if (moves) {
      const Index box = findings_.box_of(tensor, page);
      result = {PageContent::Kind::data, load->tensor.value, box, 0, findings_.size(box)};
    }
  } else if (const auto* store = std::get_if<Store>(&a.stage->kind)) {
    const Tensor& tensor = p_.tensor(store->tensor);
    const std::uint64_t phases = firings_per_page(*a.stage);
    const TileBox page = page_at(store->pattern, a.instance, a.fired / phases);
    moves = movable(page, tensor.tiles);
    if (moves) {
      const Chunk chunk = store->chunks.empty() ? Chunk{} : store->chunks[a.fired % phases];
      const Index box = findings_.box_of(tensor, page);
      for (const PortState& port : a.ports)
        if (port.pop.value() > 0) findings_.check_stored(*a.stage, tensor, box, chunk, front(port));
    }
  } else if (std::holds_alternative<MatmulTiles>(a.stage->kind)) {
    accumulate(a);
    result = a.value;
  } else {
    result = evaluate(a);
  }
  if (++a.fired == a.due) --unfinished_;
  for (std::size_t n = 0; n < a.ports.size(); ++n) {
    PortState& port = a.ports[n];
    if (moves) {
      if (a.stage->ports[n].direction == Direction::input)
        pop(channels_[port.channel], port.slot, port.pop.value());
      else
        push(channels_[port.channel], result, port.push.value(), port.reserve.value());
    }
    port.need.advance();
    port.pop.advance();
    port.reserve.advance();
    port.push.advance();
    port.chunk.advance();
  }
  a.body.advance();
}

// out += a b for the pages in front.
void Execution::accumulate(Actor& a) {
  const auto& kind = std::get<MatmulTiles>(a.stage->kind);
  const PageContent left = front(a.ports[0]);
  const PageContent right = front(a.ports[1]);
  const bool first = a.fired % kind.k_pages == 0;
  bool spoilt = !first && a.value.kind == PageContent::Kind::spoilt;
  for (const PageContent* operand : {&left, &right}) {
    spoilt = spoilt || operand->kind == PageContent::Kind::spoilt;
    if (operand->kind != PageContent::Kind::sum || findings_.complete(operand->source)) continue;
    findings_.fault(
        Code::RDU3025, a.stage->id,
        fmt::format("'{}' multiplies a partial sum: {}", a.stage->name, findings_.sums.text(operand->source)));
    spoilt = true;
  }
  if (left.box == none || right.box == none) {
    if (first) a.value = {PageContent::Kind::computed, a.stage->id.value, none, 0, 0};
    return;
  }
  const ElementBox& l = findings_.box(left.box);
  const ElementBox& r = findings_.box(right.box);
  const AxisRange k = l.back();
  const AxisRange k_right = r[r.size() - 2];
  if (k != k_right) {
    findings_.fault(Code::RDU3024, a.stage->id,
                    fmt::format("'{}' multiplies contraction [{},{}) of its left operand with [{},{}) of its right",
                                a.stage->name, k.begin, k.end, k_right.begin, k_right.end));
    spoilt = true;
  }
  ElementBox out(l.begin(), l.end() - 1);
  out.push_back(r.back());
  const Index box = findings_.box_id(out);
  if (right.kind == PageContent::Kind::data) {
    const Tensor& tensor = p_.tensor(TensorId{right.source});
    findings_.contraction(kind.op, tensor.whole.size() == 1 ? tensor.whole[0] : tensor.whole[tensor.whole.size() - 2]);
  }
  if (left.kind == PageContent::Kind::data)
    findings_.contraction(kind.op, p_.tensor(TensorId{left.source}).whole.back());
  if (first) {
    a.sum.reset();
    a.value = {PageContent::Kind::sum, 0, box, 0, findings_.size(box)};
    a.k_begin = k.begin;
    a.k_end = k.end;
  } else if (!spoilt && a.value.box != box) {
    PageContent here = a.value;
    here.box = box;
    here.end = findings_.size(box);
    findings_.fault(Code::RDU3024, a.stage->id,
                    fmt::format("'{}' adds products of {} to products of {}", a.stage->name, findings_.place(here),
                                findings_.place(a.value)));
    spoilt = true;
  }
  if (spoilt) a.value.kind = PageContent::Kind::spoilt;
  const auto close = [&] {
    const SumLeaf leaf{SumLeaf::Kind::partial, kind.op, p_.chip_of(*a.stage), a.k_begin, a.k_end, {}};
    findings_.computes(leaf, a.stage->id);
    const SumId id = findings_.sums.leaf(leaf);
    a.sum = a.sum ? findings_.sums.add(*a.sum, id) : id;
  };
  if (!first) {
    if (k.begin == a.k_end) {
      a.k_end = k.end;
    } else {
      close();
      a.k_begin = k.begin;
      a.k_end = k.end;
    }
  }
  if (a.fired % kind.k_pages == kind.k_pages - 1) {
    close();
    a.value.source = *a.sum;
  }
}

PageContent Execution::not_a_sum(Actor& a, PageContent content) {
  using Kind = PageContent::Kind;
  if (content.kind == Kind::sum && !findings_.complete(content.source)) {
    findings_.fault(Code::RDU3025, a.stage->id,
                    fmt::format("'{}' does more than add to a partial sum: {}", a.stage->name,
                                findings_.sums.text(content.source)));
    content.kind = Kind::spoilt;
  }
  if (content.kind == Kind::sum || content.kind == Kind::data) {
    content.kind = Kind::computed;
    content.source = a.stage->id.value;
  }
  return content;
}

PageContent Execution::combine(Actor& a, ExprOp op, const PageContent& left, const PageContent& right) {
  using Kind = PageContent::Kind;
  if (left.kind == Kind::spoilt) return left;
  if (right.kind == Kind::spoilt) return right;
  if (left.box != none && right.box != none &&
      (left.box != right.box || left.begin != right.begin || left.end != right.end)) {
    findings_.fault(
        Code::RDU3024, a.stage->id,
        fmt::format("'{}' combines {} with {}", a.stage->name, findings_.place(left), findings_.place(right)));
    PageContent out = left;
    out.kind = Kind::spoilt;
    return out;
  }
  if (op != ExprOp::add) {
    const PageContent l = not_a_sum(a, left);
    const PageContent r = not_a_sum(a, right);
    if (l.kind == Kind::spoilt || r.kind == Kind::spoilt) return l.kind == Kind::spoilt ? l : r;
    return l.box != none ? l : r;
  }
  if (left.kind == Kind::nothing) return right;
  if (right.kind == Kind::nothing) return left;
  if (left.kind != Kind::sum && right.kind != Kind::sum) {
    if (left.box == none && right.box == none) return left;
    PageContent out = left.box != none ? left : right;
    out.kind = Kind::computed;
    out.source = a.stage->id.value;
    return out;
  }
  const auto as_sum = [&](const PageContent& c) -> SumId {
    switch (c.kind) {
      case Kind::sum:
        return c.source;
      case Kind::data:
        return findings_.sums.leaf({SumLeaf::Kind::addend,
                                    {},
                                    {},
                                    0,
                                    0,
                                    fmt::format("operand {}", p_.tensor(TensorId{c.source}).operand.value)});
      case Kind::computed:
        return findings_.sums.leaf(
            {SumLeaf::Kind::addend, {}, {}, 0, 0, fmt::format("result of '{}'", p_.stage(StageId{c.source}).name)});
      default:
        return findings_.sums.leaf({SumLeaf::Kind::addend, {}, {}, 0, 0, "constant"});
    }
  };
  PageContent out = left.box != none ? left : right;
  out.kind = Kind::sum;
  out.source = findings_.sums.add(as_sum(left), as_sum(right));
  return out;
}

PageContent Execution::evaluate(Actor& a) {
  std::vector<PageContent> stack;
  for (const ExprNode& node : a.body.value()) {
    switch (node.op) {
      case ExprOp::operand:
        stack.push_back(front(a.ports[node.index]));
        break;
      case ExprOp::accumulator:
        stack.push_back(a.value);
        break;
      case ExprOp::constant: {
        PageContent c;
        if (node.number != 0) c.kind = PageContent::Kind::constant;
        stack.push_back(c);
        break;
      }
      case ExprOp::negate:
        stack.back() = not_a_sum(a, stack.back());
        break;
      default: {
        const PageContent right = stack.back();
        stack.pop_back();
        stack.back() = combine(a, node.op, stack.back(), right);
      }
    }
  }
  a.value = stack.back();
  return a.value;
}

// All members take a page each; what each output gets follows from the collective's kind.
void Execution::fire_collective(Index joint) {
  using Kind = PageContent::Kind;
  const std::vector<Index> members = joints_[joint];
  const auto id = std::get<CollectiveStage>(actors_[members[0]].stage->kind).collective;
  const Collective& collective = p_.collectives[id.value];
  std::vector<std::optional<PageContent>> contributed(collective.members.size());
  for (Index i : members) {
    const Actor& a = actors_[i];
    const auto at = std::find(collective.members.begin(), collective.members.end(), p_.chip_of(*a.stage));
    if (at != collective.members.end())
      contributed[static_cast<std::size_t>(at - collective.members.begin())] = front(a.ports[0]);
  }
  const bool reduces = collective.kind == CollectiveKind::reduce || collective.kind == CollectiveKind::all_reduce ||
                       collective.kind == CollectiveKind::reduce_scatter;
  PageContent sum;
  if (reduces)
    for (const auto& c : contributed)
      if (c) sum = combine(actors_[members[0]], ExprOp::add, sum, *c);
  for (Index i : members) {
    Actor& a = actors_[i];
    if (++a.fired == a.due) --unfinished_;
    for (std::size_t n = 0; n < a.ports.size(); ++n) {
      PortState& port = a.ports[n];
      if (a.stage->ports[n].direction == Direction::input) {
        pop(channels_[port.channel], port.slot, port.pop.value());
      } else {
        PageContent out = sum;
        if (!reduces)
          out = n - 1 < contributed.size() && contributed[n - 1]
                    ? *contributed[n - 1]
                    : PageContent{Kind::computed, a.stage->id.value, none, 0, 0};
        push(channels_[port.channel], out, port.push.value(), port.reserve.value());
      }
      port.need.advance();
      port.pop.advance();
      port.reserve.advance();
      port.push.advance();
      port.chunk.advance();
    }
  }
  for (Index i : members) wake(i);
}

void Execution::explain(UntimedRun& out) const {
  out.stuck += unfinished_;
  if (!out.cycle.empty()) return;
  std::map<Index, std::size_t> seen;
  std::vector<UntimedWait> chain;
  std::map<std::uint32_t, Index> actor_of_stage;  // the least instance that is stuck
  for (Index i = static_cast<Index>(actors_.size()); i-- > 0;)
    if (actors_[i].fired != actors_[i].due) actor_of_stage[actors_[i].stage->id.value] = i;
  if (actor_of_stage.empty()) return;
  Index at = actor_of_stage.begin()->second;
  while (true) {
    const auto [known, fresh] = seen.try_emplace(at, chain.size());
    if (!fresh) {
      out.cycle.assign(chain.begin() + static_cast<std::ptrdiff_t>(known->second), chain.end());
      return;
    }
    std::optional<UntimedWait> wait = blocked(actors_[at]);
    if (!wait) {
      // It could go on but for those that it must fire with.
      const Actor& a = actors_[at];
      const Index joint = a.links.empty() ? none : a.links[a.fired % a.links.size()].joint;
      if (joint == none) break;
      Index other = none;
      for (Index member : joints_[joint])
        if (member != at && actors_[member].fired != actors_[member].due && !seen.contains(member) &&
            blocked(actors_[member])) {
          other = member;
          break;
        }
      if (other == none) break;
      seen.erase(at);
      at = other;
      continue;
    }
    chain.push_back(*wait);
    const auto next = actor_of_stage.find(wait->on.value);
    if (next == actor_of_stage.end()) break;
    at = next->second;
  }
  if (out.starved.empty()) out.starved = chain;
}

}  // namespace

UntimedRun run_untimed(const SpatialProgram& p, std::uint32_t native_tile, std::uint64_t most_steps) {
  UntimedRun out;
  if (p.stages.empty()) return out;
  SumFindings findings(p, native_tile);
  const std::vector<Cluster> clusters = clusters_of(p);

  const auto times = [](std::uint64_t a, std::uint64_t b) {
    return __builtin_mul_overflow(a, b, &a) ? ~std::uint64_t{0} : a;
  };
  const auto plus = [](std::uint64_t a, std::uint64_t b) {
    return __builtin_add_overflow(a, b, &a) ? ~std::uint64_t{0} : a;
  };
  std::vector<std::uint64_t> trip_steps;  // of one run
  std::uint64_t everything = 0;
  for (const Cluster& c : clusters) {
    std::uint64_t steps = 0;
    for (StageId id : c.stages) {
      const Stage& s = p.stage(id);
      // Taking a run up costs, too: a stage that never fires is not free.
      std::uint64_t of_stage = plus(s.firings, c.one_to_one ? 1 : 16);
      for (const Port& port : s.ports)
        if (port.direction == Direction::output)
          of_stage = plus(plus(of_stage, sum_over(port.push, s.firings).value_or(~std::uint64_t{0})),
                          p.buffer(port.buffer).initial_pages);
      steps = plus(steps, times(of_stage, c.one_to_one ? 1 : p.sites_of(s).sites.size()));
    }
    trip_steps.push_back(steps);
    everything = plus(everything, times(steps, c.instances));
  }
  const bool all = everything <= most_steps;
  std::uint64_t left = times(most_steps, 4);

  for (std::size_t n = 0; n < clusters.size(); ++n) {
    const Cluster& c = clusters[n];
    const std::uint64_t parts = all ? 1 : c.repeats;
    const std::uint64_t steps = trip_steps[n] / parts;
    if (steps > most_steps || steps > left) {
      if (!out.undecided) {
        out.undecided = c.stages.front();
        out.undecided_steps = steps;
      }
      continue;
    }
    Execution run(p, findings, c);
    for (std::size_t i = 0; i < c.instances; ++i) {
      if (!all && i != 0 && (i + 1 != c.instances || steps > left)) continue;
      left -= std::min(left, steps);
      run.start(parts, c.one_to_one ? std::optional(static_cast<Index>(i)) : std::nullopt);
      if (run.finished()) continue;
      run.explain(out);
      // Instances have the same rates: what stops one stops all.
      out.stuck += run.unfinished() * (c.instances - 1);
      break;
    }
  }
  if (out.stuck == 0 && !out.undecided) out.sums = findings.faults();
  return out;
}

}  // namespace rdusim
