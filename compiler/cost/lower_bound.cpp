#include "compiler/cost/lower_bound.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/cost/exact.h"
#include "compiler/ir/trips.h"

namespace rdusim::cost {

namespace {

constexpr std::uint64_t most_firings = std::uint64_t{1} << 20;  // looked at; fewer only weaken the bound

// Local edges whose pages a Load brings, one to one, into an empty buffer; by buffer.
using LoadEdges = std::vector<std::vector<const Edge*>>;
LoadEdges load_edges(const SpatialProgram& p) {
  LoadEdges edges(p.buffers.size());
  for (const Edge& e : p.edges)
    if (is_local(e.handshake) && e.map.kind == PageMapKind::one_to_one &&
        std::holds_alternative<Load>(p.stage(e.from).kind) && p.buffer(e.buffer).initial_pages == 0)
      edges[e.buffer.value].push_back(&e);
  return edges;
}

// The Load that fills `buffer` for `consumer`, if one does.
const Stage* load_of(const SpatialProgram& p, const LoadEdges& loads, const Stage& consumer, BufferId buffer) {
  for (const Edge* e : loads[buffer.value])
    if (std::find(e->to.begin(), e->to.end(), consumer.id) != e->to.end()) return &p.stage(e->from);
  return nullptr;
}

// Multiply-accumulates of the first instance in one trip: rows of a's page x its columns x columns of b's (transposed:
// its rows), each firing.
std::uint64_t macs_of(const SpatialProgram& p, const LoadEdges& loads, const Stage& s, bool transposed) {
  std::vector<const Port*> in;
  for (const Port& port : s.ports)
    if (port.direction == Direction::input) in.push_back(&port);
  if (in.size() != 2) return 0;
  const Stage* load_a = load_of(p, loads, s, in[0]->buffer);
  const Stage* load_b = load_of(p, loads, s, in[1]->buffer);
  if (load_a == nullptr || load_b == nullptr) return 0;
  const auto& a = std::get<Load>(load_a->kind);
  const auto& b = std::get<Load>(load_b->kind);
  std::uint64_t macs = 0, page_a = 0, page_b = 0;
  const std::uint64_t cycle_a = cycle_length(in[0]->pop), cycle_b = cycle_length(in[1]->pop);
  if (cycle_a == 0 || cycle_b == 0) return 0;
  for (std::uint64_t f = 0; f < std::min(s.firings, most_firings); ++f) {
    const auto rows = page_extents(a.pattern, p.tensor(a.tensor), p.header.native_tile, page_a, 0);
    const auto cols = page_extents(b.pattern, p.tensor(b.tensor), p.header.native_tile, page_b, 0);
    if (rows.size() < 2 || cols.size() < 2) return 0;
    macs =
        plus(macs, times(times(rows[rows.size() - 2], rows.back()), transposed ? cols[cols.size() - 2] : cols.back()));
    page_a += at_phase(in[0]->pop, f);
    page_b += at_phase(in[1]->pop, f);
  }
  return macs;
}

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

// Elements of the smallest page that each instance of a Load pushes: rows and columns.
struct LeastPage {
  std::uint64_t rows = 0, cols = 0;
};
std::vector<LeastPage> least_pages(const SpatialProgram& p, const Stage& stage) {
  const auto& load = std::get<Load>(stage.kind);
  std::vector<LeastPage> least(p.sites_of(stage).sites.size());
  if (times(stage.firings, least.size()) > most_firings) return least;
  for (std::size_t i = 0; i < least.size(); ++i) {
    least[i] = {unknown, unknown};
    for (std::uint64_t f = 0; f < stage.firings; ++f) {
      const auto e = page_extents(load.pattern, p.tensor(load.tensor), p.header.native_tile, f, i);
      if (e.empty()) return std::vector<LeastPage>(least.size());
      std::uint64_t leading = e.size() > 1 ? e[e.size() - 2] : 1;
      for (std::size_t d = 0; d + 2 < e.size(); ++d) leading = times(leading, e[d]);
      least[i].rows = std::min(least[i].rows, leading);
      least[i].cols = std::min(least[i].cols, e.back());
    }
  }
  return least;
}

// By stage and instance, a number of elements that every page it pushes has at least. Ragged pages are smaller than the
// buffers that hold them, and a bound must not count what does not exist. Least fixed point from `unknown` downwards:
// pages go round rings, and a cycle of stages adds nothing to what enters it.
class LeastElements {
 public:
  LeastElements(const SpatialProgram& p, const LoadEdges& loads)
      : p_(p), sources_(p.buffers.size()), least_(p.stages.size()) {
    for (const Edge& e : p.edges)
      if (is_local(e.handshake)) sources_[e.buffer.value].push_back(e.from);
    std::vector<std::vector<LeastPage>> loaded(p.stages.size());
    for (const Stage& s : p.stages) {
      least_[s.id.value].assign(p.sites_of(s).sites.size(), unknown);
      if (!std::holds_alternative<Load>(s.kind)) continue;
      loaded[s.id.value] = least_pages(p, s);
      for (std::size_t i = 0; i < least_[s.id.value].size(); ++i)
        least_[s.id.value][i] = times(loaded[s.id.value][i].rows, loaded[s.id.value][i].cols);
    }
    for (const Stage& s : p.stages) {
      if (!std::holds_alternative<MatmulTiles>(s.kind)) continue;
      const Stage* a = s.ports.size() > 1 ? load_of(p, loads, s, s.ports[0].buffer) : nullptr;
      const Stage* b = s.ports.size() > 1 ? load_of(p, loads, s, s.ports[1].buffer) : nullptr;
      for (std::size_t i = 0; i < least_[s.id.value].size(); ++i) {
        const bool known = a && b && i < loaded[a->id.value].size() && i < loaded[b->id.value].size();
        if (!known) {
          least_[s.id.value][i] = 0;
          continue;
        }
        const LeastPage& page_b = loaded[b->id.value][i];
        least_[s.id.value][i] =
            times(loaded[a->id.value][i].rows, std::get<MatmulTiles>(s.kind).transposed ? page_b.rows : page_b.cols);
      }
    }
    for (std::size_t round = 0; lower(); ++round)
      if (round == p.stages.size()) {  // still shrinking: no bound
        for (auto& instances : least_) std::fill(instances.begin(), instances.end(), 0);
        break;
      }
  }

