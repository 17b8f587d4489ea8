#include "compiler/cost/section_cost.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/cost/crossing_trips.h"
#include "compiler/cost/exact.h"
#include "compiler/cost/link_rate.h"
#include "compiler/cost/stage_cost.h"
#include "compiler/cost/stage_order.h"
#include "compiler/ir/access_pattern.h"
#include "compiler/ir/memory_order.h"

namespace rdusim::cost {

namespace {

// Bytes on the directed links between the switches of one chip, dimension order, x first.
class MeshLoad {
 public:
  explicit MeshLoad(Mesh mesh)
      : mesh_(mesh), bytes_(std::size_t{mesh.width} * mesh.height * 4, 0), stamp_(bytes_.size(), 0) {}

  // A page's way to all its receivers is a tree: each link carries it once.
  void add(Position from, const std::vector<Position>& to, Bytes bytes) {
    ++now_;
    for (const Position end : to) {
      Position at = from;
      while (at.x != end.x) step(at, end.x > at.x ? east : west, bytes);
      while (at.y != end.y) step(at, end.y > at.y ? south : north, bytes);
    }
  }
  Bytes busiest() const { return bytes_.empty() ? 0 : *std::max_element(bytes_.begin(), bytes_.end()); }

 private:
  enum Side : std::uint8_t { east, west, south, north };
  void step(Position& at, Side side, Bytes bytes) {
    const std::size_t link = (std::size_t{at.y} * mesh_.width + at.x) * 4 + side;
    if (link < bytes_.size() && stamp_[link] != now_) {
      stamp_[link] = now_;
      bytes_[link] = plus(bytes_[link], bytes);
    }
    switch (side) {
      case east:
        ++at.x;
        break;
      case west:
        --at.x;
        break;
      case south:
        ++at.y;
        break;
      case north:
        --at.y;
        break;
    }
  }

  Mesh mesh_;
  std::vector<Bytes> bytes_;
  std::vector<std::uint64_t> stamp_;
  std::uint64_t now_ = 0;
};

struct ChipUse {
  Bytes hbm = 0;
  std::map<std::pair<AgcuId, bool>, Bytes> agcu;  // by direction
  std::map<Position, Bytes> into_site;            // over the site's switch, into its PMU
  std::map<Position, Cycles> pcu;
  std::optional<MeshLoad> mesh;
};

struct Bottleneck {
  enum class Kind : std::uint8_t { none, compute, memory, network } kind = Kind::none;
  Cycles cycles = 0;
  StageId stage;
};

class SectionEstimate {
 public:
  SectionEstimate(const SpatialProgram& p, const Target& t, SectionId section, const std::vector<StageCost>& stages,
                  const std::vector<MemoryFlow>& memory, const std::vector<CrossingFlow>& crossings,
                  const std::vector<CollectiveCost>& collectives)
      : p_(p),
        t_(t),
        section_(section),
        stages_(stages),
        memory_(memory),
        crossings_(crossings),
        collectives_(collectives),
        memory_orders_(memory_orders(p, section)) {}

  SectionCost run() {
    SectionCost cost;
    cost.launch = plus(t_.host.section_launch_cycles, t_.host.argument_load_cycles);
    use_resources();
    use_order();
    const Bottleneck b = bottleneck();
    switch (b.kind) {
      case Bottleneck::Kind::none:
        break;
      case Bottleneck::Kind::compute:
        cost.compute = b.cycles;
        break;
      case Bottleneck::Kind::memory:
        cost.memory = b.cycles;
        break;
      case Bottleneck::Kind::network:
        cost.network = b.cycles;
        break;
    }
    if (b.kind != Bottleneck::Kind::none) std::tie(cost.fill, cost.drain) = around(b);
    cost.link = chip_links(b.cycles);
    // Operators that wait for each other: the section takes as long as its chain of operators, or as its bottleneck,
    // which runs beside it, whichever is longer.
    if (const std::optional<Cycles> chain = chain_of_operators()) {
      const Cycles beside = plus(plus(cost.fill, b.cycles), cost.drain);
      const Cycles whole = std::max(beside, plus(*chain, cost.link));
      const Cycles longer = std::max(beside, *chain);
      cost.fill = plus(cost.fill, longer - beside);
      cost.link = whole - longer;
    }
    return cost;
  }

