// What a fault exchanges something with, where it needs a second place. Nothing where the program has none.
#pragma once

#include <optional>

#include "compiler/ir/program.h"

namespace rdusim {

// A load's counterpart: a load of another chip's part of the same operand, by as many instances.
std::optional<StageId> other_shard(const SpatialProgram& program, StageId load);

// Of a buffer whose pages go into a collective: a buffer of the same chip and section whose pages go into another one.
std::optional<BufferId> other_collective(const SpatialProgram& program, BufferId buffer);

}  // namespace rdusim
