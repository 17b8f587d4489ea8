// Softmax, norms and reductions: row by row.
#include <type_traits>

#include "sim/reference/bounded.h"
#include "sim/reference/elements.h"
#include "sim/reference/operators.h"

namespace rdusim::reference {
namespace {

template <class T>
void read_reals(DType t, std::span<const std::byte> bytes, std::size_t first, std::size_t n, std::vector<T>& out) {
  out.resize(n);
  if constexpr (std::is_same_v<T, Bounded>) {
    std::vector<double> values(n);
    read_elements(t, bytes, first, n, values.data());
    for (std::size_t i = 0; i < n; ++i) out[i] = {values[i], 0};
  } else {
    read_elements(t, bytes, first, n, out.data());
  }
}

template <class T>
void softmax(std::vector<T>& x) {
  T m = x[0];
  for (std::size_t j = 1; j < x.size(); ++j) m = max_of(m, x[j]);
  for (T& each : x) each = exp_of(each - m);
  const T sum = sum_of(std::span<const T>(x));
  for (T& each : x) each = each / sum;
}

// 1 / sqrt((sum x_j x_j) (1/n) + epsilon)
template <class T>
T inverse_root_mean_square(const std::vector<T>& x, double epsilon, std::vector<T>& squares) {
  squares.resize(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) squares[j] = x[j] * x[j];
  const T mean = sum_of(std::span<const T>(squares)) * constant<T>(1.0 / static_cast<double>(x.size()));
  return constant<T>(1) / sqrt_of(mean + constant<T>(epsilon));
}

template <class T>
void rms_norm(std::vector<T>& x, const std::vector<T>& w, double epsilon, std::vector<T>& scratch) {
  const T r = inverse_root_mean_square(x, epsilon, scratch);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = (x[j] * r) * w[j];
}

template <class T>
void layer_norm(std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& b, double epsilon,
                std::vector<T>& scratch) {
  const T u = sum_of(std::span<const T>(x)) * constant<T>(1.0 / static_cast<double>(x.size()));
  for (T& each : x) each = each - u;
  const T r = inverse_root_mean_square(x, epsilon, scratch);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = (x[j] * r) * w[j] + b[j];
}

template <class T>
T reduced(OperatorKind kind, const std::vector<T>& x) {
  if (kind == OperatorKind::reduce_sum) return sum_of(std::span<const T>(x));
  if (kind == OperatorKind::reduce_mean)
    return sum_of(std::span<const T>(x)) * constant<T>(1.0 / static_cast<double>(x.size()));
  T r = x[0];
  for (std::size_t j = 1; j < x.size(); ++j) r = kind == OperatorKind::reduce_max ? max_of(r, x[j]) : min_of(r, x[j]);
  return r;
}

template <class U>
U reduced_integer(OperatorKind kind, const std::vector<U>& x) {
  using Signed = std::make_signed_t<U>;
  U r = x[0];
  for (std::size_t j = 1; j < x.size(); ++j) {
    const bool greater = static_cast<Signed>(x[j]) > static_cast<Signed>(r);
    if (kind == OperatorKind::reduce_sum)
      r += x[j];
    else if (greater == (kind == OperatorKind::reduce_max))
      r = x[j];
  }
  return r;
}

// put(values of a row of the result), row by row, in T.
template <class T, class Put>
void for_each_row(const Problem& p, Put put) {
  const Operand& x = p.in(0);
  const auto n = static_cast<std::size_t>(x.shape.back());
  const std::size_t rows = p.bytes(0).size() / bytes_of(x.dtype) / n;
  std::vector<T> row, w, b, scratch;
  if (p.op.in.size() > 1) read_reals(p.in(1).dtype, p.bytes(1), 0, n, w);
  if (p.op.in.size() > 2) read_reals(p.in(2).dtype, p.bytes(2), 0, n, b);
  for (std::size_t r = 0; r < rows; ++r) {
    read_reals(x.dtype, p.bytes(0), r * n, n, row);
    if constexpr (std::is_integral_v<T>) {
      row = {reduced_integer(p.op.kind, row)};
    } else {
      switch (p.op.kind) {
        case OperatorKind::softmax:
          softmax(row);
          break;
        case OperatorKind::rms_norm:
          rms_norm(row, w, p.op.attributes.epsilon, scratch);
          break;
        case OperatorKind::layer_norm:
          layer_norm(row, w, b, p.op.attributes.epsilon, scratch);
          break;
        default:
          row = {reduced(p.op.kind, row)};
      }
    }
    put(row);
  }
}

template <class U>
void put_integer_rows(const Problem& p, std::vector<std::byte>& out) {
  std::size_t at = 0;
  for_each_row<U>(p, [&](const std::vector<U>& row) {
    for (const U v : row) put_integer(p.out().dtype, out, at++, static_cast<std::make_signed_t<U>>(v), p.saturate);
  });
}

}  // namespace

std::vector<std::byte> row_wise(const Problem& p) {
  std::vector<std::byte> out(p.elements() * bytes_of(p.out().dtype));
  std::size_t at = 0;
  switch (accumulator_of(p.in(0).dtype)) {
    case DType::int32:
      put_integer_rows<std::uint32_t>(p, out);
      break;
    case DType::int64:
      put_integer_rows<std::uint64_t>(p, out);
      break;
    default:
      for_each_row<float>(p, [&](const std::vector<float>& row) {
        for (const float v : row) put_rounded(p.out().dtype, out, at++, v, p.saturate);
      });
  }
  return out;
}

WideMatrix row_wise_wide(const Problem& p) {
  WideMatrix wide;
  if (is_integer(p.in(0).dtype)) {
    for_each_row<std::uint64_t>(p, [&](const std::vector<std::uint64_t>& row) {
      wide.integer.insert(wide.integer.end(), row.begin(), row.end());
    });
    return wide;
  }
  for_each_row<Bounded>(p, [&](const std::vector<Bounded>& row) {
    for (const Bounded& v : row) {
      wide.value.push_back(v.value);
      wide.error.push_back(v.error);
    }
  });
  return wide;
}

}  // namespace rdusim::reference
