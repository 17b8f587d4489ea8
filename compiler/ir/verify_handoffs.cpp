#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "compiler/ir/print.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/rules.h"
#include "compiler/target/topology.h"

namespace rdusim {
namespace {

bool same_sites(const SpatialProgram& p, GroupId a, GroupId b) {
  return a == b || p.group(a).sites == p.group(b).sites;
}

std::size_t instances(const SpatialProgram& p, const Stage& s) {
  return p.sites_of(s).sites.size();
}

struct Shape {
  std::size_t least_inputs, most_inputs, least_outputs, most_outputs;
};

Shape shape_of(const SpatialProgram& p, const Stage& stage) {
  constexpr std::size_t many = 4096;
  struct Visitor {
    const SpatialProgram& p;
    const Stage& stage;
    Shape operator()(const Load& k) const {
      const std::size_t inputs = k.indexed ? 1 : 0;
      return {inputs, inputs, 1, 1};
    }
    Shape operator()(const Store&) const { return {1, many, 0, 0}; }
    Shape operator()(const MatmulTiles&) const { return {2, 2, 1, 1}; }
    Shape operator()(const Generic&) const { return {1, many, 1, many}; }
    Shape operator()(const Recv&) const { return {0, 0, 1, 1}; }
    Shape operator()(const CollectiveStage& k) const {
      const Collective& c = p.collectives[k.collective.value];
      const bool is_given = c.kind == CollectiveKind::broadcast && !c.members.empty() &&
                            p.chip_of(stage) != c.members.front();  // what the first member has
      const std::size_t inputs = is_given ? 0 : 1;
      return {inputs, inputs, 1 - inputs, many};
    }
  };
  return std::visit(Visitor{p, stage}, stage.kind);
}

std::string crossing_kinds(const Target& t) {
  static constexpr std::array names = {"Token", "Semaphore", "Barrier"};
  std::string text;
  for (CrossingHandshake c : t.crossing)
    text += (text.empty() ? "" : ", ") + std::string(names[static_cast<std::size_t>(c)]);
  return text.empty() ? "none" : text;
}

// Calls f(sender, receiver instance) for each pair that `e` joins with its to-stage `to`, until f says to stop.
template <class F>
void for_each_pair(const Edge& e, std::size_t receivers, F&& f) {
  if (e.map.kind == PageMapKind::one_to_one) {
    for (std::uint32_t i = 0; i < receivers; ++i)
      if (!f(i, i)) return;
    return;
  }
  for (std::uint32_t i = 0; i < e.map.targets.size(); ++i)
    for (std::uint32_t r : e.map.targets[i])
      if (!f(i, r)) return;
}

}  // namespace

// RDU3027: a stage has the ports that its kind asks for, inputs first, each bound to a buffer of its sites; a load or
// store to a tensor of its chip; a Generic's bodies and maps fit its ports and are of a form that the machine takes.
void check_ports(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Stage& st : p.stages) {
    const auto wrong = [&](const std::string& what) -> Diagnostic& {
      return out.error(Code::RDU3027, s.where, "{}: {}", place_of(st), what);
    };
    std::size_t inputs = 0;
    bool ordered = true;
    for (const Port& port : st.ports) {
      if (port.direction != Direction::input) continue;
      ordered = ordered && &st.ports[inputs] == &port;
      ++inputs;
    }
    const std::size_t outputs = st.ports.size() - inputs;
    const Shape shape = shape_of(p, st);
    if (inputs < shape.least_inputs || inputs > shape.most_inputs || outputs < shape.least_outputs ||
        outputs > shape.most_outputs) {
      wrong(fmt::format("a {} with {} inputs and {} outputs", kind_name(st), inputs, outputs));
      continue;
    }
    if (!ordered) {
      wrong("an output port stands before an input port");
      continue;
    }
    for (std::size_t i = 0; i < st.ports.size(); ++i) {
      const Port& port = st.ports[i];
      for (std::size_t j = 0; j < i; ++j)
        if (st.ports[j].buffer == port.buffer && st.ports[j].direction == port.direction)
          wrong(fmt::format("ports {} and {} are both bound to '{}'", j, i, p.buffer(port.buffer).name));
      // A landing buffer elsewhere, and an input that a local edge brings from elsewhere, have rules of their own.
      if (std::holds_alternative<Recv>(st.kind) || same_sites(p, st.group, p.buffer(port.buffer).group)) continue;
      const auto& local = s.uses_of(port.buffer).local;
      if (port.direction == Direction::input && std::any_of(local.begin(), local.end(), [&](EdgeId e) {
            const auto& to = p.edge(e).to;
            return std::find(to.begin(), to.end(), st.id) != to.end();
          }))
        continue;
      wrong(fmt::format("port {} is bound to a buffer of other sites", i))
          .note(place_of(st), "on {}", sites_text(p, st.group))
          .note(place_of(p.buffer(port.buffer)), "on {}", sites_text(p, p.buffer(port.buffer).group));
    }
    const auto check_tensor = [&](TensorId id) {
      const Tensor& t = p.tensor(id);
      if (t.chip != p.chip_of(st))
        wrong(fmt::format("it is on chip {}, and '{}' lies in the memory of chip {}", p.chip_of(st).value, t.name,
                          t.chip.value));
    };
    if (const auto* k = std::get_if<Load>(&st.kind)) {
      check_tensor(k->tensor);
      if (k->indexed && (p.tensor(k->tensor).shape.size() != 2 || k->pattern.heads != 1 || !k->multicast_set.empty()))
        wrong("its rows are indexed, and it reads no matrix, or by heads, or for several sites");
    }
    if (const auto* k = std::get_if<Store>(&st.kind)) check_tensor(k->tensor);
    if (const auto* g = std::get_if<Generic>(&st.kind)) {
      for (const std::string& what : body_faults(*g, inputs)) wrong(what);
    }
  }
}

