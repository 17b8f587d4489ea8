// Elements of operands: read into the type that arithmetic is done in, rounded, written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/support/dtype.h"

namespace rdusim::reference {

// Elements [first, first + n) as float, double, std::uint32_t or std::uint64_t (two's complement).
template <class Acc>
void read_elements(DType t, std::span<const std::byte> bytes, std::size_t first, std::size_t n, Acc* out);

// Element i of `out`, converted to `t` as reference.h says.
void put_rounded(DType t, std::vector<std::byte>& out, std::size_t i, float value, bool saturate);
void put_integer(DType t, std::vector<std::byte>& out, std::size_t i, std::int64_t v, bool saturate);

// There and back. Requires a float dtype and |value| <= 1, or NaN.
float rounded(DType t, float value);

// sum[j] += a * b[j], each rounded on its own; the same bits whatever the vector width.
void add_scaled(float* sum, const float* b, float a, std::int64_t n);
void add_scaled(double* sum, const double* b, double a, std::int64_t n);

// sum(rows x width) += a(rows x depth) panel(depth x width), products added one by one in rising depth; rows of each
// matrix lie Strides apart, in elements. The last also adds the products' magnitudes up.
struct Strides {
  std::size_t sum = 0, a = 0, panel = 0;
};
struct Extents {
  std::size_t rows = 0, depth = 0, width = 0;
};
void add_products(float* sum, const float* a, const float* panel, const Strides& stride, const Extents& n);
void add_products(std::uint32_t* sum, const std::uint32_t* a, const std::uint32_t* panel, const Strides& stride,
                  const Extents& n);
void add_products(std::uint64_t* sum, const std::uint64_t* a, const std::uint64_t* panel, const Strides& stride,
                  const Extents& n);
void add_products(double* sum, double* magnitude, const double* a, const double* panel, const Strides& stride,
                  const Extents& n);

}  // namespace rdusim::reference
