// The elements of a fill, or of a slice of it, as little-endian row-major bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/element_bytes.h"
#include "compiler/support/result.h"
#include "compiler/workload/fill.h"

namespace rdusim {

// Writes elements [offset, offset + shape) of a tensor of shape `whole` filled with `fill` to `out`, which has exactly
// the bytes of `shape`. All three have the same rank; the slice lies in the whole. File fills are read from
// `folder`/path; their size and SHA-256 are checked once a process and file (RDU1025). ExternalFill is refused (RDU6002).
// Errors: RDU1001, RDU1022 (a value beyond the dtype), RDU1025, RDU4105 (a slice that cannot be taken, or does not lie in the
// whole), RDU6002.
Result<bool> read_fill(const Fill& fill, DType dtype, const std::vector<std::int64_t>& whole,
                       const std::vector<std::int64_t>& offset, const std::vector<std::int64_t>& shape,
                       const std::string& folder, std::span<std::byte> out);

// The whole tensor of a file fill as it lies in its file, read when it is looked at: for what is larger than the memory.
// Nothing where it cannot be mapped: other fills, and elements that do not lie at multiples of their size. Errors: as above.
bool can_map(const Fill& fill, DType dtype);
Result<std::optional<ElementBytes>> map_fill(const Fill& fill, DType dtype, const std::vector<std::int64_t>& whole,
                                             const std::string& folder);

// Why a slice of the fill cannot be taken, or empty where it can (whole-tensor random; too few values).
std::string why_not_sliceable(const Fill& fill, const std::vector<std::int64_t>& whole);

}  // namespace rdusim
