#include "sim/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/print.h"
#include "compiler/ir/rates.h"
#include "sim/wait_graph.h"

namespace rdusim {

namespace {

std::string range(std::uint32_t low, std::uint32_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
}

const char* text_of(Waiting::For what) {
  switch (what) {
    case Waiting::For::page:
      return "a page";
    case Waiting::For::room:
      return "room";
    case Waiting::For::credit:
      return "a credit";
    case Waiting::For::ready:
      return "ready";
    case Waiting::For::valid:
      return "valid";
    case Waiting::For::barrier:
      return "a barrier";
    case Waiting::For::firing:
      return "an earlier firing";
    case Waiting::For::written:
      return "what it reads to be written";
  }
  return "";
}

std::string place_of_entry(const Waiting& w, const Instances& in) {
  if (w.stage) return in.place(*w.stage);
  if (w.channel) return in.describe(*w.channel);
  return "the machine";
}

void add_wait_notes(Diagnostic& d, const std::vector<std::size_t>& chain, const MachineOutcome& outcome,
                    const Observed& o) {
  const SpatialProgram& p = o.instances.program();
  constexpr std::size_t most = 24;
  for (std::size_t i = 0; i < chain.size() && i < most; ++i) {
    const Waiting& w = outcome.waiting[chain[i]];
    std::string text = w.stage     ? fmt::format("'{}' waits for {}", p.stage(w.stage->stage).name, text_of(w.what))
                       : w.channel ? fmt::format("the channel waits for {}", text_of(w.what))
                                   : fmt::format("waits for {}", text_of(w.what));
    if (w.buffer) {
      const BufferCounts& c = o.handshakes.counts(o.instances.of(*w.buffer));
      text += fmt::format(" in '{}' (reserved {}, pushed {}, popped {}, depth {})", p.buffer(w.buffer->buffer).name,
                          c.reserved, c.pushed, c.popped, p.buffer(w.buffer->buffer).depth_pages);
      if (c.last_pushed != 0) text += fmt::format(", last pushed in cycle {}", c.last_pushed);
      if (c.last_popped != 0) text += fmt::format(", last popped in cycle {}", c.last_popped);
    }
    if (w.stage) {
      const StageStatistics& s = o.statistics.stage(o.instances.of(*w.stage));
      if (s.firings != 0)
        text += fmt::format(", its firing {} ended in cycle {}", s.firings - 1, std::max(s.last, s.engine_free));
    }
    text += fmt::format(", firing {}, since cycle {}; it has {} of {}", w.firing, w.since, w.have, w.want);
    // Everyone who waits for the same thing in the same stage, folded.
    if (w.stage) {
      std::vector<Site> alike;
      for (const Waiting& other : outcome.waiting) {
        if (other.stage && other.stage->stage == w.stage->stage && other.what == w.what)
          alike.push_back(o.instances.site(*other.stage));
      }
      const std::size_t count = alike.size();
      if (count > 1) text += fmt::format("; so do {} instances at {}", count, fold_sites(std::move(alike)));
    }
    const std::string before = w.stage     ? FlightRecorder::text(o.flight.of(*w.stage))
                               : w.channel ? FlightRecorder::text(o.flight.of(*w.channel))
                                           : std::string();
    if (!before.empty()) text += "; before that " + before;
    d.note(place_of_entry(w, o.instances), "{}", text);
  }
  if (chain.size() > most) d.note("the machine", "and {} more", chain.size() - most);
}

// Something under way that never arrives. Everything is quiet, so what has not arrived will not.
struct Loss {
  std::string where;
  std::string what;
};

// Pages that the sender of a channel sent to it and that landed there.
std::pair<std::uint64_t, std::uint64_t> crossed(std::uint32_t channel, Handshake h, const Observed& o) {
  const ChannelAt& at = o.instances.channel_at(channel);
  if (h == Handshake::token) return {o.tokens.counts(channel).taken, o.tokens.counts(channel).landed};
  if (h == Handshake::barrier) return {o.barriers.sent(channel), o.barriers.landed(channel)};
  return {o.instances.turn(channel).of(o.semaphores.ready_consumed(at.edge, at.from)),
          o.semaphores.counts(channel).landed};
}

std::optional<std::string> lost_credit(const Receiver& r, std::uint32_t channel, const Observed& o) {
  const auto& n = o.tokens.counts(channel);
  if (n.returned > n.arrived) return fmt::format("{} credits were returned and {} arrived", n.returned, n.arrived);
  std::uint64_t returned = 0;
  for (std::uint32_t c : r.channels) returned += o.tokens.counts(c).returned;
  const std::uint64_t popped = o.handshakes.counts(r.buffer).popped;
  if (popped > returned) return fmt::format("{} pages were popped and {} credits returned", popped, returned);
  return std::nullopt;
}

std::optional<std::string> lost_signal(const Receiver& r, std::uint32_t channel, const Observed& o) {
  const SpatialProgram& p = o.instances.program();
  const ChannelAt& at = o.instances.channel_at(channel);
  const auto& n = o.semaphores.counts(channel);
  const Turn& turn = o.instances.turn(channel);
  const std::uint64_t consumed = o.semaphores.ready_consumed(at.edge, at.from);
  if (n.valid_raised < consumed && n.landed >= turn.of(n.valid_raised + 1)) {
    return fmt::format("the sender wrote {} pages and the receiver saw valid {} times", consumed, n.valid_raised);
  }
  // There is a page to send and room for it, and the signal that says so was never seen.
  const BufferCounts& landing = o.handshakes.counts(r.buffer);
  const std::uint64_t depth = p.buffer(o.instances.buffer_at(r.buffer).buffer).depth_pages;
  const std::uint64_t there = o.handshakes.counts(o.instances.of(BufferAt{p.edge(at.edge).buffer, at.from})).pushed;
  if (r.channels.size() == 1 && n.ready_raised == consumed && landing.popped + depth > turn.of(consumed) &&
      there > consumed) {
    return fmt::format("the landing buffer has room (popped {}, depth {}) and ready was seen only {} times",
                       landing.popped, depth, n.ready_raised);
  }
  return std::nullopt;
}

std::optional<std::string> lost_at_barrier(std::uint32_t channel, const Observed& o) {
  const ChannelAt& at = o.instances.channel_at(channel);
  const auto& sender = o.barriers.counts(at.edge, at.from, 0);
  const auto& member = o.barriers.counts(at.edge, at.from, 1 + channel - o.instances.first_channel(at.edge, at.from));
  if (sender.left > member.left)
    return fmt::format("the sender left {} generations of the barrier and this member {}", sender.left, member.left);
  for (std::uint32_t m = 0; m < o.barriers.members(at.edge, at.from); ++m) {
    if (o.barriers.counts(at.edge, at.from, m).arrived <= sender.left) return std::nullopt;
  }
  return fmt::format("every member arrived for generation {} of the barrier, and it was not left", sender.left);
}

std::optional<Loss> lost_crossing(const Observed& o) {
  for (const Receiver& r : o.instances.receivers()) {
    const Handshake h = o.instances.program().edge(r.edge).handshake;
    // A receiver takes its senders' pages in turn: what the others sent may lie there and wait for the one whose turn
    // it is.
    std::uint64_t all_landed = 0;
    for (std::uint32_t c : r.channels) all_landed += crossed(c, h, o).second;
    for (std::size_t rank = 0; rank < r.channels.size(); ++rank) {
      const std::uint32_t c = r.channels[rank];
      const auto [sent, landed] = crossed(c, h, o);
      std::optional<std::string> what;
      if (all_landed % r.channels.size() == rank && sent > landed) {
        what = fmt::format("{} pages were sent and {} landed", sent, landed);
      } else if (h == Handshake::token) {
        what = lost_credit(r, c, o);
      } else if (h == Handshake::semaphore) {
        what = lost_signal(r, c, o);
      } else if (h == Handshake::barrier) {
        what = lost_at_barrier(c, o);
      }
      if (!what) continue;
      const ChannelAt& at = o.instances.channel_at(c);
      const std::string before = FlightRecorder::text(o.flight.of(at));
      return Loss{o.instances.describe(at), before.empty() ? *what : *what + "; before that " + before};
    }
  }
  return std::nullopt;
}

// Pages that the firings before `firing` reserve in a buffer, and leave to later ones to push.
std::uint64_t outstanding(const Stage& s, BufferId b, std::uint64_t firing) {
  if (std::holds_alternative<Recv>(s.kind)) return ~std::uint64_t{0};  // what crosses is looked at by channel
  for (const Port& port : s.ports) {
    if (port.direction != Direction::output || port.buffer != b) continue;
    const auto reserved = sum_over(port.reserve, firing), pushed = sum_over(port.push, firing);
    return reserved && pushed ? *reserved - std::min(*reserved, *pushed) : ~std::uint64_t{0};
  }
  return ~std::uint64_t{0};
}

std::optional<Loss> find_loss(const MachineOutcome& outcome, const Observed& o) {
  const SpatialProgram& p = o.instances.program();
  if (auto loss = lost_crossing(o)) return loss;
  // What a stage reserved, it has pushed, but for what its next firings are to push: unless the page was lost.
  std::vector<std::optional<std::uint64_t>> next(o.instances.stages());
  for (const Waiting& w : outcome.waiting) {
    if (w.stage) next[o.instances.of(*w.stage)] = w.firing;
  }
  for (std::uint32_t n = 0; n < o.instances.buffers(); ++n) {
    const BufferAt at = o.instances.buffer_at(n);
    const BufferEnds& ends = o.instances.ends(at.buffer);
    const BufferCounts& c = o.handshakes.counts(n);
    if (!ends.producer || at.instance >= o.instances.instances(*ends.producer) || c.reserved <= c.pushed) continue;
    const Stage& producer = p.stage(*ends.producer);
    const auto& firing = next[o.instances.of(StageAt{producer.id, at.instance})];
    if (firing && c.reserved - c.pushed <= outstanding(producer, at.buffer, *firing)) continue;
    return Loss{
        o.instances.describe(at),
        fmt::format("'{}' {}; it reserved {} pages and pushed {}", producer.name,
                    firing ? fmt::format("waits with firing {}", *firing) : "has finished", c.reserved, c.pushed)};
  }
  return std::nullopt;
}

std::string make_dot(const MachineOutcome& outcome, const WaitGraph& graph, const std::vector<std::size_t>& chain) {
  std::string dot = "digraph waits {\n  rankdir=LR;\n  node [shape=box];\n";
  std::vector<bool> guilty(graph.nodes());
  for (std::size_t i : chain) {
    if (const auto n = graph.node(outcome.waiting[i])) guilty[*n] = true;
  }
  std::map<std::size_t, bool> drawn;
  for (const Waiting& w : outcome.waiting) {
    const auto n = graph.node(w);
    if (!n) continue;
    drawn.emplace(*n, true);
    for (std::size_t s : graph.suppliers(w)) drawn.emplace(s, true);
  }
  for (const auto& [n, unused] : drawn) {
    dot += fmt::format("  n{} [label=\"{}\"{}];\n", n, graph.name(n), guilty[n] ? ", color=red, fontcolor=red" : "");
  }
  for (const Waiting& w : outcome.waiting) {
    const auto n = graph.node(w);
    if (!n) continue;
    for (std::size_t s : graph.suppliers(w)) {
      dot += fmt::format("  n{} -> n{} [label=\"{}\"{}];\n", *n, s, text_of(w.what),
                         guilty[*n] && guilty[s] ? ", color=red" : "");
    }
  }
  return dot + "}\n";
}

}  // namespace

std::string fold_sites(std::vector<Site> sites, std::size_t most) {
  std::sort(sites.begin(), sites.end());
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  if (sites.empty()) return "";
  Site low = sites.front();
  Site high = sites.front();
  for (const Site& s : sites) {
    low.chip.value = std::min(low.chip.value, s.chip.value), high.chip.value = std::max(high.chip.value, s.chip.value);
    low.at.x = std::min(low.at.x, s.at.x), high.at.x = std::max(high.at.x, s.at.x);
    low.at.y = std::min(low.at.y, s.at.y), high.at.y = std::max(high.at.y, s.at.y);
  }
  const std::uint64_t box =
      std::uint64_t{high.chip.value - low.chip.value + 1} * (high.at.x - low.at.x + 1) * (high.at.y - low.at.y + 1);
  if (box == sites.size()) {
    return fmt::format("chip{}.site({},{})", range(low.chip.value, high.chip.value), range(low.at.x, high.at.x),
                       range(low.at.y, high.at.y));
  }
  std::string out;
  for (std::size_t i = 0; i < sites.size() && i < most; ++i) out += (i == 0 ? "" : ", ") + to_string(sites[i]);
  if (sites.size() > most) out += fmt::format(" and {} more", sites.size() - most);
  return out;
}

Diagnosis diagnose(const MachineOutcome& outcome, const Observed& o) {
  const Instances& in = o.instances;
  const SpatialProgram& p = in.program();
  const WaitGraph graph(outcome, o);
  Diagnosis d;
  const auto begin = [&](StuckKind kind, Code code, std::string where, std::string message) {
    d.kind = kind;
    d.diagnostic = Diagnostic{
        code, Severity::error, fmt::format("cycle {}, {}", outcome.cycles, where), std::move(message), {}, {}};
  };
  const auto finish = [&]() {
    add_wait_notes(d.diagnostic, d.chain, outcome, o);
    d.dot = make_dot(outcome, graph, d.chain);
    return d;
  };

  // Walks from each blocked node, depth first, in order of number, until a cycle closes or the wait ends at one that
  // does not wait.
  enum class Colour : std::uint8_t { white, grey, black };
  struct Dead {
    std::size_t entry = 0;                // who waits for it
    std::optional<std::size_t> supplier;  // the node that finished; none where nobody could ever help
    std::vector<std::size_t> chain;
  };
  std::optional<Dead> dead;
  std::vector<std::size_t> cycle;
  std::vector<Colour> colour(graph.nodes(), Colour::white);
  struct Frame {
    std::size_t node;
    std::size_t entry;
    std::vector<std::pair<std::size_t, std::optional<std::size_t>>> next;  // (entry of outcome.waiting, supplier)
    std::size_t at = 0;
  };
  const auto frame = [&](std::size_t node) {
    Frame f{node, graph.entries(node).front(), {}, 0};
    for (std::size_t entry : graph.entries(node)) {
      const auto suppliers = graph.suppliers(outcome.waiting[entry]);
      // Who waits for an earlier firing of his own is held up by what that waits for.
      if (suppliers.empty() && outcome.waiting[entry].what != Waiting::For::firing)
        f.next.emplace_back(entry, std::nullopt);
      for (std::size_t s : suppliers) f.next.emplace_back(entry, s);
    }
    return f;
  };
  for (std::size_t root = 0; root < graph.nodes() && !(dead && !cycle.empty()); ++root) {
    if (!graph.waits(root) || colour[root] != Colour::white) continue;
    std::vector<Frame> stack{frame(root)};
    colour[root] = Colour::grey;
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.at == f.next.size()) {
        colour[f.node] = Colour::black;
        stack.pop_back();
        continue;
      }
      const auto [entry, supplier] = f.next[f.at++];
      f.entry = entry;
      if (!supplier || !graph.waits(*supplier)) {
        if (!dead) {
          dead = Dead{entry, supplier, {}};
          for (const Frame& g : stack) dead->chain.push_back(g.entry);
        }
      } else if (colour[*supplier] == Colour::grey) {
        if (cycle.empty()) {
          bool inside = false;
          for (const Frame& g : stack) {
            inside = inside || g.node == *supplier;
            if (inside) cycle.push_back(g.entry);
          }
        }
      } else if (colour[*supplier] == Colour::white) {
        colour[*supplier] = Colour::grey;
        stack.push_back(frame(*supplier));
      }
    }
  }

  if (const auto loss = find_loss(outcome, o)) {
    begin(StuckKind::lost_token, Code::RDU7020, loss->where,
          fmt::format("something was lost on the way: {}", loss->what));
    d.chain = dead ? dead->chain : cycle;
    d.diagnostic.suggest("a hand-off loses what it is given, and no depth cures it");
    return finish();
  }

  if (dead) {
    d.chain = dead->chain;
    const Waiting& w = outcome.waiting[dead->entry];
    // A collective whose member finished without giving its part.
    for (const Collective& c : p.collectives) {
      for (std::size_t m = 0; m < c.members.size() && m < c.bytes.size(); ++m) {
        const Bytes given = o.collectives.contributed(c.id, m);
        if (given >= c.bytes[m] || c.members.size() < 2) continue;
        bool member_waits = false;
        for (const Waiting& other : outcome.waiting) {
          // A member that waits for work of its own is held up; one that has finished it is missing.
          if (other.stage && in.site(*other.stage).chip == c.members[m] &&
              p.stage(other.stage->stage).collective != c.id)
            member_waits = true;
        }
        if (member_waits) continue;
        begin(StuckKind::missing_participant, Code::RDU7021, fmt::format("chip{}", c.members[m].value),
              fmt::format("chip{} contributed {} of {} bytes to collective '{}' and has nothing left to do",
                          c.members[m].value, given, c.bytes[m], c.name));
        d.diagnostic.suggest("every member of '{}' must push its whole contribution", c.name);
        return finish();
      }
    }
    if (w.what == Waiting::For::barrier) {
      begin(StuckKind::missing_participant, Code::RDU7021, place_of_entry(w, in),
            "a member of the barrier has finished and does not arrive");
      return finish();
    }
    const std::string giver =
        dead->supplier ? graph.name(*dead->supplier) + " has finished" : std::string("nobody gives it");
    std::string why = fmt::format("it has {} of {}: {}", w.have, w.want, giver);
    if (w.buffer && w.stage && w.what == Waiting::For::page && dead->supplier) {
      const BufferCounts& c = o.handshakes.counts(in.of(*w.buffer));
      why = fmt::format("'{}' wants page {} of '{}', and {} finished after {}", p.stage(w.stage->stage).name,
                        c.popped + w.want, p.buffer(w.buffer->buffer).name, graph.name(*dead->supplier), c.pushed);
    }
    begin(StuckKind::starvation, Code::RDU7019, place_of_entry(w, in),
          fmt::format("firing {} waits for {} that will not come: {}", w.firing, text_of(w.what), why));
    if (w.buffer) {
      const BufferCounts& c = o.handshakes.counts(in.of(*w.buffer));
      d.diagnostic.suggest("'{}' is given {} pages and {} were taken; make producer and consumer agree on the count",
                           p.buffer(w.buffer->buffer).name, c.pushed, c.popped);
    }
    return finish();
  }

  d.chain = cycle;
  std::string where = "the machine";
  if (!cycle.empty()) where = place_of_entry(outcome.waiting[cycle.front()], in);
  begin(StuckKind::circular_wait, Code::RDU7018, where,
        cycle.empty() ? fmt::format("{} instances wait and no progress is possible", outcome.waiting.size())
                      : fmt::format("{} wait for each other in a cycle", cycle.size()));
  for (std::size_t i : cycle) {
    const Waiting& w = outcome.waiting[i];
    if (w.what == Waiting::For::room && w.buffer) d.shallow.push_back(w.buffer->buffer);
    if ((w.what == Waiting::For::credit || w.what == Waiting::For::ready) && w.channel) {
      const Receiver& r = in.receivers()[in.receiver_of(in.of(*w.channel))];
      d.shallow.push_back(in.buffer_at(r.buffer).buffer);
    }
  }
  std::sort(d.shallow.begin(), d.shallow.end());
  d.shallow.erase(std::unique(d.shallow.begin(), d.shallow.end()), d.shallow.end());
  // The smallest change that could break it: the buffer of the cycle in which room is short by least.
  std::optional<BufferAt> shallow;
  std::uint64_t short_by = ~std::uint64_t{0};
  for (std::size_t i : cycle) {
    const Waiting& w = outcome.waiting[i];
    if (w.what != Waiting::For::room || !w.buffer || w.want <= w.have || w.want - w.have >= short_by) continue;
    shallow = w.buffer;
    short_by = w.want - w.have;
  }
  if (shallow) {
    const Buffer& b = p.buffer(shallow->buffer);
    d.diagnostic.suggest("buffer '{}' has depth {} and lacks {} page{}: try depth {}", b.name, b.depth_pages, short_by,
                         short_by == 1 ? "" : "s", b.depth_pages + short_by);
  }
  return finish();
}

}  // namespace rdusim