 private:
  bool here(const Stage& s) const { return s.section == section_; }
  const Stage& sender(const CrossingFlow& f) const { return p_.stage(p_.edge(f.edge).from); }
  const Stage& receiver(const CrossingFlow& f) const { return p_.stage(p_.edge(f.edge).to[f.to]); }
  bool valid(const CrossingFlow& f) const {
    return f.sender < p_.sites_of(sender(f)).sites.size() && f.receiver < p_.sites_of(receiver(f)).sites.size();
  }
  ChipUse& chip(ChipId id) {
    ChipUse& use = chips_[id];
    if (!use.mesh) use.mesh.emplace(t_.mesh);
    return use;
  }

  void use_order() {
    order_ = stage_order(p_, section_);
    place_.assign(p_.stages.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i].value] = i;
  }

  void use_resources() {
    for (const Stage& s : p_.stages) {
      if (!here(s) || s.role != StageRole::compute) continue;
      for (const Site& site : p_.sites_of(s).sites) {
        Cycles& busy = chip(site.chip).pcu[site.at];
        busy = plus(busy, stages_[s.id.value].busy_cycles);
      }
    }
    for (const MemoryFlow& f : memory_) {
      const Stage& s = p_.stage(f.stage);
      if (!here(s)) continue;
      ChipUse& use = chip(f.chip);
      use.hbm = plus(use.hbm, f.bytes);
      Bytes& through = use.agcu[{f.agcu, f.write}];
      through = plus(through, f.bytes);
      std::vector<Position> ends;
      for (const std::uint32_t i : f.sites) ends.push_back(p_.sites_of(s).sites[i].at);
      if (f.agcu.value < t_.agcu.at.size()) {
        const Position agcu = t_.agcu.at[f.agcu.value];
        if (f.write)
          use.mesh->add(ends.front(), {agcu}, f.bytes);
        else
          use.mesh->add(agcu, ends, f.bytes);
      }
      if (!f.write)
        for (const Position at : ends) use.into_site[at] = plus(use.into_site[at], f.bytes);
    }
    for (const CrossingFlow& f : crossings_) {
      if (!here(sender(f)) || !valid(f)) continue;
      const Site& a = p_.sites_of(sender(f)).sites[f.sender];
      const Site& b = p_.sites_of(receiver(f)).sites[f.receiver];
      if (a.chip == b.chip) chip(a.chip).mesh->add(a.at, {b.at}, f.bytes);
      Bytes& landing = chip(b.chip).into_site[b.at];
      landing = plus(landing, f.bytes);
    }
  }

  // The stage of this section on `at` (any chip's site, or any) that `measure` finds greatest; the least id of equals.
  template <class Measure>
  std::optional<StageId> greatest(Measure&& measure) const {
    std::optional<StageId> best;
    std::uint64_t most = 0;
    for (const Stage& s : p_.stages) {
      if (!here(s)) continue;
      const std::uint64_t m = measure(s);
      if (m > most) {
        most = m;
        best = s.id;
      }
    }
    return best;
  }

  // Moves fewer elements a cycle than its ports would.
  static bool moves_by_lanes(const Stage& s) {
    if (const auto* load = std::get_if<Load>(&s.kind)) return load->lanes != 0;
    const auto* store = std::get_if<Store>(&s.kind);
    return store != nullptr && store->lanes != 0;
  }

  Bottleneck bottleneck() const {
    Bottleneck worst;
    const Fraction sustainable = t_.hbm.sustainable_bytes_per_cycle();
    const auto offer = [&](Bottleneck::Kind kind, Cycles cycles, auto&& measure) {
      if (cycles <= worst.cycles) return;
      if (const auto stage = greatest(measure)) worst = {kind, cycles, *stage};
    };
    for (const auto& [id, use] : chips_) {
      const ChipId c = id;
      const auto on_chip = [this, c](const Stage& s) { return p_.chip_of(s) == c; };
      for (const auto& [at, busy] : use.pcu)
        offer(Bottleneck::Kind::compute, busy, [&, site = Site{c, at}](const Stage& s) -> std::uint64_t {
          const auto& sites = p_.sites_of(s).sites;
          if (s.role != StageRole::compute || std::find(sites.begin(), sites.end(), site) == sites.end()) return 0;
          return stages_[s.id.value].busy_cycles;
        });
      const auto moves = [&](const Stage& s) -> std::uint64_t {
        return on_chip(s) && s.role == StageRole::movement ? std::max<Cycles>(stages_[s.id.value].busy_cycles, 1) : 0;
      };
      Cycles memory = time_of(use.hbm, sustainable);
      for (const auto& [agcu, bytes] : use.agcu) memory = std::max(memory, time_of(bytes, t_.agcu.bytes_per_cycle));
      offer(Bottleneck::Kind::memory, memory, moves);
      Cycles network = use.mesh ? time_of(use.mesh->busiest(), t_.network.link_bytes_per_cycle) : 0;
      for (const auto& [at, bytes] : use.into_site)
        network = std::max(
            {network, time_of(bytes, t_.network.link_bytes_per_cycle), time_of(bytes, t_.pmu.write_bytes_per_cycle)});
      for (const Stage& s : p_.stages)
        if (here(s) && on_chip(s) && moves_by_lanes(s)) network = std::max(network, stages_[s.id.value].busy_cycles);
      offer(Bottleneck::Kind::network, network, moves);
    }
    return worst;
  }