// RDU3030, second half: pop <= need in every phase; no more pushed than was reserved, and as much over a cycle; the
// rates are those that the stage's kind asks for.
void check_rates(const Subject& s, Diagnostics& out) {
  for (const Stage& st : s.p.stages) {
    const auto wrong = [&](const std::string& what) {
      out.error(Code::RDU3030, s.where, "{}: {}", place_of(st), what);
    };
    const auto* store = std::get_if<Store>(&st.kind);
    const auto* matmul = std::get_if<MatmulTiles>(&st.kind);
    const auto* generic = std::get_if<Generic>(&st.kind);
    const bool rows = generic != nullptr && by_row(*generic), joins = rows && joins_rows(*generic);
    const std::uint64_t row_pages = generic != nullptr ? cycle_length(generic->bodies) : 1;
    const auto* load = std::get_if<Load>(&st.kind);
    const bool indexed = load != nullptr && load->indexed;
    const bool one_a_firing = std::holds_alternative<Load>(st.kind) || std::holds_alternative<Recv>(st.kind) ||
                              std::holds_alternative<CollectiveStage>(st.kind);
    struct State {
      CyclicCursor<std::uint32_t> need, pop, reserve, push;
      std::uint64_t claimed = 0;
    };
    std::vector<State> ports;
    for (const Port& port : st.ports)
      ports.push_back(
          {CyclicCursor(port.need), CyclicCursor(port.pop), CyclicCursor(port.reserve), CyclicCursor(port.push), 0});
    std::optional<CyclicCursor<Expr>> body;
    if (generic != nullptr) body.emplace(generic->bodies);
    // hyperperiod() gave a number: check_cycles said so.
    const std::uint64_t period = *hyperperiod(st);
    if (store != nullptr && period != firings_per_page(st)) {
      wrong(fmt::format("its rates repeat after {} phases, and it has {} chunks", period, firings_per_page(st)));
      continue;
    }
    bool ok = true;
    for (std::uint64_t phase = 0; phase < period && ok; ++phase) {
      std::uint64_t popping = 0;
      for (std::size_t i = 0; i < ports.size() && ok; ++i) {
        State& port = ports[i];
        const bool input = st.ports[i].direction == Direction::input;
        const std::uint32_t need = port.need.value(), pop = port.pop.value(), reserve = port.reserve.value(),
                            push = port.push.value();
        const auto say = [&](const std::string& what) {
          wrong(fmt::format("port {}, phase {}: {}", i, phase, what));
          ok = false;
        };
        port.claimed += reserve;
        if (input ? reserve != 0 || push != 0 : need != 0 || pop != 0) {
          say(input ? "an input reserves or pushes" : "an output needs or pops");
        } else if (pop > need) {
          say(fmt::format("pops {} pages and needs {}", pop, need));
        } else if (push > port.claimed) {
          say(fmt::format("pushes {} pages, and {} are reserved", push, port.claimed));
        } else if (one_a_firing && (input ? pop != 1 && !indexed : push != 1 || reserve != 1)) {
          say(fmt::format("a {} moves one page a firing", kind_name(st)));
        } else if (indexed && input && need != 1) {
          say("a load whose rows are indexed needs a page of indices every firing");
        } else if (matmul != nullptr && input && need == 0) {
          say("a matmul takes a page of each operand every firing");
        } else if (matmul != nullptr && st.ports[i].chunk != always(Chunk{})) {
          say("a matmul takes whole pages");
        } else if (matmul != nullptr && !input && push != (phase % matmul->k_pages + 1 == matmul->k_pages ? 1u : 0u)) {
          say(fmt::format("a matmul of {} pages along the contraction pushes one page after the last",
                          matmul->k_pages));
        } else if (rows && st.ports[i].chunk != always(Chunk{})) {
          say("a stage that works by row takes whole pages");
        } else if (joins && !input && push != (phase % row_pages + 1 == row_pages ? 1u : 0u)) {
          say(fmt::format("rows of {} pages are joined into one page, pushed after the last", row_pages));
        } else {
          port.claimed -= push;
          popping += pop;
        }
      }
      if (!ok) break;
      if (store != nullptr && popping != 1) {
        wrong(fmt::format("phase {}: a store takes one page, and its ports pop {}", phase, popping));
        break;
      }
      if (body) {
        for (const ExprNode& node : body->value())
          if (node.op == ExprOp::operand && ports[node.index].need.value() == 0 && ok) {
            wrong(fmt::format("phase {}: its body reads port {}, which needs no page then", phase, node.index));
            ok = false;
          }
        body->advance();
      }
      for (State& port : ports) {
        port.need.advance();
        port.pop.advance();
        port.reserve.advance();
        port.push.advance();
      }
    }
    for (std::size_t i = 0; i < ports.size() && ok; ++i)
      if (ports[i].claimed != 0)
        wrong(fmt::format("port {} reserves {} pages in a cycle of {} phases that it does not push", i,
                          ports[i].claimed, period));
  }
}

