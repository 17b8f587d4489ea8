// Programs as lists with references between them: putting chips together, and taking parts out, with ids kept dense.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// One program of copies of placed programs of chip 0, one for each chip: the elements that chip c takes over from
// `chips[c]` follow those of the chips before it in every list, and every reference follows. Tensors, stages and buffers
// are named NAME_cN. Sections, which must be the same of all, are shared: the copies of a stage are configured together.
// What belongs to the whole (header, operators, collectives, summation trees, certificate) or is worked out later (memory,
// schedule, links) is not copied: header and operators are those of the first, the others are empty.
SpatialProgram side_by_side(const std::vector<const SpatialProgram*>& chips);

// Parts to be taken out, by id; lists as long as the program's.
struct Dropped {
  explicit Dropped(const SpatialProgram& p)
      : tensors(p.tensors.size()),
        stages(p.stages.size()),
        buffers(p.buffers.size()),
        edges(p.edges.size()),
        work(p.work.size()) {}
  std::vector<bool> tensors, stages, buffers, edges, work;
};

// Takes them out and renumbers what stays, in its order. Requires that nothing that stays refers to what goes, but work
// assignments, which go with their stage, and that memory and schedule are absent. Parts added after `dropped` was made
// stay.
void drop(SpatialProgram& program, const Dropped& dropped);

// The stages of a program by chip: what those that share a site hold already is asked for stage after stage, and a large
// program has tens of thousands.
class StagesByChip {
 public:
  // Of the stages that `program`, which outlives this, has by now.
  explicit StagesByChip(const SpatialProgram& program);
  void add(const Stage& stage);

  // The least context of the PCUs of `group` that no compute stage of `section` has yet on any of its sites.
  std::uint32_t free_context(GroupId group, SectionId section) const;
  // How many movement stages of `section` that share a site with `group` sit on each of `engines` movement engines.
  std::vector<std::uint32_t> engine_load(GroupId group, SectionId section, std::uint32_t engines) const;

 private:
  template <class See>
  void each(GroupId group, SectionId section, StageRole role, See&& see) const;

  const SpatialProgram& p_;
  std::vector<std::vector<StageId>> by_chip_;
};

// Whether two groups have a site in common.
bool share_sites(const Group& a, const Group& b);

}  // namespace rdusim
