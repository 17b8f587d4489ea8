// What the pages of each buffer are blocks of: the extents of the whole that they are cut from, whoever made it.
//
//   loaded               the whole operand's shape; in heads, that of the stack of them
//   loaded by index      as many rows as indices, the columns of the table
//   landed               that of the pages that were sent
//   a matmul's           the stack and rows of a, the columns (transposed: the rows) of b
//   element-wise         that of what it takes
//   made by row          the greatest of each extent of what its operands have; of joined rows, one column
//   a fold of items      none: it has no place (program.h)
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// Extents, the last two rows and columns; a vector is one row. Empty: of no place, or not known.
using PageFrame = std::vector<std::int64_t>;

// By buffer. Requires a program whose references resolve and whose Generics have a map for each port.
std::vector<PageFrame> page_frames(const SpatialProgram& program);

// What a by-row body is evaluated over: the frame of its result before rows are joined. `inputs` by input port.
PageFrame row_frame(const std::vector<const PageFrame*>& inputs);

// Rows of all matrices of a stack together; 1 of no frame.
std::uint64_t flat_rows(const PageFrame& frame);

}  // namespace rdusim