// RDU3028: the groups that an edge joins fit its page map, and the members of a multicast set read the same pages.
void check_page_maps(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Edge& e : p.edges) {
    const auto wrong = [&](const std::string& what) { out.error(Code::RDU3028, s.where, "{}: {}", place_of(e), what); };
    const std::size_t senders = instances(p, p.stage(e.from));
    const bool one_to_one = e.map.kind == PageMapKind::one_to_one;
    if (is_local(e.handshake) && !one_to_one) {
      wrong("a local hand-off joins each instance with its own site");
      continue;
    }
    if (one_to_one ? !e.map.targets.empty() : e.map.targets.size() != senders) {
      wrong(fmt::format("its map lists {} senders, and '{}' has {}", e.map.targets.size(), p.stage(e.from).name,
                        senders));
      continue;
    }
    for (StageId to : e.to) {
      const std::size_t receivers = instances(p, p.stage(to));
      if (one_to_one) {
        if (receivers != senders)
          wrong(fmt::format("one to one from {} instances of '{}' to {} of '{}'", senders, p.stage(e.from).name,
                            receivers, p.stage(to).name));
        continue;
      }
      std::vector<std::uint32_t> last_sender(receivers, static_cast<std::uint32_t>(-1));
      bool ok = true;
      for (std::uint32_t i = 0; i < senders && ok; ++i) {
        const auto& targets = e.map.targets[i];
        ok = !targets.empty() && (e.map.kind != PageMapKind::gather || targets.size() == 1);
        for (std::uint32_t r : targets) {
          ok = ok && r < receivers && last_sender[r] != i;
          if (!ok) break;
          last_sender[r] = i;
        }
        if (!ok)
          wrong(fmt::format("instance {} of '{}' sends to no instance, to one twice, or to one that '{}' does not have",
                            i, p.stage(e.from).name, p.stage(to).name));
      }
      const auto idle = std::find(last_sender.begin(), last_sender.end(), static_cast<std::uint32_t>(-1));
      if (ok && idle != last_sender.end())
        wrong(fmt::format("no one sends to instance {} of '{}'", idle - last_sender.begin(), p.stage(to).name));
    }
  }
  for (const Stage& st : p.stages) {
    const auto* load = std::get_if<Load>(&st.kind);
    if (load == nullptr || load->multicast_set.empty()) continue;
    std::map<std::uint32_t, std::size_t> first_of_set;
    for (std::size_t i = 0; i < load->multicast_set.size(); ++i) {
      const std::size_t other = first_of_set.try_emplace(load->multicast_set[i], i).first->second;
      if (load->pattern.first[i] != load->pattern.first[other]) {
        out.error(Code::RDU3028, s.where, "{}: instances {} and {} share multicast set {} and read different pages",
                  place_of(st), other, i, load->multicast_set[i]);
        break;
      }
    }
  }
}

