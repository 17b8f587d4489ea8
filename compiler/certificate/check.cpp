#include "compiler/certificate/check.h"

#include <algorithm>
#include <optional>

#include "compiler/certificate/obligations.h"

namespace rdusim {

namespace {

using certificate::Finding;
using certificate::Subject;

const char* name_of(ObligationKind kind) {
  switch (kind) {
    case ObligationKind::counting_balance:
      return "counting balance";
    case ObligationKind::buffer_depth:
      return "buffer depth";
    case ObligationKind::deadlock_freedom:
      return "deadlock freedom";
    case ObligationKind::handshake_locality:
      return "handshake locality";
    case ObligationKind::counter_range:
      return "counter range";
    case ObligationKind::reduction_completeness:
      return "reduction completeness";
    case ObligationKind::write_coverage:
      return "write coverage";
    case ObligationKind::collective_agreement:
      return "collective agreement";
    case ObligationKind::memory_fit:
      return "memory fit";
    case ObligationKind::network_progress:
      return "network progress";
    case ObligationKind::cycle_bounds:
      return "cycle bounds";
  }
  return "";
}

// Claims that differ from what was found, one message each.
class Comparison {
 public:
  Comparison(const SpatialProgram& p, Diagnostics& out) : p_(p), out_(out) {}

  template <class T>
  void same(const std::string& what, const T& claimed, const T& found) {
    if (!(claimed == found))
      out_.error(Code::RDU5012, p_.header.name, "{}: the certificate says {}, the checker finds {}", what, claimed,
                 found);
  }
  void buffers(const std::vector<BufferClaim>& claimed, const std::vector<BufferClaim>& found) {
    if (!counts("buffers", claimed, found)) return;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string what = fmt::format("buffer '{}'", p_.buffers[i].name);
      const BufferClaim& c = claimed[i];
      const BufferClaim& f = found[i];
      same(what + ", id", c.buffer.value, f.buffer.value);
      same(what + ", pages reserved", c.reserved, f.reserved);
      same(what + ", pages pushed", c.pushed, f.pushed);
      same(what + ", pages popped by its consumers", fmt::format("[{}]", fmt::join(c.popped, ", ")),
           fmt::format("[{}]", fmt::join(f.popped, ", ")));
      same(what + ", depth", c.depth, f.depth);
      // 0: not claimed, or more work than the checker does.
      if (c.least_depth != 0 && f.least_depth != 0) same(what + ", least depth", c.least_depth, f.least_depth);
    }
  }
  void counters(const std::vector<CounterClaim>& claimed, const std::vector<CounterClaim>& found) {
    if (!counts("counters", claimed, found)) return;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string what = fmt::format("the counter of edge {}", found[i].edge.value);
      same(what + ", edge", claimed[i].edge.value, found[i].edge.value);
      same(what + ", initial value", claimed[i].initial, found[i].initial);
      same(what + ", greatest value", claimed[i].greatest, found[i].greatest);
      same(what + ", bits", claimed[i].width_bits, found[i].width_bits);
    }
  }
  void outputs(const std::vector<OutputClaim>& claimed, const std::vector<OutputClaim>& found) {
    if (!counts("outputs", claimed, found)) return;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string what = fmt::format("output '{}'", p_.tensor(found[i].tensor).name);
      same(what + ", tensor", claimed[i].tensor.value, found[i].tensor.value);
      same(what + ", elements", claimed[i].elements, found[i].elements);
      same(what + ", replicas", claimed[i].replicas, found[i].replicas);
      if (claimed[i].contributions != 0)
        same(what + ", contributions", claimed[i].contributions, found[i].contributions);
    }
  }
  void circles(const std::vector<CircleClaim>& claimed, const std::vector<CircleClaim>& found) {
    if (!counts("circles of firings", claimed, found)) return;
    std::optional<SectionId> last;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool in_order = !last || *last < claimed[i].section;
      if (!in_order)
        out_.error(Code::RDU5012, p_.header.name,
                   "the certificate names a circle of section {} after one of section {}", claimed[i].section.value,
                   last->value);
      last = claimed[i].section;
      if (!in_order || claimed[i] == found[i]) continue;
      out_.error(Code::RDU5012, p_.header.name,
                 "the certificate says that section {} goes round a circle {} times in {} cycles each, {} in all; the "
                 "checker finds no such circle, or {} cycles for all of its firings",
                 claimed[i].section.value, claimed[i].rounds, claimed[i].cycles, claimed[i].bound().value_or(0),
                 found[i].way);
    }
  }
  void memory(const MemoryClaim& claimed, const MemoryClaim& found) {
    same("bytes of the busiest site", claimed.busiest_site_bytes, found.busiest_site_bytes);
    same("capacity of a site", claimed.site_capacity_bytes, found.site_capacity_bytes);
    same("bytes of the busiest chip", claimed.busiest_chip_bytes, found.busiest_chip_bytes);
    same("capacity of a chip", claimed.chip_capacity_bytes, found.chip_capacity_bytes);
  }

 private:
  template <class T>
  bool counts(const char* what, const std::vector<T>& claimed, const std::vector<T>& found) {
    same(fmt::format("number of {}", what), claimed.size(), found.size());
    return claimed.size() == found.size();
  }
  const SpatialProgram& p_;
  Diagnostics& out_;
};

}  // namespace

