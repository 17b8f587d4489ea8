#include "sim/reference/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace rdusim::reference {
namespace {

// By arithmetic on doubles, not by the machine's bit tricks.

template <class T>
T raw(std::span<const std::byte> bytes, std::size_t i) {
  T v;
  std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void put(std::vector<std::byte>& bytes, std::size_t i, T v) {
  std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
}

// A binary format: `mantissa` explicit bits, exponents from `least` (of normal numbers), greatest finite value.
struct Format {
  int mantissa, exponent_bits, least;
  double greatest;
  bool has_infinity;
};
constexpr Format bf16_format{7, 8, -126, 0x1.FEp127, true};
constexpr Format e4m3_format{3, 4, -6, 448.0, false};
constexpr Format e5m2_format{2, 5, -14, 57344.0, true};

const Format& format_of(DType t) {
  return t == DType::bf16 ? bf16_format : t == DType::fp8_e4m3 ? e4m3_format : e5m2_format;
}

double decode(const Format& f, std::uint32_t bits) {
  const std::uint32_t fraction = bits & ((1u << f.mantissa) - 1);
  const std::uint32_t exponent = bits >> f.mantissa & ((1u << f.exponent_bits) - 1);
  const double sign = bits >> (f.mantissa + f.exponent_bits) & 1 ? -1.0 : 1.0;
  const std::uint32_t top = (1u << f.exponent_bits) - 1;
  if (exponent == top && f.has_infinity)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == top && fraction == (1u << f.mantissa) - 1) return std::numeric_limits<double>::quiet_NaN();
  const double significand = (exponent == 0 ? 0.0 : 1.0) + std::ldexp(double(fraction), -f.mantissa);
  return sign * std::ldexp(significand, exponent == 0 ? f.least : f.least + static_cast<int>(exponent) - 1);
}

// To nearest even by scaling to an integer; beyond the greatest value: itself with `saturate`, else infinity or NaN.
std::uint32_t encode(const Format& f, double value, bool saturate) {
  const std::uint32_t sign = (std::signbit(value) ? 1u : 0u) << (f.mantissa + f.exponent_bits);
  const std::uint32_t ones = (1u << f.exponent_bits) - 1;
  const std::uint32_t nan =
      f.has_infinity ? ones << f.mantissa | 1u << (f.mantissa - 1) : (ones << f.mantissa) | ((1u << f.mantissa) - 1);
  if (std::isnan(value)) return sign | nan;
  double magnitude = std::fabs(value);
  int exponent = f.least;
  if (!std::isinf(magnitude) && magnitude > 0) exponent = std::max(f.least, std::ilogb(magnitude));
  double units = std::isinf(magnitude) ? magnitude : std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent));
  magnitude = std::ldexp(units, exponent - f.mantissa);
  if (magnitude > f.greatest) {
    if (!saturate) return sign | (f.has_infinity ? ones << f.mantissa : nan);
    magnitude = f.greatest;
  }
  if (magnitude == 0) return sign;
  exponent = std::max(f.least, std::ilogb(magnitude));
  units = std::ldexp(magnitude, f.mantissa - exponent);
  const auto whole = static_cast<std::uint32_t>(units);
  if (whole < 1u << f.mantissa) return sign | whole;  // subnormal
  return sign | static_cast<std::uint32_t>(exponent - f.least + 1) << f.mantissa | (whole - (1u << f.mantissa));
}

// decode() of every code of a format: a weight matrix has millions of elements and few values.
template <DType type>
const std::vector<float>& decoded() {
  static const std::vector<float> values = [] {
    std::vector<float> all(std::size_t{1} << 8 * bytes_of(type));
    for (std::size_t code = 0; code < all.size(); ++code)
      all[code] = static_cast<float>(decode(format_of(type), static_cast<std::uint32_t>(code)));
    return all;
  }();
  return values;
}

// bf16 overflows to infinity, as fp32 does: saturation is for fp8.
void put_encoded(DType t, std::vector<std::byte>& out, std::size_t i, double value, bool saturate) {
  if (t == DType::bf16) return put(out, i, static_cast<std::uint16_t>(encode(bf16_format, value, false)));
  put(out, i, static_cast<std::uint8_t>(encode(format_of(t), value, saturate)));
}

// An integer as a double that a second rounding, to a shorter format, takes for the integer itself: what does not fit
// leaves its last bit odd.
double odd_double(std::int64_t v) {
  std::uint64_t magnitude = v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  int shift = 0;
  while (magnitude >> shift >> 53 != 0) ++shift;
  const std::uint64_t lost = magnitude & ((std::uint64_t{1} << shift) - 1);
  magnitude = magnitude >> shift | (lost != 0 ? 1 : 0);
  const double out = std::ldexp(static_cast<double>(magnitude), shift);
  return v < 0 ? -out : out;
}

