#include "models/values/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "compiler/support/elementary.h"

namespace rdusim {
namespace {

// ---- floating-point formats
// ---------------------------------------------------------------------------------------------

// A format of 8 bits: sign, exponent, mantissa. `largest` is the code of the greatest finite value, `beyond` what an
// overflow becomes without saturation (OCP 8-bit floating point specification: infinity in E5M2, NaN in E4M3).
struct SmallFormat {
  int mantissa_bits;
  int bias;
  std::uint8_t largest, beyond, nan;
};
constexpr SmallFormat e4m3{3, 7, 0x7e, 0x7f, 0x7f};
constexpr SmallFormat e5m2{2, 15, 0x7b, 0x7c, 0x7e};

std::uint8_t encode_small(const SmallFormat& f, float value, bool saturate) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint8_t sign = static_cast<std::uint8_t>(bits >> 31 << 7);
  if (std::isnan(value)) return sign | f.nan;
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
  const std::uint8_t overflow = saturate ? f.largest : f.beyond;
  if (exponent > 127) return sign | overflow;
  // A subnormal float is far below half of the least 8-bit value, so the hidden bit may be taken as set.
  const std::uint32_t significand = (bits & 0x7fffff) | 0x800000;
  const int least = 1 - f.bias;
  const int shift = 23 - f.mantissa_bits + std::max(0, least - exponent);
  if (shift > 24) return sign;  // less than half of the least value
  const std::uint32_t rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
  std::uint32_t kept = significand >> shift;
  if (rest > half || (rest == half && (kept & 1))) ++kept;  // a carry runs into the exponent, as it should
  const std::uint32_t code =
      exponent >= least ? (static_cast<std::uint32_t>(exponent + f.bias - 1) << f.mantissa_bits) + kept : kept;
  return sign | (code > f.largest ? overflow : static_cast<std::uint8_t>(code));
}

float decode_small(const SmallFormat& f, std::uint8_t bits) {
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const int code = bits & 0x7f;
  if (f.beyond == f.nan ? code == f.nan : code > f.beyond)
    return std::bit_cast<float>(0x7fc00000u | static_cast<std::uint32_t>(bits >> 7) << 31);
  if (code > f.largest) return sign * std::numeric_limits<float>::infinity();
  const int exponent = code >> f.mantissa_bits, mantissa = code & ((1 << f.mantissa_bits) - 1);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)), exponent - f.bias - f.mantissa_bits);
}

std::array<float, 256> decode_table(const SmallFormat& f) {
  std::array<float, 256> table{};
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = decode_small(f, static_cast<std::uint8_t>(i));
  return table;
}
const std::array<float, 256> e4m3_values = decode_table(e4m3);
const std::array<float, 256> e5m2_values = decode_table(e5m2);

