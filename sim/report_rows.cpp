#include "sim/report_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/print.h"
#include "compiler/ir/trips.h"
#include "compiler/workload/operator_traits.h"
#include "sim/diagnose.h"
#include "sim/roofline.h"

namespace rdusim {

namespace {

// The sites of a group, folded.
std::string sites_text(const Instances& instances, BufferId b) {
  return fold_sites(instances.program().group(instances.program().buffer(b).group).sites);
}

bool has_edge(const SpatialProgram& p, Handshake h) {
  return std::any_of(p.edges.begin(), p.edges.end(), [h](const Edge& e) { return e.handshake == h; });
}

void add_checks(const LoadedProgram& loaded, const Listeners& l, bool finished, Cycle cycles,
                const std::optional<Comparison>& comparison, Report& r) {
  const SpatialProgram& p = loaded.program;
  const auto row = [&](Code code, const char* scope, bool applies, bool decided,
                       std::string expected = "0 violations") {
    const std::uint64_t n = l.violations.count(code);
    CheckRow c;
    c.code = code;
    c.scope = scope;
    c.status = n != 0               ? CheckRow::Status::fail
               : applies && decided ? CheckRow::Status::pass
                                    : CheckRow::Status::unchecked;
    c.observed = fmt::format("{} violations", n);
    c.expected = std::move(expected);
    r.checks.push_back(std::move(c));
  };
  const bool crossing =
      std::any_of(p.edges.begin(), p.edges.end(), [](const Edge& e) { return !is_local(e.handshake); });
  const bool sums = std::any_of(p.stages.begin(), p.stages.end(),
                                [](const Stage& s) { return std::holds_alternative<MatmulTiles>(s.kind); });
  const bool folds = std::any_of(p.stages.begin(), p.stages.end(),
                                 [](const Stage& s) { return std::holds_alternative<Generic>(s.kind); });
  const char* every = "every event";
  const char* end = "end of run";
  row(Code::RDU7001, every, true, true);
  row(Code::RDU7002, every, true, true);
  row(Code::RDU7003, every, true, true);
  row(Code::RDU7004, every, has_edge(p, Handshake::token), true);
  row(Code::RDU7005, every, has_edge(p, Handshake::semaphore), true);
  row(Code::RDU7006, every, has_edge(p, Handshake::barrier), true);
  row(Code::RDU7007, end, true, finished);
  row(Code::RDU7008, end, crossing, finished);
  row(Code::RDU7009, "every store", sums, finished);
  row(Code::RDU7010, "every fold and store", sums, true);
  row(Code::RDU7011, "every fold", folds, true);
  row(Code::RDU7012, "every matmul firing", sums, true);
  row(Code::RDU7013, "every store", true, true);
  row(Code::RDU7014, end, true, finished);

  const auto values = [&](Code code, bool applies) {
    CheckRow c;
    c.code = code;
    c.scope = "outputs";
    c.expected = "0 outputs that differ";
    std::uint64_t n = 0;
    if (comparison) {
      for (const Diagnostic& d : comparison->diagnostics.list()) n += d.code == code ? 1 : 0;
    }
    c.observed = comparison ? fmt::format("{} outputs that differ", n) : std::string("not compared");
    c.status = n != 0                  ? CheckRow::Status::fail
               : comparison && applies ? CheckRow::Status::pass
                                       : CheckRow::Status::unchecked;
    r.checks.push_back(std::move(c));
  };
  bool exact = false;
  bool bound = false;
  if (comparison) {
    for (const OutputCheck& o : comparison->outputs) {
      const bool floats = p.operators && o.checked != CheckLevel::none && !is_integer(o.dtype);
      exact = exact || o.checked == CheckLevel::exact;
      bound = bound || floats;
    }
  }
  values(Code::RDU7015, exact);
  values(Code::RDU7016, bound);
  values(Code::RDU7017, comparison && comparison->replicas_checked);

  const Cycles lower = p.certificate ? p.certificate->lower_bound_cycles : 0;
  row(Code::RDU7022, end, p.certificate.has_value(), finished, fmt::format("at least {} cycles", lower));
  if (finished) r.checks.back().observed = fmt::format("{} cycles", cycles);
  row(Code::RDU7023, end, p.certificate.has_value(), finished);
  row(Code::RDU7024, every, true, true);
  row(Code::RDU7025, every, true, true);
  row(Code::RDU7026, end, !p.collectives.empty(), finished);
  row(Code::RDU7029, "every page", true, true);
  row(Code::RDU7030, "every page", true, true);
  if (l.coverage.reads_what_is_stored()) row(Code::RDU7031, "every load of what its section stores", true, true);
  if (l.links.watches()) {
    row(Code::RDU7065, "every transfer", true, true);
    std::uint64_t retries = 0;
    for (const LinkId id : p.links) retries += l.statistics.link(id).broken;
    r.checks.back().observed += fmt::format(", {} retries", retries);
  }
}

void add_collectives(const LoadedProgram& loaded, const Listeners& l, const Costs& costs, bool finished, Report& r) {
  const SpatialProgram& p = loaded.program;
  for (const Collective& c : p.collectives) {
    CollectiveRow row;
    row.name = c.name;
    row.kind = name_of(c.kind);
    row.algorithm = name_of(c.algorithm);
    row.chips = static_cast<std::uint32_t>(c.members.size());
    for (Bytes b : c.bytes) row.bytes = std::max(row.bytes, b);
    row.trips = l.collectives.trips(c.id);
    row.sent = l.collectives.sent(c.id);
    row.cycles = l.collectives.cycles(c.id);
    if (c.id.value < costs.collectives.size()) row.predicted = costs.collectives[c.id.value].cycles * row.trips;
    if (row.cycles && *row.cycles > 0) {
      const double n = static_cast<double>(c.members.size());
      const bool gathers = c.kind == CollectiveKind::all_gather;
      // Of gathers, the size of the whole; of the others, of one member's contribution: so that the two bandwidths mean
      // what NCCL's mean.
      const double size = gathers ? static_cast<double>(std::accumulate(c.bytes.begin(), c.bytes.end(), Bytes{0}))
                                  : static_cast<double>(row.bytes);
      row.algorithm_gb_per_s = size * static_cast<double>(row.trips) / static_cast<double>(*row.cycles) * r.clock_ghz;
      double factor = 1;
      if (c.kind == CollectiveKind::all_reduce) factor = 2 * (n - 1) / n;
      if (c.kind == CollectiveKind::reduce_scatter || gathers || c.kind == CollectiveKind::all_to_all)
        factor = (n - 1) / n;
      row.bus_gb_per_s = *row.algorithm_gb_per_s * factor;
    }
    if (p.operators && c.op.value < p.operators->operators.size()) {
      const Operator& op = p.operators->operators[c.op.value];
      const auto& stored = l.provenance.stored(op.out);
      if (stored.pages != 0) row.contributions = stored.contributions;
      row.complete = finished && stored.pages != 0 && stored.complete == stored.pages &&
                     l.violations.count(Code::RDU7009) == 0 && l.violations.count(Code::RDU7010) == 0;
      // What is gathered of an operator without a contraction are values; every page's place is looked at as it is stored.
      if (op.kind != OperatorKind::matmul) row.complete = finished && !l.violations.any();
    }
    r.collectives.push_back(std::move(row));
  }
}

void add_stages(const SpatialProgram& p, const UnitCounts& u, const Costs& costs, Report& r) {
  for (const Stage& s : p.stages) {
    const std::uint32_t slowest = u.statistics.slowest_instance(s.id);
    const StageAt at{s.id, slowest};
    const StageStatistics& n = u.statistics.stage(u.instances.of(at));
    const Cycle start = u.statistics.section_start(s.id);
    StageRow row;
    row.name = s.name;
    row.site = to_string(u.instances.site(at));
    row.instances = u.instances.instances(s.id);
    row.firings = n.firings;
    row.cycles = n.total(start);
    row.predicted = s.id.value < costs.stages.size() ? costs.stages[s.id.value].total_cycles : 0;
    row.busy = n.busy;
    row.stall = n.stall;
    row.idle = n.idle(start);
    r.stages.push_back(std::move(row));
  }
  for (const Buffer& b : p.buffers) {
    BufferRow row;
    row.name = b.name;
    row.site = sites_text(u.instances, b.id);
    row.instances = u.instances.instances(b.id);
    row.depth = b.depth_pages;
    for (std::uint32_t i = 0; i < row.instances; ++i) {
      const BufferCounts& c = u.handshakes.counts(u.instances.of(BufferAt{b.id, i}));
      row.peak = std::max(row.peak, c.peak_pages);
      row.reserved += c.reserved;
      row.pushed += c.pushed;
      row.popped += c.popped;
      row.bytes += c.bytes;
    }
    r.buffers.push_back(std::move(row));
  }
}

void add_resources(const SpatialProgram& p, const Target& t, const Statistics& statistics, Report& r) {
  const double cycles = static_cast<double>(r.cycles);
  for (LinkId id : p.links) {
    if (id.value >= t.links.size()) continue;
    const LinkStatistics& n = statistics.link(id);
    LinkRow row;
    row.name =
        fmt::format("link{} {}->{}", id.value, link_end(t, t.links[id.value].from), link_end(t, t.links[id.value].to));
    row.bytes = n.bytes;
    row.busy = n.busy_until(r.cycles);
    row.retries = n.broken;
    row.utilisation = cycles > 0 ? static_cast<double>(row.busy) / cycles : 0;
    r.links.push_back(std::move(row));
  }
  for (std::uint32_t chip = 0; chip < p.header.plan.chips; ++chip) {
    for (MemorySpace space : {MemorySpace::hbm, MemorySpace::ddr}) {
      MemoryRow row;
      for (const Tensor& tensor : p.tensors) {
        if (tensor.chip.value != chip || tensor.space != space) continue;
        row.peak +=
            p.memory && tensor.id.value < p.memory->tensors.size() ? p.memory->tensors[tensor.id.value].bytes : 0;
      }
      const MemoryStatistics& n = statistics.memory(ChipId{chip}, space);
      if (space == MemorySpace::ddr && row.peak == 0 && n.busy == 0) continue;
      const MemoryParameters* parameters = space == MemorySpace::hbm ? &t.hbm : t.ddr ? &*t.ddr : nullptr;
      if (parameters == nullptr) continue;
      row.name = fmt::format("chip{}.{}", chip, name_of(space));
      row.read = n.read;
      row.written = n.written;
      row.capacity = parameters->capacity_bytes;
      row.first = n.first;
      if (n.first) row.last = n.last;
      row.busy = n.busy / std::max(parameters->channels, 1u);
      const double peak = to_double(parameters->peak_bytes_per_cycle());
      row.utilisation = cycles > 0 && peak > 0 ? static_cast<double>(n.read + n.written) / (peak * cycles) : 0;
      r.memories.push_back(std::move(row));
    }
  }
}

std::uint64_t product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<std::uint64_t>(m) * static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(k);
}

// Of m x n of an attention's result: queries by `keys` keys, by those of further columns, and weights by values.
std::uint64_t attention_macs(const OperatorGraph& graph, OperatorId id, std::int64_t m, std::int64_t n,
                             std::int64_t keys) {
  const Operator& op = graph.operators[id.value];
  std::uint64_t macs = 2 * product(m, n, keys);
  if (const auto further = further_at(op.in.size())) {
    const std::int64_t all = graph.operand(op.out).shape.back();
    macs += product(
        m, n / (all / op.attributes.heads) * (graph.operand(op.in[*further]).shape.back() / op.attributes.heads), keys);
  }
  return macs;
}

// Multiply-accumulates of a matmul, one trip, by which the tiles of its slices are more than those of the whole: where an
// axis is cut within a tile, each chip takes the time of its last tile whole.
std::uint64_t ragged_by_slices(const SpatialProgram& p, const Operator& op) {
  const auto tile = static_cast<std::int64_t>(std::max(p.header.native_tile, 1u));
  const auto to_tiles = [&](std::int64_t n) { return (n + tile - 1) / tile * tile; };
  const auto missing = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return product(m, to_tiles(n), to_tiles(k)) - product(m, n, k);
  };
  const std::int64_t n = p.operators->operand(op.out).shape.back(), k = p.operators->operand(op.in[0]).shape.back();
  std::uint64_t slices = 0, once = 0;
  for (const Work& w : p.work)
    if (w.op == op.id && (w.n < n || w.k < k)) {
      slices += missing(w.m, w.n, w.k);
      once = missing(w.m, n, k);
    }
  return slices > once ? slices - once : 0;
}

