// Element by element, of one operand or of two of which one is repeated.
#include <algorithm>
#include <array>
#include <type_traits>

#include "compiler/workload/operator_traits.h"
#include "sim/reference/bounded.h"
#include "sim/reference/elements.h"
#include "sim/reference/operators.h"

namespace rdusim::reference {
namespace {

// ---- formulas, in float for the bits and in Bounded for the bound

template <class T>
T one_operand(OperatorKind kind, T x) {
  const T one = constant<T>(1);
  switch (kind) {
    case OperatorKind::negate:
      return -x;
    case OperatorKind::absolute:
      return abs_of(x);
    case OperatorKind::relu:
      return max_of(x, constant<T>(0));
    case OperatorKind::exponential:
      return exp_of(x);
    case OperatorKind::square_root:
      return sqrt_of(x);
    case OperatorKind::reciprocal:
      return one / x;
    case OperatorKind::tanh:
      return tanh_of(x);
    case OperatorKind::erf:
      return erf_of(x);
    case OperatorKind::sigmoid:
      return one / (one + exp_of(-x));
    case OperatorKind::silu:
      return x / (one + exp_of(-x));
    case OperatorKind::gelu:
      return (constant<T>(0.5) * x) * (one + erf_of(x * constant<T>(0.70710678118654752440)));
    case OperatorKind::gelu_tanh:
      return (constant<T>(0.5) * x) *
             (one + tanh_of(constant<T>(0.79788456080286535588) * (x + constant<T>(0.044715) * ((x * x) * x))));
    default:
      return x;  // cast
  }
}

// Integers wrap around: computed unsigned, compared signed.
template <class U>
U one_integer(OperatorKind kind, U x) {
  const auto negative = static_cast<std::make_signed_t<U>>(x) < 0;
  switch (kind) {
    case OperatorKind::negate:
      return U{0} - x;
    case OperatorKind::absolute:
      return negative ? U{0} - x : x;
    case OperatorKind::relu:
      return negative ? U{0} : x;
    default:
      return x;  // cast
  }
}

using reference::max_of;  // of floats, beside the following
using reference::min_of;
template <class U>
U max_of(U a, U b) {
  return static_cast<std::make_signed_t<U>>(a) > static_cast<std::make_signed_t<U>>(b) ? a : b;
}
template <class U>
U min_of(U a, U b) {
  return static_cast<std::make_signed_t<U>>(a) < static_cast<std::make_signed_t<U>>(b) ? a : b;
}

template <class T>
constexpr bool is_real = std::is_same_v<T, float> || std::is_same_v<T, Bounded>;

template <class T>
T two_operands(OperatorKind kind, T a, T b) {
  switch (kind) {
    case OperatorKind::add:
      return a + b;
    case OperatorKind::subtract:
      return a - b;
    case OperatorKind::multiply:
      return a * b;
    case OperatorKind::maximum:
      return max_of(a, b);
    case OperatorKind::minimum:
      return min_of(a, b);
    default:
      break;
  }
  // Rules keep integers from being divided.
  if constexpr (is_real<T>) return a / b;
  return a;
}

template <class T>
T compute(OperatorKind kind, T a, T b) {
  if (!is_unary_point_wise(kind)) return two_operands(kind, a, b);
  if constexpr (is_real<T>)
    return one_operand(kind, a);
  else
    return one_integer(kind, a);
}

// ---- places

// The result's axes with their neighbours joined where both operands run through them alike; an operand that repeats
// along an axis has the stride 0.
struct Walk {
  std::vector<std::size_t> extent;
  std::array<std::vector<std::size_t>, 2> stride;
};

std::vector<std::size_t> strides_of(const std::vector<std::int64_t>& shape, std::size_t rank) {
  std::vector<std::size_t> stride(rank, 0);
  std::size_t step = 1;
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    const auto extent = static_cast<std::size_t>(shape[shape.size() - i]);
    if (extent != 1) stride[rank - i] = step;
    step *= extent;
  }
  return stride;
}

Walk walk_of(const Problem& p) {
  const auto& shape = p.out().shape;
  const std::size_t rank = shape.size();
  std::array<std::vector<std::size_t>, 2> all;
  for (std::size_t i = 0; i < 2; ++i) all[i] = strides_of(p.in(std::min(i, p.op.in.size() - 1)).shape, rank);
  Walk w;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    if (extent == 1) continue;
    bool joins = !w.extent.empty();
    for (std::size_t i = 0; i < 2 && joins; ++i) joins = w.stride[i].back() == all[i][axis] * extent;
    if (joins) {
      w.extent.back() *= extent;
    } else {
      w.extent.push_back(extent);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (joins) w.stride[i].back() = all[i][axis];
      if (!joins) w.stride[i].push_back(all[i][axis]);
    }
  }
  if (w.extent.empty()) {
    w.extent.push_back(1);
    for (auto& s : w.stride) s.push_back(1);
  }
  return w;
}