template <class T>
T load(const std::byte* p, std::size_t i) {
  T v;
  std::memcpy(&v, p + i * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void store(std::byte* p, std::size_t i, T v) {
  std::memcpy(p + i * sizeof(T), &v, sizeof(T));
}

// ---- matmul
// ---------------------------------------------------------------------------------------------------------------
//
// Operands are widened to the accumulator's type into small packed panels; then a register block of rows x 16 columns
// runs over a stretch of the contraction. Every element of the result is summed in rising depth, whatever the blocking:
// a block takes up the sums where the last left them. Vectors run over columns only.

constexpr std::uint32_t panel_columns = 16;
constexpr std::uint32_t block_rows = 6;    // 6 x 2 vectors of accumulators fit the 16 vector registers of AVX2
constexpr std::uint32_t stretch = 128;     // contraction of a packed panel: 8 KiB of fp32, inside L1
constexpr std::uint32_t packed_rows = 96;  // rows of a packed: 48 KiB of fp32, inside L2

template <class Acc>
struct Panels {
  alignas(64) Acc a[packed_rows][stretch];
  alignas(64) Acc b[stretch][panel_columns];
};

template <std::uint32_t rows, class Acc>
[[gnu::always_inline]] inline void micro_kernel(const Acc (*a)[stretch], const Acc (*b)[panel_columns], Acc* c,
                                                std::size_t c_stride, std::uint32_t depth) {
  constexpr std::size_t lanes = 32 / sizeof(Acc);
  constexpr std::size_t vectors = panel_columns / lanes;
  typedef Acc Vector __attribute__((vector_size(32)));
  Vector sum[rows][vectors];
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(&sum[r][v], c + r * c_stride + v * lanes, sizeof(Vector));
  for (std::uint32_t k = 0; k < depth; ++k) {
    Vector column[vectors];
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(&column[v], &b[k][v * lanes], sizeof(Vector));
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] += a[r][k] * column[v];
  }
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(c + r * c_stride + v * lanes, &sum[r][v], sizeof(Vector));
}

template <class Acc>
[[gnu::always_inline]] inline void row_block(std::uint32_t rows, const Acc (*a)[stretch], const Acc (*b)[panel_columns],
                                             Acc* c, std::size_t c_stride, std::uint32_t depth) {
  switch (rows) {
    case 1:
      return micro_kernel<1>(a, b, c, c_stride, depth);
    case 2:
      return micro_kernel<2>(a, b, c, c_stride, depth);
    case 3:
      return micro_kernel<3>(a, b, c, c_stride, depth);
    case 4:
      return micro_kernel<4>(a, b, c, c_stride, depth);
    case 5:
      return micro_kernel<5>(a, b, c, c_stride, depth);
    default:
      return micro_kernel<6>(a, b, c, c_stride, depth);
  }
}

// One packed stretch against all rows of the packed a.
template <class Acc>
[[gnu::always_inline]] inline void multiply_panel(const Panels<Acc>& p, Acc* c, std::size_t c_stride,
                                                  std::uint32_t rows, std::uint32_t depth, std::uint32_t columns) {
  for (std::uint32_t r = 0; r < rows; r += block_rows) {
    const std::uint32_t n = std::min(block_rows, rows - r);
    if (columns == panel_columns) {
      row_block(n, p.a + r, p.b, c + r * c_stride, c_stride, depth);
      continue;
    }
    Acc edge[block_rows][panel_columns] = {};  // the lanes beyond the edge compute nothing that is kept
    for (std::uint32_t i = 0; i < n; ++i) std::memcpy(edge[i], c + (r + i) * c_stride, columns * sizeof(Acc));
    row_block(n, p.a + r, p.b, &edge[0][0], panel_columns, depth);
    for (std::uint32_t i = 0; i < n; ++i) std::memcpy(c + (r + i) * c_stride, edge[i], columns * sizeof(Acc));
  }
}

// The same source for every instruction set: clones differ in width, never in the order of operations.
#define RDU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
RDU_CLONES void multiply_panel_fp32(const Panels<float>& p, float* c, std::size_t stride, std::uint32_t rows,
                                    std::uint32_t depth, std::uint32_t columns) {
  multiply_panel(p, c, stride, rows, depth, columns);
}
RDU_CLONES void multiply_panel_int32(const Panels<std::uint32_t>& p, std::uint32_t* c, std::size_t stride,
                                     std::uint32_t rows, std::uint32_t depth, std::uint32_t columns) {
  multiply_panel(p, c, stride, rows, depth, columns);
}
RDU_CLONES void multiply_panel_int64(const Panels<std::uint64_t>& p, std::uint64_t* c, std::size_t stride,
                                     std::uint32_t rows, std::uint32_t depth, std::uint32_t columns) {
  multiply_panel(p, c, stride, rows, depth, columns);
}
#undef RDU_CLONES

void multiply(const Panels<float>& p, float* c, std::size_t s, std::uint32_t r, std::uint32_t d, std::uint32_t n) {
  multiply_panel_fp32(p, c, s, r, d, n);
}
void multiply(const Panels<std::uint32_t>& p, std::uint32_t* c, std::size_t s, std::uint32_t r, std::uint32_t d,
              std::uint32_t n) {
  multiply_panel_int32(p, c, s, r, d, n);
}
void multiply(const Panels<std::uint64_t>& p, std::uint64_t* c, std::size_t s, std::uint32_t r, std::uint32_t d,
              std::uint32_t n) {
  multiply_panel_int64(p, c, s, r, d, n);
}

// Widens n operand elements to the accumulator's type. Integers are widened with their sign and then kept unsigned, so
// that wrap-around is defined.
template <class Acc>
void widen(DType type, const std::byte* in, Acc* out, std::size_t n) {
  if constexpr (std::is_same_v<Acc, float>) {
    switch (type) {
      case DType::bf16:
        for (std::size_t i = 0; i < n; ++i) out[i] = fp32_from_bf16(load<std::uint16_t>(in, i));
        return;
      case DType::fp8_e4m3:
        for (std::size_t i = 0; i < n; ++i) out[i] = e4m3_values[load<std::uint8_t>(in, i)];
        return;
      case DType::fp8_e5m2:
        for (std::size_t i = 0; i < n; ++i) out[i] = e5m2_values[load<std::uint8_t>(in, i)];
        return;
      default:
        std::memcpy(out, in, n * sizeof(float));
        return;
    }
  } else {
    if (type == DType::int8) {
      for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<Acc>(static_cast<std::make_signed_t<Acc>>(load<std::int8_t>(in, i)));
    } else {
      std::memcpy(out, in, n * sizeof(Acc));
    }
  }
}

template <class Acc>
void accumulate(DType operand, const std::byte* a, const std::byte* b, std::byte* acc, std::uint32_t rows,
                std::uint32_t depth, std::uint32_t cols, bool transposed) {
  static thread_local Panels<Acc> panels;
  const std::size_t size = bytes_of(operand);
  Acc* c = reinterpret_cast<Acc*>(acc);
  for (std::uint32_t r = 0; r < rows; r += packed_rows) {
    const std::uint32_t row_count = std::min(packed_rows, rows - r);
    for (std::uint32_t k = 0; k < depth; k += stretch) {
      const std::uint32_t k_count = std::min(stretch, depth - k);
      for (std::uint32_t i = 0; i < row_count; ++i)
        widen(operand, a + (std::size_t{r + i} * depth + k) * size, panels.a[i], k_count);
      for (std::uint32_t n = 0; n < cols; n += panel_columns) {
        const std::uint32_t columns = std::min(panel_columns, cols - n);
        for (std::uint32_t i = 0; i < k_count && !transposed; ++i)
          widen(operand, b + (std::size_t{k + i} * cols + n) * size, panels.b[i], columns);
        for (std::uint32_t j = 0; j < columns && transposed; ++j) {
          Acc column[stretch];
          widen(operand, b + (std::size_t{n + j} * depth + k) * size, column, k_count);
          for (std::uint32_t i = 0; i < k_count; ++i) panels.b[i][j] = column[i];
        }
        for (std::uint32_t i = 0; i < k_count && columns < panel_columns; ++i)
          std::fill(panels.b[i] + columns, panels.b[i] + panel_columns, Acc{});
        multiply(panels, c + std::size_t{r} * cols + n, cols, row_count, k_count, columns);
      }
    }
  }
}

// ---- conversion
// -----------------------------------------------------------------------------------------------------------

float float_at(DType type, const std::byte* in, std::size_t i) {
  switch (type) {
    case DType::bf16:
      return fp32_from_bf16(load<std::uint16_t>(in, i));
    case DType::fp8_e4m3:
      return e4m3_values[load<std::uint8_t>(in, i)];
    case DType::fp8_e5m2:
      return e5m2_values[load<std::uint8_t>(in, i)];
    default:
      return load<float>(in, i);
  }
}
std::int64_t integer_at(DType type, const std::byte* in, std::size_t i) {
  switch (type) {
    case DType::int8:
      return load<std::int8_t>(in, i);
    case DType::int32:
      return load<std::int32_t>(in, i);
    default:
      return load<std::int64_t>(in, i);
  }
}
void put_float(DType type, std::byte* out, std::size_t i, float v, bool saturate) {
  switch (type) {
    case DType::bf16:
      return store(out, i, bf16_from_fp32(v));
    case DType::fp8_e4m3:
      return store(out, i, encode_small(e4m3, v, saturate));
    case DType::fp8_e5m2:
      return store(out, i, encode_small(e5m2, v, saturate));
    default:
      return store(out, i, v);
  }
}
template <class T>
void put_narrow(std::byte* out, std::size_t i, std::int64_t v, bool saturate) {
  if (saturate) v = std::clamp<std::int64_t>(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  store(out, i, static_cast<T>(v));
}
void put_integer(DType type, std::byte* out, std::size_t i, std::int64_t v, bool saturate) {
  switch (type) {
    case DType::int8:
      return put_narrow<std::int8_t>(out, i, v, saturate);
    case DType::int32:
      return put_narrow<std::int32_t>(out, i, v, saturate);
    default:
      return store(out, i, v);
  }
}
std::int64_t integer_from_float(float v) {
  if (std::isnan(v)) return 0;
  // 2^63 is a float; the greatest float below it fits.
  if (v >= 9223372036854775808.0f) return std::numeric_limits<std::int64_t>::max();
  if (v < -9223372036854775808.0f) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(std::nearbyint(v));  // the rounding mode is never changed: nearest even
}

template <class T, class F>
void each(const std::byte* a, const std::byte* b, std::byte* out, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; ++i) store<T>(out, i, f(load<T>(a, i), load<T>(b, i)));
}

// A NaN on either side gives NaN, and +0 is greater than -0, so that neither depends on the order of operands.
template <class T>
T greater_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    if (x == y) return std::signbit(x) ? y : x;
  }
  return x > y ? x : y;
}
template <class T>
T lesser_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    if (x == y) return std::signbit(x) ? x : y;
  }
  return x < y ? x : y;
}