  // The longest way through the section from operator to operator, trip after trip: a Load that waits starts when the
  // Stores before it have stored its first page, goes on at the pace of what they take their pages from, and ends no
  // earlier than they. Loads that wait for nobody run beside it. Nothing where no Load waits.
  std::optional<Cycles> chain_of_operators() const {
    struct Before {
      StageId from;
      bool pages = false;                        // hands pages to it; else it stores all that is read
      std::uint64_t lag = 0;                     // in the trip so many before
      std::optional<std::uint64_t> needed = {};  // stores: the firing with which the first page read has been stored
    };
    std::vector<std::vector<Before>> before(p_.stages.size());
    std::vector<bool> free(p_.stages.size(), false);
    for (const Stage& s : p_.stages) free[s.id.value] = std::holds_alternative<Load>(s.kind);
    std::uint64_t lags = 0;  // most trips that anything waits for
    for (const MemoryOrder& order : memory_orders_)
      for (const StageId to : order.loads) {
        free[to.value] = false;
        lags = std::max(lags, order.lag);
        for (const StageId from : order.stores)
          before[to.value].push_back({from, false, order.lag, needed_first(p_.stage(from), p_.stage(to))});
      }
    if (memory_orders_.empty()) return std::nullopt;
    for (const Edge& e : p_.edges) {
      if (free[e.from.value] || !here(p_.stage(e.from))) continue;
      for (const StageId to : e.to)
        if (place_[e.from.value] < place_[to.value]) before[to.value].push_back({e.from, true});
    }
    // By stage: the steady distance of its firings, which is that of what comes to it.
    std::vector<Cycles> apart(p_.stages.size(), 0);
    for (const StageId id : order_) {
      const std::size_t i = id.value;
      apart[i] = own_interval(id);
      for (const Before& b : before[i])
        if (b.pages || (b.needed && *b.needed + 1 < p_.stage(b.from).firings))
          apart[i] = std::max(apart[i], firings_apart(id, b.from, apart[b.from.value]));
    }
    // By stage, of the last trips: when its first page comes, and when its trip is over.
    struct Times {
      std::vector<Cycles> until, over;
    };
    std::vector<Times> trips(lags + 1, Times{std::vector<Cycles>(p_.stages.size(), 0), {}});
    Cycles longest = 0;
    const std::uint64_t all = p_.sections[section_.value].trips;
    for (std::uint64_t t = 0; t < all; ++t) {
      std::rotate(trips.begin(), trips.end() - 1, trips.end());
      Times& now = trips.front();
      if (now.over.empty()) now.over.assign(p_.stages.size(), 0);
      for (const StageId id : order_) {
        const std::size_t i = id.value;
        // Its firings of the trip before come first.
        Cycles until = t > 0 && lags > 0 && !free[i] ? trips[1].over[i] : 0;
        for (const Before& b : before[i]) {
          const std::size_t from = b.from.value;
          if (!b.pages) {
            if (b.lag > t) continue;
            const Cycles over = trips[b.lag].over[from],
                         run = times(std::max<std::uint64_t>(p_.stage(id).firings, 1) - 1, apart[i]);
            until = std::max(until, over - std::min(over, run));
            if (b.needed)
              until = std::max(until, plus(trips[b.lag].until[from],
                                           plus(stages_[from].latency_cycles, times(*b.needed, apart[from]))));
            continue;
          }
          // chip_links() counts what a collective takes.
          const bool counted = p_.stage(b.from).collective && !std::holds_alternative<Store>(p_.stage(b.from).kind);
          until = std::max(until, plus(now.until[from], counted ? 0 : first_page(b.from, apart[from])));
        }
        now.until[i] = until;
        const bool ends = std::holds_alternative<Store>(p_.stage(id).kind);
        now.over[i] = plus(until, ends ? all_firings(id, apart[i]) : times(p_.stage(id).firings, apart[i]));
        longest = std::max(longest, plus(until, ends ? all_firings(id, apart[i]) : 0));
      }
    }
    return longest;
  }