// RDU3004: a Fifo buffer has exactly one producing and one consuming edge; inter-site edges count for neither. That is:
// one stage pushes into it, and whoever takes pages on its site does so through one local edge, which has them all; a
// buffer that is only sent elsewhere needs no local edge.
void check_buffer_ends(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Buffer& b : p.buffers) {
    const BufferUses& u = s.uses_of(b.id);
    const auto report = [&](const std::string& what) {
      Diagnostic& d = out.error(Code::RDU3004, s.where, "{}: {}", place_of(b), what);
      for (const auto& end : u.producers) d.note(place_of(p.stage(end.stage)), "pushes into it");
      for (const auto& end : u.consumers) d.note(place_of(p.stage(end.stage)), "takes pages from it");
      for (EdgeId e : u.local) d.note(place_of(p.edge(e)), "joins it locally");
    };
    if (u.producers.size() != 1) {
      report(fmt::format("{} stages push into it", u.producers.size()));
    } else if (u.local.size() > 1) {
      report(fmt::format("{} local edges consume it", u.local.size()));
    } else if (u.local.empty() && !u.consumers.empty()) {
      report("no local edge consumes it");
    } else if (u.local.empty() && u.crossing.empty()) {
      report("no edge consumes it");
    } else if (!u.local.empty()) {
      const auto& to = p.edge(u.local[0]).to;
      for (const auto& end : u.consumers)
        if (std::find(to.begin(), to.end(), end.stage) == to.end()) {
          report(fmt::format("'{}' takes pages from it and edge {} does not name it", p.stage(end.stage).name,
                             u.local[0].value));
          break;
        }
    }
  }
}

