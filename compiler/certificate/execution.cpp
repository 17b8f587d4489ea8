#include "compiler/certificate/execution.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/certificate/finding.h"

namespace rdusim::certificate {

namespace {

constexpr std::uint64_t longest_table = 4096;
constexpr std::uint64_t most_slots = std::uint64_t{1} << 24;

// Puts a section's net together.
class Weaver {
 public:
  Weaver(const Subject& s, SectionId section, const Extent& extent) : s_(s), section_(section), extent_(extent) {}

  Net weave() {
    if (!add_queues()) {
      Net none;
      none.all_firings = too_many;
      return none;
    }
    for (const Stage& stage : s_.p.stages)
      if (woven(stage) && !std::holds_alternative<Recv>(stage.kind)) add_stage(stage);
    for (const Edge& e : s_.p.edges)
      if (!is_local(e.handshake) && woven(s_.p.stage(e.from))) add_crossings(e);
    for (const Net::Actor& a : net_.actors) net_.all_firings = sum(net_.all_firings, a.firings);
    return std::move(net_);
  }

 private:
  bool woven(const Stage& s) const {
    return s.section == section_ && (extent_.only.empty() || extent_.only[s.id.value]);
  }

  // Instances of a stage that are executed, rising; number k of them has queue k of each buffer.
  std::vector<std::uint32_t> taken(const Stage& s) const {
    std::vector<std::uint32_t> list;
    const auto n = static_cast<std::uint32_t>(s_.instances(s));
    if (extent_.instances.empty())
      for (std::uint32_t i = 0; i < n; ++i) list.push_back(i);
    for (const std::uint32_t i : extent_.instances)
      if (i < n) list.push_back(i);
    return list;
  }

  bool add_queues() {
    std::uint64_t all_slots = 0;
    first_queue_.assign(s_.p.buffers.size(), Net::nobody);
    for (const Stage& s : s_.p.stages) {
      if (!woven(s)) continue;
      for (const Port& port : s.ports) {
        const Buffer& b = s_.p.buffer(port.buffer);
        if (first_queue_[b.id.value] != Net::nobody) continue;
        first_queue_[b.id.value] = static_cast<std::uint32_t>(net_.queues.size());
        std::uint64_t slots = 0;
        for (const Consumer& c : s_.consumers[b.id.value]) slots = sum(slots, slots_of(c));
        const std::vector<std::uint32_t> instances = taken(s);
        all_slots = sum(all_slots, product(sum(slots, 1), instances.size()));
        if (all_slots > most_slots) return false;
        for (const std::uint32_t i : instances) {
          Net::Queue q;
          q.buffer = b.id;
          q.instance = i;
          q.depth = b.depth_pages;
          q.initial = b.initial_pages;
          q.first_consumer = static_cast<std::uint32_t>(net_.actor_of_slot.size());
          q.consumers = static_cast<std::uint32_t>(slots);
          net_.actor_of_slot.resize(net_.actor_of_slot.size() + slots, Net::nobody);
          net_.queues.push_back(std::move(q));
        }
      }
    }
    return true;
  }

  static bool is_joint(const Edge& e) { return e.handshake != Handshake::token || e.map.kind == PageMapKind::scatter; }
  std::size_t most_targets(const Edge& e) const {
    std::size_t n = 1;
    for (const auto& targets : e.map.targets) n = std::max(n, targets.size());
    return e.map.kind == PageMapKind::multicast ? n : 1;
  }
  std::uint64_t slots_of(const Consumer& c) const {
    if (!c.crossing) return 1;
    const Edge& e = s_.p.edge(c.edge);
    return is_joint(e) ? 1 : e.to.size() * most_targets(e);
  }
  std::uint32_t queue(BufferId b, std::uint32_t instance) const {
    if (extent_.instances.empty()) return first_queue_[b.value] + instance;
    const auto at = std::lower_bound(extent_.instances.begin(), extent_.instances.end(), instance);
    return first_queue_[b.value] + static_cast<std::uint32_t>(at - extent_.instances.begin());
  }
  // The slot of consumer number `n` of a buffer, `sub` within it.
  std::uint32_t slot(std::uint32_t q, std::size_t n, std::uint64_t sub = 0) const {
    const auto& consumers = s_.consumers[net_.queues[q].buffer.value];
    std::uint64_t at = net_.queues[q].first_consumer;
    for (std::size_t i = 0; i < n; ++i) at += slots_of(consumers[i]);
    return static_cast<std::uint32_t>(at + sub);
  }
  std::optional<std::size_t> consumer(const Stage& s, std::size_t port) const {
    const auto& consumers = s_.consumers[s.ports[port].buffer.value];
    for (std::size_t i = 0; i < consumers.size(); ++i)
      if (!consumers[i].crossing && consumers[i].stage == s.id && consumers[i].port == port) return i;
    return std::nullopt;
  }

