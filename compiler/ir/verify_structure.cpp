#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/trips.h"
#include "compiler/support/utf8.h"

namespace rdusim {
namespace {

// The most phases that one cycle of rates may have: rules step through them.
constexpr std::uint64_t most_phases = 1'000'000;

std::optional<std::uint64_t> checked_product(const std::vector<std::uint64_t>& factors) {
  std::uint64_t n = 1;
  for (std::uint64_t f : factors)
    if (__builtin_mul_overflow(n, f, &n)) return std::nullopt;
  return n;
}

}  // namespace

// RDU2009: a program uses no more chips than the target has.
void check_chips(const Subject& s, Diagnostics& out) {
  if (s.chips() == 0) out.error(Code::RDU2009, s.where, "the program is for 0 chips");
  if (s.chips() > s.target.chips)
    out.error(Code::RDU2009, s.where, "the program is for {} chips, and target '{}' has {}", s.chips(), s.target.name,
              s.target.chips);
}

// RDU3001: element i of a list has id i.
void check_ids(const Subject& s, Diagnostics& out) {
  const auto dense = [&](const auto& list, const char* what) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].id.value != i) {
        out.error(Code::RDU3001, s.where, "{} {} has id {}", what, i, list[i].id.value);
        return;
      }
  };
  if (s.p.operators) {
    dense(s.p.operators->operands, "operand");
    dense(s.p.operators->operators, "operator");
  }
  dense(s.p.collectives, "collective");
  dense(s.p.tensors, "tensor");
  dense(s.p.stages, "stage");
  dense(s.p.buffers, "buffer");
  dense(s.p.edges, "edge");
  dense(s.p.semaphores, "semaphore");
  dense(s.p.sections, "section");
  dense(s.p.work, "work item");
  dense(s.p.trees, "summation tree");
  if (s.p.placement) dense(s.p.placement->groups, "group");
}