// RDU3005: data that crosses lands in a buffer that the receiving site owns, named by a Recv.
void check_landings(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    for (StageId to : e.to) {
      const auto* recv = std::get_if<Recv>(&p.stage(to).kind);
      if (recv == nullptr || recv->edge != e.id)
        out.error(Code::RDU3005, s.where, "{} crosses to '{}', which is not its Recv", place_of(e), p.stage(to).name)
            .note(place_of(p.stage(e.from)), "on {}", sites_text(p, p.stage(e.from).group))
            .note(place_of(p.stage(to)), "a {} on {}", kind_name(p.stage(to)), sites_text(p, p.stage(to).group));
    }
  }
  for (const Stage& st : p.stages) {
    const auto* recv = std::get_if<Recv>(&st.kind);
    if (recv == nullptr) continue;
    const Edge& e = p.edge(recv->edge);
    const auto named = std::count(e.to.begin(), e.to.end(), st.id);
    if (is_local(e.handshake) || named != 1)
      out.error(Code::RDU3005, s.where, "{} receives from {}, which {}", place_of(st), place_of(e),
                is_local(e.handshake) ? "is local" : fmt::format("names it {} times", named));
    const Buffer& landing = p.buffer(st.ports[0].buffer);
    if (!same_sites(p, st.group, landing.group))
      out.error(Code::RDU3005, s.where, "{} lands pages in '{}', which other sites own", place_of(st), landing.name)
          .note(place_of(st), "on {}", sites_text(p, st.group))
          .note(place_of(landing), "on {}", sites_text(p, landing.group));
  }
}

// RDU3031: an edge's buffer is an output of its from-stage and an input of its to-stages (crossing: of none of them;
// what they are is RDU3005's).
void check_edge_ends(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const auto binds = [&](StageId st, BufferId b, Direction d) {
    const auto& ports = p.stage(st).ports;
    return std::any_of(ports.begin(), ports.end(),
                       [&](const Port& port) { return port.buffer == b && port.direction == d; });
  };
  for (const Edge& e : p.edges) {
    if (!binds(e.from, e.buffer, Direction::output))
      out.error(Code::RDU3031, s.where, "{}: '{}' is no output of '{}'", place_of(e), p.buffer(e.buffer).name,
                p.stage(e.from).name);
    for (std::size_t i = 0; i < e.to.size(); ++i) {
      if (std::find(e.to.begin(), e.to.begin() + static_cast<std::ptrdiff_t>(i), e.to[i]) !=
          e.to.begin() + static_cast<std::ptrdiff_t>(i))
        out.error(Code::RDU3031, s.where, "{} names '{}' twice", place_of(e), p.stage(e.to[i]).name);
      else if (is_local(e.handshake) && !binds(e.to[i], e.buffer, Direction::input))
        out.error(Code::RDU3031, s.where, "{}: '{}' is no input of '{}'", place_of(e), p.buffer(e.buffer).name,
                  p.stage(e.to[i]).name);
    }
  }
}

// RDU3006: a local hand-off joins stages of one site.
void check_local_edges(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Edge& e : p.edges) {
    if (!is_local(e.handshake)) continue;
    for (StageId to : e.to)
      if (!same_sites(p, p.stage(e.from).group, p.stage(to).group))
        out.error(Code::RDU3006, s.where, "{} is a local hand-off ({}) between different sites", place_of(e),
                  name_of(e.handshake))
            .note(place_of(p.stage(e.from)), "from {}", sites_text(p, p.stage(e.from).group))
            .note(place_of(p.stage(to)), "to {}", sites_text(p, p.stage(to).group))
            .suggest("use a crossing hand-off: this target has {}", crossing_kinds(s.target));
  }
}

// RDU3007: a crossing hand-off joins stages of different sites.
void check_crossing_edges(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    const Group& from = p.sites_of(p.stage(e.from));
    for (StageId to : e.to) {
      const Group& at = p.sites_of(p.stage(to));
      if (from.sites.front().chip != at.sites.front().chip) continue;
      for_each_pair(e, at.sites.size(), [&](std::uint32_t i, std::uint32_t r) {
        if (from.sites[i] != at.sites[r]) return true;
        out.error(Code::RDU3007, s.where, "{} is a crossing hand-off ({}) within {}", place_of(e), name_of(e.handshake),
                  to_string(from.sites[i]))
            .note(place_of(p.stage(e.from)), "instance {}", i)
            .note(place_of(p.stage(to)), "instance {}", r);
        return false;
      });
    }
  }
}

