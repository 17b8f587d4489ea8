// Stages as the machine knows them: what all instances share, each instance, and in which order they are served.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/clusters.h"
#include "compiler/ir/host_results.h"
#include "compiler/ir/memory_order.h"
#include "compiler/ir/trips.h"
#include "models/units/elaborator.h"
#include "models/units/sum_order.h"

namespace rdusim {

namespace {

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a ? std::numeric_limits<std::uint64_t>::max()
                                                                     : a * b;
}

Spread reach_of(const AffineMap& map) {
  const auto follows = [&](std::size_t axis) {
    return map.size() > axis && map[axis].size() > axis && map[axis][axis] != 0;
  };
  return {follows(0), follows(1)};
}

void tabulate_uses(StageSpec& d) {
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

}  // namespace

template <class Access>
void Elaborator::describe_tensors(StageSpec& d, const Access& access) {
  for_each_tensor(access, [&](TensorId id) {
    const bool placed = p_.memory && id.value < p_.memory->tensors.size();
    d.tensors.push_back({&p_.tensor(id), placed ? p_.memory->tensors[id.value].address : 0});
  });
  d.tensor = d.tensors.front().tensor;
  d.operand = d.tensor->operand;
  if (d.tensor->shape.empty()) d.form = StageForm::none;
}

void Elaborator::describe_stages() {
  out_.laws.stages.resize(p_.stages.size());
  for (const Stage& written : p_.stages) {
    const Stage& s = as_carried_out(written);
    StageSpec& d = out_.laws.stages[s.id.value];
    d.stage = &s;
    d.firings = s.firings;
    d.total = saturating_multiply(s.firings, trips_a_launch(p_.sections[s.section.value]));
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
    if (const auto* load = std::get_if<Load>(&s.kind)) describe(d, *load);
    if (const auto* store = std::get_if<Store>(&s.kind)) describe(d, *store);
    if (const auto* matmul = std::get_if<MatmulTiles>(&s.kind)) describe(d, *matmul);
    if (const auto* generic = std::get_if<Generic>(&s.kind)) describe(d, *generic);
    if (std::holds_alternative<Recv>(s.kind)) d.form = StageForm::receive;
    if (d.firings == 0) d.form = StageForm::none;
    tabulate_uses(d);
  }
}

void Elaborator::describe(StageSpec& d, const Load& load) {
  d.form = StageForm::load;
  d.load = &load;
  describe_tensors(d, load);
  d.by_columns = reads_transposed_by_columns(*d.stage, load);
  if (!load.indexed) return;
  d.operand = value_of(d.stage->id);
  if (d.ports.empty() || d.tensor->shape.size() != 2) d.form = StageForm::none;
}

void Elaborator::describe(StageSpec& d, const Store& store) {
  d.form = StageForm::store;
  d.store = &store;
  d.to_host = handed_to_host(p_, t_, store);
  describe_tensors(d, store);
}

void Elaborator::describe(StageSpec& d, const MatmulTiles& m) {
  std::vector<std::uint32_t> in;
  for (std::uint32_t i = 0; i < d.ports.size(); ++i)
    if (d.ports[i].direction == Direction::input) in.push_back(i);
  d.matmul = &m;
  if (in.size() == 2) {
    d.form = StageForm::matmul, d.in_a = in[0], d.in_b = in[1];
    if (const PageFrame& b = frames_[d.ports[in[1]].buffer.value]; b.size() > 1)
      d.b_rows = static_cast<std::uint64_t>(std::max<std::int64_t>(b[b.size() - 2], 1));
  }
  d.operand = result_operand(*d.stage, m);
  const std::uint64_t tile = std::max(p_.header.native_tile, 1u);
  const std::uint64_t area = saturating_multiply(saturating_multiply(m.block_m, m.block_n), tile * tile);
  d.accumulator_bytes = std::min<Bytes>(saturating_multiply(area, bytes_of(m.accumulator)), Bytes{1} << 32);
}

void Elaborator::describe(StageSpec& d, const Generic& g) {
  d.form = StageForm::generic;
  d.generic = &g;
  Cyclic<std::uint32_t> order;
  for (const auto& run : g.bodies) {
    order.push_back({run.repeat, static_cast<std::uint32_t>(d.bodies.size())});
    d.bodies.push_back(&run.value);
    for (const ExprNode& n : run.value) d.keeps = d.keeps || n.op == ExprOp::accumulator;
  }
  d.body = Phases<std::uint32_t>(order);
  d.keeps = d.keeps || joins_rows(g);
  d.values = makes_values(g);
  d.operand = value_of(d.stage->id);
  d.row_pages = std::max<std::uint64_t>(cycle_length(g.bodies), 1);
  d.reach.assign(d.ports.size(), Spread{});
  d.flat_rows.assign(d.ports.size(), 1);
  for (std::size_t i = 0; by_row(g) && i < std::min(d.ports.size(), g.maps.size()); ++i) {
    const PageFrame& frame = frames_[d.ports[i].buffer.value];
    d.reach[i] = reach_of(g.maps[i]);
    d.flat_rows[i] = flat_rows(frame);
    if (d.ports[i].direction == Direction::input && frame.size() > 1)
      d.matrix_rows = std::max(d.matrix_rows, static_cast<std::uint64_t>(frame[frame.size() - 2]));
  }
  if (d.bodies.empty()) d.form = StageForm::none;
  Bytes most = 0;
  for (const PortSpec& ps : d.ports)
    most = std::max(most, ceil_div(p_.buffer(ps.buffer).page_bytes, bytes_of(ps.dtype)) * bytes_of(g.accumulator));
  d.accumulator_bytes = std::min<Bytes>(most, Bytes{1} << 32);
}

const Stage& Elaborator::as_carried_out(const Stage& s) {
  const bool turns = std::any_of(faults_.begin(), faults_.end(), [&](const Fault& f) {
    return f.kind == FaultKind::sum_order && f.stage && f.stage->stage == s.id;
  });
  std::optional<Stage> turned;
  if (turns) turned = turned_round(s);
  if (!turned) return s;
  return *out_.laws.broken.emplace_back(std::make_shared<const Stage>(*std::move(turned)));
}

bool Elaborator::reads_transposed_by_columns(const Stage& s, const Load& load) const {
  if (load.pattern.stride.empty() || load.pattern.stride.back().empty() || load.pattern.stride.back().back() == 0)
    return false;
  return feeds_transposed_.contains(s.id);
}

OperandId Elaborator::result_operand(const Stage& s, const MatmulTiles& m) const {
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

std::vector<std::uint32_t> Elaborator::grant_order() const {
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

void Elaborator::make_stages() {
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
          if (d.form == StageForm::load && ps.direction == Direction::output) state.pmu = c.buffers[*b].pmu;
          // An input is bound when it has become a consumer.
          if (ps.direction == Direction::output)
            port.bound = true, port.assigned = port.transited = c.buffers[*b].initial;
        }
        c.ports.push_back(port);
      }
      make_detail(c, id, state, d, g, i);
      c.stages.push_back(state);
    }
    if (d.form == StageForm::load) make_multicast_sets(c, id, n, d, g);
  }
}