// RDU3002: every reference resolves.
void check_references(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const auto in = [&](std::uint64_t id, std::uint64_t count, const std::string& who, const char* what) {
    if (id < count) return;
    out.error(Code::RDU3002, s.where, "{} refers to {} {}, and there are {}", who, what, id, count);
  };
  const std::size_t groups = p.placement ? p.placement->groups.size() : 0;
  // Without an operator graph, operators are only names for what belongs together.
  const std::size_t operators = p.operators ? p.operators->operators.size() : std::numeric_limits<std::size_t>::max();
  const auto check_part = [&](const std::vector<std::int64_t>& alone, const std::string& who) {
    if (!is_part(alone))
      out.error(Code::RDU3002, s.where, "{} is for chip [{}], which is not one part, from 0, of several", who,
                fmt::join(alone, ", "));
  };
  if (p.operators) {
    for (const Operand& o : p.operators->operands) check_part(o.alone, fmt::format("operand '{}'", o.name));
    for (const Operator& op : p.operators->operators) {
      const std::string who = fmt::format("operator '{}'", op.name);
      for (OperandId o : op.in) in(o.value, p.operators->operands.size(), who, "operand");
      in(op.out.value, p.operators->operands.size(), who, "operand");
      check_part(op.attributes.alone, who);
      if (op.kind == OperatorKind::matmul && op.in.size() != 2)
        out.error(Code::RDU3002, s.where, "{} has {} operands, and a matmul has 2", who, op.in.size());
      else if (op.in.empty())
        out.error(Code::RDU3002, s.where, "{} has no operand", who);
    }
    for (const SchedulePin& pin : p.operators->pins) in(pin.op.value, operators, "a schedule pin", "operator");
  }
  for (const Tensor& t : p.tensors) {
    if (p.operators) in(t.operand.value, p.operators->operands.size(), place_of(t), "operand");
    in(t.chip.value, s.chips(), place_of(t), "chip");
  }
  for (const Collective& c : p.collectives) {
    const std::string who = fmt::format("collective '{}'", c.name);
    in(c.op.value, operators, who, "operator");
    for (ChipId chip : c.members) in(chip.value, s.chips(), who, "chip");
  }
  for (const Stage& st : p.stages) {
    const std::string who = place_of(st);
    in(st.group.value, groups, who, "group");
    in(st.section.value, p.sections.size(), who, "section");
    if (st.origin) in(st.origin->value, operators, who, "operator");
    if (st.collective) in(st.collective->value, p.collectives.size(), who, "collective");
    for (const Port& port : st.ports) in(port.buffer.value, p.buffers.size(), who, "buffer");
    const auto in_tensors = [&](TensorId t) { in(t.value, p.tensors.size(), who, "tensor"); };
    if (const auto* k = std::get_if<Load>(&st.kind)) for_each_tensor(*k, in_tensors);
    if (const auto* k = std::get_if<Store>(&st.kind)) for_each_tensor(*k, in_tensors);
    if (const auto* k = std::get_if<MatmulTiles>(&st.kind)) in(k->op.value, operators, who, "operator");
    if (const auto* k = std::get_if<Recv>(&st.kind)) in(k->edge.value, p.edges.size(), who, "edge");
    if (const auto* k = std::get_if<CollectiveStage>(&st.kind))
      in(k->collective.value, p.collectives.size(), who, "collective");
  }
  for (const Buffer& b : p.buffers) {
    in(b.group.value, groups, place_of(b), "group");
    if (b.origin) in(b.origin->value, operators, place_of(b), "operator");
    if (!b.alias_of) continue;
    in(b.alias_of->value, p.buffers.size(), place_of(b), "buffer");
    if (b.alias_of->value < p.buffers.size() && p.buffer(*b.alias_of).alias_of)
      out.error(Code::RDU3002, s.where, "{} is an alias of '{}', which is an alias itself", place_of(b),
                p.buffer(*b.alias_of).name);
  }
  for (const Edge& e : p.edges) {
    in(e.from.value, p.stages.size(), place_of(e), "stage");
    in(e.buffer.value, p.buffers.size(), place_of(e), "buffer");
    for (StageId to : e.to) in(to.value, p.stages.size(), place_of(e), "stage");
    for (const auto& route : e.routes)
      for (LinkId link : route) in(link.value, s.target.links.size(), place_of(e), "link");
    if (e.semaphores) {
      in(e.semaphores->ready.value, p.semaphores.size(), place_of(e), "semaphore");
      for (SemaphoreId valid : e.semaphores->valid) in(valid.value, p.semaphores.size(), place_of(e), "semaphore");
    }
    if (e.collective) in(e.collective->value, p.collectives.size(), place_of(e), "collective");
  }
  for (const Semaphore& sem : p.semaphores)
    in(sem.group.value, groups, fmt::format("semaphore {}", sem.id.value), "group");
  for (LinkId link : p.links) in(link.value, s.target.links.size(), "the list of links", "link");
  for (const Work& w : p.work) {
    const std::string who = fmt::format("work item {}", w.id.value);
    in(w.op.value, operators, who, "operator");
    in(w.chip.value, s.chips(), who, "chip");
  }
  if (p.placement) {
    for (const Group& g : p.placement->groups) {
      const std::string who = fmt::format("group {}", g.id.value);
      if (g.sites.empty()) out.error(Code::RDU3002, s.where, "{} has no sites", who);
      for (AgcuId a : g.agcus) in(a.value, s.target.agcu.at.size(), who, "AGCU");
    }
    for (const WorkAssignment& a : p.placement->work) {
      in(a.stage.value, p.stages.size(), "a work assignment", "stage");
      in(a.work.value, p.work.size(), "a work assignment", "work item");
    }
  }
  if (p.memory)
    for (const AccumulatorPlace& a : p.memory->accumulators)
      in(a.stage.value, p.stages.size(), "an accumulator's place", "stage");
  if (p.schedule)
    for (const EngineOrder& order : p.schedule->engine_orders)
      for (StageId st : order.stages) in(st.value, p.stages.size(), "an engine order", "stage");
  for (const SummationTree& tree : p.trees) {
    const std::string who = fmt::format("summation tree {}", tree.id.value);
    in(tree.op.value, operators, who, "operator");
    if (tree.nodes.empty()) out.error(Code::RDU3002, s.where, "{} has no nodes", who);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const SummationNode& node = tree.nodes[i];
      if (node.leaf) {
        in(node.chip.value, s.chips(), who, "chip");
      } else {
        in(node.left, i, who, "earlier node");
        in(node.right, i, who, "earlier node");
      }
    }
  }
  if (p.certificate) {
    for (const BufferClaim& c : p.certificate->buffers)
      in(c.buffer.value, p.buffers.size(), "the certificate", "buffer");
    for (const CounterClaim& c : p.certificate->counters) in(c.edge.value, p.edges.size(), "the certificate", "edge");
    for (const OutputClaim& c : p.certificate->outputs)
      in(c.tensor.value, p.tensors.size(), "the certificate", "tensor");
  }
}