// RDU3009: every edge's handshake is one that the target provides. An abstract Fifo is one that is still to be chosen.
void check_handshakes(const Subject& s, Diagnostics& out) {
  for (const Edge& e : s.p.edges) {
    bool provided = false;
    switch (e.handshake) {
      case Handshake::fifo:
        provided = !s.complete;
        break;
      case Handshake::valid_ready:
        provided = s.target.local == LocalHandshake::valid_ready;
        break;
      case Handshake::circular_buffer:
        provided = s.target.local == LocalHandshake::circular_buffer;
        break;
      case Handshake::token:
      case Handshake::semaphore:
      case Handshake::barrier: {
        const CrossingHandshake kind = e.handshake == Handshake::token       ? CrossingHandshake::token
                                       : e.handshake == Handshake::semaphore ? CrossingHandshake::semaphore
                                                                             : CrossingHandshake::barrier;
        provided = std::find(s.target.crossing.begin(), s.target.crossing.end(), kind) != s.target.crossing.end();
      }
    }
    if (!provided)
      out.error(Code::RDU3009, s.where, "{} is a {}, and target '{}' has {} within a site and {} between sites",
                place_of(e), name_of(e.handshake), s.target.name,
                s.target.local == LocalHandshake::valid_ready ? "ValidReady" : "CircularBuffer",
                crossing_kinds(s.target));
  }
}

// RDU3023: each crossing Semaphore edge owns its own pair of semaphores: `ready` at the sender's sites, `valid` at each
// receiver's. Other edges have none.
void check_semaphores(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::vector<std::optional<EdgeId>> owner(p.semaphores.size());
  for (const Edge& e : p.edges) {
    const auto wrong = [&](const std::string& what) { out.error(Code::RDU3023, s.where, "{}: {}", place_of(e), what); };
    if (e.handshake != Handshake::semaphore) {
      if (e.semaphores) wrong(fmt::format("a {} edge has semaphores", name_of(e.handshake)));
      continue;
    }
    if (!e.semaphores) {
      if (s.complete) wrong("it has no semaphores");
      continue;
    }
    if (e.semaphores->valid.size() != e.to.size()) {
      wrong(fmt::format("{} valid semaphores for {} receivers", e.semaphores->valid.size(), e.to.size()));
      continue;
    }
    const auto claim = [&](SemaphoreId id, GroupId at, const char* what) {
      if (owner[id.value])
        wrong(fmt::format("its {} semaphore {} is that of edge {}", what, id.value, owner[id.value]->value));
      owner[id.value] = e.id;
      if (!same_sites(p, p.semaphores[id.value].group, at))
        wrong(fmt::format("its {} semaphore {} is on {}, not on {}", what, id.value,
                          sites_text(p, p.semaphores[id.value].group), sites_text(p, at)));
    };
    claim(e.semaphores->ready, p.stage(e.from).group, "ready");
    for (std::size_t i = 0; i < e.to.size(); ++i) claim(e.semaphores->valid[i], p.stage(e.to[i]).group, "valid");
  }
}