Certificate prove_again(const SpatialProgram& program, const Target& target) {
  const Subject s(program, target);
  Certificate c;
  for (const Buffer& b : program.buffers) {
    BufferClaim claim;
    claim.buffer = b.id;
    claim.depth = b.depth_pages;
    c.buffers.push_back(std::move(claim));
  }
  const Finding balance = certificate::counting_balance(s, c.buffers);
  const Finding depth = certificate::buffer_depth(s, balance, c.buffers);
  const Finding deadlock = certificate::deadlock_freedom(s, balance);
  const Finding locality = certificate::handshake_locality(s, c.local_edges, c.crossing_edges);
  const Finding counters = certificate::counter_range(s, c.counters);
  const certificate::Provenance provenance = certificate::reduction_completeness(s);
  const Finding coverage = certificate::write_coverage(s, provenance, c.outputs);
  const Finding agreement = certificate::collective_agreement(s, provenance);
  const Finding memory = certificate::memory_fit(s, c.memory);
  const Finding network = certificate::network_progress(s);
  if (program.certificate) c.circles = certificate::circles(s, program.certificate->circles);
  c.lower_bound_cycles = certificate::lower_bound(s, provenance, c.circles);
  Finding bounds;
  if (!s.unreadable.empty())
    bounds = certificate::unchecked("{}", s.unreadable);
  else if (!provenance.complete)
    bounds = certificate::unchecked("the work was not worked out");

  const std::pair<ObligationKind, const Finding*> all[] = {
      {ObligationKind::counting_balance, &balance},  {ObligationKind::buffer_depth, &depth},
      {ObligationKind::deadlock_freedom, &deadlock}, {ObligationKind::handshake_locality, &locality},
      {ObligationKind::counter_range, &counters},    {ObligationKind::reduction_completeness, &provenance.finding},
      {ObligationKind::write_coverage, &coverage},   {ObligationKind::collective_agreement, &agreement},
      {ObligationKind::memory_fit, &memory},         {ObligationKind::network_progress, &network},
      {ObligationKind::cycle_bounds, &bounds},
  };
  // Operators that were made for some data, and rates that depend on data, say nothing of other data.
  bool narrow = program.operators && !program.operators->assumes.empty();
  for (const Stage& stage : program.stages) narrow = narrow || !stage.assumes.empty();
  for (const auto& [kind, finding] : all)
    c.obligations.push_back(
        {kind, finding->status, narrow ? ProofScope::this_input_only : ProofScope::every_schedule, finding->reason});
  return c;
}

Diagnostics check_certificate(const SpatialProgram& program, const Target& target) {
  return compare_certificate(program, program.certificate ? prove_again(program, target) : Certificate{});
}

Diagnostics compare_certificate(const SpatialProgram& program, const Certificate& found) {
  Diagnostics out;
  const std::string& where = program.header.name;
  if (!program.certificate) {
    out.error(Code::RDU5010, where, "the program carries no certificate");
    return out;
  }
  const Certificate& claimed = *program.certificate;

  if (claimed.obligations.size() != obligation_kinds) {
    out.error(Code::RDU5012, where, "the certificate has {} obligations; there are {}", claimed.obligations.size(),
              obligation_kinds);
    return out;
  }
  for (std::size_t i = 0; i < obligation_kinds; ++i) {
    const Obligation& theirs = claimed.obligations[i];
    const Obligation& ours = found.obligations[i];
    const char* name = name_of(ours.kind);
    if (theirs.kind != ours.kind)
      out.error(Code::RDU5012, where, "obligation {} of the certificate is not '{}'", i, name);
    else if (ours.status == ProofStatus::refuted)
      out.error(Code::RDU5011, where, "{} does not hold: {}", name, ours.reason);
    else if (theirs.status == ProofStatus::refuted)
      out.error(Code::RDU5011, where, "{} does not hold, as the certificate says itself: {}", name, theirs.reason);
    else if (theirs.status == ProofStatus::proved && ours.status == ProofStatus::unchecked)
      out.error(Code::RDU5012, where, "the certificate calls {} proved, which the checker cannot prove: {}", name,
                ours.reason);
    else if (theirs.status == ProofStatus::proved && theirs.scope != ours.scope)
      out.error(Code::RDU5012, where, "the certificate proves {} for another scope than the checker does", name);
  }
  if (out.has_errors()) return out;  // a refuted obligation's claims differ of course

  Comparison comparison(program, out);
  comparison.buffers(claimed.buffers, found.buffers);
  comparison.counters(claimed.counters, found.counters);
  comparison.outputs(claimed.outputs, found.outputs);
  comparison.circles(claimed.circles, found.circles);
  comparison.memory(claimed.memory, found.memory);
  comparison.same("number of local edges", claimed.local_edges, found.local_edges);
  comparison.same("number of crossing edges", claimed.crossing_edges, found.crossing_edges);
  // A weaker bound than the checker's is a bound all the same.
  if (claimed.lower_bound_cycles > found.lower_bound_cycles)
    out.error(Code::RDU5012, where, "the certificate says that no run can beat {} cycles; the checker proves {} only",
              claimed.lower_bound_cycles, found.lower_bound_cycles);
  if (claimed.predicted_cycles < claimed.lower_bound_cycles)
    out.error(Code::RDU5012, where, "the certificate predicts {} cycles, fewer than its own lower bound of {}",
              claimed.predicted_cycles, claimed.lower_bound_cycles);
  return out;
}

}  // namespace rdusim
