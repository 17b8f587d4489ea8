// A run than which none is faster: everybody fires as soon as the pages and the room that a firing asks for are there,
// each firing is as short as the target's laws allow, and nothing else is in anybody's way. What it takes bounds every
// run, and so whatever a circle of its firings adds up to.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/certificate/execution.h"
#include "compiler/certificate/obligations.h"
#include "compiler/certificate/pages.h"

namespace rdusim::certificate {

namespace {

constexpr std::uint64_t most_ideal_firings = std::uint64_t{1} << 20;  // of one claim; a single part is always looked at
constexpr std::uint64_t most_pages = std::uint64_t{1} << 20;          // of a load, whose extents are looked at

// What a firing takes at the least: until the next may begin, until what it pushed is seen, until what it popped is
// free.
struct LeastTime {
  Cycles next = 1, pushed = 1, popped = 1;
};

// Stages that hand-offs join to one.
struct Joined {
  std::vector<bool> stages;  // by id
  bool alike = true;         // instances meet their likes only, and all fire as often: the first stands for all
  std::uint64_t repeats = 1;

  Joined(const Subject& s, StageId first) : stages(s.p.stages.size(), false) {
    std::vector<StageId> open{first};
    stages[first.value] = true;
    const auto join = [&](StageId id) {
      if (stages[id.value]) return;
      stages[id.value] = true;
      open.push_back(id);
    };
    while (!open.empty()) {
      const Stage& stage = s.p.stage(open.back());
      open.pop_back();
      alike = alike && s.instances(stage) == s.instances(s.p.stage(first));
      for (std::size_t i = 0; i < s.instances(stage); ++i) alike = alike && s.firings(stage, i) == stage.firings;
      if (const auto* recv = std::get_if<Recv>(&stage.kind)) join(s.p.edge(recv->edge).from);
      for (const Port& port : stage.ports) {
        for (const Producer& producer : s.producers[port.buffer.value]) join(producer.stage);
        for (const Consumer& consumer : s.consumers[port.buffer.value]) {
          if (!consumer.crossing) {
            join(consumer.stage);
            continue;
          }
          const Edge& e = s.p.edge(consumer.edge);
          alike = alike && e.map.kind == PageMapKind::one_to_one;
          for (const StageId to : e.to) join(to);
        }
      }
    }
    repeats = alike ? parts_of(s) : 1;
  }

 private:
  // Into how many like parts the firings of a trip fall.
  std::uint64_t parts_of(const Subject& s) const {
    std::uint64_t parts = 0;
    for (const Stage& stage : s.p.stages) {
      if (!stages[stage.id.value] || stage.firings == 0) continue;
      const std::uint64_t period = period_of(stage);
      if (period == too_many || stage.firings % period != 0) return 1;
      parts = std::gcd(parts, stage.firings / period);
    }
    return std::max<std::uint64_t>(parts, 1);
  }
};

class LeastTimes {
 public:
  LeastTimes(const Subject& s, bool first_only) : s_(s), first_only_(first_only) {}

  LeastTime of(const Stage& stage) const {
    LeastTime time;
    if (const auto* m = std::get_if<MatmulTiles>(&stage.kind)) {
      time.next = time.popped = of(stage, *m);
      time.pushed = time.next + s_.t.pcu.product_latency(m->lanes) + through_pmu();
    } else if (std::holds_alternative<Generic>(stage.kind)) {
      time.pushed = 1 + s_.t.pcu.simd_latency_cycles + through_pmu();
    } else if (const auto* load = std::get_if<Load>(&stage.kind)) {
      const Tensor& t = s_.p.tensor(load->tensor);
      const Box page = smallest(stage);
      const Bytes bytes = product(page.elements(), bytes_of(t.dtype));
      for (const Fraction& rate :
           {s_.t.agcu.bytes_per_cycle, s_.t.network.link_bytes_per_cycle, s_.t.pmu.write_bytes_per_cycle})
        if (rate.num != 0) time.next = std::max(time.next, least_cycles(bytes, rate.num, rate.den));
      Cycles memory = 0;
      if (t.space == MemorySpace::hbm) memory = s_.t.hbm.latency_cycles;
      if (t.space == MemorySpace::ddr && s_.t.ddr) memory = s_.t.ddr->latency_cycles;
      time.pushed = std::max<Cycles>(sum(memory, s_.t.agcu.latency_cycles), 1);
    }
    return time;
  }

  // A crossing begins when the page is sent.
  LeastTime of(const Edge& e) const {
    std::optional<Cycles> least;
    for (const auto& route : e.routes) {
      Cycles way = 0;
      for (const LinkId id : route)
        if (id.value < s_.t.links.size()) way = sum(way, s_.t.links[id.value].latency_cycles);
      least = least ? std::min(*least, way) : way;
    }
    return {1, sum(1, least.value_or(0)), 1};
  }

 private:
  Cycles through_pmu() const { return 2 * s_.t.pmu.access_latency_cycles; }

