#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "compiler/support/units.h"
#include "sim/reference/bounded.h"
#include "sim/reference/elements.h"
#include "sim/reference/operators.h"
#include "sim/reference/reference.h"

namespace rdusim {

void reference::check_trees(std::int64_t k, const std::vector<SummationTree>& trees, Diagnostics& out) {
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

namespace {

using namespace reference;

// ---- one leaf: rows of a against all columns of b, in rising k
//
// Rows, columns and contraction are blocked so that what is in use of a and b stays in cache; the order of additions to
// an element is rising k all the same.

constexpr std::int64_t column_block = 512;
constexpr std::int64_t k_block = 64;
constexpr std::int64_t row_block = 48;
constexpr std::int64_t panel_stride = column_block + 16;  // not a power of two: rows would meet in one set of the cache

// Columns [j, j + width) of rows [row, row + depth) of b(k x n), as rows `panel_stride` apart.
template <class Acc>
void read_panel(const MatmulProblem& p, std::int64_t group, std::int64_t row, std::int64_t depth, std::int64_t j,
                std::int64_t width, Acc* panel) {
  const std::int64_t first = group * p.k * p.n;
  if (!p.transposed) {
    for (std::int64_t d = 0; d < depth; ++d)
      read_elements(p.operand, p.b, static_cast<std::size_t>(first + (row + d) * p.n + j),
                    static_cast<std::size_t>(width), panel + d * panel_stride);
    return;
  }
  Acc column[k_block];
  for (std::int64_t x = 0; x < width; ++x) {
    read_elements(p.operand, p.b, static_cast<std::size_t>(first + (j + x) * p.k + row),
                  static_cast<std::size_t>(depth), column);
    for (std::int64_t d = 0; d < depth; ++d) panel[d * panel_stride + x] = column[d];
  }
}

// Sums of products over [k_begin, k_end), from +0, of the whole output: `add(at, a, panel, strides, extents)` adds those
// of a block to the sums from element `at` on.
template <class Acc, class Add>
void each_block(const MatmulProblem& p, std::int64_t k_begin, std::int64_t k_end, Add add) {
  const std::int64_t m = p.m / p.groups, n = p.n, k = p.k;
  std::vector<Acc> panel(static_cast<std::size_t>(k_block * panel_stride));
  std::vector<Acc> a(static_cast<std::size_t>(m * k_block));
  const Strides stride{static_cast<std::size_t>(n), k_block, panel_stride};
  for (std::int64_t group = 0; group < p.groups; ++group) {
    const std::int64_t row = group * m;
    for (std::int64_t kk = k_begin; kk < k_end; kk += k_block) {
      const std::int64_t depth = std::min(k_block, k_end - kk);
      for (std::int64_t i = 0; i < m; ++i)
        read_elements(p.operand, p.a, static_cast<std::size_t>((row + i) * k + kk), static_cast<std::size_t>(depth),
                      &a[static_cast<std::size_t>(i * k_block)]);
      for (std::int64_t j = 0; j < n; j += column_block) {
        const std::int64_t width = std::min(column_block, n - j);
        read_panel(p, group, kk, depth, j, width, panel.data());
        for (std::int64_t i = 0; i < m; i += row_block)
          add(static_cast<std::size_t>((row + i) * n + j), &a[static_cast<std::size_t>(i * k_block)], panel.data(),
              stride,
              Extents{static_cast<std::size_t>(std::min(row_block, m - i)), static_cast<std::size_t>(depth),
                      static_cast<std::size_t>(width)});
      }
    }
  }
}

template <class Acc>
std::vector<Acc> sum_products(const MatmulProblem& p, std::int64_t k_begin, std::int64_t k_end) {
  std::vector<Acc> sum(static_cast<std::size_t>(p.m * p.n), Acc{});
  each_block<Acc>(p, k_begin, k_end,
                  [&](std::size_t at, const Acc* a, const Acc* panel, const Strides& stride, const Extents& n) {
                    add_products(&sum[at], a, panel, stride, n);
                  });
  return sum;
}

// The sum of the products of contraction indices [begin, end) as a reduction tree over `lanes`, a power of two, makes it:
// of its two halves where there is something in the second.
template <class Acc>
Acc tree_sum(const Acc* a, const Acc* b, std::int64_t begin, std::int64_t end, std::int64_t lanes) {
  if (lanes == 1) return static_cast<Acc>(a[begin] * b[begin]);
  const std::int64_t half = lanes / 2;
  if (begin + half >= end) return tree_sum(a, b, begin, end, half);
  return static_cast<Acc>(tree_sum(a, b, begin, begin + half, half) + tree_sum(a, b, begin + half, end, half));
}

// The same as sum_products, vector by vector of `lanes` products.
template <class Acc>
std::vector<Acc> sum_vectors(const MatmulProblem& p, std::int64_t k_begin, std::int64_t k_end, std::int64_t lanes) {
  const std::int64_t m = p.m / p.groups, depth = k_end - k_begin;
  std::vector<Acc> sum(static_cast<std::size_t>(p.m * p.n), Acc{});
  std::vector<Acc> row(static_cast<std::size_t>(depth)), columns(static_cast<std::size_t>(depth * p.n));
  for (std::int64_t group = 0; group < p.groups; ++group) {
    for (std::int64_t d = 0; d < depth; ++d)
      for (std::int64_t j = 0; j < p.n; ++j) {
        const std::int64_t at = p.transposed ? j * p.k + k_begin + d : (k_begin + d) * p.n + j;
        read_elements(p.operand, p.b, static_cast<std::size_t>(group * p.k * p.n + at), 1,
                      &columns[static_cast<std::size_t>(j * depth + d)]);
      }
    for (std::int64_t i = group * m; i < (group + 1) * m; ++i) {
      read_elements(p.operand, p.a, static_cast<std::size_t>(i * p.k + k_begin), row.size(), row.data());
      for (std::int64_t j = 0; j < p.n; ++j)
        for (std::int64_t d = 0; d < depth; d += lanes) {
          Acc& held = sum[static_cast<std::size_t>(i * p.n + j)];
          held = static_cast<Acc>(held + tree_sum(row.data(), &columns[static_cast<std::size_t>(j * depth)], d,
                                                  std::min(d + lanes, depth), lanes));
        }
    }
  }
  return sum;
}

// ---- trees

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
  if (p.groups < 1 || p.m % p.groups != 0)
    out.error(Code::RDU3003, "reference", "{} matrices share {} rows", p.groups, p.m);
  expect("a", p.m, p.k, p.a.size());
  expect("b", checked_multiply(p.k, p.groups).value_or(0), p.n, p.b.size());
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

template <class Acc>
std::vector<std::byte> sum_by_trees(const MatmulProblem& p, const std::vector<SummationTree>& trees,
                                    const std::vector<OutputPage>& pages) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, std::vector<Acc>> leaves;
  for (const SummationTree& tree : trees)
    for (const SummationNode& node : tree.nodes)
      if (node.leaf && !leaves.contains({node.k_begin, node.k_end, tree.lanes}))
        leaves[{node.k_begin, node.k_end, tree.lanes}] = tree.lanes > 1
                                                             ? sum_vectors<Acc>(p, node.k_begin, node.k_end, tree.lanes)
                                                             : sum_products<Acc>(p, node.k_begin, node.k_end);

  std::vector<std::byte> out(static_cast<std::size_t>(p.m * p.n) * bytes_of(p.result));
  std::vector<const std::vector<Acc>*> leaf_of;
  std::vector<Acc> value;
  for (const SummationTree& tree : trees) {
    leaf_of.assign(tree.nodes.size(), nullptr);
    value.resize(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i)
      if (tree.nodes[i].leaf) leaf_of[i] = &leaves.at({tree.nodes[i].k_begin, tree.nodes[i].k_end, tree.lanes});
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
  reference::check_trees(problem.k, trees, out);
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

Result<WideMatrix> evaluate_matmul_wide(const MatmulProblem& problem, std::uint64_t leaves) {
  const Diagnostics out = check_problem(problem);
  if (out.has_errors()) return out;
  WideMatrix wide;
  if (is_integer(problem.operand)) {
    const auto sum = sum_products<std::uint64_t>(problem, 0, problem.k);
    wide.integer.assign(sum.begin(), sum.end());
  } else {
    wide.value.resize(static_cast<std::size_t>(problem.m * problem.n));
    wide.error.resize(wide.value.size());
    each_block<double>(problem, 0, problem.k,
                       [&](std::size_t at, const double* a, const double* panel, const Strides& stride,
                           const Extents& n) { add_products(&wide.value[at], &wide.error[at], a, panel, stride, n); });
    for (double& e : wide.error) e = dot_product_error(static_cast<std::uint64_t>(problem.k) + leaves + 1, e);
  }
  return wide;
}

}  // namespace rdusim