// RDU3026: every site lies on the target's mesh and chips; a group's sites are different sites of one chip.
void check_sites(const Subject& s, Diagnostics& out) {
  if (!s.p.placement) return;
  const Mesh& mesh = s.target.mesh;
  for (const Group& g : s.p.placement->groups) {
    std::vector<Site> sites = g.sites;
    std::sort(sites.begin(), sites.end());
    for (const Site& site : sites) {
      if (site.chip.value >= s.chips() || site.at.x >= mesh.width || site.at.y >= mesh.height) {
        out.error(Code::RDU3026, s.where,
                  "group {} has site ({},{}) of chip {}; the program has {} chips of {} x {} sites", g.id.value,
                  site.at.x, site.at.y, site.chip.value, s.chips(), mesh.width, mesh.height);
        break;
      }
    }
    if (sites.front().chip != sites.back().chip)
      out.error(Code::RDU3026, s.where, "group {} has sites of chips {} and {}", g.id.value, sites.front().chip.value,
                sites.back().chip.value);
    const auto twice = std::adjacent_find(sites.begin(), sites.end());
    if (twice != sites.end())
      out.error(Code::RDU3026, s.where, "group {} has site ({},{}) of chip {} twice", g.id.value, twice->at.x,
                twice->at.y, twice->chip.value);
    if (g.agcus.size() != g.sites.size())
      out.error(Code::RDU3026, s.where, "group {} has {} sites and names {} AGCUs", g.id.value, g.sites.size(),
                g.agcus.size());
  }
}

// RDU3030, first half: no cycle is empty, none too long to step through, and a trip's firings are whole cycles, so that
// every trip begins with the first phase.
void check_cycles(const Subject& s, Diagnostics& out) {
  const auto sound = [](const auto& cycle) {
    return !cycle.empty() && std::all_of(cycle.begin(), cycle.end(), [](const auto& run) { return run.repeat != 0; });
  };
  for (const Stage& st : s.p.stages) {
    bool ok = true;
    for (const Port& port : st.ports)
      ok = ok && sound(port.need) && sound(port.pop) && sound(port.reserve) && sound(port.push) && sound(port.chunk);
    if (const auto* g = std::get_if<Generic>(&st.kind)) ok = ok && sound(g->bodies);
    if (const auto* m = std::get_if<MatmulTiles>(&st.kind)) ok = ok && m->k_pages != 0;
    if (!ok) {
      out.error(Code::RDU3030, s.where, "{} has a cycle of rates without phases", place_of(st));
      continue;
    }
    const auto period = hyperperiod(st);
    if (!period || *period > most_phases) {
      out.error(Code::RDU3030, s.where, "{} has rates that repeat after {} phases, and {} is the limit", place_of(st),
                period ? std::to_string(*period) : "more than 2^64", most_phases);
    } else if (st.firings % *period != 0) {
      out.error(Code::RDU3030, s.where, "{} fires {} times a trip, which is not whole cycles of its {} phases",
                place_of(st), st.firings, *period);
    }
  }
}

