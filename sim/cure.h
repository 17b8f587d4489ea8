// The smallest change of depth that resolves a circular wait: of the buffers in which somebody of the wait cycle lacks
// room, or a credit, the one that lacks fewest pages of its least depth (compiler/ir/least_depths.h). Whoever asks
// confirms it by runs on the machine (understudy.h).
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

struct Cure {
  BufferId buffer;
  std::uint64_t given = 0;   // its depth
  std::uint64_t needed = 0;  // the least one with which the program ends, all others as given; one less does not
  friend bool operator==(const Cure&, const Cure&) = default;
};

// `shallow`: the buffers to try. Nothing where no depth of any of them alone is enough, or it is too much to find out.
// Requires a program that verifies, but for its depths.
std::optional<Cure> find_cure(const SpatialProgram& program, const std::vector<BufferId>& shallow);

}  // namespace rdusim
