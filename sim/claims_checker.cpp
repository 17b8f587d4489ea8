#include "sim/claims_checker.h"

#include <fmt/format.h>

namespace rdusim {

void check_claims(const Instances& instances, const Certificate& certificate, const HandshakeChecker& handshakes,
                  const TokenChecker& tokens, const SemaphoreChecker& semaphores, bool finished, Cycle cycles,
                  Violations& violations) {
  const SpatialProgram& p = instances.program();
  for (const BufferClaim& claim : certificate.buffers) {
    if (claim.buffer.value >= p.buffers.size()) continue;
    const std::uint64_t initial = p.buffer(claim.buffer).initial_pages;
    for (std::uint32_t i = 0; i < instances.instances(claim.buffer); ++i) {
      const BufferAt at{claim.buffer, i};
      const BufferCounts& c = handshakes.counts(instances.of(at));
      if (c.peak_pages > claim.depth) {
        violations.found(Code::RDU7023, cycles, instances.place(at),
                         "{} held {} pages, and the certificate proves at most {}", instances.describe(at),
                         c.peak_pages, claim.depth);
      }
      if (!finished) continue;
      bool as_claimed = c.pushed - initial == claim.pushed && c.reserved - initial == claim.reserved;
      for (std::size_t k = 0; k < claim.popped.size() && k < instances.ends(claim.buffer).consumers.size(); ++k) {
        as_claimed =
            as_claimed && handshakes.popped(instances.of(at), static_cast<std::uint32_t>(k)) == claim.popped[k];
      }
      if (as_claimed) continue;
      violations.found(Code::RDU7007, cycles, instances.place(at),
                       "{} reserved {} and pushed {} pages, and the certificate proves {} and {}",
                       instances.describe(at), c.reserved - initial, c.pushed - initial, claim.reserved, claim.pushed);
    }
  }
  for (const CounterClaim& claim : certificate.counters) {
    if (claim.edge.value >= p.edges.size()) continue;
    const Edge& e = p.edge(claim.edge);
    const std::uint64_t seen = e.handshake == Handshake::token       ? tokens.greatest(claim.edge)
                               : e.handshake == Handshake::semaphore ? semaphores.greatest(claim.edge)
                                                                     : 0;
    if (seen <= claim.greatest) continue;
    violations.found(Code::RDU7023, cycles, fmt::format("edge {}", claim.edge.value),
                     "the counter of edge {} reached {}, and the certificate proves at most {}", claim.edge.value, seen,
                     claim.greatest);
  }
  if (finished && cycles < certificate.lower_bound_cycles) {
    violations.found(Code::RDU7022, cycles, "the run",
                     "it took {} cycles, and the certificate proves that none takes fewer than {}", cycles,
                     certificate.lower_bound_cycles);
  }
}

}  // namespace rdusim
