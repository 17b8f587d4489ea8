// How deep the buffers of a program are, and how deep they must be: `rdusim check --minimum-depths`.
#pragma once

#include <string>

#include "compiler/ir/program.h"
#include "compiler/support/json.h"

namespace rdusim::cli {

// A line a buffer: its depth; the least with which what it is joined with runs to its end (`certificate`, as the
// checker finds it); the least with which that goes no slower (estimated: the cost model's firings, and the maximum
// cycle mean of throughput.h); what lies beyond the minimum. Then what holds the slowest back. "?" is not worked out.
std::string depths_table(const SpatialProgram& program, const Target& target, const Certificate& certificate);

// The same, a row a buffer.
Json depths_json(const SpatialProgram& program, const Target& target, const Certificate& certificate);

}  // namespace rdusim::cli
