#include "sim/reference/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "compiler/support/units.h"

namespace rdusim {
namespace {

// ---- elements: read, round, written by arithmetic on doubles, not by the machine's bit tricks
// ---------------------------------

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

void put_rounded(DType t, std::vector<std::byte>& out, std::size_t i, float value, bool saturate) {
  switch (t) {
    case DType::fp32:
      return put(out, i, value);
    // bf16 overflows to infinity, as fp32 does: saturation is for fp8.
    case DType::bf16:
      return put(out, i, static_cast<std::uint16_t>(encode(bf16_format, value, false)));
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      return put(out, i, static_cast<std::uint8_t>(encode(format_of(t), value, saturate)));
    default: {
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
  }
}

template <class T>
void put_clamped(std::vector<std::byte>& out, std::size_t i, std::int64_t v, bool saturate) {
  if (saturate) v = std::clamp<std::int64_t>(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  put(out, i, static_cast<T>(static_cast<std::uint64_t>(v)));
}
void put_integer(DType t, std::vector<std::byte>& out, std::size_t i, std::int64_t v, bool saturate) {
  switch (t) {
    case DType::int8:
      return put_clamped<std::int8_t>(out, i, v, saturate);
    case DType::int32:
      return put_clamped<std::int32_t>(out, i, v, saturate);
    case DType::int64:
      return put(out, i, v);
    // An integer accumulator never leaves as a float: workloads cannot ask for it.
    default:
      return put_rounded(t, out, i, static_cast<float>(v), saturate);
  }
}

// ---- one leaf: rows of a against all columns of b, in rising k
// ------------------------------------------------------------
//
// Columns and contraction are blocked so that the rows of b in use stay in cache; the order of additions to an element
// is rising k all the same.

constexpr std::int64_t column_block = 512;
constexpr std::int64_t k_block = 64;

#define RDU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
RDU_CLONES void add_scaled_float(float* sum, const float* b, float a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}
RDU_CLONES void add_scaled_32(std::uint32_t* sum, const std::uint32_t* b, std::uint32_t a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}
RDU_CLONES void add_scaled_64(std::uint64_t* sum, const std::uint64_t* b, std::uint64_t a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}
RDU_CLONES void add_scaled_double(double* sum, const double* b, double a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += a * b[j];
}
#undef RDU_CLONES
void add_scaled(float* s, const float* b, float a, std::int64_t n) {
  add_scaled_float(s, b, a, n);
}
void add_scaled(std::uint32_t* s, const std::uint32_t* b, std::uint32_t a, std::int64_t n) {
  add_scaled_32(s, b, a, n);
}
void add_scaled(std::uint64_t* s, const std::uint64_t* b, std::uint64_t a, std::int64_t n) {
  add_scaled_64(s, b, a, n);
}
void add_scaled(double* s, const double* b, double a, std::int64_t n) {
  add_scaled_double(s, b, a, n);
}

// Elements [first, first + n) in the type that sums are kept in.
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

// sum(m x n) of products over [k_begin, k_end), from +0. `of` maps an element (the identity, or the magnitude).
template <class Acc, class Map>
std::vector<Acc> sum_products(const MatmulProblem& p, std::int64_t k_begin, std::int64_t k_end, Map of) {
  const auto m = p.m, n = p.n, k = p.k;
  std::vector<Acc> sum(static_cast<std::size_t>(m * n), Acc{});
  std::vector<Acc> panel(static_cast<std::size_t>(k_block * std::min(n, column_block)));
  std::vector<Acc> a(static_cast<std::size_t>(m * k_block));
  for (std::int64_t kk = k_begin; kk < k_end; kk += k_block) {
    const std::int64_t depth = std::min(k_block, k_end - kk);
    for (std::int64_t i = 0; i < m; ++i)
      read_elements(p.operand, p.a, static_cast<std::size_t>(i * k + kk), static_cast<std::size_t>(depth),
                    &a[static_cast<std::size_t>(i * k_block)]);
    std::transform(a.begin(), a.end(), a.begin(), of);
    for (std::int64_t j = 0; j < n; j += column_block) {
      const std::int64_t width = std::min(column_block, n - j);
      for (std::int64_t d = 0; d < depth; ++d)
        read_elements(p.operand, p.b, static_cast<std::size_t>((kk + d) * n + j), static_cast<std::size_t>(width),
                      &panel[static_cast<std::size_t>(d * width)]);
      std::transform(panel.begin(), panel.end(), panel.begin(), of);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t d = 0; d < depth; ++d)
          add_scaled(&sum[static_cast<std::size_t>(i * n + j)], &panel[static_cast<std::size_t>(d * width)],
                     a[static_cast<std::size_t>(i * k_block + d)], width);
    }
  }
  return sum;
}

// ---- trees
// ----------------------------------------------------------------------------------------------------------------

Diagnostics check_problem(const MatmulProblem& p) {
  Diagnostics out;
  const auto bytes = [&](std::int64_t rows, std::int64_t cols) -> std::optional<std::int64_t> {
    const auto elements = checked_multiply(rows, cols);
    return elements ? checked_multiply(*elements, bytes_of(p.operand)) : std::nullopt;
  };
  const auto expect = [&](const char* name, std::int64_t rows, std::int64_t cols, std::size_t actual) {
    const auto wanted = rows >= 1 && cols >= 1 ? bytes(rows, cols) : std::nullopt;
    if (!wanted || static_cast<std::uint64_t>(*wanted) != actual)
      out.error(Code::RDU3003, "reference", "operand {} of {} x {} {} has {} bytes", name, rows, cols,
                name_of(p.operand), actual);
  };
  expect("a", p.m, p.k, p.a.size());
  expect("b", p.k, p.n, p.b.size());
  return out;
}

// The pages tile the output: each inside it, no two rows' stretches overlapping, together as many elements.
void check_pages(const MatmulProblem& p, const std::vector<OutputPage>& pages, Diagnostics& out) {
  std::uint64_t covered = 0;
  std::vector<bool> seen(static_cast<std::size_t>(p.m * p.n), false);
  for (const OutputPage& page : pages) {
    const auto m = static_cast<std::uint64_t>(p.m), n = static_cast<std::uint64_t>(p.n);
    if (page.rows > m || page.row > m - page.rows || page.cols > n || page.col > n - page.cols) {
      out.error(Code::RDU3003, "reference", "page at ({}, {}) of {} x {} leaves the output of {} x {}", page.row,
                page.col, page.rows, page.cols, p.m, p.n);
      return;
    }
    for (std::uint64_t r = 0; r < page.rows; ++r)
      for (std::uint64_t c = 0; c < page.cols; ++c) {
        const std::size_t at = static_cast<std::size_t>((page.row + r) * n + page.col + c);
        if (seen[at]) {
          out.error(Code::RDU3003, "reference", "two pages hold element ({}, {})", page.row + r, page.col + c);
          return;
        }
        seen[at] = true;
        ++covered;
      }
  }
  if (covered != static_cast<std::uint64_t>(p.m * p.n))
    out.error(Code::RDU3003, "reference", "pages hold {} of {} elements", covered, p.m * p.n);
}

void check_trees(std::int64_t k, const std::vector<SummationTree>& trees, Diagnostics& out) {
  std::vector<bool> chunks(trees.size(), false);
  for (const SummationTree& tree : trees) {
    if (tree.chunks != trees.size() || tree.chunk >= trees.size() || chunks[tree.chunk]) {
      out.error(Code::RDU3032, "reference", "tree for chunk {} of {} among {} trees", tree.chunk, tree.chunks,
                trees.size());
      return;
    }
    chunks[tree.chunk] = true;
    std::vector<std::pair<std::int64_t, std::int64_t>> leaves;
    std::vector<std::uint32_t> used(tree.nodes.size(), 0);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const SummationNode& node = tree.nodes[i];
      if (node.leaf) {
        leaves.emplace_back(node.k_begin, node.k_end);
      } else if (node.left >= i || node.right >= i) {
        out.error(Code::RDU3032, "reference", "node {} of the tree for chunk {} has a child that is not below it", i,
                  tree.chunk);
        return;
      } else {
        ++used[node.left];
        ++used[node.right];
      }
    }
    for (std::size_t i = 0; i < used.size(); ++i)
      if (used[i] != (i + 1 == used.size() ? 0u : 1u)) {
        out.error(Code::RDU3032, "reference", "node {} of the tree for chunk {} is added {} times", i, tree.chunk,
                  used[i]);
        return;
      }
    std::sort(leaves.begin(), leaves.end());
    std::int64_t at = 0;
    for (const auto& [begin, end] : leaves) {
      if (begin != at || end <= begin) {
        out.error(Code::RDU3032, "reference",
                  "the leaves of the tree for chunk {} do not tile [0, {}): [{}, {}) after {}", tree.chunk, k, begin,
                  end, at);
        return;
      }
      at = end;
    }
    if (at != k)
      out.error(Code::RDU3032, "reference", "the leaves of the tree for chunk {} end at {}, not at {}", tree.chunk, at,
                k);
  }
}

template <class Acc>
std::vector<std::byte> sum_by_trees(const MatmulProblem& p, const std::vector<SummationTree>& trees,
                                    const std::vector<OutputPage>& pages) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Acc>> leaves;
  for (const SummationTree& tree : trees)
    for (const SummationNode& node : tree.nodes)
      if (node.leaf && !leaves.contains({node.k_begin, node.k_end}))
        leaves[{node.k_begin, node.k_end}] = sum_products<Acc>(p, node.k_begin, node.k_end, [](Acc x) { return x; });

