// What an operator graph computes, worked out whole: no chips, no pages in flight, no machine. The judge of a run.
//
// Shares nothing with what it judges: includes support and workload only, and does its own arithmetic.
//
// compiler/workload/operator_graph.h defines what each kind computes, support/elementary.h exp, tanh and erf; both
// forms below follow them step by step. Graphs keep their rules (check_graph).
//
// Exactly (evaluate): to the bit. A matmul's products are taken in accumulator_of(operand dtype): both factors are
// converted to it, the product is rounded (floats) or wrapped around (integers), then added, rounded or wrapped around
// again; never fused. A leaf of its summation tree starts from +0 and adds its products one by one in rising k; an
// inner node is its left child + its right child; so are an attention's products with values (a leaf takes those of its
// keys that take part), by one tree for all elements. Every other sum has the one order that its kind states, and no tree.
// maximum, minimum and what is made of them: a NaN on either side gives NaN, and +0 is greater than -0.
//
// Results are converted once: floats to nearest even, NaN stays NaN (which of its patterns is not stated); to fp8
// saturating to the largest finite value where `saturate`, else e5m2 overflows to infinity and e4m3 to NaN; bf16 and
// fp32 overflow to infinity; an integer to a narrower one saturates where `saturate`, else keeps its low bits; a float
// to an integer goes to nearest even, saturating, NaN to 0; an integer to a float to nearest even, once.
//
// Widely (evaluate_wide): one operator in double, its sums in rising order, no trees and no conversion of the result;
// and for each element how far fp32 arithmetic may lie from it before the result is converted, by running error
// analysis (bounded.h has the laws). Sums count as summed in any order. Where fp32 may overflow on the way the bound is
// infinite and says nothing. Integers: the exact result modulo 2^64, taken as int64. Moves: the elements, with an error
// of 0.
//
// Speed, on one core of a small server: a matmul of 32 x 14336 by 14336 x 4096 int8 takes about 0.3 s, batched or not;
// a million elements of softmax or a norm about 0.1 s. Memory beside arguments and result: a matmul has a copy of the
// output, in the accumulator's type, for each leaf (one that several trees name is computed once); attention a head's
// keys and values; the others a row. Bits do not depend on the host's vector width: vectors run over columns only, and
// the build sets -ffp-contract=off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/support/dtype.h"
#include "compiler/support/element_bytes.h"
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

// out(m x n) = a(m x k) b(k x n), row-major, little-endian, without gaps. A stack is seen as one matrix whose rows are
// all its leading extents together: then b is `groups` matrices, each for m / groups consecutive rows of a.
struct MatmulProblem {
  std::int64_t m = 0, n = 0, k = 0;
  DType operand = DType::fp32;
  DType result = DType::fp32;
  bool saturate = true;
  std::span<const std::byte> a;  // m * k elements of `operand`
  std::span<const std::byte> b;  // groups * k * n
  std::int64_t groups = 1;       // divides m
  bool transposed = false;       // each matrix of b is n x k
};

// The output's m * n elements of `result`, to the bit. Errors: RDU3003 sizes of a or b, or pages that do not tile the
// output; RDU3032 the trees' chunks are not 0 .. chunks - 1 once each, a child is not below its parent, or the leaves
// of a tree do not tile [0, k).
Result<std::vector<std::byte>> evaluate_matmul(const MatmulProblem& problem, const ReductionPlan& plan);

// The same in a wider type, element by element, row-major.
struct WideMatrix {
  std::vector<double> value;  // float operands
  std::vector<double> error;  // float operands: how far an fp32 result may lie from it; infinite or NaN: unknown
  std::vector<std::int64_t> integer;  // integer operands; then the two above are empty
};
// `leaves`: of its summation tree. The error is gamma(k + leaves + 1) times the sum of |a b|. Errors: RDU3003.
Result<WideMatrix> evaluate_matmul_wide(const MatmulProblem& problem, std::uint64_t leaves = 1);

// Whole operands by operand id. On entry the inputs, weights and states are there, and what operators write is empty; on
// return everything is there.
using OperandBytes = std::vector<ElementBytes>;

// Evaluates the operators in their order. A matmul without a plan has one leaf and one page; for others a plan has no
// trees (RDU3032). Each reads the operands' bytes as they are (an intermediate as it was rounded to its dtype). Errors:
// those of evaluate_matmul, with the operator's name as the place; RDU1035 an index beyond its table.
Result<bool> evaluate(const OperatorGraph& graph, std::span<const ReductionPlan> plans, bool saturate,
                      OperandBytes& operands);

// One operator of the graph in a wider type, from the bytes of its operands (all there, as evaluate() leaves them).
Result<WideMatrix> evaluate_wide(const OperatorGraph& graph, OperatorId op, const OperandBytes& operands,
                                 std::uint64_t leaves = 1);

// The value of element i of `bytes` as a double (int64 beyond 2^53 rounds to nearest even). Requires i in range.
double element_as_double(DType dtype, std::span<const std::byte> bytes, std::size_t i);

}  // namespace rdusim