// Integers wrap around: computed unsigned, compared signed.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

template <class T>
void element_wise_as(ElementOp op, const std::byte* a, const std::byte* b, std::byte* out, std::size_t n) {
  using W = Wrapping<T>;
  switch (op) {
    case ElementOp::add:
      return each<W>(a, b, out, n, [](W x, W y) { return x + y; });
    case ElementOp::subtract:
      return each<W>(a, b, out, n, [](W x, W y) { return x - y; });
    case ElementOp::multiply:
      return each<W>(a, b, out, n, [](W x, W y) { return x * y; });
    case ElementOp::maximum:
      return each<T>(a, b, out, n, greater_of<T>);
    case ElementOp::minimum:
      return each<T>(a, b, out, n, lesser_of<T>);
    case ElementOp::divide:
      if constexpr (std::is_floating_point_v<T>) each<T>(a, b, out, n, [](T x, T y) { return x / y; });
      return;
    case ElementOp::mask:
      if constexpr (std::is_floating_point_v<T>)
        each<T>(a, b, out, n, [](T x, T y) { return y >= 0 ? x : -std::numeric_limits<T>::infinity(); });
  }
}

template <class T>
void spread_as(Spread how, const std::byte* in, std::uint32_t in_cols, std::byte* out, std::uint32_t rows,
               std::uint32_t cols) {
  const std::size_t row_bytes = std::size_t{cols} * sizeof(T);
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::byte* from = in + (how.has_rows ? std::size_t{r} * in_cols * sizeof(T) : 0);
    if (how.has_cols) {
      std::memcpy(out + r * row_bytes, from, row_bytes);
    } else {
      const T value = load<T>(from, 0);
      for (std::uint32_t c = 0; c < cols; ++c) store<T>(out + r * row_bytes, c, value);
    }
  }
}

