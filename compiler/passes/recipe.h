// What stages carry out an operator that is no matmul: steps of the closed algebra, one Generic stage each.
//
// A step works on rows and columns. What it takes has the operator's whole extents, or one row, or one column, or one
// element; what it makes has all rows and columns, or, where it joins a row, one column. No step's whole-page result is
// kept for a row: what a later step wants of it is worked out again from the operands, so that a row of any length
// streams through buffers of a few pages. The order of operations is that of operator_graph.h, to the bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

struct Step {
  // An operand of the operator (its place among Operator::in), or the result of an earlier step.
  struct Source {
    bool is_step = false;
    std::uint32_t index = 0;
    friend bool operator==(const Source&, const Source&) = default;
  };
  std::string name;        // "max", "sum"; the last is named after the operator's kind
  std::vector<Source> in;  // what operand nodes of `body` count
  Expr body;
  std::optional<ExprOp> join;  // over the columns of a row
  bool is_column = false;      // makes one column: joins, or takes columns only
};

// The steps in order; the last makes the operator's result. Empty for a kind that has none. Requires operands and
// attributes that fit the kind.
std::vector<Step> recipe_of(const OperatorGraph& graph, const Operator& op);

// What makes weights of an attention's products of queries and keys, which its first step takes as operand 0, and those of
// further queries and keys, where there are some, as operand 1: scaled, masked where some query does not look at some
// key; and the softmax of each row of that. Operand 2 is the head's sink.
std::vector<Step> attention_steps(const OperatorGraph& graph, const Operator& op);

// The work of an operator on one chip, whole: a matmul's m x n x k, the rows of a stack together; of an attention the
// rows and columns of its result, k the keys; else the rows and columns that it goes through, k 1. Requires a matmul, an
// attention, a rotary of a matrix, a move, or an operator with a recipe and operands of rank 1 or 2.
Work whole_work_of(const OperatorGraph& graph, const Operator& op);

// Whether an operand of an operator with a recipe has all its rows, or columns; what has one is repeated along them.
bool spans_rows(const OperatorGraph& graph, const Operator& op, std::size_t in);
bool spans_columns(const OperatorGraph& graph, const Operator& op, std::size_t in);

}  // namespace rdusim
