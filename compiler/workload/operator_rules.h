// The rules of each kind of operator, and the shape that follows for its result. For graph_rules.cpp only: whoever has
// a graph calls check_graph, or check_operators.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/diagnostics.h"
#include "compiler/workload/operator_graph.h"
#include "compiler/workload/shape_text.h"

namespace rdusim {

using Shape = std::vector<std::int64_t>;

// An operator whose operands are known: as many as its kind takes, each with a sound shape and a dtype that suits.
struct OperatorCase {
  const OperatorGraph& graph;
  const Operator& op;
  const Shape* given = nullptr;  // of the result, where it is
  Diagnostics& out;

  const Operand& in(std::size_t i) const { return graph.operand(op.in[i]); }
  const Shape& shape(std::size_t i) const { return in(i).shape; }

  // Says what is wrong, with the operands beside it.
  template <class... Args>
  void error(Code code, fmt::format_string<Args...> format, Args&&... args) const {
    Diagnostic& d = out.error(code, op.where, format, std::forward<Args>(args)...);
    constexpr std::size_t most = 3;
    for (std::size_t i = 0; i < op.in.size() && i < most; ++i) {
      d.note(in(i).where, "'{}' is {}", in(i).name, shape_text(shape(i)));
    }
  }
};

// The result's shape by kind; nothing where a rule is broken, which has been said then.
// Errors: RDU1008, RDU1009, RDU1031, RDU1034-RDU1037. Requires attributes in range (check_attributes).
std::optional<Shape> matmul_shape(const OperatorCase& c);
std::optional<Shape> point_wise_shape(const OperatorCase& c);
std::optional<Shape> row_wise_shape(const OperatorCase& c);
std::optional<Shape> rotary_shape(const OperatorCase& c);
std::optional<Shape> attention_shape(const OperatorCase& c);
std::optional<Shape> move_shape(const OperatorCase& c);
std::optional<Shape> result_shape(const OperatorCase& c);  // of whichever kind

// RDU1032, RDU1033: what an operator's attributes may be whatever its operands are. Whether they are sound.
bool check_attributes(const Operator& op, Diagnostics& out);

}  // namespace rdusim