// RDU3021: no count that a token or semaphore can reach exceeds its width, nor its width the target's. A token's
// credits reach the depth of the landing buffer; `ready` the number of receivers of an instance, `valid` one, above its
// start.
void check_counters(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const auto greatest_of = [](std::uint32_t bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  };
  for (const Edge& e : p.edges) {
    const std::uint32_t page_bits = s.target.site.page_counter_bits;
    if (e.handshake == Handshake::circular_buffer && page_bits != 0) {
      // Full and empty are told apart by the difference of two counters that wrap around.
      const Buffer& b = p.buffer(e.buffer);
      if (b.depth_pages > greatest_of(page_bits))
        out.error(Code::RDU3021, s.where,
                  "{}: {} has {} pages, and the page counters of target '{}' have {} bits, which tell {} apart",
                  place_of(e), place_of(b), b.depth_pages, s.target.name, page_bits, greatest_of(page_bits));
      continue;
    }
    if (e.handshake != Handshake::token && e.handshake != Handshake::semaphore) continue;
    if (!s.complete && e.counter_bits == 0 && !e.semaphores) continue;
    const bool token = e.handshake == Handshake::token;
    const std::uint32_t provided = token ? s.target.site.token_bits : s.target.site.semaphore_bits;
    if (e.counter_bits > provided) {
      out.error(Code::RDU3021, s.where, "{} has a counter of {} bits, and target '{}' has {}", place_of(e),
                e.counter_bits, s.target.name, provided);
      continue;
    }
    if (token) {
      for (StageId to : e.to) {
        const Buffer& landing = p.buffer(p.stage(to).ports[0].buffer);
        if (landing.depth_pages > greatest_of(e.counter_bits))
          out.error(Code::RDU3021, s.where, "{} counts the {} credits of '{}' in {} bits, which hold {}", place_of(e),
                    landing.depth_pages, landing.name, e.counter_bits, greatest_of(e.counter_bits));
      }
      continue;
    }
    if (!e.semaphores) continue;
    std::uint64_t receivers = 0;
    for (std::size_t i = 0; i < (e.map.targets.empty() ? 1 : e.map.targets.size()); ++i)
      receivers = std::max<std::uint64_t>(receivers, e.map.targets.empty() ? 1 : e.map.targets[i].size());
    receivers *= e.to.size();
    const auto check = [&](SemaphoreId id, std::uint64_t rise, const char* what) {
      const Semaphore& sem = p.semaphores[id.value];
      if (sem.width_bits > provided || e.counter_bits > sem.width_bits ||
          sem.initial + rise > greatest_of(std::min(sem.width_bits, e.counter_bits)))
        out.error(Code::RDU3021, s.where,
                  "{}: its {} semaphore {} starts at {} and rises by {}, with {} bits (edge: {}, target: {})",
                  place_of(e), what, id.value, sem.initial, rise, sem.width_bits, e.counter_bits, provided);
    };
    check(e.semaphores->ready, receivers, "ready");
    for (SemaphoreId valid : e.semaphores->valid) check(valid, 1, "valid");
  }
}

// RDU3034: a crossing edge's links form a route from the sender's chip to the receiver's; the program lists the links
// that its edges use.
void check_routes(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::vector<LinkId> used;
  std::set<std::pair<ChipId, ChipId>> ends;  // that some edge joins
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) {
      if (std::any_of(e.routes.begin(), e.routes.end(), [](const auto& r) { return !r.empty(); }))
        out.error(Code::RDU3034, s.where, "{} is local and has a route", place_of(e));
      continue;
    }
    if (e.routes.empty() && !s.complete) continue;
    if (e.routes.size() != e.to.size()) {
      out.error(Code::RDU3034, s.where, "{} has {} routes to {} receivers", place_of(e), e.routes.size(), e.to.size());
      continue;
    }
    for (std::size_t i = 0; i < e.to.size(); ++i) {
      ChipId at = p.chip_of(p.stage(e.from));
      const ChipId end = p.chip_of(p.stage(e.to[i]));
      bool joined = true;
      ends.insert({at, end});
      for (LinkId link : e.routes[i]) {
        const ChipLinkParameters& l = s.target.links[link.value];
        joined = joined && l.from == at;
        at = l.to;
        used.push_back(link);
      }
      // Before hand-offs are chosen a route may still be open.
      if (!s.complete && e.routes[i].empty()) continue;
      if (!joined || at != end)
        out.error(Code::RDU3034, s.where, "{}: its {} links do not lead from chip {} to chip {}", place_of(e),
                  e.routes[i].size(), p.chip_of(p.stage(e.from)).value, end.value)
            .note(place_of(p.stage(e.from)), "on {}", sites_text(p, p.stage(e.from).group))
            .note(place_of(p.stage(e.to[i])), "on {}", sites_text(p, p.stage(e.to[i]).group));
    }
  }
  if (!s.complete) return;
  // Credits and other signals come back by the target's own route, which an edge does not name.
  std::vector<LinkId> allowed = used;
  Routes routes(s.target);
  for (auto [from, to] : ends) {
    const std::vector<LinkId> back = routes.between(to, from);
    allowed.insert(allowed.end(), back.begin(), back.end());
  }
  for (auto* list : {&used, &allowed}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  const bool rising = std::adjacent_find(p.links.begin(), p.links.end(), std::greater_equal<>()) == p.links.end();
  if (!rising)
    out.error(Code::RDU3034, s.where, "the program's list of links does not rise");
  else if (!std::includes(p.links.begin(), p.links.end(), used.begin(), used.end()) ||
           !std::includes(allowed.begin(), allowed.end(), p.links.begin(), p.links.end()))
    out.error(Code::RDU3034, s.where,
              "the program lists {} links; its edges use {}, and their signals come back on {} more", p.links.size(),
              used.size(), allowed.size() - used.size());
}

