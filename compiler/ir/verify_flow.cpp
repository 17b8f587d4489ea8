#include <algorithm>
#include <numeric>

#include "compiler/ir/clusters.h"
#include "compiler/ir/least_depths.h"
#include "compiler/ir/memory_order.h"
#include "compiler/ir/phase_order.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/repetition.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/untimed_run.h"

namespace rdusim {
namespace {

// What one end of a buffer moves, by instance; one entry where all instances are alike.
struct EndCounts {
  std::string name;
  std::vector<std::uint64_t> pages;
  std::uint64_t of(std::size_t i) const { return pages.size() == 1 ? pages[0] : pages[i]; }
};

// Pages of each instance at one port; nothing where they cannot be counted.
std::optional<std::vector<PortCounts>> counts(const SpatialProgram& p, const Stage& st, std::size_t port) {
  const std::size_t instances = counts_alike(p, st) ? 1 : p.sites_of(st).sites.size();
  std::vector<PortCounts> list;
  for (std::size_t i = 0; i < instances; ++i) {
    const auto c = count_pages(p, st, port, i);
    if (!c) return std::nullopt;
    list.push_back(*c);
  }
  return list;
}

std::vector<std::uint64_t> only(const std::vector<PortCounts>& list, std::uint64_t PortCounts::*what) {
  std::vector<std::uint64_t> pages;
  for (const PortCounts& c : list) pages.push_back(c.*what);
  return pages;
}

std::string wait_text(const SpatialProgram& p, const UntimedWait& w) {
  const Buffer& b = p.buffer(w.buffer);
  return w.for_room ? fmt::format("'{}' waits for room in '{}' (depth {}) until '{}' takes a page",
                                  p.stage(w.stage).name, b.name, b.depth_pages, p.stage(w.on).name)
                    : fmt::format("'{}' waits for a page of '{}' from '{}'", p.stage(w.stage).name, b.name,
                                  p.stage(w.on).name);
}

// Another order in which a stage of a circular wait does what it does, with which all runs to its end.
bool suggest_order(Diagnostic& d, const SpatialProgram& p, const std::vector<UntimedWait>& cycle) {
  std::vector<StageId> stages;
  for (const UntimedWait& w : cycle) stages.push_back(w.stage);
  const auto exchange = find_exchange(p, stages);
  if (exchange) d.suggest("{}: then it ends with the depths that it has", exchange_text(p, *exchange));
  return exchange.has_value();
}

// The buffer of a circular wait that takes the least memory to deepen until all runs to its end; and the order that
// needs no more.
void suggest_cure(Diagnostic& d, const SpatialProgram& p, const std::vector<UntimedWait>& cycle) {
  const std::vector<std::uint64_t> least = least_depths(p);
  const UntimedWait* best = nullptr;
  const auto added = [&](const UntimedWait& w) {
    const Buffer& b = p.buffer(w.buffer);
    return static_cast<double>(least[b.id.value] - b.depth_pages) *
           static_cast<double>(std::max<Bytes>(b.page_bytes, 1));
  };
  for (const UntimedWait& w : cycle) {
    if (!w.for_room) continue;
    if (least[w.buffer.value] > p.buffer(w.buffer).depth_pages && (best == nullptr || added(w) < added(*best)))
      best = &w;
  }
  if (best != nullptr) {
    d.suggest("deepen '{}' to {} pages (it has {}); one less still hangs", p.buffer(best->buffer).name,
              least[best->buffer.value], p.buffer(best->buffer).depth_pages);
  }
  if (suggest_order(d, p, cycle) || best != nullptr) return;
  for (const UntimedWait& w : cycle)
    if (w.for_room) {
      d.suggest("change the order in which '{}' takes its pages: no depth of '{}' alone resolves it",
                p.stage(w.on).name, p.buffer(w.buffer).name);
      return;
    }
  d.suggest("give one of the hand-offs initial pages: each of these stages waits for a page of the one before it");
}

// RDU3043: around every circle of hand-offs the rates agree on how often its stages fire. Gives the buffers of clusters
// where they do not: no numbers of firings balance there.
std::vector<bool> check_repetition(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::vector<bool> in_conflict(p.buffers.size(), false);
  for (const Cluster& c : clusters_of(p)) {
    const Repetition r = repetition_of(p, c);
    if (r.circle.size() < 2) continue;  // of one buffer: its counts say it
    const bool circle = std::any_of(r.buffers.begin(), r.buffers.end(), [&](BufferId b) { return b != r.buffers[0]; });
    if (!circle) continue;
    Diagnostic& d =
        out.error(Code::RDU3043, s.where, "no numbers of firings balance the circle of {} hand-offs through '{}'",
                  r.circle.size(), p.stage(r.circle.front()).name);
    for (std::size_t i = 0; i < r.circle.size(); ++i) {
      const Stage& from = p.stage(r.circle[i]);
      const Stage& to = p.stage(r.circle[(i + 1) % r.circle.size()]);
      d.note(place_of(from), "joined by '{}' to '{}', {} firings a trip to {}", p.buffer(r.buffers[i]).name, to.name,
             from.firings, to.firings);
    }
    for (const StageId id : c.stages)
      for (const Port& port : p.stage(id).ports) in_conflict[port.buffer.value] = true;
  }
  return in_conflict;
}

// RDU3039, between clusters: what one stores another may load, but not around a circle. Each cluster by itself ends or
// does not whenever its loads start, so that this and run_untimed() decide for all. What waits for a trip before its own
// closes no circle: trips one after the other are a way to the end.
void check_memory_order(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const std::vector<MemoryOrder> orders = memory_orders(p);
  if (orders.empty()) return;
  const std::vector<Cluster> clusters = clusters_of(p);
  std::vector<std::size_t> cluster_of(p.stages.size(), 0);
  for (std::size_t c = 0; c < clusters.size(); ++c)
    for (const StageId id : clusters[c].stages) cluster_of[id.value] = c;
  struct Wait {
    std::size_t on;
    StageId load, store;
  };
  std::vector<std::vector<Wait>> waits(clusters.size());
  for (const MemoryOrder& order : orders) {
    if (order.lag != 0) continue;
    for (const StageId load : order.loads)
      for (const StageId store : order.stores)
        waits[cluster_of[load.value]].push_back({cluster_of[store.value], load, store});
  }

  enum class Colour : std::uint8_t { white, grey, black };
  std::vector<Colour> colour(clusters.size(), Colour::white);
  struct Frame {
    std::size_t cluster;
    std::size_t next = 0;
  };
  for (std::size_t root = 0; root < clusters.size(); ++root) {
    if (colour[root] != Colour::white) continue;
    std::vector<Frame> path{{root}};
    colour[root] = Colour::grey;
    while (!path.empty()) {
      Frame& f = path.back();
      if (f.next == waits[f.cluster].size()) {
        colour[f.cluster] = Colour::black;
        path.pop_back();
        continue;
      }
      const std::size_t on = waits[f.cluster][f.next++].on;
      if (colour[on] == Colour::white) {
        colour[on] = Colour::grey;
        path.push_back({on});
      } else if (colour[on] == Colour::grey) {
        const auto from = std::find_if(path.begin(), path.end(), [&](const Frame& g) { return g.cluster == on; });
        Diagnostic& d = out.error(Code::RDU3039, s.where, "{} loads wait in a circle for what is stored behind them",
                                  path.end() - from);
        for (auto g = from; g != path.end(); ++g) {
          const Wait& w = waits[g->cluster][g->next - 1];
          d.note(place_of(p.stage(w.load)), "reads '{}' when '{}' has written it",
                 p.tensor(std::get<Load>(p.stage(w.load).kind).tensor).name, p.stage(w.store).name);
        }
        d.suggest("put what reads into a later section");
        return;
      }
    }
  }
}

}  // namespace

// RDU3008: pages reserved = pushed, and = popped by every consumer, for each buffer over one run of its section; and a
// Recv takes the pages that are sent to it.
void check_balance(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const std::vector<bool> in_conflict = check_repetition(s, out);
  for (const Buffer& b : p.buffers) {
    if (in_conflict[b.id.value]) continue;
    const BufferUses& u = s.uses_of(b.id);
    const std::size_t instances = p.group(b.group).sites.size();
    const auto& end = u.producers.front();
    const auto produced = counts(p, p.stage(end.stage), end.port);
    bool countable = produced.has_value();
    std::vector<EndCounts> consumers;
    for (const auto& c : u.consumers) {
      const auto taken = counts(p, p.stage(c.stage), c.port);
      countable = countable && taken;
      if (taken) consumers.push_back({p.stage(c.stage).name, only(*taken, &PortCounts::popped)});
    }
    if (!countable) {
      out.error(Code::RDU3008, s.where, "{}: its pages cannot be counted", place_of(b));
      continue;
    }
    const EndCounts reserved{"", only(*produced, &PortCounts::reserved)},
        pushed{"", only(*produced, &PortCounts::pushed)};
    const auto balanced = [&](std::size_t i) {
      return reserved.of(i) == pushed.of(i) && std::all_of(consumers.begin(), consumers.end(),
                                                           [&](const EndCounts& c) { return c.of(i) == pushed.of(i); });
    };
    bool alike = pushed.pages.size() == 1;
    for (const EndCounts& c : consumers) alike = alike && c.pages.size() == 1;
    const std::size_t looked_at = alike ? 1 : instances;
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < looked_at; ++i)
      if (!balanced(i) && wrong++ == 0) first = i;
    if (wrong != 0) {
      std::string text =
          fmt::format("{}: reserved {}, pushed {}, popped", place_of(b), reserved.of(first), pushed.of(first));
      for (std::size_t i = 0; i < consumers.size(); ++i)
        text += fmt::format("{} {} by '{}'", i == 0 ? "" : ",", consumers[i].of(first), consumers[i].name);
      if (consumers.empty()) text += " by no one";
      Diagnostic& d = out.error(Code::RDU3008, s.where, "{}", text);
      d.note(place_of(p.stage(end.stage)), "pushes into it; {} firings a trip, {} trips", p.stage(end.stage).firings,
             p.sections[p.stage(end.stage).section.value].trips);
      for (const auto& c : u.consumers)
        d.note(place_of(p.stage(c.stage)), "takes from it; {} firings a trip", p.stage(c.stage).firings);
      if (!alike) d.note(place_of(b), "instance {}; {} of {} instances are unbalanced", first, wrong, instances);
    }
    for (EdgeId id : u.crossing) {
      const Edge& e = p.edge(id);
      for (StageId to : e.to) {
        const Stage& recv = p.stage(to);
        const auto taken = count_pages(p, recv, 0, 0);
        if (!taken) continue;  // its landing buffer is reported
        const std::size_t receivers = p.sites_of(recv).sites.size();
        const bool simple = e.map.kind == PageMapKind::one_to_one && pushed.pages.size() == 1;
        const auto senders = simple ? std::vector<std::vector<std::uint32_t>>{{0}} : senders_by_receiver(e, receivers);
        for (std::uint32_t r = 0; r < senders.size(); ++r) {
          std::uint64_t sent = 0;
          bool fits = true;
          for (std::uint32_t i : senders[r])
            fits = fits && !__builtin_add_overflow(sent, pages_sent(e, i, r, pushed.of(i)), &sent);
          if (fits && sent == taken->pushed) continue;
          out.error(Code::RDU3008, s.where, "{}: {} pages are sent to '{}', which receives {}", place_of(b), sent,
                    recv.name, taken->pushed)
              .note(place_of(p.stage(e.from)), "pushes {} pages",
                    pushed.of(senders[r].empty() ? 0 : senders[r].front()))
              .note(place_of(recv), "instance {}; {} firings a trip", r, recv.firings);
          break;
        }
      }
    }
  }
}