  void add_stage(const Stage& s) {
    const auto first_rates = static_cast<std::uint32_t>(net_.rates.size());
    for (const Port& port : s.ports) {
      const bool in = port.direction == Direction::input;
      net_.rates.push_back({Rate(in ? port.need : port.reserve), Rate(in ? port.pop : port.push)});
    }
    std::map<std::uint32_t, std::vector<std::uint32_t>> sets;
    const auto* load = std::get_if<Load>(&s.kind);
    for (const std::uint32_t i : taken(s)) {
      if (load != nullptr && i < load->multicast_set.size())
        sets[load->multicast_set[i]].push_back(i);
      else
        add_instances(s, {i}, first_rates);
    }
    for (const auto& [number, members] : sets) add_instances(s, members, first_rates);
  }

  void add_instances(const Stage& s, const std::vector<std::uint32_t>& members, std::uint32_t first_rates) {
    Net::Actor a;
    a.stage = s.id;
    a.instance = members.front();
    a.firings = s_.firings(s, members.front()) / extent_.divisor;
    a.first_use = static_cast<std::uint32_t>(net_.uses.size());
    const auto id = static_cast<std::uint32_t>(net_.actors.size());
    for (const std::uint32_t i : members)
      for (std::uint32_t port = 0; port < s.ports.size(); ++port) {
        Net::Use use{queue(s.ports[port].buffer, i), Net::nobody, port, first_rates + port};
        if (s.ports[port].direction == Direction::input) {
          const auto n = consumer(s, port);
          if (!n) continue;  // an input that no edge feeds: the count of its buffer does not balance
          use.slot = slot(use.queue, *n);
          net_.actor_of_slot[use.slot] = id;
        } else {
          net_.queues[use.queue].producer = id;
        }
        net_.uses.push_back(use);
      }
    a.uses = static_cast<std::uint32_t>(net_.uses.size()) - a.first_use;
    net_.actors.push_back(a);
  }

  std::size_t consumer(const Edge& e) const {
    const auto& consumers = s_.consumers[e.buffer.value];
    std::size_t i = 0;
    while (!(consumers[i].crossing && consumers[i].edge == e.id)) ++i;
    return i;
  }

  // Pages that instance `sender` pushes into the source buffer in this extent.
  std::uint64_t offered(const Edge& e, std::uint32_t sender) const {
    const Stage& from = s_.p.stage(e.from);
    std::uint64_t n = 0;
    for (const Port& port : from.ports)
      if (port.direction == Direction::output && port.buffer == e.buffer)
        n = total(port.push, std::holds_alternative<Recv>(from.kind) ? from.firings / extent_.divisor
                                                                     : s_.firings(from, sender) / extent_.divisor);
    return n;
  }

  void add_crossings(const Edge& e) {
    const std::size_t n = consumer(e);
    for (const std::uint32_t i : taken(s_.p.stage(e.from))) {
      const std::uint32_t source = queue(e.buffer, i);
      const std::vector<std::uint32_t> targets = targets_of(e, i);
      if (is_joint(e)) {
        std::vector<std::uint32_t> landings;
        for (const StageId to : e.to)
          for (const std::uint32_t r : targets) add_landing(landings, to, r);
        add_crossing(e, i, source, slot(source, n), landings);
        if (e.map.kind == PageMapKind::scatter) net_.actors.back().scatter = static_cast<std::uint32_t>(targets.size());
        continue;
      }
      for (std::size_t to = 0; to < e.to.size(); ++to)
        for (std::size_t k = 0; k < most_targets(e); ++k) {
          std::vector<std::uint32_t> landings;
          // A sender with fewer targets than others leaves the slots that it does not need to a crossing to nowhere.
          if (k < targets.size()) add_landing(landings, e.to[to], targets[k]);
          add_crossing(e, i, source, slot(source, n, to * most_targets(e) + k), landings);
        }
    }
  }
  void add_landing(std::vector<std::uint32_t>& landings, StageId to, std::uint32_t instance) const {
    for (const Port& port : s_.p.stage(to).ports)
      if (port.direction == Direction::output && first_queue_[port.buffer.value] != Net::nobody)
        landings.push_back(queue(port.buffer, instance));
  }
  void add_crossing(const Edge& e, std::uint32_t sender, std::uint32_t source, std::uint32_t source_slot,
                    const std::vector<std::uint32_t>& landings) {
    Net::Actor a;
    a.crossing = true;
    a.edge = e.id;
    a.stage = e.from;
    a.instance = sender;
    a.firings = offered(e, sender);
    a.first_use = static_cast<std::uint32_t>(net_.uses.size());
    a.uses = static_cast<std::uint32_t>(landings.size()) + 1;
    const auto id = static_cast<std::uint32_t>(net_.actors.size());
    net_.uses.push_back({source, source_slot, 0, 0});
    net_.actor_of_slot[source_slot] = id;
    for (const std::uint32_t landing : landings) {
      net_.uses.push_back({landing, Net::nobody, 0, 0});
      net_.queues[landing].producer = id;
      net_.queues[landing].turn.push_back(id);
    }
    net_.actors.push_back(a);
  }

