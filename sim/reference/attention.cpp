// Rotary embeddings and attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "sim/reference/bounded.h"
#include "sim/reference/elements.h"
#include "sim/reference/operators.h"

namespace rdusim::reference {
namespace {

// ---- rotary

template <class T>
void read_row(const Problem& p, std::size_t operand, std::size_t row, std::size_t n, std::vector<T>& out) {
  out.resize(n);
  if constexpr (std::is_same_v<T, Bounded>) {
    std::vector<double> values(n);
    read_elements(p.in(operand).dtype, p.bytes(operand), row * n, n, values.data());
    for (std::size_t i = 0; i < n; ++i) out[i] = {values[i], 0};
  } else {
    read_elements(p.in(operand).dtype, p.bytes(operand), row * n, n, out.data());
  }
}

template <class T, class Put>
void for_each_turned_row(const Problem& p, Put put) {
  const auto n = static_cast<std::size_t>(p.in(0).shape.back());
  const std::size_t rows = p.elements() / n;
  const std::size_t heads = p.op.attributes.heads;
  const std::size_t half = n / heads / 2;
  const std::size_t turns = p.bytes(1).size() / bytes_of(p.in(1).dtype) / half;  // rows of cos and sin
  std::vector<T> x, cos, sin, out(n);
  for (std::size_t r = 0; r < rows; ++r) {
    read_row(p, 0, r, n, x);
    read_row(p, 1, r % turns, half, cos);
    read_row(p, 2, r % turns, half, sin);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = h * 2 * half;
      for (std::size_t j = 0; j < half; ++j) {
        const T a = x[at + j], b = x[at + half + j];
        out[at + j] = a * cos[j] - b * sin[j];
        out[at + half + j] = b * cos[j] + a * sin[j];
      }
    }
    put(out);
  }
}

// ---- attention

struct Sizes {
  std::size_t stacks, queries, keys, width, heads, kv_heads, group;
  std::optional<std::size_t> sinks, further;  // their places among the operands
  std::size_t further_width;
};
Sizes sizes_of(const Problem& p) {
  const auto& q = p.in(0).shape;
  const auto& k = p.in(1).shape;
  Sizes s{};
  s.queries = static_cast<std::size_t>(q[q.size() - 2]);
  s.keys = static_cast<std::size_t>(k[k.size() - 2]);
  s.heads = p.op.attributes.heads;
  s.kv_heads = p.op.attributes.kv_heads;
  s.width = static_cast<std::size_t>(q.back()) / s.heads;
  s.group = s.heads / s.kv_heads;
  const std::size_t operands = p.op.in.size();
  if (operands == 4 || operands == 6) s.sinks = 3;
  if (operands >= 5) s.further = operands - 2;
  s.further_width = s.further ? static_cast<std::size_t>(p.in(*s.further).shape.back()) / s.heads : 0;
  s.stacks = p.elements() / static_cast<std::size_t>(q.back()) / s.queries;
  return s;
}

// The keys that query i looks at: [begin, end).
struct Span {
  std::size_t begin, end;
};
Span seen_by(const Problem& p, const Sizes& s, std::size_t i) {
  const auto place = static_cast<std::int64_t>(i + s.keys) - static_cast<std::int64_t>(s.queries);
  Span seen{0, s.keys};
  if (p.op.attributes.causal) seen.end = static_cast<std::size_t>(place + 1);
  const std::int64_t window = p.op.attributes.window;
  if (window != 0 && place - window + 1 > 0) seen.begin = static_cast<std::size_t>(place - window + 1);
  return seen;
}

// One head's columns of the rows of a stack, as rows of `width`; or turned, as `width` rows.
template <class T>
void read_head(const Problem& p, std::size_t operand, std::size_t stack, std::size_t rows, std::size_t head,
               std::size_t width, bool turned, std::vector<T>& out) {
  const auto columns = static_cast<std::size_t>(p.in(operand).shape.back());
  out.resize(rows * width);
  std::vector<T> row(width);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t first = (stack * rows + r) * columns + head * width;
    T* const to = turned ? row.data() : &out[r * width];
    read_elements(p.in(operand).dtype, p.bytes(operand), first, width, to);
    if (!turned) continue;
    for (std::size_t j = 0; j < width; ++j) out[j * rows + r] = row[j];
  }
}

template <class T>
void magnitudes(const std::vector<T>& x, std::vector<T>& out) {
  out.resize(x.size());
  std::transform(x.begin(), x.end(), out.begin(), [](T v) { return std::fabs(v); });
}

// Calls head(stack, kv head, head of queries) for each, and prepare(stack, kv head) before the heads that share one.
template <class Prepare, class Head>
void for_each_head(const Sizes& s, Prepare prepare, Head head) {
  for (std::size_t stack = 0; stack < s.stacks; ++stack)
    for (std::size_t g = 0; g < s.kv_heads; ++g) {
      prepare(stack, g);
      for (std::size_t h = g * s.group; h < (g + 1) * s.group; ++h) head(stack, h);
    }
}

