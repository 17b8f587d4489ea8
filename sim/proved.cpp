#include "sim/proved.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/ir/enum_names.h"

namespace rdusim {
namespace {

// slack: what was left of `proved`; null where the run went beyond it, which a check reports.
Json beside(std::uint64_t proved, std::uint64_t observed) {
  return Json()
      .set("proved", proved)
      .set("observed", observed)
      .set("slack", observed <= proved ? Json(proved - observed) : Json());
}

std::uint64_t peak_of(const Instances& instances, const HandshakeChecker& handshakes, BufferId buffer) {
  std::uint64_t peak = 0;
  for (std::uint32_t i = 0; i < instances.instances(buffer); ++i)
    peak = std::max(peak, handshakes.counts(instances.of(BufferAt{buffer, i})).peak_pages);
  return peak;
}

}  // namespace

std::string scope_line(const SpatialProgram& p, const Certificate& c) {
  const auto narrow =
      static_cast<std::size_t>(std::count_if(c.obligations.begin(), c.obligations.end(), [](const Obligation& o) {
        return o.status == ProofStatus::proved && o.scope == ProofScope::this_input_only;
      }));
  if (narrow != 0 && p.operators && !p.operators->assumes.empty())
    return fmt::format("scope: this input only: the operators were made for {}", p.operators->assumes);
  std::vector<const Stage*> marked;
  for (const Stage& s : p.stages)
    if (!s.assumes.empty()) marked.push_back(&s);
  if (narrow != 0 && !marked.empty()) {
    const Stage& s = *marked.front();
    return fmt::format("scope: this input only: the rates of stage '{}'{} depend on data, and are those of: {}", s.name,
                       marked.size() == 1 ? "" : fmt::format(" and {} more", marked.size() - 1), s.assumes);
  }
  if (narrow != 0) return fmt::format("scope: {} obligations are proved of this input only", narrow);
  // The rules that the verifier holds a program to leave nothing that could depend on time or on data.
  std::string line =
      "scope: every schedule: rates are the program's and not the data's, a buffer has one writer, and nothing polls";
  const auto indexed = std::count_if(p.stages.begin(), p.stages.end(), [](const Stage& s) {
    const auto* load = std::get_if<Load>(&s.kind);
    return load != nullptr && load->indexed;
  });
  if (indexed != 0)
    line += fmt::format("; of {} loads by index, which rows they bring is looked at as a run takes them", indexed);
  return line;
}

Json circle_rows(const SpatialProgram& p, const Certificate& c) {
  JsonArray rows;
  for (const CircleClaim& circle : c.circles) {
    JsonArray stages, buffers;
    for (const StageId id : circle.stages)
      if (id.value < p.stages.size()) stages.push_back(p.stage(id).name);
    for (const BufferId id : circle.buffers)
      if (id.value < p.buffers.size())
        buffers.push_back(Json().set("name", p.buffer(id).name).set("depth_pages", p.buffer(id).depth_pages));
    rows.push_back(Json()
                       .set("section", circle.section.value)
                       .set("stages", std::move(stages))
                       .set("buffers", std::move(buffers))
                       .set("cycles", circle.cycles)
                       .set("parts", circle.parts)
                       .set("rounds", circle.rounds)
                       .set("way_cycles", circle.way)
                       .set("least_cycles", circle.bound() ? Json(*circle.bound()) : Json()));
  }
  return rows;
}

Json proved_and_observed(const Instances& instances, const Certificate& c, const HandshakeChecker& handshakes,
                         const TokenChecker& tokens, const SemaphoreChecker& semaphores, Cycle cycles) {
  const SpatialProgram& p = instances.program();
  JsonArray obligations, depths, counters;
  for (const Obligation& o : c.obligations)
    obligations.push_back(Json()
                              .set("kind", enum_name(o.kind))
                              .set("status", enum_name(o.status))
                              .set("scope", enum_name(o.scope))
                              .set("reason", o.reason.empty() ? Json() : Json(o.reason)));
  for (const BufferClaim& b : c.buffers) {
    if (b.buffer.value >= p.buffers.size()) continue;
    Json row = beside(b.depth, peak_of(instances, handshakes, b.buffer));
    depths.push_back(row.set("name", p.buffer(b.buffer).name)
                         .set("minimum_pages", b.least_depth == 0 ? Json() : Json(b.least_depth)));
  }
  for (const CounterClaim& claim : c.counters) {
    if (claim.edge.value >= p.edges.size()) continue;
    const Edge& e = p.edge(claim.edge);
    // A barrier's members are held to their generations one by one; there is no count to tell.
    if (e.handshake == Handshake::barrier) continue;
    const std::uint64_t seen = e.handshake == Handshake::token       ? tokens.greatest(claim.edge)
                               : e.handshake == Handshake::semaphore ? semaphores.greatest(claim.edge)
                                                                     : peak_of(instances, handshakes, e.buffer);
    Json row = beside(claim.greatest, seen);
    counters.push_back(
        row.set("edge", claim.edge.value).set("handshake", enum_name(e.handshake)).set("width_bits", claim.width_bits));
  }
  Json bound;
  bound.set("proved", c.lower_bound_cycles)
      .set("observed", cycles)
      .set("slack", cycles >= c.lower_bound_cycles ? Json(cycles - c.lower_bound_cycles) : Json());
  return Json()
      .set("obligations", std::move(obligations))
      .set("scope", scope_line(p, c))
      .set("least_cycles", std::move(bound))
      .set("circles", circle_rows(p, c))
      .set("depths", std::move(depths))
      .set("counters", std::move(counters));
}

}  // namespace rdusim
