// A condition on the columns of a table: a plan's constraints, and --where.
//
//   chips <= 8 and collective == "ring"
//   not (verdict == "pass") or cycles > 2 * predicted
//   `target.links[0].gb_per_s` >= 31.25
//
// In falling precedence: - (of one), * /, + -, == != < <= > >=, not, and, or; parentheses. A column is a name of
// letters, digits, '_', '.', '[', ']', or anything between backticks; a text stands in double or single quotes; true
// and false. Numbers compare with numbers, texts with texts; what is of different kinds is not equal, and nothing
// compares with what is absent: such a comparison is false. A sum with what is no number is absent; `not` of what is no
// truth is none.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/result.h"
#include "sim/sweep/cell.h"

namespace rdusim {

class Expression {
 public:
  // Errors: RDU8065 at `where`.
  static Result<Expression> parse(std::string_view text, const std::string& where);

  // Names of the columns that it looks at, in the order of the text, each once.
  const std::vector<std::string>& columns() const { return columns_; }

  // Whether the condition holds; `values` are those of columns(). What is no truth does not hold.
  bool holds(const std::vector<Cell>& values) const;

 private:
  enum class Op : std::uint8_t {
    column,
    literal,
    negate,
    multiply,
    divide,
    add,
    subtract,
    equal,
    differ,
    less,
    at_most,
    greater,
    at_least,
    not_,
    and_,
    or_,
  };
  // In postfix order.
  struct Node {
    Op op = Op::literal;
    std::size_t column = 0;
    Cell literal;
  };
  friend class ExpressionParser;
  static Cell combine(Op op, const Cell& a, const Cell& b);

  std::vector<Node> nodes_;
  std::vector<std::string> columns_;
};

// Errors: RDU8066 where `names` lacks a column of the expression, with the nearest name.
Diagnostics check_columns(const std::vector<std::string>& used, const std::vector<std::string>& names,
                          const std::string& where);

}  // namespace rdusim