// Rows are independent of each other, so several go on side by side; within a row the order is what it is.
template <class T, class F>
void join_as(const std::byte* in, std::byte* held, std::uint32_t rows, std::uint32_t cols, bool first, F join) {
  constexpr std::uint32_t side_by_side = 8;
  for (std::uint32_t r = 0; r < rows; r += side_by_side) {
    const std::uint32_t n = std::min(side_by_side, rows - r);
    std::array<T, side_by_side> value{};
    std::array<const std::byte*, side_by_side> row{};
    for (std::uint32_t i = 0; i < side_by_side; ++i) {
      const std::uint32_t at = r + std::min(i, n - 1);  // beyond the last row: a row that is not kept
      row[i] = in + std::size_t{at} * cols * sizeof(T);
      value[i] = first ? load<T>(row[i], 0) : load<T>(held, at);
    }
    for (std::uint32_t c = first ? 1 : 0; c < cols; ++c)
      for (std::uint32_t i = 0; i < side_by_side; ++i) value[i] = join(value[i], load<T>(row[i], c));
    for (std::uint32_t i = 0; i < n; ++i) store<T>(held, r + i, value[i]);
  }
}

template <class T>
void join_rows_as(ElementOp op, const std::byte* in, std::byte* held, std::uint32_t rows, std::uint32_t cols,
                  bool first) {
  using W = Wrapping<T>;
  if (op == ElementOp::add)
    join_as<W>(in, held, rows, cols, first, [](W x, W y) { return static_cast<W>(x + y); });
  else if (op == ElementOp::maximum)
    join_as<T>(in, held, rows, cols, first, greater_of<T>);
  else
    join_as<T>(in, held, rows, cols, first, lesser_of<T>);
}