  // The last firing, of any instance, of a store that writes something of the first page that some instance of a load
  // reads; nothing where none does. Of loads whose rows are named by indices, and where there are too many pages to look
  // at, the last of all.
  std::optional<std::uint64_t> needed_first(const Stage& from, const Stage& to) const {
    const auto& store = std::get<Store>(from.kind);
    const auto& load = std::get<Load>(to.kind);
    const std::uint64_t phases = std::max<std::uint64_t>(store.chunks.size(), 1), pages = from.firings / phases;
    const std::uint64_t last = from.firings - std::min<std::uint64_t>(from.firings, 1);
    if (load.indexed || load.pattern.first.empty() || times(pages, store.pattern.first.size()) > most_looked_at)
      return last;
    const Tensor &read = p_.tensor(load.tensor), &written = p_.tensor(store.tensor);
    std::optional<std::uint64_t> needed;
    for (const std::size_t reader : {std::size_t{0}, load.pattern.first.size() - 1}) {
      const TileBox wanted = page_at(load.pattern, reader, 0);
      if (!movable(wanted, load.pattern, read)) continue;
      for (std::size_t writer = 0; writer < store.pattern.first.size(); ++writer)
        for (std::uint64_t page = pages; page-- > 0;) {
          if (needed && (page + 1) * phases - 1 <= *needed) break;
          const TileBox made = page_at(store.pattern, writer, page);
          if (!movable(made, store.pattern, written)) continue;
          bool meet = true;
          for (std::size_t axis = 0; meet && axis < read.shape.size(); ++axis) {
            const AxisRange a = elements_of(load.pattern, read, wanted, axis, p_.header.native_tile);
            const AxisRange b = elements_of(store.pattern, written, made, axis, p_.header.native_tile);
            meet = a.begin < b.end && b.begin < a.end;
          }
          if (meet) needed = (page + 1) * phases - 1;
        }
    }
    return needed;
  }
  static constexpr std::uint64_t most_looked_at = 1024;  // pages

  // Distance of a stage's firings where it shares nothing.
  Cycles own_interval(StageId id) const {
    const std::uint64_t firings = times(p_.stage(id).firings, p_.sections[section_.value].trips);
    return ceil_div(stages_[id.value].busy_cycles, std::max<std::uint64_t>(firings, 1));
  }
  // Until a stage's first page is there, the firings before the one that pushes it `apart` apart.
  Cycles first_page(StageId id, Cycles apart) const {
    std::uint64_t wait = 0;
    for (const Port& port : p_.stage(id).ports) {
      if (port.direction != Direction::output) continue;
      std::uint64_t n = 0;
      for (const auto& run : port.push) {
        if (run.value != 0) break;
        n += run.repeat;
      }
      wait = std::max(wait, n);
    }
    return plus(stages_[id.value].latency_cycles, times(wait, apart));
  }
  Cycles all_firings(StageId store, Cycles apart) const {
    const std::uint64_t firings = p_.stage(store).firings;
    return plus(stages_[store.value].latency_cycles, times(firings > 0 ? firings - 1 : 0, apart));
  }
  // Distance that `from`, whose firings are `apart` apart, leaves between the firings of `to`: both take the trip's pages
  // in the same time, however many instances hand them to however many.
  Cycles firings_apart(StageId to, StageId from, Cycles apart) const {
    const std::uint64_t firings = p_.stage(to).firings;
    return firings == 0 ? 0 : times(apart, p_.stage(from).firings) / firings;
  }

  // What must pass before the bottleneck runs, and what follows it, along the longest paths of stages. Collectives' own
  // crossings are left out: chip_links() counts them.
  std::pair<Cycles, Cycles> around(const Bottleneck& b) const {
    std::vector<std::vector<StageId>> after(p_.stages.size()), before(p_.stages.size());
    for (const Edge& e : p_.edges) {
      if (e.collective || !here(p_.stage(e.from))) continue;
      for (const StageId to : e.to)
        if (here(p_.stage(to)) && place_[e.from.value] < place_[to.value]) {
          after[e.from.value].push_back(to);
          before[to.value].push_back(e.from);
        }
    }
    std::vector<Cycles> until(p_.stages.size(), 0), since(p_.stages.size(), 0);
    for (const StageId s : order_)
      for (const StageId from : before[s.value])
        until[s.value] = std::max(
            until[s.value], plus(until[from.value], first_page(from, stages_[from.value].initiation_interval_cycles)));
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      for (const StageId to : after[it->value])
        since[it->value] = std::max(since[it->value], plus(since[to.value], stages_[to.value].latency_cycles));
    const StageCost& own = stages_[b.stage.value];
    if (b.kind == Bottleneck::Kind::compute) {
      // The last firing's own time is the bottleneck's already.
      const Cycles after_it = own.latency_cycles - std::min(own.latency_cycles, own.initiation_interval_cycles);
      return {until[b.stage.value], plus(after_it, since[b.stage.value])};
    }
    return {plus(until[b.stage.value], own.latency_cycles), since[b.stage.value]};
  }

