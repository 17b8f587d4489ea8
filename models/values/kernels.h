// Arithmetic on pages: the same bits on every computer.
//
// A page's elements are row-major little-endian without gaps. The order of every sum is fixed (rising k, vectorised over
// columns only), products and sums are rounded separately (the build sets -ffp-contract=off). Integers wrap around.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/support/dtype.h"

namespace rdusim {

// acc(rows x cols, accumulator_of(operand)) += a(rows x depth) b(depth x cols), products added one by one in rising
// depth index to what acc holds; `transposed`: b is cols x depth. With several `lanes`, a power of two, it is the sums of
// so many products side by side that are added so, each made as a reduction tree does (summation_tree.h). No overlap.
void matmul_accumulate(DType operand, const std::byte* a, const std::byte* b, std::byte* acc, std::uint32_t rows,
                       std::uint32_t depth, std::uint32_t cols, bool transposed = false, std::uint32_t lanes = 1);

enum class ElementOp : std::uint8_t { add, subtract, multiply, maximum, minimum, divide, mask };
enum class UnaryOp : std::uint8_t { negate, exponential, square_root, tanh, erf };

// out[i] = op(a[i], b[i]), n elements of type int32, int64 or fp32 (divide, mask: fp32 only). mask: a where b >= 0, else
// minus infinity. out may be a or b.
void element_wise(ElementOp op, DType type, const std::byte* a, const std::byte* b, std::byte* out, std::size_t n);

// out[i] = op(in[i]); all but negate (which multiplies by -1) of fp32 only, by support/elementary.h. out may be in.
void element_wise(UnaryOp op, DType type, const std::byte* in, std::byte* out, std::size_t n);

// out(rows x cols) from a page `in` of `in_cols` columns, elements of type int32, int64 or fp32: with `has_rows` row r
// of out comes from row r of in, else from row 0; columns likewise. No overlap.
struct Spread {
  bool has_rows = true;
  bool has_cols = true;
};
void spread(Spread how, DType type, const std::byte* in, std::uint32_t in_cols, std::byte* out, std::uint32_t rows,
            std::uint32_t cols);

// Joins each row of in(rows x cols) into held[row] by add, maximum or minimum, in rising column, one by one; where
// `first`, a row's first element is taken as it is, and held is not read. No overlap.
void join_rows(ElementOp op, DType type, const std::byte* in, std::byte* held, std::uint32_t rows, std::uint32_t cols,
               bool first);

// Converts n elements. float -> float: round to nearest even, NaN stays NaN; to fp8 with `saturate`: beyond the largest
// finite value (infinity included) becomes that value, without: infinity (e5m2) or NaN (e4m3); bf16, like fp32,
// overflows to infinity. integer -> narrower
// integer: saturate, or the low bits. float -> integer: to nearest even, saturating, NaN to 0. integer -> float: nearest
// even.
void convert(DType from, const std::byte* in, DType to, std::byte* out, std::size_t n, bool saturate);

// Single elements, the definitions that the above follow. Bit patterns in, bit patterns out.
std::uint16_t bf16_from_fp32(float value);
float fp32_from_bf16(std::uint16_t bits);
std::uint8_t fp8_e4m3_from_fp32(float value, bool saturate);
float fp32_from_fp8_e4m3(std::uint8_t bits);
std::uint8_t fp8_e5m2_from_fp32(float value, bool saturate);
float fp32_from_fp8_e5m2(std::uint8_t bits);

}  // namespace rdusim