void negate(DType type, const std::byte* in, std::byte* out, std::size_t n) {
  switch (type) {
    case DType::int32:
      for (std::size_t i = 0; i < n; ++i) store<std::uint32_t>(out, i, 0 - load<std::uint32_t>(in, i));
      return;
    case DType::int64:
      for (std::size_t i = 0; i < n; ++i) store<std::uint64_t>(out, i, 0 - load<std::uint64_t>(in, i));
      return;
    default:
      for (std::size_t i = 0; i < n; ++i) store<float>(out, i, load<float>(in, i) * -1.0f);
  }
}

// Vectors of `lanes` products, each summed by a tree: neighbours, then neighbouring pairs.
template <class Acc>
void accumulate_by_lanes(DType operand, const std::byte* a, const std::byte* b, std::byte* acc, std::uint32_t rows,
                         std::uint32_t depth, std::uint32_t cols, bool transposed, std::uint32_t lanes) {
  const DType type = accumulator_of(operand);
  std::vector<Acc> left(std::size_t{rows} * depth), right(std::size_t{depth} * cols), vector(lanes);
  convert(operand, a, type, reinterpret_cast<std::byte*>(left.data()), left.size(), false);
  convert(operand, b, type, reinterpret_cast<std::byte*>(right.data()), right.size(), false);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) {
      Acc sum = load<Acc>(acc, r * cols + c);
      for (std::size_t k = 0; k < depth; k += lanes) {
        const std::size_t n = std::min<std::size_t>(lanes, depth - k);
        for (std::size_t i = 0; i < n; ++i)
          vector[i] = left[r * depth + k + i] * right[transposed ? c * depth + k + i : (k + i) * cols + c];
        for (std::size_t apart = 1; apart < n; apart *= 2)
          for (std::size_t i = 0; i + apart < n; i += 2 * apart) vector[i] += vector[i + apart];
        sum += vector[0];
      }
      store<Acc>(acc, r * cols + c, sum);
    }
}

}  // namespace

void matmul_accumulate(DType operand, const std::byte* a, const std::byte* b, std::byte* acc, std::uint32_t rows,
                       std::uint32_t depth, std::uint32_t cols, bool transposed, std::uint32_t lanes) {
  if (lanes > 1) {
    switch (accumulator_of(operand)) {
      case DType::int32:
        return accumulate_by_lanes<std::uint32_t>(operand, a, b, acc, rows, depth, cols, transposed, lanes);
      case DType::int64:
        return accumulate_by_lanes<std::uint64_t>(operand, a, b, acc, rows, depth, cols, transposed, lanes);
      default:
        return accumulate_by_lanes<float>(operand, a, b, acc, rows, depth, cols, transposed, lanes);
    }
  }
  switch (accumulator_of(operand)) {
    case DType::int32:
      return accumulate<std::uint32_t>(operand, a, b, acc, rows, depth, cols, transposed);
    case DType::int64:
      return accumulate<std::uint64_t>(operand, a, b, acc, rows, depth, cols, transposed);
    default:
      return accumulate<float>(operand, a, b, acc, rows, depth, cols, transposed);
  }
}