void add_macs(const LoadedProgram& loaded, const Listeners& l, Report& r) {
  const SpatialProgram& p = loaded.program;
  // How many operators the works of one stand for.
  const FirstTrip first(p);
  std::vector<std::uint64_t> trips(p.operators ? p.operators->operators.size() : 0, 0);
  for (std::size_t i = 0; i < trips.size(); ++i) ++trips[first.of(OperatorId(i)).value];
  std::uint64_t done = 0;
  std::uint64_t most = 0;
  for (const Work& w : p.work) {
    // Operators that contract nothing multiply without accumulating.
    const OperatorKind kind = p.operators ? p.operators->operators[w.op.value].kind : OperatorKind::matmul;
    if (kind != OperatorKind::matmul && kind != OperatorKind::attention) continue;
    // An attention multiplies by keys, and then by as many values.
    const std::uint64_t macs =
        kind == OperatorKind::attention ? attention_macs(*p.operators, w.op, w.m, w.n, w.k) : product(w.m, w.n, w.k);
    done += macs * (w.op.value < trips.size() ? trips[w.op.value] : 1);
    if (macs <= most) continue;
    most = macs;
    r.rows = static_cast<std::uint64_t>(w.m);
  }
  std::uint64_t useful = done;
  if (p.operators) {
    useful = 0;
    for (const Operator& op : p.operators->operators) {
      const bool attends = op.kind == OperatorKind::attention;
      if ((op.kind != OperatorKind::matmul || op.in.size() != 2) && !attends) continue;
      const auto& a = p.operators->operand(op.in[0]).shape;
      const auto& b = p.operators->operand(op.in[1]).shape;
      const auto elements = element_count(a);
      if (attends && elements && b.size() > 1) {
        useful += attention_macs(*p.operators, op.id, *elements / a.back(), a.back(), b[b.size() - 2]);
        continue;
      }
      if (!elements || b.size() < (op.attributes.transposed ? 2 : 1)) continue;
      const std::int64_t n = op.attributes.transposed ? b[b.size() - 2] : b.back();
      useful += static_cast<std::uint64_t>(*elements) * static_cast<std::uint64_t>(n);
      done += trips[op.id.value] == 0 ? 0 : ragged_by_slices(p, op) * trips[op.id.value];
    }
  }
  r.useful_macs = useful;
  r.padding_macs = done > useful ? done - useful : 0;
  r.tile_rows = p.header.native_tile;
  if (r.rows != 0 && r.tile_rows != 0) {
    r.tile_utilisation = static_cast<double>(r.rows) / static_cast<double>(ceil_div(r.rows, r.tile_rows) * r.tile_rows);
  }
  double capacity = 0;
  for (const Stage& s : p.stages) {
    const auto* m = std::get_if<MatmulTiles>(&s.kind);
    if (m == nullptr) continue;
    r.pcus += l.instances.instances(s.id);
    capacity += static_cast<double>(l.instances.instances(s.id)) * loaded.target.pcu.macs(m->operand);
  }
  if (capacity > 0 && r.cycles > 0)
    r.pcu_utilisation = static_cast<double>(useful) / (capacity * static_cast<double>(r.cycles));
}

}  // namespace

