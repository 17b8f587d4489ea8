// prog.bin: a SpatialProgram as a file. The page prog-bin.md beside this describes the format.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

// Deterministic: equal programs give equal bytes, always (NaN counts as equal to NaN). Requires of one element, a stage
// say or a tensor with the values of its fill, less than 2 GiB; lists of them may be of any length.
std::string encode(const SpatialProgram& program);

// Checks magic, version, lengths, checksums, table structure, enum ranges and sizes before it trusts anything; takes no
// memory on the file's word. What it returns is well formed, not yet valid: verify() comes next.
// Errors: RDU5001-RDU5005.
Result<SpatialProgram> decode(std::string_view bytes, const std::string& where);

inline constexpr std::uint32_t prog_bin_version = 1;

}  // namespace rdusim