template <class T>
void put_clamped(std::vector<std::byte>& out, std::size_t i, std::int64_t v, bool saturate) {
  if (saturate) v = std::clamp<std::int64_t>(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  put(out, i, static_cast<T>(static_cast<std::uint64_t>(v)));
}

}  // namespace

template <class Acc>
void read_elements(DType t, std::span<const std::byte> bytes, std::size_t first, std::size_t n, Acc* out) {
  const auto each = [&](auto&& read) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Acc>(read(first + i));
  };
  switch (t) {
    case DType::int8:
      return each([&](std::size_t i) { return raw<std::int8_t>(bytes, i); });
    case DType::int32:
      return each([&](std::size_t i) { return raw<std::int32_t>(bytes, i); });
    case DType::int64:
      return each([&](std::size_t i) { return raw<std::int64_t>(bytes, i); });
    case DType::fp32:
      return each([&](std::size_t i) { return raw<float>(bytes, i); });
    case DType::bf16:
      return each(
          [&, &values = decoded<DType::bf16>()](std::size_t i) { return values[raw<std::uint16_t>(bytes, i)]; });
    case DType::fp8_e4m3:
      return each(
          [&, &values = decoded<DType::fp8_e4m3>()](std::size_t i) { return values[raw<std::uint8_t>(bytes, i)]; });
    case DType::fp8_e5m2:
      return each(
          [&, &values = decoded<DType::fp8_e5m2>()](std::size_t i) { return values[raw<std::uint8_t>(bytes, i)]; });
  }
}

template void read_elements(DType, std::span<const std::byte>, std::size_t, std::size_t, float*);
template void read_elements(DType, std::span<const std::byte>, std::size_t, std::size_t, double*);
template void read_elements(DType, std::span<const std::byte>, std::size_t, std::size_t, std::uint32_t*);
template void read_elements(DType, std::span<const std::byte>, std::size_t, std::size_t, std::uint64_t*);

void put_rounded(DType t, std::vector<std::byte>& out, std::size_t i, float value, bool saturate) {
  if (t == DType::fp32) return put(out, i, value);
  if (!is_integer(t)) return put_encoded(t, out, i, value, saturate);
  const double rounded = std::nearbyint(double(value));
  const double least = t == DType::int8 ? -0x1p7 : t == DType::int32 ? -0x1p31 : -0x1p63;
  std::int64_t v = 0;
  if (rounded >= -least)
    v = t == DType::int8 ? 127 : t == DType::int32 ? 2147483647 : std::numeric_limits<std::int64_t>::max();
  else if (rounded < least)
    v = static_cast<std::int64_t>(least);
  else if (!std::isnan(rounded))
    v = static_cast<std::int64_t>(rounded);
  if (t == DType::int8) return put(out, i, static_cast<std::int8_t>(v));
  if (t == DType::int32) return put(out, i, static_cast<std::int32_t>(v));
  return put(out, i, v);
}

void put_integer(DType t, std::vector<std::byte>& out, std::size_t i, std::int64_t v, bool saturate) {
  switch (t) {
    case DType::int8:
      return put_clamped<std::int8_t>(out, i, v, saturate);
    case DType::int32:
      return put_clamped<std::int32_t>(out, i, v, saturate);
    case DType::int64:
      return put(out, i, v);
    case DType::fp32:
      return put(out, i, static_cast<float>(v));
    default:
      return put_encoded(t, out, i, odd_double(v), saturate);
  }
}

float rounded(DType t, float value) {
  switch (t) {
    case DType::bf16:
      return decoded<DType::bf16>()[encode(bf16_format, value, false)];
    case DType::fp8_e4m3:
      return decoded<DType::fp8_e4m3>()[encode(e4m3_format, value, true)];
    case DType::fp8_e5m2:
      return decoded<DType::fp8_e5m2>()[encode(e5m2_format, value, true)];
    default:
      return value;
  }
}