// RDU3036: the ends of a hand-off, and a stage's operands, agree on element types.
void check_dtypes(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const auto agree = [&](const std::string& who, DType has, const std::string& other, DType wants) {
    if (has != wants)
      out.error(Code::RDU3036, s.where, "{} has {}, and {} {}", who, name_of(has), other, name_of(wants));
  };
  if (p.operators)
    for (const Tensor& t : p.tensors) {
      const Operand& o = p.operators->operand(t.operand);
      agree(place_of(t), t.dtype, fmt::format("operand '{}'", o.name), o.dtype);
    }
  for (const Stage& st : p.stages) {
    const auto dtype = [&](std::size_t port) { return p.buffer(st.ports[port].buffer).dtype; };
    const auto name = [&](std::size_t port) { return place_of(p.buffer(st.ports[port].buffer)); };
    if (const auto* k = std::get_if<Load>(&st.kind))
      agree(name(st.ports.size() - 1), dtype(st.ports.size() - 1), place_of(p.tensor(k->tensor)),
            p.tensor(k->tensor).dtype);
    if (const auto* k = std::get_if<Load>(&st.kind); k != nullptr && k->indexed && dtype(0) != DType::int64)
      agree(name(0), dtype(0), place_of(st) + "'s indices", DType::int32);
    if (const auto* k = std::get_if<Store>(&st.kind))
      for (std::size_t i = 0; i < st.ports.size(); ++i)
        agree(name(i), dtype(i), place_of(p.tensor(k->tensor)), p.tensor(k->tensor).dtype);
    if (const auto* k = std::get_if<MatmulTiles>(&st.kind)) {
      agree(name(0), dtype(0), place_of(st) + "'s operands", k->operand);
      agree(name(1), dtype(1), place_of(st) + "'s operands", k->operand);
      agree(name(2), dtype(2), place_of(st) + "'s result", k->result);
      agree(place_of(st) + "'s accumulator", k->accumulator, std::string(name_of(k->operand)) + " asks for",
            accumulator_of(k->operand));
    }
    if (const auto* k = std::get_if<Generic>(&st.kind))
      for (std::size_t i = 0; i < st.ports.size(); ++i) {
        if (st.ports[i].direction == Direction::output)
          agree(name(i), dtype(i), place_of(st) + "'s result", k->result);
        else if (is_integer(dtype(i)) != is_integer(k->accumulator))
          agree(name(i), dtype(i), place_of(st) + "'s accumulator", k->accumulator);
      }
    if (const auto* k = std::get_if<Recv>(&st.kind)) {
      const Buffer& source = p.buffer(p.edge(k->edge).buffer);
      agree(name(0), dtype(0), place_of(source), source.dtype);
    }
  }
}

}  // namespace rdusim
