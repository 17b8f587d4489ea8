// Collective agreement: who takes part, in which order, with how many bytes.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/certificate/obligations.h"

namespace rdusim::certificate {

Finding collective_agreement(const Subject& s, const Provenance& provenance) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  const std::size_t n = s.p.collectives.size();
  std::vector<std::set<ChipId>> takes_part(n);
  std::vector<std::set<SectionId>> sections(n);
  for (const Stage& stage : s.p.stages) {
    if (!stage.collective) continue;
    if (stage.collective->value >= n)
      return refuted("stage '{}' belongs to collective {}, which does not exist", stage.name, stage.collective->value);
    takes_part[stage.collective->value].insert(s.p.chip_of(stage));
    sections[stage.collective->value].insert(stage.section);
  }
  // A chip that only sends has no stage of the collective, but an edge that carries its part into it.
  for (const Edge& e : s.p.edges) {
    if (!e.collective) continue;
    if (e.collective->value >= n)
      return refuted("edge {} belongs to collective {}, which does not exist", e.id.value, e.collective->value);
    takes_part[e.collective->value].insert(s.p.chip_of(s.p.stage(e.from)));
    sections[e.collective->value].insert(s.p.stage(e.from).section);
  }
  // One chip has nothing to do, and sends nothing.
  const auto alone = [&](const Collective& c) { return c.members.size() == 1 && takes_part[c.id.value].empty(); };
  for (const Collective& c : s.p.collectives) {
    const std::set<ChipId> members(c.members.begin(), c.members.end());
    if (members.size() != c.members.size()) return refuted("collective '{}' names a member twice", c.name);
    if (alone(c)) continue;
    for (const ChipId chip : c.members)
      if (takes_part[c.id.value].count(chip) == 0)
        return refuted("chip {} is a member of collective '{}' and has no part in it", chip.value, c.name);
    for (const ChipId chip : takes_part[c.id.value])
      if (members.count(chip) == 0)
        return refuted("chip {} has a part in collective '{}' and is no member", chip.value, c.name);
    if (c.bytes.size() != c.members.size())
      return refuted("collective '{}' has {} members and states the bytes of {}", c.name, c.members.size(),
                     c.bytes.size());
  }
  // A section ends before the next starts, so sections order the collectives of a chip; `order` must say the same.
  for (const Collective& a : s.p.collectives)
    for (const Collective& b : s.p.collectives) {
      if (a.id == b.id) continue;
      const auto shared = std::find_if(a.members.begin(), a.members.end(), [&](ChipId chip) {
        return std::find(b.members.begin(), b.members.end(), chip) != b.members.end();
      });
      if (shared == a.members.end()) continue;
      if (a.order == b.order)
        return refuted("collectives '{}' and '{}' share chip {} and have the same place, {}", a.name, b.name,
                       shared->value, a.order);
      const auto& before = sections[a.id.value];
      const auto& after = sections[b.id.value];
      if (!before.empty() && !after.empty() && *before.rbegin() < *after.begin() && a.order > b.order)
        return refuted("collective '{}' runs before '{}' on chip {}, and their places are {} and {}", a.name, b.name,
                       shared->value, a.order, b.order);
    }
  if (n == 0) return {};
  if (!provenance.complete) return unchecked("what the chips contribute was not worked out");
  for (const Collective& c : s.p.collectives)
    for (std::size_t m = 0; !alone(c) && m < c.members.size(); ++m) {
      const std::uint64_t sent =
          c.members[m].value < provenance.sent[c.id.value].size() ? provenance.sent[c.id.value][c.members[m].value] : 0;
      if (sent != c.bytes[m])
        return refuted("chip {} contributes {} bytes to collective '{}', which states {}", c.members[m].value, sent,
                       c.name, c.bytes[m]);
    }
  return {};
}

}  // namespace rdusim::certificate
