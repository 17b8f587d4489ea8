#include "sim/cure.h"

#include "compiler/ir/least_depths.h"

namespace rdusim {

std::optional<Cure> find_cure(const SpatialProgram& program, const std::vector<BufferId>& shallow) {
  const std::vector<std::uint64_t> least = least_depths(program);
  std::optional<Cure> best;
  for (const BufferId b : shallow) {
    const std::uint64_t given = program.buffer(b).depth_pages, needed = least[b.value];
    if (needed <= given || (best && needed - given >= best->needed - best->given)) continue;
    best = Cure{b, given, needed};
  }
  return best;
}

}  // namespace rdusim