// As row_wise.cpp's, in place: [begin, end) of `t` become probabilities. A sink takes its share behind the last.
template <class T>
void softmax_of(std::span<T> t, const std::optional<T>& sink) {
  T m = t[0];
  for (std::size_t j = 1; j < t.size(); ++j) m = max_of(m, t[j]);
  if (sink) m = max_of(m, *sink);
  for (T& each : t) each = exp_of(each - m);
  T sum = sum_of(std::span<const T>(t));
  if (sink) sum = sum + exp_of(*sink - m);
  for (T& each : t) each = each / sum;
}

// The sinks of all heads; empty where there are none.
template <class T>
std::vector<T> read_sinks(const Problem& p, const Sizes& s) {
  std::vector<T> sinks;
  if (s.sinks) read_row(p, *s.sinks, 0, s.heads, sinks);
  return sinks;
}
template <class T>
std::optional<T> sink_of(const std::vector<T>& sinks, std::size_t head) {
  return sinks.empty() ? std::optional<T>() : sinks[head];
}

// What converting |value| <= 1 to `t` may add.
double conversion_error(DType t, double value) {
  const int digits = t == DType::bf16 ? 8 : t == DType::fp8_e4m3 ? 4 : t == DType::fp8_e5m2 ? 3 : 0;
  if (digits == 0) return 0;
  const int least = t == DType::bf16 ? -126 : t == DType::fp8_e4m3 ? -6 : -14;
  return std::max(std::ldexp(value, -digits), std::ldexp(0.5, least - digits + 1));
}

}  // namespace

std::vector<std::byte> rotary(const Problem& p) {
  std::vector<std::byte> out(p.elements() * bytes_of(p.out().dtype));
  std::size_t at = 0;
  for_each_turned_row<float>(p, [&](const std::vector<float>& row) {
    for (const float v : row) put_rounded(p.out().dtype, out, at++, v, p.saturate);
  });
  return out;
}

WideMatrix rotary_wide(const Problem& p) {
  WideMatrix wide;
  for_each_turned_row<Bounded>(p, [&](const std::vector<Bounded>& row) {
    for (const Bounded& v : row) {
      wide.value.push_back(v.value);
      wide.error.push_back(v.error);
    }
  });
  return wide;
}

namespace {

// The row that the weights of the keys that take part make of their values, added in the order of the tree.
void mix(const SummationTree* tree, const Span& seen, const Sizes& s, const std::vector<float>& weights,
         const std::vector<float>& values, std::vector<std::vector<float>>& nodes, std::vector<float>& out) {
  const auto add_range = [&](std::size_t begin, std::size_t end, std::vector<float>& sum) {
    sum.assign(s.width, 0.0f);
    for (std::size_t j = std::max(begin, seen.begin); j < std::min(end, seen.end); ++j)
      add_scaled(sum.data(), &values[j * s.width], weights[j], static_cast<std::int64_t>(s.width));
  };
  if (tree == nullptr) return add_range(0, s.keys, out);
  nodes.resize(tree->nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const SummationNode& node = tree->nodes[i];
    if (node.leaf) {
      add_range(static_cast<std::size_t>(node.k_begin), static_cast<std::size_t>(node.k_end), nodes[i]);
      continue;
    }
    nodes[i] = nodes[node.left];
    for (std::size_t d = 0; d < s.width; ++d) nodes[i][d] += nodes[node.right][d];
  }
  out = nodes.back();
}

}  // namespace

std::vector<std::byte> attention(const Problem& p, const SummationTree* tree) {
  const Sizes s = sizes_of(p);
  const auto scale = constant<float>(p.op.attributes.scale);
  std::vector<std::byte> out(p.elements() * bytes_of(p.out().dtype));
  std::vector<float> q, keys, values, further_q, further_keys, t(s.keys), further(s.keys), row(s.width);
  const std::vector<float> sinks = read_sinks<float>(p, s);
  std::vector<std::vector<float>> nodes;
  for_each_head(
      s,
      [&](std::size_t stack, std::size_t g) {
        read_head(p, 1, stack, s.keys, g, s.width, true, keys);
        read_head(p, 2, stack, s.keys, g, s.width, false, values);
        if (s.further) read_head(p, *s.further + 1, stack, s.keys, g, s.further_width, true, further_keys);
      },
      [&](std::size_t stack, std::size_t h) {
        read_head(p, 0, stack, s.queries, h, s.width, false, q);
        if (s.further) read_head(p, *s.further, stack, s.queries, h, s.further_width, false, further_q);
        for (std::size_t i = 0; i < s.queries; ++i) {
          const Span seen = seen_by(p, s, i);
          const std::size_t n = seen.end - seen.begin;
          const auto products = [&](const std::vector<float>& of_q, const std::vector<float>& of_keys,
                                    std::size_t columns, std::vector<float>& made) {
            std::fill(made.begin(), made.end(), 0.0f);
            for (std::size_t d = 0; d < columns; ++d)
              add_scaled(&made[seen.begin], &of_keys[d * s.keys + seen.begin], of_q[i * columns + d],
                         static_cast<std::int64_t>(n));
          };
          products(q, keys, s.width, t);
          if (s.further) {
            products(further_q, further_keys, s.further_width, further);
            for (std::size_t j = seen.begin; j < seen.end; ++j) t[j] += further[j];
          }
          for (std::size_t j = seen.begin; j < seen.end; ++j) t[j] *= scale;
          softmax_of(std::span(t).subspan(seen.begin, n), sink_of(sinks, h));
          for (std::size_t j = seen.begin; j < seen.end; ++j) t[j] = rounded(p.in(2).dtype, t[j]);
          mix(tree, seen, s, t, values, nodes, row);
          const std::size_t first = (stack * s.queries + i) * s.heads * s.width + h * s.width;
          for (std::size_t d = 0; d < s.width; ++d) put_rounded(p.out().dtype, out, first + d, row[d], p.saturate);
        }
      });
  return out;
}

