// The operations of a Generic's bodies, as the kernels know them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/ir/program.h"
#include "models/values/kernels.h"

namespace rdusim {

// Whether bodies compute in this type.
constexpr bool is_arithmetic(DType t) {
  return t == DType::int32 || t == DType::int64 || t == DType::fp32;
}

// Of an operation that pops two values; of one that pops one.
ElementOp element_op(ExprOp op);
UnaryOp unary_op(ExprOp op);

// n elements of a type that is_arithmetic, each `number`: rounded once, of integers the nearest that there is.
void fill_page(DType t, double number, std::byte* out, std::uint64_t n);

// fp32: each element's row, or column, of a page of rows x cols whose first element is at (first_row, first_col).
void fill_places(bool of_rows, std::uint64_t first_row, std::uint64_t first_col, std::uint32_t rows, std::uint32_t cols,
                 std::byte* out);

}  // namespace rdusim