namespace {

void check_tensor_sizes(const Subject& s, const Tensor& t, Diagnostics& out) {
  const auto wrong = [&](const std::string& what) { out.error(Code::RDU3003, s.where, "{}: {}", place_of(t), what); };
  const std::size_t rank = t.shape.size();
  if (rank == 0 || rank > 8) return wrong(fmt::format("rank {}, and ranks 1 to 8 are supported", rank));
  if (t.tiles.size() != rank || t.whole.size() != rank || t.offset.size() != rank)
    return wrong(fmt::format("rank {}, with {} tile extents, {} whole extents and {} offsets", rank, t.tiles.size(),
                             t.whole.size(), t.offset.size()));
  const auto elements = element_count(t.shape);
  const auto all = element_count(t.whole);
  if (!elements || !all || !checked_multiply(*all, bytes_of(t.dtype)))
    return wrong("an extent below 1, or more elements than can be counted");
  for (std::size_t d = 0; d < rank; ++d) {
    const auto end = checked_add(t.offset[d], t.shape[d]);
    if (t.offset[d] < 0 || !end || *end > t.whole[d])
      return wrong(fmt::format("axis {}: elements [{}, {}) of {}", d, t.offset[d], end.value_or(0), t.whole[d]));
    const std::uint64_t tiles =
        ceil_div(static_cast<std::uint64_t>(t.shape[d]), tile_extent(rank, d, s.p.header.native_tile));
    if (t.tiles[d] != tiles)
      return wrong(fmt::format("axis {}: {} elements are {} tiles, not {}", d, t.shape[d], tiles, t.tiles[d]));
  }
  if (t.replicas == 0) return wrong("0 replicas");
  if (s.p.operators && s.p.operators->operand(t.operand).shape != t.whole)
    return wrong(
        fmt::format("the whole extents differ from those of operand '{}'", s.p.operators->operand(t.operand).name));
}

void check_pattern_sizes(const Subject& s, const Stage& st, const AccessPattern& a, const Tensor& t, Diagnostics& out) {
  const auto wrong = [&](const std::string& what) { out.error(Code::RDU3003, s.where, "{}: {}", place_of(st), what); };
  const std::size_t rank = t.shape.size();
  const std::size_t instances = s.p.sites_of(st).sites.size();
  if (a.page_tiles.size() != rank || a.extent_tiles.size() != rank || a.stride.size() != a.loops.size() ||
      std::any_of(a.stride.begin(), a.stride.end(), [&](const auto& row) { return row.size() != rank; }) ||
      std::any_of(a.first.begin(), a.first.end(), [&](const auto& row) { return row.size() != rank; }))
    return wrong(fmt::format("its access pattern does not have the rank {} of '{}', or not a stride for each loop",
                             rank, t.name));
  if (!a.grain.empty() && (a.grain.size() != rank || std::count(a.grain.begin(), a.grain.end(), 0u) != 0))
    return wrong(fmt::format("its access pattern does not have a grain of 1 or more for each axis of '{}'", t.name));
  if (a.first.size() != instances)
    return wrong(fmt::format("its access pattern has {} instances, and its group {}", a.first.size(), instances));
  const auto pages = pages_per_trip(a);
  std::uint64_t firings = 0;
  if (!pages || __builtin_mul_overflow(*pages, firings_per_page(st), &firings) || firings != st.firings)
    return wrong(fmt::format("its access pattern has {} pages of {} firings, and it fires {} times",
                             pages ? std::to_string(*pages) : "too many", firings_per_page(st), st.firings));
  for (std::size_t d = 0; d < rank; ++d) {
    if (a.page_tiles[d] == 0) return wrong(fmt::format("axis {}: pages of 0 tiles", d));
    std::uint64_t reach = 0;
    for (const auto& first : a.first) reach = std::max(reach, first[d]);
    bool fits = !__builtin_add_overflow(reach, a.page_tiles[d], &reach);
    for (std::size_t l = 0; l < a.loops.size(); ++l) {
      std::uint64_t step = 0;
      fits = fits && a.loops[l] != 0 && !__builtin_mul_overflow(a.loops[l] - 1, a.stride[l][d], &step) &&
             !__builtin_add_overflow(reach, step, &reach);
    }
    // In steps; times the elements of one it fits. A tile has at most 65536.
    const std::uint64_t most =
        std::uint64_t{std::numeric_limits<std::int64_t>::max()} / (a.grain.empty() ? std::uint64_t{65536} : a.grain[d]);
    if (!fits || reach > most || a.extent_tiles[d] > most)
      return wrong(fmt::format("axis {}: its access pattern reaches further than can be counted", d));
  }
  if (a.heads != 1) {
    const std::uint64_t tile = s.p.header.native_tile, page = a.page_tiles.back();
    const auto columns = static_cast<std::uint64_t>(t.whole.back());
    const auto lies_in_one = [&](std::uint64_t at) { return at % page == 0; };
    if (!a.grain.empty()) return wrong(fmt::format("pages of '{}' lie in heads, and have a grain", t.name));
    if (rank < 2 || a.heads == 0 || columns % a.heads != 0 || columns / a.heads % tile != 0)
      return wrong(fmt::format("{} columns of '{}' are no {} heads of whole tiles", columns, t.name, a.heads));
    if (!lies_in_one(columns / a.heads / tile) || static_cast<std::uint64_t>(t.offset.back()) % (page * tile) != 0 ||
        !std::all_of(a.first.begin(), a.first.end(), [&](const auto& row) { return lies_in_one(row.back()); }) ||
        !std::all_of(a.stride.begin(), a.stride.end(), [&](const auto& row) { return lies_in_one(row.back()); }))
      return wrong(
          fmt::format("its pages of '{}' do not lie in one head of {} tiles each", t.name, columns / a.heads / tile));
  }
  // The largest page that the stage can touch must fit what its buffer calls a page.
  Bytes bytes = bytes_of(t.dtype);
  std::vector<std::uint64_t> tiles;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t steps = std::min(a.page_tiles[d], a.extent_tiles[d]);
    const std::uint64_t span =
        std::min(static_cast<std::uint64_t>(t.shape[d]), steps * step_of(a, rank, d, s.p.header.native_tile));
    tiles.push_back(a.grain.empty() ? steps : ceil_div(span, tile_extent(rank, d, s.p.header.native_tile)));
    if (__builtin_mul_overflow(bytes, span, &bytes)) return wrong("a page of more bytes than can be counted");
  }
  if (!std::holds_alternative<Load>(st.kind) || st.ports.empty()) return;
  const Buffer& b = s.p.buffer(st.ports.back().buffer);
  const auto page = checked_product(tiles);
  if (!page || *page > b.page_tiles || (b.page_bytes != 0 && b.page_bytes < bytes))
    wrong(fmt::format("its pages have {} tiles and {} bytes, and those of '{}' {} tiles and {} bytes", page.value_or(0),
                      bytes, b.name, b.page_tiles, b.page_bytes));
}