void element_wise(ElementOp op, DType type, const std::byte* a, const std::byte* b, std::byte* out, std::size_t n) {
  switch (type) {
    case DType::int32:
      return element_wise_as<std::int32_t>(op, a, b, out, n);
    case DType::int64:
      return element_wise_as<std::int64_t>(op, a, b, out, n);
    default:
      return element_wise_as<float>(op, a, b, out, n);
  }
}

void element_wise(UnaryOp op, DType type, const std::byte* in, std::byte* out, std::size_t n) {
  if (op == UnaryOp::negate) return negate(type, in, out, n);
  if (type != DType::fp32) return;
  const auto each_of = [&](auto f) {
    for (std::size_t i = 0; i < n; ++i) store<float>(out, i, f(load<float>(in, i)));
  };
  switch (op) {
    case UnaryOp::exponential:
      return each_of(exp_fp32);
    case UnaryOp::square_root:
      return each_of([](float x) { return std::sqrt(x); });
    case UnaryOp::tanh:
      return each_of(tanh_fp32);
    case UnaryOp::erf:
      return each_of(erf_fp32);
    case UnaryOp::negate:
      return;
  }
}

void spread(Spread how, DType type, const std::byte* in, std::uint32_t in_cols, std::byte* out, std::uint32_t rows,
            std::uint32_t cols) {
  if (bytes_of(type) == 8) return spread_as<std::uint64_t>(how, in, in_cols, out, rows, cols);
  spread_as<std::uint32_t>(how, in, in_cols, out, rows, cols);
}

void join_rows(ElementOp op, DType type, const std::byte* in, std::byte* held, std::uint32_t rows, std::uint32_t cols,
               bool first) {
  if (rows == 0 || cols == 0) return;
  switch (type) {
    case DType::int32:
      return join_rows_as<std::int32_t>(op, in, held, rows, cols, first);
    case DType::int64:
      return join_rows_as<std::int64_t>(op, in, held, rows, cols, first);
    default:
      return join_rows_as<float>(op, in, held, rows, cols, first);
  }
}

void convert(DType from, const std::byte* in, DType to, std::byte* out, std::size_t n, bool saturate) {
  if (from == to) {
    std::memcpy(out, in, n * bytes_of(from));
  } else if (is_integer(from) && is_integer(to)) {
    for (std::size_t i = 0; i < n; ++i) put_integer(to, out, i, integer_at(from, in, i), saturate);
  } else if (is_integer(from)) {
    // Rounded once: an int64 that went through fp32 on its way to bf16 would be rounded twice.
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t v = integer_at(from, in, i);
      float f = static_cast<float>(v);
      if (to != DType::fp32 && static_cast<double>(f) != static_cast<double>(v)) {
        // Odd rounding to fp32 keeps what a second rounding has to know.
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
        const bool away = (v >= 0) == (static_cast<long double>(f) > static_cast<long double>(v));
        const std::uint32_t toward_zero = away ? bits - 1 : bits;
        f = std::bit_cast<float>(toward_zero | 1);
      }
      put_float(to, out, i, f, saturate);
    }
  } else if (is_integer(to)) {
    for (std::size_t i = 0; i < n; ++i) put_integer(to, out, i, integer_from_float(float_at(from, in, i)), true);
  } else {
    for (std::size_t i = 0; i < n; ++i) put_float(to, out, i, float_at(from, in, i), saturate);
  }
}

std::uint16_t bf16_from_fp32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // quiet, so that it stays a NaN
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float fp32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
std::uint8_t fp8_e4m3_from_fp32(float value, bool saturate) {
  return encode_small(e4m3, value, saturate);
}
float fp32_from_fp8_e4m3(std::uint8_t bits) {
  return decode_small(e4m3, bits);
}
std::uint8_t fp8_e5m2_from_fp32(float value, bool saturate) {
  return encode_small(e5m2, value, saturate);
}
float fp32_from_fp8_e5m2(std::uint8_t bits) {
  return decode_small(e5m2, bits);
}

}  // namespace rdusim