  // What the chip links add to `steady` cycles of the rest: where loads wait for stores, trip by trip. A collective is a stage of the pipeline of pages: with R
  // pages, s = steady / R and l = its bytes' time / R, the two take s + (R - 1) max(s, l) + l together. Latency is paid
  // once; a landing buffer that holds fewer pages than travel in a round trip limits the rate.
  Cycles chip_links(Cycles steady) const {
    const std::uint64_t trips = memory_orders_.empty() ? 1 : p_.sections[section_.value].trips;
    return times(chip_links_of_trip(steady / trips, trips), trips);
  }
  Cycles chip_links_of_trip(Cycles steady, std::uint64_t all_trips) const {
    struct Traffic {
      std::map<LinkId, Bytes> load;
      Cycles latency = 0;
      Cycles round_trips = 0;
      std::uint64_t pages = 0;  // that the rest of the section hands to it, an instance
    };
    std::map<std::optional<CollectiveId>, Traffic> all;
    for (const CrossingFlow& f : crossings_) {
      const Edge& e = p_.edge(f.edge);
      const Stage& from = sender(f);
      if (!here(from) || !valid(f) || f.to >= e.routes.size() || e.routes[f.to].empty()) continue;
      Traffic& traffic = all[e.collective];
      const Bytes bytes = ceil_div(f.bytes, all_trips);
      const std::uint64_t pages_of_trip = ceil_div(f.pages, all_trips);
      for (const LinkId id : e.routes[f.to]) traffic.load[id] = plus(traffic.load[id], bytes);
      const Cycles one_way = crossing_latency(p_, t_, f);
      const CrossingTrips trips = trips_of(e.handshake);
      const Cycles latency = times(one_way, 1 + trips.before_seen);
      traffic.latency = std::max(traffic.latency, latency);
      if (!from.collective) traffic.pages = std::max(traffic.pages, pages_of_trip);
      for (const Port& port : receiver(f).ports)
        if (const std::uint64_t depth = p_.buffer(port.buffer).depth_pages;
            port.direction == Direction::output && depth != 0)
          traffic.round_trips = std::max(
              traffic.round_trips, times(pages_of_trip > 0 ? (pages_of_trip - 1) / (trips.windowed ? depth : 1) : 0,
                                         times(one_way, 1 + trips.before_next)));
    }
    Cycles link = 0;
    for (const auto& [collective, traffic] : all) {
      Cycles beta = traffic.round_trips, latency = traffic.latency;
      for (const auto& [id, bytes] : traffic.load)
        beta = std::max(beta, time_of(bytes, carried_rate(t_.links[id.value])));
      if (collective && collective->value < collectives_.size()) {
        // The estimate of the algorithm knows its steps; what the program really sends may be more.
        const CollectiveCost& c = collectives_[collective->value];
        const Cycles both = std::max(c.cycles, plus(beta, latency));
        latency = std::max(latency, c.latency_cycles);
        beta = both - latency;
      }
      const std::uint64_t pages = std::max<std::uint64_t>(traffic.pages, 1);
      const Cycles hidden = times(pages - 1, steady / pages);
      const Cycles exposed = std::max(ceil_div(beta, pages), beta > hidden ? beta - hidden : 0);
      link = plus(link, plus(latency, exposed));
    }
    return link;
  }

  const SpatialProgram& p_;
  const Target& t_;
  SectionId section_;
  const std::vector<StageCost>& stages_;
  const std::vector<MemoryFlow>& memory_;
  const std::vector<CrossingFlow>& crossings_;
  const std::vector<CollectiveCost>& collectives_;
  const std::vector<MemoryOrder> memory_orders_;
  std::map<ChipId, ChipUse> chips_;
  std::vector<StageId> order_;
  std::vector<std::size_t> place_;  // in the order, by stage
};

}  // namespace

SectionCost section_cost(const SpatialProgram& program, const Target& target, SectionId section,
                         const std::vector<StageCost>& stages, const std::vector<MemoryFlow>& memory,
                         const std::vector<CrossingFlow>& crossings, const std::vector<CollectiveCost>& collectives) {
  return SectionEstimate(program, target, section, stages, memory, crossings, collectives).run();
}

}  // namespace rdusim::cost