  std::vector<std::byte> out(static_cast<std::size_t>(p.m * p.n) * bytes_of(p.result));
  std::vector<const std::vector<Acc>*> leaf_of;
  std::vector<Acc> value;
  for (const SummationTree& tree : trees) {
    leaf_of.assign(tree.nodes.size(), nullptr);
    value.resize(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i)
      if (tree.nodes[i].leaf) leaf_of[i] = &leaves.at({tree.nodes[i].k_begin, tree.nodes[i].k_end});
    for (const OutputPage& page : pages) {
      const ElementRange range = chunk_range(page.rows * page.cols, tree.chunk, tree.chunks);
      for (std::uint64_t e = range.begin; e < range.end; ++e) {
        const std::size_t at = static_cast<std::size_t>((page.row + e / page.cols) * static_cast<std::uint64_t>(p.n) +
                                                        page.col + e % page.cols);
        for (std::size_t i = 0; i < tree.nodes.size(); ++i)
          value[i] =
              leaf_of[i] ? (*leaf_of[i])[at] : static_cast<Acc>(value[tree.nodes[i].left] + value[tree.nodes[i].right]);
        if constexpr (std::is_same_v<Acc, float>)
          put_rounded(p.result, out, at, value.back(), p.saturate);
        else
          put_integer(p.result, out, at, static_cast<std::int64_t>(static_cast<std::make_signed_t<Acc>>(value.back())),
                      p.saturate);
      }
    }
  }
  return out;
}

MatmulProblem problem_of(const OperatorGraph& graph, const Operator& op, bool saturate, const OperandBytes& operands) {
  const Operand& a = graph.operand(op.in[0]);
  const Operand& b = graph.operand(op.in[1]);
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < a.shape.size(); ++d) rows *= a.shape[d];
  MatmulProblem p;
  p.m = rows;
  p.k = a.shape.back();
  p.n = b.shape.back();
  p.operand = a.dtype;
  p.result = graph.operand(op.out).dtype;
  p.saturate = saturate;
  p.a = operands[a.id.value];
  p.b = operands[b.id.value];
  return p;
}

}  // namespace