  std::uint64_t of(StageId stage, std::size_t instance) const {
    const auto& instances = least_[stage.value];
    return instance < instances.size() && instances[instance] != unknown ? instances[instance] : 0;
  }

 private:
  static std::uint64_t cut(std::uint64_t n, const Chunk& c) { return n == unknown ? n : n / std::max(c.of, 1u); }
  std::uint64_t from(StageId stage, std::size_t instance) const {
    const auto& instances = least_[stage.value];
    return instance < instances.size() ? instances[instance] : 0;
  }

  // Lowers what its sources ask for; whether anything changed.
  bool lower() {
    bool changed = false;
    for (const Stage& s : p_.stages)
      for (std::size_t i = 0; i < least_[s.id.value].size(); ++i) {
        std::uint64_t n = least_[s.id.value][i];
        if (const auto* recv = std::get_if<Recv>(&s.kind)) {
          const Edge& e = p_.edge(recv->edge);
          if (e.map.kind == PageMapKind::one_to_one) {
            n = std::min(n, cut(from(e.from, i), e.chunk));
          } else {
            for (std::size_t j = 0; j < least_[e.from.value].size(); ++j)
              n = std::min(n, cut(from(e.from, j), e.chunk));
          }
        } else if (const auto* g = std::get_if<Generic>(&s.kind)) {
          if (joins_rows(*g)) n = std::min<std::uint64_t>(n, 1);  // a column of what it takes
          for (const Port& port : s.ports) {
            if (port.direction != Direction::input) continue;
            std::uint64_t page = p_.buffer(port.buffer).initial_pages != 0 ? 0 : unknown;
            for (const StageId source : sources_[port.buffer.value]) page = std::min(page, from(source, i));
            for (const auto& run : port.chunk) n = std::min(n, cut(page, run.value));
          }
        }
        changed = changed || n < least_[s.id.value][i];
        least_[s.id.value][i] = n;
      }
    return changed;
  }

  const SpatialProgram& p_;
  std::vector<std::vector<StageId>> sources_;  // of local edges, by buffer
  std::vector<std::vector<std::uint64_t>> least_;
};

}  // namespace

Cycles lower_bound(const SpatialProgram& program, const Target& target, const std::vector<MemoryFlow>& memory,
                   const std::vector<CrossingFlow>& crossings) {
  const Fraction hbm = {times(target.hbm.channel_bytes_per_cycle.num, target.hbm.channels),
                        target.hbm.channel_bytes_per_cycle.den};
  const LoadEdges loads = load_edges(program);
  const LeastElements page_elements(program, loads);
  Cycles total = 0;
  for (const Section& section : program.sections) {
    Cycles bound = 0;
    if (program.certificate)
      for (const CircleClaim& circle : program.certificate->circles)
        if (circle.section == section.id) bound = std::max(bound, circle.bound().value_or(0));
    std::map<Site, Cycles> pcu;
    for (const Stage& s : program.stages) {
      const auto* m = std::get_if<MatmulTiles>(&s.kind);
      if (m == nullptr || s.section != section.id || target.pcu.macs(m->operand) == 0) continue;
      Cycles& busy = pcu[program.sites_of(s).sites.front()];
      const Fraction rate = target.pcu.mac_rate(m->operand, m->accumulator, m->lanes);
      const std::uint64_t macs = times(macs_of(program, loads, s, m->transposed), section.trips);
      busy = plus(busy, times(macs, rate.den) / rate.num);
      bound = std::max(bound, busy);
    }
    std::map<ChipId, Bytes> moved;
    for (const MemoryFlow& f : memory)
      if (f.exact && program.stage(f.stage).section == section.id) moved[f.chip] = plus(moved[f.chip], f.bytes);
    for (const auto& [chip, bytes] : moved) bound = std::max(bound, least_time_of(bytes, hbm));
    std::map<LinkId, Bytes> sent;
    for (const CrossingFlow& f : crossings) {
      const Edge& e = program.edge(f.edge);
      if (program.stage(e.from).section != section.id || f.to >= e.routes.size()) continue;
      const Bytes page =
          page_elements.of(e.from, f.sender) / std::max(e.chunk.of, 1u) * bytes_of(program.buffer(e.buffer).dtype);
      for (const LinkId id : e.routes[f.to]) sent[id] = plus(sent[id], times(f.pages, page));
    }
    for (const auto& [id, bytes] : sent) {
      const ChipLinkParameters& link = target.links[id.value];
      if (bytes != 0) bound = std::max(bound, plus(least_time_of(bytes, link.bytes_per_cycle), link.latency_cycles));
    }
    total = plus(total, plus(times(target.host.section_launch_cycles, launches_of(section)), bound));
  }
  return total;
}

}  // namespace rdusim::cost