void check_matmul_sizes(const Subject& s, const Stage& st, const MatmulTiles& m, Diagnostics& out) {
  const auto wrong = [&](const std::string& what) { out.error(Code::RDU3003, s.where, "{}: {}", place_of(st), what); };
  const auto a = checked_product({m.block_m, m.page_k}), b = checked_product({m.page_k, m.block_n}),
             c = checked_product({m.block_m, m.block_n});
  if (m.block_m == 0 || m.block_n == 0 || m.page_k == 0 || m.k_tiles == 0 || !a || !b || !c)
    return wrong("a block or page of 0 tiles, or of too many");
  if (m.lanes != 0 && (!std::has_single_bit(m.lanes) || s.p.header.native_tile % m.lanes != 0))
    wrong(fmt::format("sums over {} lanes, which is no power of two that divides a tile of {}", m.lanes,
                      s.p.header.native_tile));
  if (m.k_pages != ceil_div(m.k_tiles, m.page_k))
    return wrong(fmt::format("{} contraction tiles in pages of {} are {} pages, not {}", m.k_tiles, m.page_k,
                             ceil_div(m.k_tiles, m.page_k), m.k_pages));
  // Other ports than these are RDU3027's.
  if (st.ports.size() != 3 || st.ports[0].direction != Direction::input || st.ports[1].direction != Direction::input)
    return;
  const std::array<std::uint64_t, 3> most = {*a, *b, *c};
  for (std::size_t i = 0; i < 3; ++i) {
    const Buffer& buffer = s.p.buffer(st.ports[i].buffer);
    if (buffer.page_tiles > most[i])
      wrong(fmt::format("port {} takes pages of {} tiles, and those of '{}' have {}", i, most[i], buffer.name,
                        buffer.page_tiles));
  }
}

