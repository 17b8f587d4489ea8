// What a whole value is: the formula over operands that its element is worked out by, step by step.
//
// The same formula has one number, however stages were cut to compute it; so a store's pages are proved to be an
// operator's result by comparing two numbers. A step is an operation in a type (what it is rounded to), a row joined,
// or a conversion that rounds. Where an extent is 1 and another's is not, the element serves all: formulas do not say
// so, since shapes do. Operations that commute are the same both ways round (a sum of two floats does not depend on
// their order).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::certificate {

using TermId = std::uint32_t;
inline constexpr TermId no_term = 0;  // of what no formula is known; anything made of it is unknown too

class Terms {
 public:
  // Learns the formula of every operator of the program, where it has them (operator_graph.h states them).
  explicit Terms(const SpatialProgram& program);

  TermId operand(OperandId o);                                    // as it lies in memory
  TermId product(DType in, TermId a, TermId b, bool transposed);  // of two matrices, summed in rising contraction
  TermId constant(DType in, double number);
  TermId place(ExprOp op, DType in);  // of an element: its row, or its column
  // A matrix as a stack of its heads, and a stack of heads as one matrix again (AccessPattern::heads). One head: itself.
  TermId by_head(TermId of, std::uint64_t heads);
  TermId side_by_side(TermId of, std::uint64_t heads);
  TermId apply(ExprOp op, DType in, TermId left, TermId right = no_term);
  TermId join(ExprOp op, DType in, TermId of);      // of all elements of a row, in rising column
  TermId shifted(TermId of, std::int64_t columns);  // the element so many columns further on
  TermId gather(TermId table, TermId indices);      // the row of `table` that the element of `indices` names
  // What `of`, computed in `from`, is in `to`: itself where nothing can be lost.
  TermId converted(DType from, DType to, TermId of);
  // The same of what a stage gives away that works for operator `by` (for any, where it says none): the operand, where
  // the operator asks for just this. Two operators may ask for the same; each gives its own.
  TermId given(DType from, DType to, TermId of, std::optional<OperatorId> by);

  // Whether `term` is what tensors of operand `o` hold.
  bool is(TermId term, OperandId o) const;
  // The same of a block of columns [begin, end): what a rotary gives is another formula in every half of a head.
  bool is(TermId term, OperandId o, std::uint64_t begin, std::uint64_t end);
  // What tensors of operand `o` must hold, as text; empty where no operator says.
  std::string formula(OperandId o) const;
  std::string text(TermId term) const;

 private:
  enum class Kind : std::uint8_t {
    unknown,
    operand,
    product,
    constant,
    apply,
    join,
    shifted,
    gather,
    converted,
    by_head,
    side_by_side
  };
  struct Node {
    Kind kind = Kind::unknown;
    ExprOp op = ExprOp::operand;
    DType type = DType::fp32;
    // operand, the constant's bits, columns, heads, or whether a product's right matrix is transposed
    std::uint64_t number = 0;
    TermId left = no_term, right = no_term;
    friend auto operator<=>(const Node&, const Node&) = default;
  };
  TermId intern(const Node& n);
  TermId of_operator(const SpatialProgram& p, const Operator& op);
  TermId attention(const OperatorGraph& graph, const Operator& op);
  void learn_rotary(const OperatorGraph& graph, const Operator& op);

  std::vector<Node> nodes_;
  std::map<Node, TermId> ids_;
  std::map<std::pair<TermId, OperatorId>, OperandId> results_;  // formula, and who asks for it -> the operand
  std::map<std::uint32_t, TermId> formula_of_;                  // operand -> formula
  struct Rotary {
    OperandId x, cos, sin;
    std::uint64_t half = 1;  // columns of half a head
    DType in = DType::fp32, out = DType::fp32;
  };
  std::map<std::uint32_t, Rotary> rotaries_;  // operand -> how it is turned
};

}  // namespace rdusim::certificate
