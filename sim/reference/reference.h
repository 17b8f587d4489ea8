// What an operator graph computes, worked out whole: no chips, no pages in flight, no machine. The judge of a run.
//
// Shares nothing with what it judges: includes support and workload only, and does its own arithmetic.
//
// Matrices. A matmul is out(m x n) = a(m x k) b(k x n), row-major, little-endian, without gaps. An operand of rank above
// 2 is seen as a matrix whose rows are all its leading extents together; one of rank 1 as a single row.
//
// Exactly (evaluate_*): products are taken in accumulator_of(operand dtype): both factors are converted to it, the product
// is rounded (floats) or wrapped around (integers), then added, rounded or wrapped around again; never fused. A leaf of
// the summation tree starts from +0 and adds its products one by one in rising k; an inner node is its left child + its
// right child. The root is converted to the result's dtype: floats to nearest even, NaN stays NaN; to fp8 saturating to
// the largest finite value where `saturate`, else e5m2 overflows to infinity and e4m3 to NaN; bf16 and fp32 overflow to
// infinity; an integer to a narrower one saturates where `saturate`, else keeps its low bits; a float to an integer goes
// to nearest even, saturating, NaN to 0.
//
// Widely (evaluate_*_wide): the unsharded operator in a wider type: products and sums in double, in rising k (integers:
// the exact sum of exact products modulo 2^64, taken as int64), no trees, no conversion of the result.
//
// Speed: 32 x 14336 by 14336 x 4096 int8 takes about 0.3 s on one core; memory besides arguments and result is a copy of
// the output, in the accumulator's type, for each leaf. A leaf that several trees name is computed once. Bits do not
// depend on the host's vector width: vectors run over columns only, and the build sets -ffp-contract=off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/support/dtype.h"
#include "compiler/support/result.h"
#include "compiler/support/summation_tree.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

// A page of an output as the program cuts it: elements [row, row + rows) x [col, col + cols) of the whole output. Its
// elements are counted row by row, page-locally, when chunk_range() cuts it: element e is (row + e / cols, col + e %
// cols).
struct OutputPage {
  std::uint64_t row = 0;
  std::uint64_t col = 0;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  friend bool operator==(const OutputPage&, const OutputPage&) = default;
};

// In which order the sums of one operator's output are made.
struct ReductionPlan {
  OperatorId op;
  // One for each chunk 0 .. chunks - 1, in any order, all with the same `chunks`: element e of a page of s elements is
  // summed by the tree whose chunk_range(s, chunk, chunks) holds e. Empty: one leaf [0, k). `chip` is not looked at.
  std::vector<SummationTree> trees;
  // Tile the output exactly. Empty: the whole output is one page.
  std::vector<OutputPage> pages;
};

struct MatmulProblem {
  std::int64_t m = 0, n = 0, k = 0;
  DType operand = DType::fp32;
  DType result = DType::fp32;
  bool saturate = true;
  std::span<const std::byte> a;  // m * k elements of `operand`
  std::span<const std::byte> b;  // k * n
};

// The output's m * n elements of `result`, to the bit. Errors: RDU3003 sizes of a or b, or pages that do not tile the
// output; RDU3032 the trees' chunks are not 0 .. chunks - 1 once each, a child is not below its parent, or the leaves
// of a tree do not tile [0, k).
Result<std::vector<std::byte>> evaluate_matmul(const MatmulProblem& problem, const ReductionPlan& plan);

// The same in a wider type, element by element, row-major.
struct WideMatrix {
  std::vector<double> value;          // float operands: sum of products, in double
  std::vector<double> magnitude;      // float operands: sum of |product|, in double; what an error bound is scaled by
  std::vector<std::int64_t> integer;  // integer operands: the sum; then the two above are empty
};
// Errors: RDU3003.
Result<WideMatrix> evaluate_matmul_wide(const MatmulProblem& problem);

// Whole operands by operand id, row-major bytes. On entry the inputs, weights and states are there, and what operators
// write is empty; on return everything is there.
using OperandBytes = std::vector<std::vector<std::byte>>;

// Evaluates the operators in their order. An operator without a plan has one leaf and one page. Each reads the
// operands' bytes as they are (an intermediate as it was rounded to its dtype). Errors: those of evaluate_matmul, with
// the operator's name as the place.
Result<bool> evaluate(const OperatorGraph& graph, std::span<const ReductionPlan> plans, bool saturate,
                      OperandBytes& operands);

// One operator of the graph in a wider type, from the bytes of its operands (all there, as evaluate() leaves them).
Result<WideMatrix> evaluate_wide(const OperatorGraph& graph, OperatorId op, const OperandBytes& operands);

// The value of element i of `bytes` as a double (int64 beyond 2^53 rounds to nearest even). Requires i in range.
double element_as_double(DType dtype, std::span<const std::byte> bytes, std::size_t i);

}  // namespace rdusim