void check_work_sizes(const Subject& s, const Work& w, Diagnostics& out) {
  const auto wrong = [&](const std::string& what) {
    out.error(Code::RDU3003, s.where, "work item {}: {}", w.id.value, what);
  };
  for (const auto& [extent, offset] :
       {std::pair(w.m, w.offset_m), std::pair(w.n, w.offset_n), std::pair(w.k, w.offset_k)})
    if (extent < 1 || offset < 0 || !checked_add(extent, offset))
      return wrong(fmt::format("extent {} at offset {}", extent, offset));
  if (!w.plan) return;
  const BlockPlan& b = *w.plan;
  const auto items = checked_product({b.sites_m, b.rounds_m, b.sites_n, b.rounds_n, b.sites_k});
  const std::uint64_t tile = s.p.header.native_tile;
  const auto covers = [&](std::int64_t extent, std::vector<std::uint64_t> factors) {
    factors.push_back(tile);
    const auto reach = checked_product(factors);
    return reach && *reach >= static_cast<std::uint64_t>(extent);
  };
  if (!items || *items == 0 || !covers(w.m, {b.block_m, b.sites_m, b.rounds_m}) ||
      !covers(w.n, {b.block_n, b.sites_n, b.rounds_n}) || !covers(w.k, {b.page_k, b.sites_k, b.k_pages}))
    wrong(fmt::format("its block plan does not cover {} x {} x {} elements, or is too large", w.m, w.n, w.k));
}

}  // namespace