  // The least rows and the least columns of the pages that a Load brings; of what no Load brings, one of each.
  Box smallest(const Stage& load) const {
    const Access access = access_of(s_.p, load);
    Box least{0, 0, 1, 1};
    bool any = false;
    const std::size_t instances = first_only_ ? 1 : s_.instances(load);
    const std::uint64_t pages = pages_of(*access.pattern);
    if (product(pages, instances) > most_pages) return least;
    for (std::size_t i = 0; i < instances; ++i)
      for (std::uint64_t page = 0; page < pages; ++page) {
        const auto box = box_of(*access.pattern, *access.tensor, s_.p.header.native_tile, i, page);
        if (!box || box->rows == 0 || box->cols == 0) continue;
        least.rows = any ? std::min(least.rows, box->rows) : box->rows;
        least.cols = any ? std::min(least.cols, box->cols) : box->cols;
        any = true;
      }
    return least;
  }
  Box operand(const Stage& matmul, std::size_t port) const {
    const BufferId b = matmul.ports[port].buffer;
    const auto& producers = s_.producers[b.value];
    if (producers.size() != 1 || s_.p.buffer(b).initial_pages != 0) return {0, 0, 1, 1};
    const Stage& from = s_.p.stage(producers.front().stage);
    return std::holds_alternative<Load>(from.kind) ? smallest(from) : Box{0, 0, 1, 1};
  }

  Cycles of(const Stage& stage, const MatmulTiles& m) const {
    std::vector<std::size_t> in;
    for (std::size_t i = 0; i < stage.ports.size(); ++i)
      if (stage.ports[i].direction == Direction::input) in.push_back(i);
    if (in.size() < 2) return 1;
    const Box a = operand(stage, in[0]), b = operand(stage, in[1]);
    const std::uint64_t tile = std::max(s_.p.header.native_tile, 1u);
    const auto tiles = [&](std::uint64_t n) { return product(n / tile + (n % tile != 0 ? 1 : 0), tile); };
    const std::uint64_t cols = m.transposed ? b.rows : b.cols;
    std::uint64_t macs = product(s_.t.pcu.rows_taken(a.rows, tile), product(tiles(cols), tiles(a.cols)));
    if (m.lanes != 0) {
      const std::uint64_t vectors = a.cols / m.lanes + (a.cols % m.lanes != 0 ? 1 : 0);
      macs = product(product(a.rows, cols), product(vectors, m.lanes));
    }
    const Fraction rate = s_.t.pcu.mac_rate(m.operand, m.accumulator, m.lanes);
    Cycles busy = std::max<Cycles>(least_cycles(macs, rate.num, rate.den), 1);
    const Fraction& port = s_.t.pmu.read_bytes_per_cycle;
    if (port.num != 0)
      busy = std::max(busy,
                      least_cycles(product(sum(a.elements(), b.elements()), bytes_of(m.operand)), port.num, port.den));
    return busy;
  }

  const Subject& s_;
  bool first_only_;
};

// Times of the ideal run of a net: of the firings of each actor, of the pages of each queue.
class IdealRun {
 public:
  IdealRun(const Net& net, std::vector<LeastTime> times)
      : net_(net),
        times_(std::move(times)),
        starts_(net.actors.size()),
        pushed_(net.queues.size()),
        popped_(net.actor_of_slot.size()),
        reserved_(net.queues.size(), 0) {}

  bool run() {
    Execution execution(net_);
    return execution.run(most_firings, [&](std::uint32_t actor, std::uint64_t firing) {
      fire(execution, actor, firing);
      return true;
    });
  }
  Cycles end() const { return end_; }
  const std::vector<Cycles>& starts(std::uint32_t actor) const { return starts_[actor]; }

 private:
  void fire(const Execution& execution, std::uint32_t id, std::uint64_t f) {
    const Net::Actor& a = net_.actors[id];
    const LeastTime& time = times_[id];
    Cycles at = f == 0 ? 0 : sum(starts_[id].back(), time.next);
    const auto each = [&](auto&& look) {
      for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u)
        if (a.uses_in(u - a.first_use, f)) look(net_.uses[u], net_.queues[net_.uses[u].queue]);
    };
    const auto take = [&](const Net::Use& use) { return a.crossing ? 1 : net_.rates[use.rates].take.at(f); };
    const auto free = [&](const Net::Use& use) { return a.crossing ? 1 : net_.rates[use.rates].free.at(f); };
    each([&](const Net::Use& use, const Net::Queue& q) {
      if (take(use) == 0) return;
      if (use.slot != Net::nobody) {
        const std::uint64_t page = execution.popped(use.slot) + take(use);
        if (page > q.initial) at = std::max(at, pushed_[use.queue][page - q.initial - 1]);
        return;
      }
      const std::uint64_t page = q.initial + reserved_[use.queue] + take(use);
      if (page <= q.depth) return;
      for (std::uint32_t c = q.first_consumer; c < q.first_consumer + q.consumers; ++c)
        if (page - q.depth <= popped_[c].size()) at = std::max(at, popped_[c][page - q.depth - 1]);
    });
    starts_[id].push_back(at);
    end_ = std::max(end_, sum(at, time.popped));
    each([&](const Net::Use& use, const Net::Queue&) {
      if (use.slot != Net::nobody) {
        popped_[use.slot].insert(popped_[use.slot].end(), free(use), sum(at, time.popped));
      } else {
        reserved_[use.queue] += take(use);
        pushed_[use.queue].insert(pushed_[use.queue].end(), free(use), sum(at, time.pushed));
      }
    });
  }

