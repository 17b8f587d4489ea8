#include "models/units/elaborate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "compiler/ir/clusters.h"
#include "compiler/ir/memory_order.h"
#include "compiler/ir/page_frames.h"
#include "compiler/ir/trips.h"
#include "compiler/target/topology.h"
#include "models/units/chip.h"
#include "models/units/fault_partners.h"
#include "models/units/sum_order.h"

namespace rdusim {
namespace {

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a ? std::numeric_limits<std::uint64_t>::max()
                                                                     : a * b;
}

std::uint64_t counter_mask(std::uint32_t bits) {
  return bits == 0 || bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// A page needs so many bytes at most; headers count in 32 bits.
std::uint32_t slot_size(const Buffer& b) {
  return static_cast<std::uint32_t>(
      std::min<Bytes>((b.page_bytes + 15) / 16 * 16, std::numeric_limits<std::uint32_t>::max() - 15));
}

class Elaborator {
 public:
  Elaborator(const SpatialProgram& p, const Target& t, bool values, const std::vector<Fault>& faults,
             NetworkLevel level)
      : p_(p), t_(t), faults_(faults), level_(level), frames_(page_frames(p)), all_routes_(t) {
    for (const Edge& e : p.edges) {
      if (e.to.empty() || e.to.front().value >= p.stages.size()) continue;
      const Stage& to = p.stage(e.to.front());
      const auto* m = std::get_if<MatmulTiles>(&to.kind);
      if (m != nullptr && m->transposed && to.ports.size() > 1 && to.ports[1].buffer == e.buffer)
        feeds_transposed_.insert(e.from);
    }
    Elaboration& e = out_;
    e.laws.pcu = Pcu(t.pcu, p.header.native_tile);
    e.laws.pmu = PmuLaw(t.pmu);
    e.laws.agcu = AgcuLaw(t.agcu);
    const Rate link(t.network.link_bytes_per_cycle);
    e.laws.load_rate = std::min({e.laws.agcu.port, link, e.laws.pmu.write});
    e.laws.store_rate = std::min({e.laws.agcu.port, link, e.laws.pmu.read});
    e.laws.native_tile = p.header.native_tile;
    e.laws.saturate = p.header.numerics.saturate;
    e.laws.values = values;
  }

  Elaboration run() {
    describe_stages();
    make_chips();
    make_buffers();
    make_stages();
    connect_producers_and_consumers();
    rank_loads();
    make_memory_waits();
    make_crossings();
    apply_faults();
    lay_out_pool();
    return std::move(out_);
  }

 private:
  // ---- chips and what stands on them
  struct ChipScratch {
    std::unordered_map<std::uint64_t, std::uint32_t> engines, pmus;
    std::unordered_map<std::uint32_t, std::uint32_t> agcus, links, feeds;
    std::optional<Network::Builder> network;
  };

  ChipState& chip(std::uint32_t id) {
    ChipState& c = out_.chips[id];
    if (!c.used) {
      c.used = true;
      c.chip = ChipId{id};
      c.section_stages.resize(p_.sections.size());
      c.network = Network(t_, level_);
      c.memories.emplace_back(t_.hbm);
      if (t_.ddr) c.memories.emplace_back(*t_.ddr);
    }
    return c;
  }
  Network::Builder& network(std::uint32_t id) {
    auto& builder = scratch_[id].network;
    if (!builder) builder.emplace(chip(id).network, t_.mesh);
    return *builder;
  }
  std::uint64_t site_key(Position at) const { return (std::uint64_t{at.y} << 32) | at.x; }

  std::uint32_t pmu(std::uint32_t id, Position at) {
    const auto [it, fresh] = scratch_[id].pmus.emplace(site_key(at), static_cast<std::uint32_t>(chip(id).pmus.size()));
    if (fresh) chip(id).pmus.emplace_back();
    return it->second;
  }
  // All compute contexts of a PCU are one engine: their firings take turns.
  std::uint32_t engine(std::uint32_t id, Position at, const Engine& e) {
    const std::uint64_t which = e.kind == StageRole::compute ? 0 : std::uint64_t{1} + std::min(e.index, 0xfffeu);
    const std::uint64_t key = (std::uint64_t{at.y & 0xffffffu} << 40) | (std::uint64_t{at.x & 0xffffffu} << 16) | which;
    const auto [it, fresh] = scratch_[id].engines.emplace(key, static_cast<std::uint32_t>(chip(id).engines.size()));
    if (fresh) chip(id).engines.emplace_back();
    return it->second;
  }
  AgcuId agcu_of(const Group& g, std::uint32_t instance) const {
    const AgcuId a = instance < g.agcus.size() ? g.agcus[instance] : AgcuId{};
    return a.value < t_.agcu.at.size() ? a : AgcuId{};
  }
  std::uint32_t agcu(std::uint32_t id, AgcuId a) {
    ChipState& c = chip(id);
    const auto [it, fresh] = scratch_[id].agcus.emplace(a.value, static_cast<std::uint32_t>(c.agcus.size()));
    if (fresh) {
      c.agcus.emplace_back();
      if (a.value < t_.agcu.at.size()) c.agcus.back().at = t_.agcu.at[a.value];
    }
    return it->second;
  }
  std::uint32_t link(std::uint32_t id, LinkId l) {
    ChipState& c = chip(id);
    const auto [it, fresh] = scratch_[id].links.emplace(l.value, static_cast<std::uint32_t>(c.links.size()));
    if (fresh) c.links.emplace_back(t_.links[l.value]);
    return it->second;
  }

  // 1 + what chip `id` knows of the link by which pages come to its port of a switch.
  std::uint32_t feed(std::uint32_t id, LinkId l, Cycles back) {
    ChipState& c = chip(id);
    const auto [it, fresh] = scratch_[id].feeds.emplace(l.value, 0);
    if (!fresh) return it->second;
    const std::uint32_t other = t_.links[l.value].from.value, at = link(other, l);
    c.feeds.push_back({ChipLink(t_.links[l.value]), other, at, back});
    std::vector<PortQueue>& queues = chip(other).port_queues;
    queues.resize(std::max<std::size_t>(queues.size(), at + std::size_t{1}));
    queues[at].room = queues[at].all = t_.links[l.value].room_bytes;
    return it->second = static_cast<std::uint32_t>(c.feeds.size());
  }

  const Group& group(GroupId g) const { return p_.placement->groups[g.value]; }
  std::uint32_t chip_of(GroupId g) const { return group(g).sites.empty() ? 0 : group(g).sites.front().chip.value; }

  void make_chips() {
    std::uint32_t most = t_.chips;
    for (const Group& g : p_.placement->groups)
      for (const Site& s : g.sites) most = std::max(most, s.chip.value + 1);
    out_.chips.resize(most);
    scratch_.resize(most);
  }

  // ---- what instances share
  void describe_stages() {
    out_.laws.stages.resize(p_.stages.size());
    for (const Stage& written : p_.stages) {
      const Stage& s = as_carried_out(written);
      StageSpec& d = out_.laws.stages[s.id.value];
      d.stage = &s;
      d.firings = s.firings;
      d.total = saturating_multiply(s.firings, p_.sections[s.section.value].trips);
      for (const Port& port : s.ports) {
        PortSpec ps;
        ps.direction = port.direction;
        ps.buffer = port.buffer;
        ps.dtype = p_.buffer(port.buffer).dtype;
        ps.need = Phases<std::uint32_t>(port.need);
        ps.pop = Phases<std::uint32_t>(port.pop);
        ps.reserve = Phases<std::uint32_t>(port.reserve);
        ps.push = Phases<std::uint32_t>(port.push);
        ps.chunk = Phases<Chunk>(port.chunk);
        d.ports.push_back(std::move(ps));
      }
      const std::uint64_t tile = std::max(p_.header.native_tile, 1u);
      if (const auto* load = std::get_if<Load>(&s.kind)) {
        d.form = StageForm::load;
        d.load = load;
        describe_tensors(d, *load);
        d.by_columns = reads_transposed_by_columns(s, *load);
        if (load->indexed) d.operand = value_of(s.id);
        if (load->indexed && (d.ports.empty() || d.tensor->shape.size() != 2)) d.form = StageForm::none;
      } else if (const auto* store = std::get_if<Store>(&s.kind)) {
        d.form = StageForm::store;
        d.store = store;
        describe_tensors(d, *store);
      } else if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) {
        std::vector<std::uint32_t> in;
        for (std::uint32_t i = 0; i < d.ports.size(); ++i)
          if (d.ports[i].direction == Direction::input) in.push_back(i);
        if (in.size() == 2) d.form = StageForm::matmul, d.in_a = in[0], d.in_b = in[1];
        d.matmul = m;
        if (in.size() == 2)
          if (const PageFrame& b = frames_[d.ports[in[1]].buffer.value]; b.size() > 1)
            d.b_rows = static_cast<std::uint64_t>(std::max<std::int64_t>(b[b.size() - 2], 1));
        d.operand = result_operand(s, *m);
        const std::uint64_t area = saturating_multiply(saturating_multiply(m->block_m, m->block_n), tile * tile);
        d.accumulator_bytes = std::min<Bytes>(saturating_multiply(area, bytes_of(m->accumulator)), Bytes{1} << 32);
      } else if (const auto* g = std::get_if<Generic>(&s.kind)) {
        d.form = StageForm::generic;
        d.generic = g;
        Cyclic<std::uint32_t> order;
        for (const auto& run : g->bodies) {
          order.push_back({run.repeat, static_cast<std::uint32_t>(d.bodies.size())});
          d.bodies.push_back(&run.value);
          for (const ExprNode& n : run.value) d.keeps = d.keeps || n.op == ExprOp::accumulator;
        }
        d.body = Phases<std::uint32_t>(order);
        d.keeps = d.keeps || joins_rows(*g);
        d.values = makes_values(*g);
        d.operand = value_of(s.id);
        d.row_pages = std::max<std::uint64_t>(cycle_length(g->bodies), 1);
        d.reach.assign(d.ports.size(), Spread{});
        d.flat_rows.assign(d.ports.size(), 1);
        for (std::size_t i = 0; by_row(*g) && i < std::min(d.ports.size(), g->maps.size()); ++i) {
          d.reach[i] = reach_of(g->maps[i]);
          d.flat_rows[i] = flat_rows(frames_[d.ports[i].buffer.value]);
          if (const PageFrame& frame = frames_[d.ports[i].buffer.value];
              d.ports[i].direction == Direction::input && frame.size() > 1)
            d.matrix_rows = std::max(d.matrix_rows, static_cast<std::uint64_t>(frame[frame.size() - 2]));
        }
        if (d.bodies.empty()) d.form = StageForm::none;
        Bytes most = 0;
        for (const PortSpec& ps : d.ports)
          most =
              std::max(most, ceil_div(p_.buffer(ps.buffer).page_bytes, bytes_of(ps.dtype)) * bytes_of(g->accumulator));
        d.accumulator_bytes = std::min<Bytes>(most, Bytes{1} << 32);
      } else if (std::holds_alternative<Recv>(s.kind)) {
        d.form = StageForm::receive;
      }
      if (d.firings == 0) d.form = StageForm::none;
      tabulate_uses(d);
    }
  }

  // A stage, or what a fault makes of it.
  const Stage& as_carried_out(const Stage& s) {
    const bool turns = std::any_of(faults_.begin(), faults_.end(), [&](const Fault& f) {
      return f.kind == FaultKind::sum_order && f.stage && f.stage->stage == s.id;
    });
    std::optional<Stage> turned;
    if (turns) turned = turned_round(s);
    if (!turned) return s;
    return *out_.laws.broken.emplace_back(std::make_shared<const Stage>(*std::move(turned)));
  }

  // A matrix that is multiplied transposed, and whose pages follow each other along its rows.
  bool reads_transposed_by_columns(const Stage& s, const Load& load) const {
    if (load.pattern.stride.empty() || load.pattern.stride.back().empty() || load.pattern.stride.back().back() == 0)
      return false;
    return feeds_transposed_.contains(s.id);
  }

  static Spread reach_of(const AffineMap& map) {
    const auto follows = [&](std::size_t axis) {
      return map.size() > axis && map[axis].size() > axis && map[axis][axis] != 0;
    };
    return {follows(0), follows(1)};
  }

  static void tabulate_uses(StageSpec& d) {
    constexpr std::uint64_t longest = 1 << 14;  // phases; longer cycles are looked up port by port
    std::uint64_t cycle = 1;
    for (const PortSpec& port : d.ports)
      for (const std::uint64_t length :
           {port.need.length(), port.pop.length(), port.reserve.length(), port.push.length()}) {
        cycle = std::lcm(cycle, std::min(length, longest + 1));
        if (cycle > longest) return;
      }
    d.cycle = cycle;
    d.first_use.assign(cycle + 1, 0);
    for (std::uint64_t phase = 0; phase < cycle; ++phase) {
      for (std::uint32_t p = 0; p < d.ports.size(); ++p) {
        const PortSpec& port = d.ports[p];
        PortUse use{p, port.direction, 0, 0, 0, 0};
        if (port.direction == Direction::input) {
          use.need = port.need.at(phase);
          use.pop = port.pop.at(phase);
        } else {
          use.reserve = port.reserve.at(phase);
          use.push = port.push.at(phase);
        }
        if (use.need != 0 || use.pop != 0 || use.reserve != 0 || use.push != 0) d.uses.push_back(use);
      }
      d.first_use[phase + 1] = static_cast<std::uint32_t>(d.uses.size());
    }
  }

  template <class Access>
  void describe_tensors(StageSpec& d, const Access& access) {
    for_each_tensor(access, [&](TensorId id) {
      const bool placed = p_.memory && id.value < p_.memory->tensors.size();
      d.tensors.push_back({&p_.tensor(id), placed ? p_.memory->tensors[id.value].address : 0});
    });
    d.tensor = d.tensors.front().tensor;
    d.operand = d.tensor->operand;
    if (d.tensor->shape.empty()) d.form = StageForm::none;
  }

  // The operand that a matmul's sums belong to: its operator's output; without operators, that of the store which its
  // result reaches.
  OperandId result_operand(const Stage& s, const MatmulTiles& m) const {
    if (p_.operators && m.op.value < p_.operators->operators.size()) return p_.operators->operators[m.op.value].out;
    std::vector<bool> seen(p_.stages.size());
    std::vector<std::uint32_t> todo;
    todo.reserve(p_.stages.size());
    todo.push_back(s.id.value);
    seen[s.id.value] = true;
    for (std::size_t i = 0; i < todo.size(); ++i) {
      for (const Edge& e : p_.edges) {
        if (e.from.value != todo[i]) continue;
        for (const StageId to : e.to) {
          if (const auto* store = std::get_if<Store>(&p_.stage(to).kind)) return p_.tensor(store->tensor).operand;
          if (!seen[to.value]) seen[to.value] = true, todo.push_back(to.value);
        }
      }
    }
    return OperandId{};
  }

  // ---- buffers
  void make_buffers() {
    // Pages that will ever be pushed bound the slots that are worth having.
    std::vector<std::uint64_t> pages(p_.buffers.size());
    for (const StageSpec& d : out_.laws.stages)
      for (const PortSpec& ps : d.ports) {
        if (ps.direction != Direction::output) continue;
        std::uint64_t n = d.form == StageForm::receive ? d.total : ps.push.total(d.total);
        pages[ps.buffer.value] = std::max(pages[ps.buffer.value], n);
      }
    buffer_base_.resize(p_.buffers.size());
    for (const Buffer& b : p_.buffers) {
      if (group(b.group).sites.empty()) continue;
      const std::uint32_t id = chip_of(b.group);
      ChipState& c = chip(id);
      buffer_base_[b.id.value] = static_cast<std::uint32_t>(c.buffers.size());
      const std::uint64_t wanted = std::min(b.depth_pages, saturating_add(pages[b.id.value], b.initial_pages));
      const auto slots = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, std::uint64_t{1} << 24));
      for (std::uint32_t i = 0; i < group(b.group).sites.size(); ++i) {
        BufferState s;
        s.depth = b.depth_pages;
        s.slots = slots;
        s.slot_bytes = slot_size(b);
        s.initial = static_cast<std::uint32_t>(std::min<std::uint64_t>(b.initial_pages, slots));
        s.reserved = s.pushed = s.initial;
        s.id = b.id.value;
        s.instance = i;
        s.headers = s.staged_headers = static_cast<std::uint32_t>(c.headers.size());
        c.headers.resize(c.headers.size() + slots);
        for (std::uint32_t n = 0; n < s.initial; ++n)
          c.headers[s.headers + n].bytes = static_cast<std::uint32_t>(std::min<Bytes>(b.page_bytes, s.slot_bytes));
        c.buffers.push_back(s);
      }
    }
  }
  static std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
  }

  // Instance of `to` on the site of each instance of `from`; nothing where there is none.
  const std::vector<std::optional<std::uint32_t>>& same_site(GroupId from, GroupId to) {
    const auto key = std::make_pair(from.value, to.value);
    if (const auto it = same_site_.find(key); it != same_site_.end()) return it->second;
    std::vector<std::optional<std::uint32_t>> map(group(from).sites.size());
    std::unordered_map<std::uint64_t, std::uint32_t> where;
    const std::uint32_t chip = chip_of(to);
    for (std::uint32_t i = 0; i < group(to).sites.size(); ++i) where.emplace(site_key(group(to).sites[i].at), i);
    for (std::uint32_t i = 0; i < map.size(); ++i) {
      const auto it = where.find(site_key(group(from).sites[i].at));
      if (it != where.end() && chip_of(from) == chip) map[i] = it->second;
    }
    return same_site_.emplace(key, std::move(map)).first->second;
  }
  // The buffer instance that a port of a stage instance names; nothing where it is not on the site.
  std::optional<std::uint32_t> buffer_at(const Stage& s, std::uint32_t instance, BufferId b) {
    const GroupId to = p_.buffer(b).group;
    std::optional<std::uint32_t> i = instance;
    if (to != s.group) i = same_site(s.group, to)[instance];
    if (!i || *i >= group(to).sites.size()) return std::nullopt;
    return buffer_base_[b.value] + *i;
  }

  // ---- stages
  // Order in which stages are granted: by id, except that stages which share an engine are served as the schedule says.
  std::vector<std::uint32_t> grant_order() const {
    std::vector<std::uint32_t> order(p_.stages.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    if (!p_.schedule) return order;
    std::vector<std::uint32_t> place(order);
    for (const EngineOrder& e : p_.schedule->engine_orders) {
      std::vector<std::uint32_t> places;
      for (const StageId s : e.stages)
        if (s.value < place.size()) places.push_back(place[s.value]);
      std::sort(places.begin(), places.end());
      std::size_t n = 0;
      for (const StageId s : e.stages)
        if (s.value < place.size()) place[s.value] = places[n++];
    }
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place[a] != place[b] ? place[a] < place[b] : a < b; });
    return order;
  }

  void make_stages() {
    stage_base_.resize(p_.stages.size());
    for (const std::uint32_t n : grant_order()) {
      const Stage& s = p_.stages[n];
      const StageSpec& d = out_.laws.stages[n];
      const Group& g = group(s.group);
      if (g.sites.empty()) continue;
      const std::uint32_t id = chip_of(s.group);
      ChipState& c = chip(id);
      stage_base_[n] = static_cast<std::uint32_t>(c.stages.size());
      for (std::uint32_t i = 0; i < g.sites.size(); ++i) {
        StageState state;
        state.total = d.total;
        state.spec = n;
        state.instance = i;
        state.form = d.form;
        state.first_port = static_cast<std::uint32_t>(c.ports.size());
        state.engine = engine(id, g.sites[i].at, s.engine);
        state.pmu = pmu(id, g.sites[i].at);
        state.actor = static_cast<std::uint32_t>(c.stages.size());
        c.section_stages[s.section.value].push_back(state.actor);
        for (const PortSpec& ps : d.ports) {
          PortState port;
          if (const auto b = buffer_at(s, i, ps.buffer)) {
            port.buffer = *b;
            // An input is bound when it has become a consumer.
            if (ps.direction == Direction::output)
              port.bound = true, port.assigned = port.transited = c.buffers[*b].initial;
          }
          c.ports.push_back(port);
        }
        make_detail(c, id, state, s, d, g, i);
        c.stages.push_back(state);
      }
      if (d.form == StageForm::load) make_multicast_sets(c, id, n, s, d, g);
    }
  }

  std::uint32_t memory_of(const Tensor& t) const { return t.space == MemorySpace::ddr && t_.ddr ? 1 : 0; }

  void make_detail(ChipState& c, std::uint32_t id, StageState& state, const Stage&, const StageSpec& d, const Group& g,
                   std::uint32_t i) {
    switch (d.form) {
      case StageForm::load: {
        state.detail = static_cast<std::uint32_t>(c.loads.size());
        LoadState load;
        load.stage = state.actor;
        load.agcu = agcu(id, agcu_of(g, i));
        load.memory = memory_of(*d.tensor);
        c.loads.push_back(load);
        break;
      }
      case StageForm::store: {
        state.detail = static_cast<std::uint32_t>(c.stores.size());
        StoreState store;
        store.agcu = agcu(id, agcu_of(g, i));
        store.memory = memory_of(*d.tensor);
        const Position to[] = {c.agcus[store.agcu].at};
        store.route = network(id).route(g.sites[i].at, to, {false, 0});
        c.stores.push_back(std::move(store));
        break;
      }
      case StageForm::matmul: {
        state.detail = static_cast<std::uint32_t>(c.matmuls.size());
        MatmulState m;
        m.accumulator = pool(c, d.accumulator_bytes);
        c.matmuls.push_back(m);
        break;
      }
      case StageForm::generic: {
        state.detail = static_cast<std::uint32_t>(c.generics.size());
        GenericState gs;
        if (d.keeps) gs.accumulator = pool(c, d.accumulator_bytes);
        c.generics.push_back(gs);
        c.scratch_bytes = std::max(c.scratch_bytes, (d.accumulator_bytes + 15) / 16 * 16);
        c.scratch_pages = Chip::scratch_pages;
        break;
      }
      case StageForm::receive: {
        state.detail = static_cast<std::uint32_t>(c.receives.size());
        ReceiveState r;
        r.stage = state.actor;
        r.agcu = agcu(id, agcu_of(g, i));
        if (!d.ports.empty() && c.ports[state.first_port].bound) {
          r.buffer = c.ports[state.first_port].buffer;
        } else {
          state.form = StageForm::none;  // nowhere to land
        }
        c.receives.push_back(r);
        break;
      }
      case StageForm::none:
        break;
    }
  }

  static std::size_t pool(ChipState& c, Bytes bytes) {
    const std::size_t at = c.pool_bytes;
    c.pool_bytes += (bytes + 63) / 64 * 64;
    return at;
  }

  // Members of one multicast set fire as one: the first of them acts.
  void make_multicast_sets(ChipState& c, std::uint32_t id, std::uint32_t n, const Stage&, const StageSpec& d,
                           const Group& g) {
    const auto& sets = d.load->multicast_set;
    std::map<std::uint32_t, std::vector<std::uint32_t>> members;
    const auto count = static_cast<std::uint32_t>(g.sites.size());
    for (std::uint32_t i = 0; i < count; ++i)
      members[i < sets.size() && !sets.empty() ? sets[i] : i + std::numeric_limits<std::uint32_t>::max() / 2].push_back(
          i);
    for (const auto& [set, list] : members) {
      const std::uint32_t actor = stage_base_[n] + list.front();
      LoadState& load = c.loads[c.stages[actor].detail];
      load.first_member = static_cast<std::uint32_t>(c.load_members.size());
      load.members = static_cast<std::uint32_t>(list.size());
      std::vector<Position> to;
      for (const std::uint32_t i : list) {
        c.load_members.push_back(stage_base_[n] + i);
        c.stages[stage_base_[n] + i].actor = actor;
        c.stages[stage_base_[n] + i].detail = c.stages[actor].detail;
        to.push_back(g.sites[i].at);
      }
      load.route = network(id).route(c.agcus[load.agcu].at, to, {true, std::nullopt});
    }
  }

  // ---- the order of loads

  void rank_loads() {
    for (const Cluster& cluster : clusters_of(p_)) {
      std::map<std::uint32_t, std::uint32_t> first;  // by chip: the least stage
      for (const StageId s : cluster.stages) first.try_emplace(chip_of(p_.stage(s).group), s.value);
      for (const StageId s : cluster.stages) {
        if (out_.laws.stages[s.value].form != StageForm::load) continue;
        const std::uint32_t id = chip_of(p_.stage(s).group);
        ChipState& c = chip(id);
        for (std::uint32_t i = 0; i < group(p_.stage(s).group).sites.size(); ++i)
          c.loads[c.stages[stage_base_[s.value] + i].detail].rank = first.at(id);
      }
    }
  }

  // ---- loads that wait for stores

  void make_memory_waits() {
    for (const MemoryOrder& order : memory_orders(p_)) {
      ChipState& c = chip(chip_of(p_.stage(order.stores.front()).group));
      const auto which = static_cast<std::uint32_t>(c.memory_waits.size());
      MemoryWait wait;
      // The greatest distance to any site is that to one of the outermost along the two diagonals.
      std::array<std::optional<Position>, 4> outermost;
      const auto reach = [](std::size_t way, Position at) {
        const std::int64_t x = at.x, y = at.y;
        return (way % 2 == 0 ? x : -x) + (way / 2 == 0 ? y : -y);
      };
      for (const StageId store : order.stores) {
        const Group& g = group(p_.stage(store).group);
        for (std::uint32_t i = 0; i < g.sites.size(); ++i) {
          const StageState& s = c.stages[stage_base_[store.value] + i];
          wait.next = std::exchange(c.stores[s.detail].memory_wait, which + 1);
          wait.all += p_.stage(store).firings;
          for (std::size_t way = 0; way < outermost.size(); ++way)
            if (!outermost[way] || reach(way, g.sites[i].at) > reach(way, *outermost[way]))
              outermost[way] = g.sites[i].at;
        }
      }
      if (wait.all == 0) continue;
      wait.to_come.assign(p_.sections[order.section.value].trips, wait.all);
      wait.first_held = static_cast<std::uint32_t>(c.held_loads.size());
      for (const StageId load : order.loads) {
        const Group& g = group(p_.stage(load).group);
        for (std::uint32_t i = 0; i < g.sites.size(); ++i) {
          HeldLoad held;
          held.stage = stage_base_[load.value] + i;
          for (const auto& at : outermost) held.signal = std::max(held.signal, c.network.control(*at, g.sites[i].at));
          held.lag = order.lag;
          held.wait = which;
          StageState& s = c.stages[held.stage];
          LoadState& state = c.loads[s.detail];
          s.held = s.held || order.lag == 0;
          held.next = state.first_held;
          c.held_loads.push_back(held);
          state.first_held = static_cast<std::uint32_t>(c.held_loads.size());
        }
      }
      wait.held = static_cast<std::uint32_t>(c.held_loads.size()) - wait.first_held;
      c.memory_waits.push_back(wait);
    }
  }

  // ---- who reads and writes each buffer
  void connect_producers_and_consumers() {
    // By buffer: local consumers in the order of their edge's `to`, then crossing edges by id, then any other port.
    struct Reader {
      std::optional<std::pair<StageId, std::uint32_t>> port;  // stage, port number
      std::optional<EdgeId> crossing;
    };
    std::vector<std::vector<Reader>> readers(p_.buffers.size());
    std::vector<std::vector<bool>> taken(p_.stages.size());
    for (const Stage& s : p_.stages) taken[s.id.value].resize(s.ports.size());
    for (const Edge& e : p_.edges) {
      if (!is_local(e.handshake)) continue;
      for (const StageId to : e.to)
        for (std::uint32_t p = 0; p < p_.stage(to).ports.size(); ++p) {
          const Port& port = p_.stage(to).ports[p];
          if (port.direction != Direction::input || port.buffer != e.buffer || taken[to.value][p]) continue;
          taken[to.value][p] = true;
          readers[e.buffer.value].push_back({std::make_pair(to, p), std::nullopt});
          break;
        }
    }
    for (const Edge& e : p_.edges)
      if (!is_local(e.handshake)) readers[e.buffer.value].push_back({std::nullopt, e.id});
    for (const Stage& s : p_.stages)
      for (std::uint32_t p = 0; p < s.ports.size(); ++p)
        if (s.ports[p].direction == Direction::input && !taken[s.id.value][p])
          readers[s.ports[p].buffer.value].push_back({std::make_pair(s.id, p), std::nullopt});

    sender_consumer_.resize(p_.edges.size());
    for (const Buffer& b : p_.buffers) {
      const Group& g = group(b.group);
      if (g.sites.empty()) continue;
      ChipState& c = chip(chip_of(b.group));
      const auto& list = readers[b.id.value];
      for (std::uint32_t i = 0; i < g.sites.size(); ++i) {
        BufferState& state = c.buffers[buffer_base_[b.id.value] + i];
        state.first_consumer = static_cast<std::uint32_t>(c.consumers.size());
        for (std::uint32_t n = 0; n < list.size(); ++n) {
          ConsumerState consumer;
          consumer.number = n;
          if (list[n].port) {
            const auto [stage, port] = *list[n].port;
            const auto at = stage_instance(p_.stage(stage), b.group, i);
            if (!at) continue;
            consumer.actor = stage_base_[stage.value] + *at;
            PortState& ps = c.ports[c.stages[consumer.actor].first_port + port];
            ps.bound = true;
            ps.consumer = static_cast<std::uint32_t>(c.consumers.size());
          } else {
            const Edge& e = p_.edge(*list[n].crossing);
            if (!stage_instance(p_.stage(e.from), b.group, i)) continue;
            consumer.sender = true;
            auto& where = sender_consumer_[e.id.value];
            if (where.empty()) where.assign(g.sites.size(), 0);
            where[i] = static_cast<std::uint32_t>(c.consumers.size());
          }
          c.consumers.push_back(consumer);
          ++state.consumers;
        }
      }
    }
    for (ChipState& c : out_.chips)
      for (std::uint32_t i = 0; i < c.stages.size(); ++i) {
        const StageState& s = c.stages[i];
        const StageSpec& d = out_.laws.stages[s.spec];
        for (std::uint32_t p = 0; p < d.ports.size(); ++p) {
          const PortState& port = c.ports[s.first_port + p];
          if (d.ports[p].direction != Direction::output || !port.bound) continue;
          c.buffers[port.buffer].produced = true;
          c.buffers[port.buffer].producer = i;
          c.buffers[port.buffer].landing = s.form == StageForm::receive;
        }
      }
  }
  // Instance of the stage on the site of buffer instance i of group g.
  std::optional<std::uint32_t> stage_instance(const Stage& s, GroupId g, std::uint32_t i) {
    if (s.group == g) return i;
    if (group(s.group).sites.empty() || chip_of(s.group) != chip_of(g)) return std::nullopt;
    return same_site(g, s.group)[i];
  }

  // ---- crossings
  // The links from chip to chip: the ones given where they are a route, else the target's own.
  const std::vector<LinkId>& route_between(std::uint32_t from, std::uint32_t to) {
    const auto key = std::make_pair(from, to);
    if (const auto it = routes_.find(key); it != routes_.end()) return it->second;
    std::vector<LinkId> r;
    if (from < t_.chips && to < t_.chips) r = all_routes_.between(ChipId{from}, ChipId{to});
    return routes_.emplace(key, std::move(r)).first->second;
  }
  bool is_route(const std::vector<LinkId>& links, std::uint32_t from, std::uint32_t to) const {
    std::uint32_t at = from;
    for (const LinkId l : links) {
      if (l.value >= t_.links.size() || t_.links[l.value].from.value != at) return false;
      at = t_.links[l.value].to.value;
    }
    return !links.empty() && at == to;
  }

  // A path over `links` from chip `from`, after which `then` happens on the last chip, `tail` cycles after the arrival.
  Path over_links(std::uint32_t from, const std::vector<LinkId>& links, Event then, Cycles lead, Cycles tail,
                  bool signal) {
    Path path;
    path.lead = lead;
    path.remote = true;
    // From the far end: each relay names the next one.
    for (std::size_t i = links.size(); i-- > 0;) {
      const ChipLinkParameters& l = t_.links[links[i].value];
      // What a switch sends to a chip is the chip's work.
      const auto owner_of = [&](std::size_t leg) {
        const ChipLinkParameters& at = t_.links[links[leg].value];
        return at.from.value < t_.chips ? at.from.value : at.to.value;
      };
      const std::uint32_t owner = i == 0 ? from : owner_of(i);
      Relay r;
      r.link = link(owner, links[i]);
      r.to_chip = l.to.value < t_.chips ? l.to.value : owner_of(i + 1);
      if (l.from.value >= t_.chips) r.feed = feed(owner, links[i - 1], l.latency_cycles);
      r.then = then;
      r.tail = i + 1 == links.size() ? tail : 0;
      r.signal = signal;
      ChipState& c = chip(owner);
      path.relay = static_cast<std::uint32_t>(c.relays.size());
      then = {Chip::relay, path.relay, 0};
      c.relays.push_back(r);
    }
    return path;
  }

  struct Place {
    std::uint32_t chip = 0;
    Position site;
    Position agcu;
  };
  Place place_of(const Stage& s, std::uint32_t instance) {
    const Group& g = group(s.group);
    Place p{chip_of(s.group), g.sites[instance].at, {}};
    const AgcuId a = agcu_of(g, instance);
    if (a.value < t_.agcu.at.size()) p.agcu = t_.agcu.at[a.value];
    return p;
  }
  Path signal_path(const Place& from, const Place& to, const std::vector<LinkId>& links, Event then) {
    const Network& wires = chip(from.chip).network;
    if (from.chip == to.chip) {
      Path path;
      path.lead = wires.control(from.site, to.site);
      path.then = then;
      return path;
    }
    const Cycles lead = wires.control(from.site, from.agcu) + t_.agcu.latency_cycles;
    const Cycles tail = wires.control(to.agcu, to.site) + t_.agcu.latency_cycles;
    return over_links(from.chip, links, then, lead, tail, true);
  }

  void make_crossings() {
    struct Made {
      std::uint32_t from_chip, send, to_chip, to_stage, from, position, period;
      EdgeId edge;
    };
    std::vector<Made> made;
    for (const Edge& e : p_.edges) {
      if (is_local(e.handshake)) continue;
      const Stage& from = p_.stage(e.from);
      const auto& where = sender_consumer_[e.id.value];
      for (std::uint32_t i = 0; i < group(from.group).sites.size(); ++i) {
        const auto b = buffer_at(from, i, e.buffer);
        if (!b) continue;
        const std::uint32_t id = chip_of(from.group);
        ChipState& c = chip(id);
        const std::uint32_t local = c.buffers[*b].instance;
        if (local >= where.size()) continue;
        SenderState s;
        s.edge = e.id.value;
        s.from = i;
        s.buffer = *b;
        s.consumer = where[local];
        s.handshake = e.handshake;
        s.chunk = e.chunk;
        s.element_bytes = bytes_of(p_.buffer(e.buffer).dtype);
        s.pmu = pmu(id, group(from.group).sites[i].at);
        s.agcu = agcu(id, agcu_of(group(from.group), i));
        s.total = c.buffers[*b].initial + pages_into(from, e.buffer);
        std::uint32_t bits = e.counter_bits;
        if (e.semaphores && e.semaphores->ready.value < p_.semaphores.size()) {
          bits = p_.semaphores[e.semaphores->ready.value].width_bits;
          s.initial = s.value = p_.semaphores[e.semaphores->ready.value].initial;
        }
        s.mask = counter_mask(bits);
        s.first_channel = static_cast<std::uint32_t>(c.send_channels.size());
        s.first_shot = static_cast<std::uint32_t>(c.shots.size());
        const auto sender = static_cast<std::uint32_t>(c.senders.size());
        c.consumers[s.consumer].actor = sender;

        // The receivers of each `to`, rising, and which of the pages they get.
        std::vector<std::uint32_t> listed;
        if (e.map.kind == PageMapKind::one_to_one) {
          listed.push_back(i);
        } else if (i < e.map.targets.size()) {
          listed = e.map.targets[i];
          if (e.map.kind == PageMapKind::gather && listed.size() > 1) listed.erase(listed.begin() + 1, listed.end());
        }
        const bool scatter = e.map.kind == PageMapKind::scatter;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> receivers;  // instance, position
        for (std::uint32_t n = 0; n < listed.size(); ++n) receivers.emplace_back(listed[n], n);
        std::sort(receivers.begin(), receivers.end());
        std::vector<std::vector<std::uint32_t>> of_shot(scatter ? listed.size() : listed.empty() ? 0 : 1);
        for (std::uint32_t to = 0; to < e.to.size(); ++to) {
          const Stage& receiver = p_.stage(e.to[to]);
          for (const auto& [instance, position] : receivers) {
            if (instance >= group(receiver.group).sites.size()) continue;
            const ChipState& there = chip(chip_of(receiver.group));
            if (there.stages[stage_base_[receiver.id.value] + instance].form != StageForm::receive) continue;
            SendChannel ch;
            ch.edge = e.id.value;
            ch.from = i;
            ch.to = to;
            ch.receiver = instance;
            ch.sender = sender;
            ch.to_chip = chip_of(receiver.group);
            const auto n = static_cast<std::uint32_t>(c.send_channels.size());
            of_shot[scatter ? position : 0].push_back(n);
            made.push_back({id, n, ch.to_chip, stage_base_[receiver.id.value] + instance, i, scatter ? position : 0,
                            scatter ? static_cast<std::uint32_t>(listed.size()) : 1, e.id});
            c.send_channels.push_back(ch);
            ++s.channels;
          }
        }
        for (const auto& channels : of_shot) make_shot(c, id, s, from, i, channels);
        c.senders.push_back(s);
      }
    }
    // The channels of a receiver lie together, by rising sender.
    std::stable_sort(made.begin(), made.end(), [](const Made& a, const Made& b) {
      return std::tie(a.to_chip, a.to_stage, a.from, a.position) < std::tie(b.to_chip, b.to_stage, b.from, b.position);
    });
    for (const Made& m : made) {
      ChipState& there = chip(m.to_chip);
      ChipState& here = chip(m.from_chip);
      SendChannel& send = here.send_channels[m.send];
      const Edge& e = p_.edge(m.edge);
      const std::uint32_t receive = there.stages[m.to_stage].detail;
      ReceiveState& r = there.receives[receive];
      const auto n = static_cast<std::uint32_t>(there.receive_channels.size());
      if (r.channels == 0) {
        r.first_channel = n;
        r.handshake = e.handshake;
        std::uint32_t bits = e.counter_bits;
        if (e.semaphores && send.to < e.semaphores->valid.size() &&
            e.semaphores->valid[send.to].value < p_.semaphores.size()) {
          const Semaphore& valid = p_.semaphores[e.semaphores->valid[send.to].value];
          bits = valid.width_bits;
          r.initial = r.value = valid.initial;
        }
        r.mask = counter_mask(bits);
      }
      ReceiveChannel ch;
      ch.edge = send.edge;
      ch.from = send.from;
      ch.to = send.to;
      ch.receiver = send.receiver;
      ch.receive = receive;
      ch.rank = r.channels++;
      ch.member = m.send - here.senders[send.sender].first_channel + 1;
      ch.position = m.position;
      ch.period = m.period;
      ch.there = m.send;
      ch.generations = here.senders[send.sender].total;
      send.there = n;

      const Stage& from = p_.stage(e.from);
      const Stage& to = p_.stage(e.to[send.to]);
      const Place a = place_of(from, send.from);
      const Place b = place_of(to, send.receiver);
      if (a.chip != b.chip) {
        const Position site[] = {b.site};
        ch.inward = network(b.chip).route(b.agcu, site, {true, std::nullopt});
      }
      there.receive_channels.push_back(ch);
      connect(e, send, n, m.send, a, b);
    }
    // Credits: one a page of the landing buffer, to the sender of the page that will land there.
    for (ChipState& c : out_.chips)
      for (const ReceiveState& r : c.receives) {
        if (r.handshake != Handshake::token || r.channels == 0) continue;
        const BufferState& b = c.buffers[r.buffer];
        const std::uint64_t room = b.depth - std::min<std::uint64_t>(b.depth, b.initial);
        for (std::uint32_t rank = 0; rank < r.channels; ++rank) {
          const ReceiveChannel& ch = c.receive_channels[r.first_channel + rank];
          ChipState& there = out_.chips[chip_of(p_.stage(p_.edge(EdgeId{ch.edge}).from).group)];
          SendChannel& send = there.send_channels[ch.there];
          send.credits = (room / r.channels + (rank < room % r.channels ? 1 : 0)) & there.senders[send.sender].mask;
        }
      }
  }

  // The two ends' ways to each other.
  void connect(const Edge& e, SendChannel& send, std::uint32_t there, std::uint32_t here, const Place& a,
               const Place& b) {
    std::vector<LinkId> forward, backward;
    if (a.chip != b.chip) {
      if (send.to < e.routes.size() && is_route(e.routes[send.to], a.chip, b.chip)) {
        forward = e.routes[send.to];
      } else {
        forward = route_between(a.chip, b.chip);
      }
      backward = route_between(b.chip, a.chip);
      // Chips that nothing joins cannot hear each other.
      if (forward.empty() || backward.empty()) {
        send.unreachable = true;
        out_.chips[b.chip].receives[out_.chips[b.chip].receive_channels[there].receive].unreachable = true;
        return;
      }
      send.data = over_links(a.chip, forward, {Chip::chip_arrive, there, 0}, 0, 0, false);
    }
    const auto back = [&](Chip::EventKind kind) {
      out_.chips[b.chip].receive_channels[there].back = signal_path(b, a, backward, {kind, here, 0});
    };
    switch (e.handshake) {
      case Handshake::semaphore:
        send.signal = signal_path(a, b, forward, {Chip::valid, there, 0});
        back(Chip::ready);
        break;
      case Handshake::barrier:
        send.signal = signal_path(a, b, forward, {Chip::barrier_leave, there, 0});
        back(Chip::barrier_arrive);
        break;
      default:
        back(Chip::credit);
    }
  }

  void make_shot(ChipState& c, std::uint32_t id, SenderState& s, const Stage& from, std::uint32_t instance,
                 const std::vector<std::uint32_t>& channels) {
    Shot shot;
    shot.first_channel = static_cast<std::uint32_t>(c.shot_channels.size());
    shot.channels = static_cast<std::uint32_t>(channels.size());
    std::vector<Position> to;
    const Place here = place_of(from, instance);
    for (const std::uint32_t n : channels) {
      SendChannel& ch = c.send_channels[n];
      c.shot_channels.push_back(n);
      if (ch.to_chip == id) {
        ch.leaf = static_cast<std::uint32_t>(to.size());
        to.push_back(group(p_.stage(p_.edges[ch.edge].to[ch.to]).group).sites[ch.receiver].at);
      } else {
        shot.leaves_chip = true;
      }
    }
    if (shot.leaves_chip) {
      shot.agcu_leaf = static_cast<std::uint32_t>(to.size());
      to.push_back(here.agcu);
    }
    const std::optional<std::size_t> door =
        shot.leaves_chip ? std::optional<std::size_t>(shot.agcu_leaf) : std::nullopt;
    shot.leaves = static_cast<std::uint32_t>(to.size());
    shot.route = network(id).route(here.site, to, {false, door});
    c.shots.push_back(shot);
    ++s.shots;
  }

  std::uint64_t pages_into(const Stage& from, BufferId b) const {
    const StageSpec& d = out_.laws.stages[from.id.value];
    if (d.form == StageForm::receive) return d.total;
    for (const PortSpec& ps : d.ports)
      if (ps.direction == Direction::output && ps.buffer == b) return ps.push.total(d.total);
    return 0;
  }

  // ---- faults
  void stage_beside(ChipState& c, BufferState& b) {
    if (b.fault != 0) return;
    c.buffer_faults.emplace_back();
    c.buffer_faults.back().produced = c.buffer_faults.back().initial = b.initial;
    b.fault = static_cast<std::uint32_t>(c.buffer_faults.size());
    b.faulty = true;
    b.staged_headers = static_cast<std::uint32_t>(c.headers.size());
    c.headers.resize(c.headers.size() + b.slots);
    for (std::uint32_t i = 0; i < b.slots; ++i) c.headers[b.staged_headers + i] = c.headers[b.headers + i];
  }

  void apply_faults() {
    for (std::size_t n = 0; n < faults_.size(); ++n) {
      const Fault& f = faults_[n];
      if (f.buffer) break_buffer(f, n);
      if (f.stage) break_stage(f, n);
      if (f.edge) break_edge(f, n);
      if (f.link) break_link(f, n);
    }
  }

  void break_buffer(const Fault& f, std::size_t n) {
    if (f.buffer->buffer.value >= p_.buffers.size()) return;
    const GroupId g = p_.buffer(f.buffer->buffer).group;
    if (f.buffer->instance >= group(g).sites.size()) return;
    ChipState& c = chip(chip_of(g));
    BufferState& b = c.buffers[buffer_base_[f.buffer->buffer.value] + f.buffer->instance];
    if (b.landing) return;  // a landing buffer is broken by its edge
    stage_beside(c, b);
    if (f.kind == FaultKind::depth_less && b.depth > 1) --b.depth, ++c.buffer_faults[b.fault - 1].missing;
    if (f.kind == FaultKind::page_long) lengthen(b);
    if (f.kind == FaultKind::collective_order) {
      exchange_order(c, f, n);
      return;
    }
    c.faults.add(f, n);
  }

  // Room for half a page more in every slot.
  static void lengthen(BufferState& b) {
    if (b.slot_bytes < 1u << 31) b.slot_bytes += (b.slot_bytes / 2 + 15) / 16 * 16;
  }

  // What all sites of a chip give to one collective waits until the chip has given something to another one.
  void exchange_order(ChipState& c, Fault f, std::size_t n) {
    const auto other = other_collective(p_, f.buffer->buffer);
    if (!other) return;
    const std::uint32_t index = buffer_base_[other->value];
    stage_beside(c, c.buffers[index]);
    const auto sites = static_cast<std::uint32_t>(group(p_.buffer(f.buffer->buffer).group).sites.size());
    for (std::uint32_t i = 0; i < sites; ++i) {
      const std::uint32_t late = buffer_base_[f.buffer->buffer.value] + i;
      stage_beside(c, c.buffers[late]);
      c.buffer_faults[c.buffers[late].fault - 1].after = index;
      c.buffer_faults[c.buffers[index].fault - 1].before.push_back(late);
      f.buffer->instance = i;
      c.faults.add(f, n);
    }
  }

  void break_stage(Fault f, std::size_t n) {
    if (f.stage->stage.value >= p_.stages.size()) return;
    const GroupId g = p_.stage(f.stage->stage).group;
    if (f.stage->instance >= group(g).sites.size()) return;
    ChipState& c = chip(chip_of(g));
    StageState* s = &c.stages[stage_base_[f.stage->stage.value] + f.stage->instance];
    // What a load of a multicast set reads, its first member reads for all.
    if (law_of(f.kind).place == FaultPlace::load || law_of(f.kind).place == FaultPlace::mover) {
      s = &c.stages[s->actor];
      f.stage->instance = s->instance;
    }
    s->faulty = true;
    if (f.kind == FaultKind::shard_swap) {
      if (f.partner) {
        c.faults.add(f, n);
        return;
      }
      const auto other = other_shard(p_, f.stage->stage);
      if (!other) return;
      f.partner = other;
      c.faults.add(f, n);
      break_stage({f.kind, std::nullopt, std::nullopt, StageAt{*other, f.stage->instance}, 0, f.nth, std::nullopt,
                   f.stage->stage},
                  n);
      return;
    }
    c.faults.add(f, n);
  }

  void break_link(const Fault& f, std::size_t n) {
    for (ChipState& c : out_.chips)
      for (std::size_t i = 0; i < c.links.size(); ++i) {
        if (c.links[i].id() != *f.link) continue;
        c.link_faults.resize(c.links.size());
        c.link_faults[i].faulty = true;
        c.faults.add(f, n);
      }
  }

  // At both ends of the sending instance's channels.
  void break_edge(const Fault& f, std::size_t n) {
    for (ChipState& c : out_.chips) {
      bool ours = false;
      for (SendChannel& ch : c.send_channels)
        if (ch.edge == f.edge->value && ch.from == f.instance) ch.faulty = c.senders[ch.sender].faulty = ours = true;
      for (std::uint32_t i = 0; i < c.receive_channels.size(); ++i) {
        const ReceiveChannel& ch = c.receive_channels[i];
        if (ch.edge != f.edge->value || ch.from != f.instance) continue;
        ours = true;
        break_channel(c, i);
        if (f.kind == FaultKind::page_long) lengthen(c.buffers[c.receives[ch.receive].buffer]);
        if (f.kind != FaultKind::page_misroute || c.receive_channels.size() < 2) continue;
        const std::uint32_t other = (i + 1) % static_cast<std::uint32_t>(c.receive_channels.size());
        break_channel(c, other);
        c.channel_faults[ch.fault - 1].astray = other;
      }
      if (ours) c.faults.add(f, n);
    }
  }

  // Every channel of the landing buffer goes through the staging area; only this one is broken.
  void break_channel(ChipState& c, std::uint32_t channel) {
    ReceiveChannel& ch = c.receive_channels[channel];
    stage_beside(c, c.buffers[c.receives[ch.receive].buffer]);
    if (ch.fault != 0) return;
    c.channel_faults.emplace_back();
    ch.fault = static_cast<std::uint32_t>(c.channel_faults.size());
  }

  // ---- where pages lie
  void lay_out_pool() {
    for (ChipState& c : out_.chips)
      for (BufferState& b : c.buffers) {
        const Bytes bytes = Bytes{b.slots} * b.slot_bytes;
        b.values = b.staged_values = pool(c, bytes);
        if (b.fault != 0) b.staged_values = pool(c, bytes);
      }
  }

  const SpatialProgram& p_;
  const Target& t_;
  const std::vector<Fault>& faults_;
  const NetworkLevel level_;
  const std::vector<PageFrame> frames_;  // by buffer
  Routes all_routes_;
  std::set<StageId> feeds_transposed_;  // whose pages a matmul takes as its transposed right operand
  Elaboration out_;
  std::vector<ChipScratch> scratch_;
  std::vector<std::uint32_t> buffer_base_, stage_base_;
  std::vector<std::vector<std::uint32_t>> sender_consumer_;  // by edge, by buffer instance
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::optional<std::uint32_t>>> same_site_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<LinkId>> routes_;
};

}  // namespace

Elaboration elaborate(const SpatialProgram& program, const Target& target, bool values,
                      const std::vector<Fault>& faults, NetworkLevel network) {
  return Elaborator(program, target, values, faults, network).run();
}

}  // namespace rdusim