// RDU3003: element counts, tile grids and byte sizes agree and do not overflow.
void check_sizes(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (p.header.native_tile != s.target.native_tile || p.header.native_tile == 0 || p.header.native_tile > 65536) {
    out.error(Code::RDU3003, s.where, "the program's tiles are {} x {}, and those of target '{}' {} x {}",
              p.header.native_tile, p.header.native_tile, s.target.name, s.target.native_tile, s.target.native_tile);
    return;
  }
  const auto list = [&](const char* what, std::size_t has, std::size_t of) {
    if (has != of) out.error(Code::RDU3003, s.where, "{} has {} entries for {}", what, has, of);
  };
  if (p.memory) {
    list("the memory plan's list of buffers", p.memory->buffers.size(), p.buffers.size());
    list("the memory plan's list of tensors", p.memory->tensors.size(), p.tensors.size());
  }
  if (p.schedule) list("the schedule's list of stages", p.schedule->slots.size(), p.stages.size());
  if (s.complete && !p.memory) out.error(Code::RDU3003, s.where, "a scheduled program has no memory plan");
  const std::size_t before = out.error_count();
  for (const Tensor& t : p.tensors) check_tensor_sizes(s, t, out);
  if (out.error_count() != before) return;

  for (const Buffer& b : p.buffers) {
    const auto wrong = [&](const std::string& what) { out.error(Code::RDU3003, s.where, "{}: {}", place_of(b), what); };
    const auto most = checked_product({b.page_tiles, p.header.native_tile, p.header.native_tile, bytes_of(b.dtype)});
    Bytes bytes = 0;
    if (b.page_tiles == 0 || !most)
      wrong(fmt::format("pages of {} tiles", b.page_tiles));
    else if (b.page_bytes > *most)
      wrong(fmt::format("pages of {} bytes, and {} tiles of {} have at most {}", b.page_bytes, b.page_tiles,
                        name_of(b.dtype), *most));
    else if (b.page_bytes % bytes_of(b.dtype) != 0)
      wrong(fmt::format("pages of {} bytes, which are not whole elements of {}", b.page_bytes, name_of(b.dtype)));
    else if (__builtin_mul_overflow(b.page_bytes, b.depth_pages, &bytes) ||
             bytes > static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()))
      wrong(fmt::format("{} pages of {} bytes are too many", b.depth_pages, b.page_bytes));
    else if (s.complete && (b.depth_pages == 0 || b.page_bytes == 0))
      wrong(fmt::format("not sized: {} pages of {} bytes", b.depth_pages, b.page_bytes));
    else if (b.initial_pages > 1'000'000)
      wrong(fmt::format("{} initial pages, and 1000000 is the limit", b.initial_pages));
  }
  for (const Stage& st : p.stages) {
    std::uint64_t n = 0;
    if (__builtin_mul_overflow(st.firings, p.sections[st.section.value].trips, &n))
      out.error(Code::RDU3003, s.where, "{} fires {} times in {} trips", place_of(st), st.firings,
                p.sections[st.section.value].trips);
    if (const auto* k = std::get_if<Load>(&st.kind)) {
      check_pattern_sizes(s, st, k->pattern, p.tensor(k->tensor), out);
      if (!k->multicast_set.empty() && k->multicast_set.size() != p.sites_of(st).sites.size())
        out.error(Code::RDU3003, s.where, "{}: multicast sets for {} instances, and its group has {}", place_of(st),
                  k->multicast_set.size(), p.sites_of(st).sites.size());
    }
    if (const auto* k = std::get_if<Store>(&st.kind)) {
      check_pattern_sizes(s, st, k->pattern, p.tensor(k->tensor), out);
      for (const Chunk& c : k->chunks)
        if (c.index >= c.of) {
          out.error(Code::RDU3003, s.where, "{}: chunk {} of {}", place_of(st), c.index, c.of);
          break;
        }
    }
    if (const auto* k = std::get_if<MatmulTiles>(&st.kind)) check_matmul_sizes(s, st, *k, out);
    for (const Port& port : st.ports)
      for (const auto& run : port.chunk)
        if (run.value.index >= run.value.of) {
          out.error(Code::RDU3003, s.where, "{}: chunk {} of {}", place_of(st), run.value.index, run.value.of);
          break;
        }
  }
  for (const Edge& e : p.edges) {
    if (e.chunk.index >= e.chunk.of || (is_local(e.handshake) && e.chunk != Chunk{}))
      out.error(Code::RDU3003, s.where, "{}: chunk {} of {}", place_of(e), e.chunk.index, e.chunk.of);
    if (e.to.empty()) out.error(Code::RDU3003, s.where, "{} goes to no stage", place_of(e));
  }
  for (const Work& w : p.work) check_work_sizes(s, w, out);
  if (p.placement)
    for (const WorkAssignment& a : p.placement->work) {
      const Work& w = p.work[a.work.value];
      const std::size_t instances = p.sites_of(p.stage(a.stage)).sites.size();
      if (a.items.size() != instances)
        out.error(Code::RDU3003, s.where, "{} has work for {} instances, and its group has {}",
                  place_of(p.stage(a.stage)), a.items.size(), instances);
      if (!w.plan) continue;
      const auto count =
          checked_product({w.plan->sites_m, w.plan->rounds_m, w.plan->sites_n, w.plan->rounds_n, w.plan->sites_k});
      for (const auto& items : a.items)
        if (count && std::any_of(items.begin(), items.end(), [&](std::uint64_t i) { return i >= *count; })) {
          out.error(Code::RDU3003, s.where, "{} is given an item beyond the {} of work item {}",
                    place_of(p.stage(a.stage)), *count, w.id.value);
          break;
        }
    }
  for (const SummationTree& tree : p.trees)
    if (tree.chunk >= tree.chunks)
      out.error(Code::RDU3003, s.where, "summation tree {}: chunk {} of {}", tree.id.value, tree.chunk, tree.chunks);
}

// RDU3035: names are unique within their list, not empty, and printable UTF-8.
void check_names(const Subject& s, Diagnostics& out) {
  const auto printable = [](std::string_view text) {
    if (text.empty()) return false;
    while (!text.empty()) {
      const auto point = first_code_point(text);
      if (!point || point->value < 0x20 || (point->value >= 0x7f && point->value < 0xa0)) return false;
      text.remove_prefix(point->length);
    }
    return true;
  };
  const auto check = [&](const auto& list, const char* what) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!printable(list[i].name))
        out.error(Code::RDU3035, s.where, "the name of {} {} is empty or not printable", what, i);
      else if (!seen.insert(list[i].name).second)
        out.error(Code::RDU3035, s.where, "two {}s are called '{}'", what, list[i].name);
    }
  };
  if (!printable(s.p.header.name)) out.error(Code::RDU3035, s.where, "the program's name is empty or not printable");
  check(s.p.tensors, "tensor");
  check(s.p.stages, "stage");
  check(s.p.buffers, "buffer");
  check(s.p.sections, "section");
  check(s.p.collectives, "collective");
}

}  // namespace rdusim
