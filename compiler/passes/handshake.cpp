#include <algorithm>
#include <set>

#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"
#include "compiler/target/topology.h"

namespace rdusim {
namespace {

Handshake local_of(const Target& t) {
  return t.local == LocalHandshake::valid_ready ? Handshake::valid_ready : Handshake::circular_buffer;
}

SemaphoreId add_semaphore(SpatialProgram& p, GroupId group, const Target& t) {
  const SemaphoreId id(p.semaphores.size());
  p.semaphores.push_back({id, group, mutated("handshake.semaphore_starts_raised", 0u, 1), t.site.semaphore_bits});
  return id;
}

}  // namespace

Result<SpatialProgram> handshake(SpatialProgram program, const Target& target) {
  Requires& needs = program.required;
  std::set<Handshake> kinds;
  std::set<LinkId> links;
  Routes routes(target);
  for (Edge& e : program.edges) {
    if (e.handshake == Handshake::fifo)
      e.handshake = mutated("handshake.left_abstract", local_of(target), Handshake::fifo);
    kinds.insert(e.handshake);
    if (is_local(e.handshake)) continue;
    const ChipId from = program.chip_of(program.stage(e.from));
    e.routes.resize(e.to.size());
    for (std::size_t i = 0; i < e.to.size(); ++i) {
      if (e.routes[i].empty()) e.routes[i] = routes.between(from, program.chip_of(program.stage(e.to[i])));
      links.insert(e.routes[i].begin(), e.routes[i].end());
    }
    if (e.handshake == Handshake::semaphore && !e.semaphores) {
      SemaphorePair pair;
      pair.ready = add_semaphore(
          program, program.stage(mutated("handshake.ready_at_the_receiver", e.from, e.to.front())).group, target);
      for (const StageId to : e.to)
        pair.valid.push_back(mutated("handshake.one_semaphore_for_both", false, true)
                                 ? pair.ready
                                 : add_semaphore(program, program.stage(to).group, target));
      e.semaphores = std::move(pair);
    }
    if (e.counter_bits == 0)
      e.counter_bits = e.handshake == Handshake::semaphore
                           ? target.site.semaphore_bits
                           : mutated("handshake.credits_wrap", target.site.token_bits, 1u);
  }
  if (mutated("handshake.link_not_configured", false, !links.empty())) links.erase(links.begin());
  program.links.assign(links.begin(), links.end());

  if (mutated("handshake.requires_too_little", false, true)) kinds.clear();
  needs.handshakes.assign(kinds.begin(), kinds.end());
  std::set<DType> types;
  for (const Stage& s : program.stages)
    if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) types.insert(m->operand);
  needs.operand_dtypes.assign(types.begin(), types.end());
  std::set<MemorySpace> spaces;
  for (const Tensor& t : program.tensors) spaces.insert(t.space);
  needs.spaces.assign(spaces.begin(), spaces.end());
  return program;
}

}  // namespace rdusim