  const Subject& s_;
  SectionId section_;
  Extent extent_;
  Net net_;
  std::vector<std::uint32_t> first_queue_;  // by buffer id
};

}  // namespace

Rate::Rate(const Cyclic<std::uint32_t>& cycle) : cycle_(&cycle) {
  if (cycle.size() == 1) {
    table_ = {cycle.front().value};
    return;
  }
  if (cycle_length(cycle) > longest_table) return;
  for (const auto& run : cycle) table_.insert(table_.end(), run.repeat, run.value);
}

Net Net::of(const Subject& subject, SectionId section, const Extent& extent) {
  return Weaver(subject, section, extent).weave();
}

std::vector<Net> Net::parts() const {
  std::vector<std::uint32_t> above(actors.size());
  std::iota(above.begin(), above.end(), 0u);
  const auto root = [&](std::uint32_t a) {
    while (above[a] != a) a = above[a] = above[above[a]];
    return a;
  };
  std::map<BufferId, std::uint32_t> of_buffer;
  for (std::uint32_t a = 0; a < actors.size(); ++a)
    for (std::uint32_t u = actors[a].first_use; u < actors[a].first_use + actors[a].uses; ++u) {
      const std::uint32_t own = root(a),
                          other = root(of_buffer.try_emplace(queues[uses[u].queue].buffer, a).first->second);
      above[std::max(own, other)] = std::min(own, other);
    }

  std::vector<Net> parts;
  std::vector<std::uint32_t> part_of(actors.size()), actor_in(actors.size()), queue_in(queues.size(), nobody);
  std::vector<std::uint32_t> rates_in(rates.size(), nobody);
  for (std::uint32_t a = 0; a < actors.size(); ++a) {
    if (root(a) == a) {
      part_of[a] = static_cast<std::uint32_t>(parts.size());
      parts.emplace_back();
    }
    part_of[a] = part_of[root(a)];
    actor_in[a] = static_cast<std::uint32_t>(parts[part_of[a]].actors.size());
    parts[part_of[a]].actors.push_back(actors[a]);
  }
  const auto named = [&](std::uint32_t actor) { return actor == nobody ? nobody : actor_in[actor]; };
  for (std::uint32_t a = 0; a < actors.size(); ++a) {
    Net& part = parts[part_of[a]];
    Actor& own = part.actors[actor_in[a]];
    own.first_use = static_cast<std::uint32_t>(part.uses.size());
    part.all_firings = sum(part.all_firings, own.firings);
    for (std::uint32_t u = actors[a].first_use; u < actors[a].first_use + actors[a].uses; ++u) {
      Use use = uses[u];
      const Queue& q = queues[use.queue];
      if (queue_in[use.queue] == nobody) {
        queue_in[use.queue] = static_cast<std::uint32_t>(part.queues.size());
        part.queues.push_back(q);
        Queue& copy = part.queues.back();
        copy.first_consumer = static_cast<std::uint32_t>(part.actor_of_slot.size());
        copy.producer = named(q.producer);
        for (std::uint32_t& turn : copy.turn) turn = named(turn);
        for (std::uint32_t c = q.first_consumer; c < q.first_consumer + q.consumers; ++c)
          part.actor_of_slot.push_back(named(actor_of_slot[c]));
      }
      if (use.slot != nobody)
        use.slot = part.queues[queue_in[use.queue]].first_consumer + (use.slot - q.first_consumer);
      use.queue = queue_in[use.queue];
      if (!own.crossing) {
        if (rates_in[use.rates] == nobody) {
          rates_in[use.rates] = static_cast<std::uint32_t>(part.rates.size());
          part.rates.push_back(rates[use.rates]);
        }
        use.rates = rates_in[use.rates];
      }
      part.uses.push_back(use);
    }
  }
  return parts;
}

std::uint64_t period_of(const Stage& stage) {
  std::uint64_t period = 1;
  const auto join = [&](std::uint64_t n) {
    period = period == too_many ? period : product(period / std::gcd(period, n), n);
  };
  for (const Port& port : stage.ports)
    for (const std::uint64_t n : {cycle_length(port.need), cycle_length(port.pop), cycle_length(port.reserve),
                                  cycle_length(port.push), cycle_length(port.chunk)})
      join(n);
  if (const auto* m = std::get_if<MatmulTiles>(&stage.kind)) join(m->k_pages);
  if (const auto* g = std::get_if<Generic>(&stage.kind)) join(cycle_length(g->bodies));
  if (const auto* w = std::get_if<Store>(&stage.kind)) join(std::max<std::uint64_t>(w->chunks.size(), 1));
  return period;
}

std::uint64_t repeats_of(const Subject& s, SectionId section) {
  if (!s.uniform) return 1;
  std::uint64_t repeats = 0;  // gcd so far
  for (const Stage& stage : s.p.stages) {
    if (stage.section != section || stage.firings == 0) continue;
    const std::uint64_t period = period_of(stage);
    if (period == too_many || stage.firings % period != 0) return 1;
    repeats = std::gcd(repeats, stage.firings / period);
  }
  return std::max<std::uint64_t>(repeats, 1);
}

Execution::Execution(const Net& net, const std::vector<std::uint64_t>& depths)
    : net_(net),
      state_(net.queues.size()),
      popped_(net.actor_of_slot.size(), 0),
      done_(net.actors.size(), 0),
      is_open_(net.actors.size(), true) {
  for (std::size_t q = 0; q < state_.size(); ++q)
    state_[q].depth = depths.empty() ? net.queues[q].depth : depths[net.queues[q].buffer.value];
  for (std::size_t a = net.actors.size(); a-- > 0;) open_.push_back(static_cast<std::uint32_t>(a));
}

std::optional<std::uint32_t> Execution::blocking_use(std::uint32_t id) const {
  const Net::Actor& a = net_.actors[id];
  const std::uint64_t f = done_[id];
  for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u) {
    if (!a.uses_in(u - a.first_use, f)) continue;
    const Net::Use& use = net_.uses[u];
    const Net::Queue& q = net_.queues[use.queue];
    const State& state = state_[use.queue];
    std::uint64_t pages = a.crossing ? 1 : net_.rates[use.rates].take.at(f);
    if (use.slot != Net::nobody) {
      // What is popped must be there, whatever the port says that it needs.
      if (!a.crossing) pages = std::max<std::uint64_t>(pages, net_.rates[use.rates].free.at(f));
      if (q.initial + state.pushed - popped_[use.slot] < pages) return u;
    } else {
      if (q.turn.size() > 1 && q.turn[state.turn] != id) return u;
      const std::uint64_t held = q.initial + state.reserved - state.least_popped;
      if (pages > 0 && (held > state.depth || state.depth - held < pages)) return u;
    }
  }
  return std::nullopt;
}