void Elaborator::make_detail(ChipState& c, std::uint32_t id, StageState& state, const StageSpec& d, const Group& g,
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

void Elaborator::make_multicast_sets(ChipState& c, std::uint32_t id, std::uint32_t n, const StageSpec& d,
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

void Elaborator::rank_loads() {
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

void Elaborator::make_memory_waits() {
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
    lay_out_cells(order, wait);
    wait.trips.assign(p_.sections[order.section.value].trips, {wait.all, 0, {}});
    for (const StageId load : order.loads) {
      const Group& g = group(p_.stage(load).group);
      for (std::uint32_t i = 0; i < g.sites.size(); ++i) {
        Cycles signal = 0;
        for (const auto& at : outermost) signal = std::max(signal, c.network.control(*at, g.sites[i].at));
        wait.signal = std::max(wait.signal, signal);
        LoadState& state = c.loads[c.stages[stage_base_[load.value] + i].detail];
        if (state.first_held != 0 && c.held_loads[state.first_held - 1].wait == which) {
          // Another member of its set.
          HeldLoad& held = c.held_loads[state.first_held - 1];
          held.signal = std::max(held.signal, signal);
          continue;
        }
        HeldLoad held;
        held.stage = state.stage;
        held.signal = signal;
        held.lag = order.lag;
        held.wait = which;
        held.whole = std::get<Load>(p_.stage(load).kind).indexed;
        held.next = state.first_held;
        c.held_loads.push_back(held);
        state.first_held = static_cast<std::uint32_t>(c.held_loads.size());
      }
    }
    c.memory_waits.push_back(std::move(wait));
  }
}

void Elaborator::lay_out_cells(const MemoryOrder& order, MemoryWait& wait) {
  const Tensor& t = p_.tensor(order.tensor);
  const std::size_t rank = t.shape.size();
  const std::uint32_t tile = p_.header.native_tile;
  const auto each = [&](auto&& visit) {
    for (const StageId id : order.stores) {
      const auto& store = std::get<Store>(p_.stage(id).kind);
      const std::uint64_t phases = std::max<std::uint64_t>(store.chunks.size(), 1);
      for (std::uint32_t i = 0; i < group(p_.stage(id).group).sites.size(); ++i)
        for (std::uint64_t f = 0; f < p_.stage(id).firings; f += phases)
          visit(page_region(store.pattern, t, tile, i, f / phases), std::min(phases, p_.stage(id).firings - f));
    }
  };
  // Rows of a matrix of a stack lie in no cell with those of the next.
  std::uint64_t rows = rank > 2 ? static_cast<std::uint64_t>(t.shape[rank - 2]) : 0, cols = 0;
  for (const StageId id : order.stores) {
    const AccessPattern& pattern = std::get<Store>(p_.stage(id).kind).pattern;
    if (rank > 1) rows = std::gcd(rows, step_of(pattern, rank, rank - 2, tile));
    if (rank > 0) cols = std::gcd(cols, step_of(pattern, rank, rank - 1, tile));
  }
  wait.cell_rows = std::max<std::uint64_t>(rows, 1);
  wait.cell_cols = std::max<std::uint64_t>(cols, 1);
  std::uint64_t first_row = ~std::uint64_t{0}, first_col = ~std::uint64_t{0}, last_row = 0, last_col = 0;
  each([&](const PageRegion& page, std::uint64_t) {
    if (!page.comes || page.elements() == 0) return;
    first_row = std::min(first_row, page.row / wait.cell_rows);
    first_col = std::min(first_col, page.col / wait.cell_cols);
    last_row = std::max(last_row, (page.row + page.rows - 1) / wait.cell_rows);
    last_col = std::max(last_col, (page.col + page.cols - 1) / wait.cell_cols);
  });
  if (first_row > last_row || first_col > last_col) return;
  wait.first_row = first_row;
  wait.first_col = first_col;
  wait.rows = last_row - first_row + 1;
  wait.cols = last_col - first_col + 1;
  wait.writes.assign(wait.rows * wait.cols, 0);
  each([&](const PageRegion& page, std::uint64_t firings) {
    if (!page.comes || page.elements() == 0) return;
    for (std::uint64_t row = page.row / wait.cell_rows; row * wait.cell_rows < page.row + page.rows; ++row)
      for (std::uint64_t col = page.col / wait.cell_cols; col * wait.cell_cols < page.col + page.cols; ++col)
        wait.writes[(row - first_row) * wait.cols + col - first_col] += static_cast<std::uint32_t>(firings);
  });
}

}  // namespace rdusim