WideMatrix attention_wide(const Problem& p) {
  const Sizes s = sizes_of(p);
  const auto scale = constant<Bounded>(p.op.attributes.scale);
  const auto width = static_cast<std::int64_t>(s.width);
  WideMatrix wide;
  wide.value.resize(p.elements());
  wide.error.resize(p.elements());
  std::vector<double> q, keys, values, key_magnitudes, value_magnitudes, score(s.keys), score_magnitude(s.keys),
      further_q, further_keys, further_magnitudes, row(s.width), row_error(s.width), row_magnitude(s.width);
  std::vector<Bounded> t(s.keys);
  const std::vector<Bounded> sinks = read_sinks<Bounded>(p, s);
  for_each_head(
      s,
      [&](std::size_t stack, std::size_t g) {
        read_head(p, 1, stack, s.keys, g, s.width, true, keys);
        read_head(p, 2, stack, s.keys, g, s.width, false, values);
        magnitudes(keys, key_magnitudes);
        magnitudes(values, value_magnitudes);
        if (!s.further) return;
        read_head(p, *s.further + 1, stack, s.keys, g, s.further_width, true, further_keys);
        magnitudes(further_keys, further_magnitudes);
      },
      [&](std::size_t stack, std::size_t h) {
        read_head(p, 0, stack, s.queries, h, s.width, false, q);
        if (s.further) read_head(p, *s.further, stack, s.queries, h, s.further_width, false, further_q);
        for (std::size_t i = 0; i < s.queries; ++i) {
          const Span seen = seen_by(p, s, i);
          const std::size_t n = seen.end - seen.begin;
          const auto products = [&](const std::vector<double>& of_q, const std::vector<double>& of_keys,
                                    const std::vector<double>& of_magnitudes, std::size_t columns) {
            std::fill(score.begin(), score.end(), 0.0);
            std::fill(score_magnitude.begin(), score_magnitude.end(), 0.0);
            for (std::size_t d = 0; d < columns; ++d) {
              const double a = of_q[i * columns + d];
              const std::size_t at = d * s.keys + seen.begin;
              add_scaled(&score[seen.begin], &of_keys[at], a, static_cast<std::int64_t>(n));
              add_scaled(&score_magnitude[seen.begin], &of_magnitudes[at], std::fabs(a), static_cast<std::int64_t>(n));
            }
          };
          products(q, keys, key_magnitudes, s.width);
          for (std::size_t j = seen.begin; j < seen.end; ++j)
            t[j] = Bounded{score[j], dot_product_error(s.width, score_magnitude[j])};
          if (s.further) {
            products(further_q, further_keys, further_magnitudes, s.further_width);
            for (std::size_t j = seen.begin; j < seen.end; ++j)
              t[j] = t[j] + Bounded{score[j], dot_product_error(s.further_width, score_magnitude[j])};
          }
          for (std::size_t j = seen.begin; j < seen.end; ++j) t[j] = t[j] * scale;
          softmax_of(std::span(t).subspan(seen.begin, n), sink_of(sinks, h));
          std::fill(row.begin(), row.end(), 0.0);
          std::fill(row_error.begin(), row_error.end(), 0.0);
          std::fill(row_magnitude.begin(), row_magnitude.end(), 0.0);
          for (std::size_t j = seen.begin; j < seen.end; ++j) {
            const double greatest = t[j].value + t[j].error;
            const double error = t[j].error + conversion_error(p.in(2).dtype, greatest);
            add_scaled(row.data(), &values[j * s.width], t[j].value, width);
            add_scaled(row_error.data(), &value_magnitudes[j * s.width], error, width);
            add_scaled(row_magnitude.data(), &value_magnitudes[j * s.width], t[j].value + error, width);
          }
          const std::size_t first = (stack * s.queries + i) * s.heads * s.width + h * s.width;
          for (std::size_t d = 0; d < s.width; ++d) {
            wide.value[first + d] = row[d];
            wide.error[first + d] = row_error[d] + dot_product_error(n, row_magnitude[d]);
          }
        }
      });
  return wide;
}

}  // namespace rdusim::reference