void add_unit_rows(const LoadedProgram& loaded, const UnitCounts& units, const Costs& costs, Report& r) {
  add_stages(loaded.program, units, costs, r);
  add_resources(loaded.program, loaded.target, units.statistics, r);
}

void add_rows(const LoadedProgram& loaded, const Listeners& l, const Costs& costs, bool finished,
              const std::optional<Comparison>& comparison, Report& r) {
  add_checks(loaded, l, finished, r.cycles, comparison, r);
  add_collectives(loaded, l, costs, finished, r);
  add_unit_rows(loaded, {l.instances, l.statistics, l.handshakes}, costs, r);
  add_roofline(loaded, l.instances, l.handshakes, r);
  add_macs(loaded, l, r);
}

std::string bound_by(const Costs& costs) {
  const auto sum = [&](auto member) {
    return std::accumulate(costs.sections.begin(), costs.sections.end(), Cycles{0},
                           [&](Cycles n, const SectionCost& c) { return n + c.*member; });
  };
  const Cycles memory = sum(&SectionCost::memory);
  const Cycles compute = sum(&SectionCost::compute);
  const Cycles network = sum(&SectionCost::network);
  const Cycles link = sum(&SectionCost::link);
  const Cycles most = std::max({memory, compute, network, link});
  if (most == 0) return "";
  if (most == link) return "link-bound";
  if (most == memory) return "memory-bound";
  return most == compute ? "compute-bound" : "network-bound";
}

}  // namespace rdusim