// RDU3029: a buffer is at least as deep as what one firing of its producer claims, one of its consumers looks at, and
// its initial pages. (What deadlocks for another reason is RDU3039.)
void check_depths(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Buffer& b : p.buffers) {
    if (b.depth_pages == 0) continue;  // not sized: RDU3003 where it must be
    const BufferUses& u = s.uses_of(b.id);
    const auto report = [&](std::uint64_t least, const std::string& why) {
      if (b.depth_pages >= least) return false;
      out.error(Code::RDU3029, s.where, "{}: depth {}, and {}", place_of(b), b.depth_pages, why)
          .suggest("deepen it to {} pages", least);
      return true;
    };
    if (report(b.initial_pages, fmt::format("it starts with {} pages", b.initial_pages))) continue;
    // Most pages that are claimed and not yet pushed at any firing of a cycle.
    const auto& end = u.producers.front();
    const Port& port = p.stage(end.stage).ports[end.port];
    CyclicCursor reserve(port.reserve), push(port.push);
    const std::uint64_t length = std::lcm(cycle_length(port.reserve), cycle_length(port.push));
    std::uint64_t claimed = 0, most = 0;
    for (std::uint64_t phase = 0; phase < length; ++phase) {
      claimed += reserve.value();
      most = std::max(most, claimed);
      claimed -= std::min<std::uint64_t>(claimed, push.value());
      reserve.advance();
      push.advance();
    }
    if (report(most, fmt::format("'{}' has {} pages reserved at once", p.stage(end.stage).name, most))) continue;
    for (const auto& c : u.consumers) {
      const std::uint64_t need = greatest(p.stage(c.stage).ports[c.port].need);
      if (report(need, fmt::format("'{}' needs {} pages at once", p.stage(c.stage).name, need))) break;
    }
  }
}