  const Net& net_;
  std::vector<LeastTime> times_;             // by actor
  std::vector<std::vector<Cycles>> starts_;  // by actor and firing
  std::vector<std::vector<Cycles>> pushed_;  // by queue and page, those there from the start left out
  std::vector<std::vector<Cycles>> popped_;  // by slot and page
  std::vector<std::uint64_t> reserved_;      // by queue
  Cycles end_ = 0;
};

// Whether some firing of the part of an actor comes again, `parts` later, no sooner than after the circle's cycles,
// every time: so it is with those on a circle.
bool comes_round(const std::vector<Cycles>& starts, std::uint64_t firings_a_part, const CircleClaim& claim) {
  const std::uint64_t apart = product(claim.parts, firings_a_part);
  for (std::uint64_t first = 0; first < firings_a_part; ++first) {
    bool always = true, once = false;
    for (std::uint64_t f = first; sum(f, apart) < starts.size() && always; f += firings_a_part) {
      once = true;
      always = starts[f + apart] - starts[f] >= claim.cycles;
    }
    if (always && once) return true;
  }
  return false;
}

// What the checker finds of one claim: the claim, where the ideal run takes as long; else how long that takes.
CircleClaim look_at(const Subject& s, const CircleClaim& claim) {
  CircleClaim found;
  found.section = claim.section;
  const auto in_section = [&](StageId id) {
    return id.value < s.p.stages.size() && s.p.stage(id).section == claim.section;
  };
  if (claim.stages.empty() || claim.parts == 0 || (claim.cycles != 0) != (claim.rounds != 0) ||
      !std::all_of(claim.stages.begin(), claim.stages.end(), in_section) ||
      !std::all_of(claim.buffers.begin(), claim.buffers.end(),
                   [&](BufferId b) { return b.value < s.p.buffers.size(); }))
    return found;
  const Joined joined(s, claim.stages.front());
  Extent extent;
  extent.only = joined.stages;
  if (joined.alike) extent.instances = {0};
  Net net = Net::of(s, claim.section, extent);
  if (net.all_firings > most_firings) return found;
  // As many parts of the run as are not too much.
  const std::uint64_t all = product(s.p.sections[claim.section.value].trips, joined.repeats);
  const std::uint64_t a_part = std::max<std::uint64_t>(net.all_firings / joined.repeats, 1);
  const std::uint64_t parts = std::min(all, std::max<std::uint64_t>(most_ideal_firings / a_part, 1));
  const LeastTimes least(s, joined.alike);
  std::vector<LeastTime> times;
  for (Net::Actor& a : net.actors) {
    a.firings = a.firings / joined.repeats * parts;
    times.push_back(a.crossing ? least.of(s.p.edge(a.edge)) : least.of(s.p.stage(a.stage)));
  }
  IdealRun run(net, std::move(times));
  if (!run.run()) return found;
  found.way = run.end();

  const auto bound = claim.bound();
  if (!bound || *bound > run.end()) return found;
  if (claim.rounds != 0) {
    const auto on_it = [&](const Net::Actor& a) {
      return std::any_of(claim.stages.begin(), claim.stages.end(), [&](StageId id) {
        const auto* recv = std::get_if<Recv>(&s.p.stage(id).kind);
        return a.crossing ? recv != nullptr && recv->edge == a.edge : a.stage == id;
      });
    };
    bool seen = false;
    for (std::uint32_t a = 0; a < net.actors.size() && !seen; ++a)
      seen = on_it(net.actors[a]) && comes_round(run.starts(a), net.actors[a].firings / parts, claim);
    if (!seen) return found;
  }
  return claim;
}

}  // namespace

std::vector<CircleClaim> circles(const Subject& s, const std::vector<CircleClaim>& claimed) {
  std::vector<CircleClaim> found;
  if (!s.unreadable.empty()) return found;
  std::optional<SectionId> last;
  for (const CircleClaim& claim : claimed) {
    // One a section, in their order: more is not looked at.
    const bool next = claim.section.value < s.p.sections.size() && (!last || *last < claim.section);
    found.push_back(next ? look_at(s, claim) : CircleClaim{});
    if (next) last = claim.section;
  }
  return found;
}

}  // namespace rdusim::certificate