bool Execution::can_fire(std::uint32_t id) const {
  return done_[id] < net_.actors[id].firings && !blocking_use(id);
}

void Execution::take(std::uint32_t id) {
  const Net::Actor& a = net_.actors[id];
  const std::uint64_t f = done_[id]++;
  const auto wake = [&](std::uint32_t actor) {
    if (actor == Net::nobody || actor == id || is_open_[actor]) return;
    is_open_[actor] = true;
    open_.push_back(actor);
  };
  for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u) {
    if (!a.uses_in(u - a.first_use, f)) continue;
    const Net::Use& use = net_.uses[u];
    const Net::Queue& q = net_.queues[use.queue];
    State& state = state_[use.queue];
    const std::uint64_t pages = a.crossing ? 1 : net_.rates[use.rates].free.at(f);
    if (use.slot != Net::nobody) {
      if (pages == 0) continue;
      popped_[use.slot] += pages;
      std::uint64_t least = popped_[use.slot];
      for (std::uint32_t c = q.first_consumer; c < q.first_consumer + q.consumers; ++c)
        least = std::min(least, popped_[c]);
      if (least != state.least_popped) {
        state.least_popped = least;
        if (q.turn.empty())
          wake(q.producer);
        else
          wake(q.turn[state.turn]);
      }
    } else {
      state.reserved += a.crossing ? 1 : net_.rates[use.rates].take.at(f);
      state.pushed += pages;
      if (q.turn.size() > 1) {
        state.turn = (state.turn + 1) % static_cast<std::uint32_t>(q.turn.size());
        wake(q.turn[state.turn]);
      }
      if (pages != 0)
        for (std::uint32_t c = q.first_consumer; c < q.first_consumer + q.consumers; ++c) wake(net_.actor_of_slot[c]);
    }
  }
}