// RDU3039: the stages can run to their end with the depths and initial pages given. Where they can, what each store
// receives is known: RDU3024, every contribution to every output reaches its reduction exactly once; RDU3025, a partial
// sum passes only linear operators before it is summed; RDU3032, second half: sums are added in the order that the
// summation trees state.
void check_flow(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  check_memory_order(s, out);
  const UntimedRun run = run_untimed(p, p.header.native_tile);
  if (run.undecided)
    out.error(Code::RDU3039, s.where,
              "whether '{}' and what it hands pages to can finish takes {} steps to decide, and {} are left for it",
              p.stage(*run.undecided).name, run.undecided_steps, run.limit)
        .suggest("use larger pages");
  if (!run.cycle.empty()) {
    Diagnostic& d = out.error(Code::RDU3039, s.where,
                              "{} stages wait for each other in a circle, and {} stage instances do not finish",
                              run.cycle.size(), run.stuck);
    for (const UntimedWait& w : run.cycle)
      d.note(place_of(p.stage(w.stage)), "firing {} of {}: {}", w.firing, w.firings, wait_text(p, w));
    suggest_cure(d, p, run.cycle);
  } else if (run.stuck != 0) {
    Diagnostic& d = out.error(Code::RDU3039, s.where, "{} stage instances do not finish", run.stuck);
    for (const UntimedWait& w : run.starved)
      d.note(place_of(p.stage(w.stage)), "firing {} of {}: {}", w.firing, w.firings, wait_text(p, w));
  }
  for (const SumFault& f : run.sums) {
    Diagnostic& d = out.error(f.code, s.where, "{}", f.message);
    d.notes = f.notes;
  }
}

}  // namespace rdusim