namespace {

// A block of rows x 2 vectors of sums stays in registers over the whole depth. Vectors run over columns only, so that
// every sum is added up in the same order at any vector width.
constexpr std::size_t vector_bytes = 32, vectors = 2;
template <class T>
constexpr std::size_t lanes = vector_bytes / sizeof(T);

template <std::size_t rows, class T>
[[gnu::always_inline]] inline void add_block(T* sum, const T* a, const T* panel, const Strides& stride,
                                             std::size_t depth) {
  typedef T Vector __attribute__((vector_size(vector_bytes)));
  Vector s[rows][vectors];
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(&s[r][v], sum + r * stride.sum + v * lanes<T>, vector_bytes);
  for (std::size_t d = 0; d < depth; ++d) {
    Vector b[vectors];
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(&b[v], panel + d * stride.panel + v * lanes<T>, vector_bytes);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) s[r][v] += a[r * stride.a + d] * b[v];
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(sum + r * stride.sum + v * lanes<T>, &s[r][v], vector_bytes);
}

template <std::size_t rows>
[[gnu::always_inline]] inline void add_block(double* sum, double* magnitude, const double* a, const double* panel,
                                             const Strides& stride, std::size_t depth) {
  typedef double Vector __attribute__((vector_size(vector_bytes)));
  typedef std::uint64_t Bits __attribute__((vector_size(vector_bytes)));
  const Bits positive = Bits{} + ~(std::uint64_t{1} << 63U);
  Vector s[rows][vectors], m[rows][vectors];
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v) {
      std::memcpy(&s[r][v], sum + r * stride.sum + v * lanes<double>, vector_bytes);
      std::memcpy(&m[r][v], magnitude + r * stride.sum + v * lanes<double>, vector_bytes);
    }
  for (std::size_t d = 0; d < depth; ++d) {
    Vector b[vectors];
    for (std::size_t v = 0; v < vectors; ++v)
      std::memcpy(&b[v], panel + d * stride.panel + v * lanes<double>, vector_bytes);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) {
        const Vector product = a[r * stride.a + d] * b[v];
        s[r][v] += product;
        m[r][v] += reinterpret_cast<Vector>(reinterpret_cast<Bits>(product) & positive);
      }
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v) {
      std::memcpy(sum + r * stride.sum + v * lanes<double>, &s[r][v], vector_bytes);
      std::memcpy(magnitude + r * stride.sum + v * lanes<double>, &m[r][v], vector_bytes);
    }
}

template <class T>
[[gnu::always_inline]] inline void add_all(T* sum, const T* a, const T* panel, const Strides& stride,
                                           const Extents& n) {
  constexpr std::size_t rows = 6, columns = vectors * lanes<T>;
  std::size_t j = 0;
  for (; j + columns <= n.width; j += columns) {
    std::size_t i = 0;
    for (; i + rows <= n.rows; i += rows)
      add_block<rows>(sum + i * stride.sum + j, a + i * stride.a, panel + j, stride, n.depth);
    for (; i < n.rows; ++i) add_block<1>(sum + i * stride.sum + j, a + i * stride.a, panel + j, stride, n.depth);
  }
  for (std::size_t i = 0; i < n.rows; ++i)
    for (std::size_t d = 0; d < n.depth; ++d)
      for (std::size_t c = j; c < n.width; ++c)
        sum[i * stride.sum + c] += a[i * stride.a + d] * panel[d * stride.panel + c];
}

[[gnu::always_inline]] inline void add_all(double* sum, double* magnitude, const double* a, const double* panel,
                                           const Strides& stride, const Extents& n) {
  constexpr std::size_t rows = 3, columns = vectors * lanes<double>;
  std::size_t j = 0;
  for (; j + columns <= n.width; j += columns) {
    std::size_t i = 0;
    for (; i + rows <= n.rows; i += rows)
      add_block<rows>(sum + i * stride.sum + j, magnitude + i * stride.sum + j, a + i * stride.a, panel + j, stride,
                      n.depth);
    for (; i < n.rows; ++i)
      add_block<1>(sum + i * stride.sum + j, magnitude + i * stride.sum + j, a + i * stride.a, panel + j, stride,
                   n.depth);
  }
  for (std::size_t i = 0; i < n.rows; ++i)
    for (std::size_t d = 0; d < n.depth; ++d)
      for (std::size_t c = j; c < n.width; ++c) {
        const double product = a[i * stride.a + d] * panel[d * stride.panel + c];
        sum[i * stride.sum + c] += product;
        magnitude[i * stride.sum + c] += std::fabs(product);
      }
}

}  // namespace

#define RDU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
RDU_CLONES void add_scaled(float* sum, const float* b, float a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}
RDU_CLONES void add_scaled(double* sum, const double* b, double a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}
RDU_CLONES void add_products(float* sum, const float* a, const float* panel, const Strides& stride, const Extents& n) {
  add_all(sum, a, panel, stride, n);
}
RDU_CLONES void add_products(std::uint32_t* sum, const std::uint32_t* a, const std::uint32_t* panel,
                             const Strides& stride, const Extents& n) {
  add_all(sum, a, panel, stride, n);
}
RDU_CLONES void add_products(std::uint64_t* sum, const std::uint64_t* a, const std::uint64_t* panel,
                             const Strides& stride, const Extents& n) {
  add_all(sum, a, panel, stride, n);
}
RDU_CLONES void add_products(double* sum, double* magnitude, const double* a, const double* panel,
                             const Strides& stride, const Extents& n) {
  add_all(sum, magnitude, a, panel, stride, n);
}
#undef RDU_CLONES

}  // namespace rdusim::reference