std::optional<std::uint64_t> Execution::wanted(BufferId buffer) const {
  std::optional<std::uint64_t> least;
  for (std::uint32_t q = 0; q < net_.queues.size(); ++q) {
    if (net_.queues[q].buffer != buffer) continue;
    const std::uint32_t id = filler(q);
    if (id == Net::nobody || done_[id] == net_.actors[id].firings) continue;
    const Net::Actor& a = net_.actors[id];
    std::uint64_t room = net_.queues[q].initial + state_[q].reserved - state_[q].least_popped;
    for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u)
      if (net_.uses[u].queue == q && net_.uses[u].slot == Net::nobody && a.uses_in(u - a.first_use, done_[id]))
        room = sum(room, a.crossing ? 1 : net_.rates[net_.uses[u].rates].take.at(done_[id]));
    if (room > state_[q].depth && (!least || room < *least)) least = room;
  }
  return least;
}

void Execution::deepen(BufferId buffer, std::uint64_t depth) {
  for (std::uint32_t q = 0; q < net_.queues.size(); ++q) {
    if (net_.queues[q].buffer != buffer) continue;
    state_[q].depth = depth;
    const std::uint32_t id = filler(q);
    if (id == Net::nobody || is_open_[id]) continue;
    is_open_[id] = true;
    open_.push_back(id);
  }
}

std::string Execution::stuck(const Subject& s) const {
  const auto name = [&](std::uint32_t id) {
    const Net::Actor& a = net_.actors[id];
    const std::string what = a.crossing ? fmt::format("edge {} from '{}'", a.edge.value, s.p.stage(a.stage).name)
                                        : fmt::format("'{}'", s.p.stage(a.stage).name);
    return fmt::format("{} ({} of {} firings)", what, done_[id], a.firings);
  };
  std::uint32_t at = Net::nobody;
  for (std::uint32_t a = 0; a < done_.size() && at == Net::nobody; ++a)
    if (done_[a] != net_.actors[a].firings) at = a;
  if (at == Net::nobody) return "nobody waits";
  std::vector<std::uint32_t> path;
  std::vector<std::string> steps;
  while (true) {
    const auto known = std::find(path.begin(), path.end(), at);
    if (known != path.end()) {
      const auto skip = static_cast<std::size_t>(known - path.begin());
      return fmt::format("circular wait: {}",
                         fmt::join(steps.begin() + static_cast<std::ptrdiff_t>(skip), steps.end(), "; "));
    }
    path.push_back(at);
    const auto u = blocking_use(at);
    if (!u) return fmt::format("{} has not finished", name(at));
    const Net::Use& use = net_.uses[*u];
    const Net::Queue& q = net_.queues[use.queue];
    const State& state = state_[use.queue];
    const std::string& buffer = s.p.buffer(q.buffer).name;
    std::uint32_t next = Net::nobody;
    if (use.slot != Net::nobody) {
      steps.push_back(fmt::format("{} wants a page of '{}', which has {}", name(at), buffer,
                                  q.initial + state.pushed - popped_[use.slot]));
      next = q.turn.empty() ? q.producer : q.turn[state.turn];
    } else {
      steps.push_back(fmt::format("{} wants room in '{}' (depth {}), which holds {}", name(at), buffer, state.depth,
                                  q.initial + state.reserved - state.least_popped));
      if (q.turn.size() > 1 && q.turn[state.turn] != at) {
        next = q.turn[state.turn];
      } else {
        for (std::uint32_t c = q.first_consumer; c < q.first_consumer + q.consumers; ++c)
          if (popped_[c] == state.least_popped) next = net_.actor_of_slot[c];
      }
    }
    if (next == Net::nobody || done_[next] == net_.actors[next].firings)
      return fmt::format("{}, and {} will not give it", steps.back(),
                         next == Net::nobody ? std::string("nobody") : name(next));
    at = next;
  }
}

}  // namespace rdusim::certificate
