// Launches of a relaunched section that need not be simulated, as they go as the one before.
//
// A launch starts on units in their defined first state, once nothing of the one before is pending. What it does follows from
// the counters of its stages, buffers and edges (Chip::at_rest), compared before it and after it, and from where its tensors
// lie: in rows of their own, equally far from the start of one, so that refresh, channels and rows are met alike. Where both
// hold, every launch that is left goes as this one, cycle by cycle: by induction, as what it leaves behind is what it met.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/target/target.h"

namespace rdusim {

// Of one relaunched section.
struct LaunchReuse {
  SectionId section;
  std::uint64_t simulated = 0;
  std::uint64_t reused = 0;
  std::string why_not;  // where none was
};

// Why no launch of `section` may stand for another whatever the state they start in; nothing where one may.
std::optional<std::string> launches_differ(const SpatialProgram& program, const Target& target, SectionId section);

}  // namespace rdusim