Result<std::vector<std::byte>> evaluate_matmul(const MatmulProblem& problem, const ReductionPlan& plan) {
  Diagnostics out = check_problem(problem);
  if (out.has_errors()) return out;
  std::vector<SummationTree> trees = plan.trees;
  if (trees.empty()) {
    SummationTree whole;
    whole.nodes.push_back({true, ChipId(0), 0, problem.k, 0, 0});
    trees.push_back(std::move(whole));
  }
  std::vector<OutputPage> pages = plan.pages;
  if (pages.empty())
    pages.push_back({0, 0, static_cast<std::uint64_t>(problem.m), static_cast<std::uint64_t>(problem.n)});
  check_pages(problem, pages, out);
  check_trees(problem.k, trees, out);
  if (out.has_errors()) return out;
  switch (accumulator_of(problem.operand)) {
    case DType::int32:
      return sum_by_trees<std::uint32_t>(problem, trees, pages);
    case DType::int64:
      return sum_by_trees<std::uint64_t>(problem, trees, pages);
    default:
      return sum_by_trees<float>(problem, trees, pages);
  }
}

Result<WideMatrix> evaluate_matmul_wide(const MatmulProblem& problem) {
  const Diagnostics out = check_problem(problem);
  if (out.has_errors()) return out;
  WideMatrix wide;
  if (is_integer(problem.operand)) {
    const auto sum = sum_products<std::uint64_t>(problem, 0, problem.k, [](std::uint64_t x) { return x; });
    wide.integer.assign(sum.begin(), sum.end());
  } else {
    wide.value = sum_products<double>(problem, 0, problem.k, [](double x) { return x; });
    wide.magnitude = sum_products<double>(problem, 0, problem.k, [](double x) { return std::fabs(x); });
  }
  return wide;
}

Result<bool> evaluate(const OperatorGraph& graph, std::span<const ReductionPlan> plans, bool saturate,
                      OperandBytes& operands) {
  for (const Operator& op : graph.operators) {
    const auto planned =
        std::find_if(plans.begin(), plans.end(), [&](const ReductionPlan& p) { return p.op == op.id; });
    auto result =
        evaluate_matmul(problem_of(graph, op, saturate, operands), planned == plans.end() ? ReductionPlan{} : *planned);
    if (!result.ok()) {
      Diagnostics named;
      for (Diagnostic d : result.diagnostics().list()) {
        d.where = "operator '" + op.name + "'";
        named.add(std::move(d));
      }
      return named;
    }
    operands[op.out.value] = std::move(result).value();
  }
  return true;
}

Result<WideMatrix> evaluate_wide(const OperatorGraph& graph, OperatorId op, const OperandBytes& operands) {
  return evaluate_matmul_wide(problem_of(graph, graph.operators[op.value], true, operands));
}

double element_as_double(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  double value = 0;
  read_elements(dtype, bytes, i, 1, &value);
  return value;
}

}  // namespace rdusim