constexpr std::size_t stretch_length = 1024;

// n elements from `first`, a step of 1 or 0 apart.
template <class T>
void read_stretch(DType t, std::span<const std::byte> bytes, std::size_t first, std::size_t step, std::size_t n,
                  T* out) {
  const std::size_t distinct = step == 0 ? 1 : n;
  if constexpr (std::is_same_v<T, Bounded>) {
    std::array<double, stretch_length> values;
    read_elements(t, bytes, first, distinct, values.data());
    for (std::size_t i = 0; i < distinct; ++i) out[i] = {values[i], 0};
  } else {
    read_elements(t, bytes, first, distinct, out);
  }
  if (step == 0) std::fill(out + 1, out + n, out[0]);
}

// Works the result out in T, stretch by stretch: put(first element, values).
template <class T, class Put>
void for_each_stretch(const Problem& p, Put put) {
  const Walk w = walk_of(p);
  const std::size_t last = w.extent.size() - 1;
  const std::size_t row = w.extent[last];
  const bool two = p.op.in.size() == 2;
  const DType dtype = p.in(0).dtype;
  std::vector<T> a(stretch_length), b(stretch_length);
  std::vector<std::size_t> index(last, 0);
  std::array<std::size_t, 2> at = {0, 0};
  std::size_t done = 0;
  const std::size_t total = p.elements();
  while (done < total) {
    for (std::size_t i = 0; i < row; i += stretch_length) {
      const std::size_t n = std::min(stretch_length, row - i);
      read_stretch(dtype, p.bytes(0), at[0] + i * w.stride[0][last], w.stride[0][last], n, a.data());
      if (two) read_stretch(dtype, p.bytes(1), at[1] + i * w.stride[1][last], w.stride[1][last], n, b.data());
      for (std::size_t j = 0; j < n; ++j) a[j] = compute(p.op.kind, a[j], b[j]);
      put(done, std::span<const T>(a.data(), n));
      done += n;
    }
    for (std::size_t axis = last; axis-- > 0;) {
      for (std::size_t i = 0; i < 2; ++i) at[i] += w.stride[i][axis];
      if (++index[axis] < w.extent[axis]) break;
      for (std::size_t i = 0; i < 2; ++i) at[i] -= w.stride[i][axis] * w.extent[axis];
      index[axis] = 0;
    }
  }
}

template <class U>
void put_integers(const Problem& p, std::vector<std::byte>& out) {
  for_each_stretch<U>(p, [&](std::size_t first, std::span<const U> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      put_integer(p.out().dtype, out, first + i, static_cast<std::make_signed_t<U>>(values[i]), p.saturate);
  });
}

}  // namespace

std::vector<std::byte> point_wise(const Problem& p) {
  std::vector<std::byte> out(p.elements() * bytes_of(p.out().dtype));
  switch (accumulator_of(p.in(0).dtype)) {
    case DType::int32:
      put_integers<std::uint32_t>(p, out);
      break;
    case DType::int64:
      put_integers<std::uint64_t>(p, out);
      break;
    default:
      for_each_stretch<float>(p, [&](std::size_t first, std::span<const float> values) {
        for (std::size_t i = 0; i < values.size(); ++i)
          put_rounded(p.out().dtype, out, first + i, values[i], p.saturate);
      });
  }
  return out;
}

WideMatrix point_wise_wide(const Problem& p) {
  WideMatrix wide;
  if (is_integer(p.in(0).dtype)) {
    for_each_stretch<std::uint64_t>(p, [&](std::size_t, std::span<const std::uint64_t> values) {
      wide.integer.insert(wide.integer.end(), values.begin(), values.end());
    });
    return wide;
  }
  for_each_stretch<Bounded>(p, [&](std::size_t, std::span<const Bounded> values) {
    for (const Bounded& v : values) {
      wide.value.push_back(v.value);
      wide.error.push_back(v.error);
    }
  });
  return wide;
}

}  // namespace rdusim::reference
