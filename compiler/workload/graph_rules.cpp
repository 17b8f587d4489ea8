#include "compiler/workload/graph_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <utility>

#include "compiler/support/units.h"
#include "compiler/workload/fill_rules.h"
#include "compiler/workload/operator_rules.h"
#include "compiler/workload/operator_traits.h"
#include "compiler/workload/read_workload.h"
#include "compiler/workload/shape_text.h"

namespace rdusim {
namespace {

// The first operator that writes each operand.
std::vector<std::optional<std::size_t>> writers(const OperatorGraph& graph) {
  std::vector<std::optional<std::size_t>> out(graph.operands.size());
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    auto& writer = out[graph.operators[i].out.value];
    if (!writer) writer = i;
  }
  return out;
}

// As many operands as the kind takes.
bool right_count(const Operator& op, Diagnostics& out) {
  const OperatorTraits traits = traits_of(op.kind);
  if (op.in.size() >= traits.least_operands && op.in.size() <= traits.most_operands) return true;
  out.error(Code::RDU1030, op.where, "operator '{}' is a {} of {} operands; it takes {}", op.name, name_of(op.kind),
            op.in.size(), traits.form);
  return false;
}

// Operands have one dtype, but the indices of a gather, and it is one that the kind computes in.
bool dtypes_suit(const OperatorGraph& graph, const Operator& op, Diagnostics& out) {
  const Operand& first = graph.operand(op.in[0]);
  bool sound = true;
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    const Operand& operand = graph.operand(op.in[i]);
    if (op.kind == OperatorKind::gather && i == 1) {
      if (operand.dtype == DType::int32 || operand.dtype == DType::int64) continue;
      out.error(Code::RDU1012, op.where, "operator '{}' takes indices of int32 or int64; '{}' is {}", op.name,
                operand.name, name_of(operand.dtype))
          .note(operand.where, "'{}' is {}", operand.name, name_of(operand.dtype));
      sound = false;
    } else if (operand.dtype != first.dtype) {
      out.error(Code::RDU1012, op.where, "operator '{}' takes operands of one dtype; '{}' is {}, and '{}' is {}",
                op.name, first.name, name_of(first.dtype), operand.name, name_of(operand.dtype))
          .note(first.where, "'{}' is {}", first.name, name_of(first.dtype))
          .note(operand.where, "'{}' is {}", operand.name, name_of(operand.dtype));
      sound = false;
      break;
    }
  }
  if (is_integer(first.dtype) && !traits_of(op.kind).integers) {
    out.error(Code::RDU1012, op.where, "operator '{}' is a {}, which takes floats; '{}' is {}", op.name,
              name_of(op.kind), first.name, name_of(first.dtype))
        .note(first.where, "'{}' is {}", first.name, name_of(first.dtype));
    sound = false;
  }
  return sound;
}

// Closes the gap of the result's dtype, or holds what is given to the kind.
bool settle_dtype(const OperatorGraph& graph, const Operator& op, bool open, Operand& result, Diagnostics& out) {
  const DType operand = graph.operand(op.in[0]).dtype;
  const auto allowed = result_dtypes(op.kind, operand);
  if (open && op.kind == OperatorKind::cast) {
    out.error(Code::RDU1037, op.where, "operator '{}' casts '{}', and '{}' has no dtype", op.name,
              graph.operand(op.in[0]).name, result.name)
        .note(result.where, "'{}' is here", result.name);
    return false;
  }
  if (open) {
    result.dtype = allowed.front();
    return true;
  }
  if (std::find(allowed.begin(), allowed.end(), result.dtype) != allowed.end()) return true;
  std::vector<std::string_view> names;
  for (const DType t : allowed) names.push_back(name_of(t));
  out.error(Code::RDU1012, op.where, "operator '{}' takes {} and gives {}; '{}' is {}", op.name, name_of(operand),
            fmt::join(names, " or "), result.name, name_of(result.dtype))
      .note(result.where, "'{}' is {}", result.name, name_of(result.dtype));
  return false;
}

bool settle_shape(const OperatorCase& c, bool open, const Shape& shape, Operand& result) {
  if (open) {
    result.shape = shape;
    const std::size_t before = c.out.error_count();
    check_shape(result, result.where, c.out);
    return c.out.error_count() == before;
  }
  if (result.shape == shape) return true;
  c.error(Code::RDU1009, "operator '{}' gives {}, where '{}' is {}", c.op.name, shape_text(shape), result.name,
          shape_text(result.shape));
  return false;
}

}  // namespace

std::vector<std::size_t> writing_order(const OperatorGraph& graph, Diagnostics& out) {
  const auto writer = writers(graph);
  const std::size_t n = graph.operators.size();
  std::vector<std::size_t> waits(n, 0);
  std::vector<std::vector<std::size_t>> readers(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (const OperandId in : graph.operators[i].in) {
      if (const auto w = writer[in.value]) {
        ++waits[i];
        readers[*w].push_back(i);
      }
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < n; ++i) {
    if (waits[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> order;
  std::vector<bool> placed(n, false);
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    placed[i] = true;
    order.push_back(i);
    for (const std::size_t r : readers[i]) {
      if (--waits[r] == 0) ready.push(r);
    }
  }

  // Whoever is left waits for another who is left: following the waits leads into a cycle.
  std::vector<std::size_t> walk_of(n, 0);
  std::size_t walk = 0;
  for (std::size_t start = 0; start < n; ++start) {
    if (placed[start] || walk_of[start] != 0) continue;
    ++walk;
    std::vector<std::pair<std::size_t, OperandId>> path;  // operator, and the operand that it waits for
    std::size_t at = start;
    while (walk_of[at] == 0) {
      walk_of[at] = walk;
      for (const OperandId in : graph.operators[at].in) {
        const auto w = writer[in.value];
        if (w && !placed[*w]) {
          path.emplace_back(at, in);
          at = *w;
          break;
        }
      }
    }
    if (walk_of[at] != walk) continue;  // into a cycle that has been named
    path.erase(path.begin(),
               std::find_if(path.begin(), path.end(), [&](const auto& step) { return step.first == at; }));
    // Named from the operator that stands first in the file.
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    constexpr std::size_t most = 16;
    std::string names;
    for (std::size_t i = 0; i < path.size() && i < most; ++i) {
      names += fmt::format("'{}' -> ", graph.operators[path[i].first].name);
    }
    if (path.size() > most) names += "... -> ";
    Diagnostic& d =
        out.error(Code::RDU1015, graph.operators[path.front().first].where, "{} wait for each other: {}'{}'",
                  path.size() == 1 ? "an operator does" : fmt::format("{} operators", path.size()), names,
                  graph.operators[path.front().first].name);
    if (path.size() == 1) d.message = fmt::format("operator '{}' waits for itself", graph.operators[at].name);
    for (std::size_t i = 0; i < path.size() && i < most; ++i) {
      const Operator& reads = graph.operators[path[i].first];
      const Operator& writes = graph.operators[path[(i + 1) % path.size()].first];
      d.note(reads.where, "'{}' reads '{}', which '{}' writes", reads.name, graph.operand(path[i].second).name,
             writes.name);
    }
  }
  return order;
}

void check_operator(OperatorGraph& graph, std::size_t position, std::vector<OperandGaps>& gaps, Diagnostics& out) {
  const Operator op = graph.operators[position];  // a copy: operands are changed
  Operand& result = graph.operands[op.out.value];
  OperandGaps& result_gaps = gaps[op.out.value];
  // Until the end says otherwise, nothing follows for the result, and nothing is said of what depends on it.
  const bool shape_open = std::exchange(result_gaps.shape, false);
  const bool dtype_open = std::exchange(result_gaps.dtype, false);
  const bool result_known = !std::exchange(result_gaps.faulty, true);

  if (!right_count(op, out) || !check_attributes(op, out)) return;
  for (const OperandId in : op.in) {
    const OperandGaps& g = gaps[in.value];
    if (g.faulty || g.shape || g.dtype) return;  // open still: no operator writes it, which is said elsewhere
  }
  const OperatorCase c{graph, op, shape_open || !result_known ? nullptr : &result.shape, out};
  const bool dtypes_sound = dtypes_suit(graph, op, out);
  if (!result_known && op.kind == OperatorKind::reshape) return;
  const auto shape = result_shape(c);
  if (!dtypes_sound || !shape || !result_known) return;
  if (!settle_dtype(graph, op, dtype_open, result, out)) return;
  if (!settle_shape(c, shape_open, *shape, result)) return;
  result_gaps.faulty = false;
}

void check_operators(OperatorGraph& graph, const std::vector<std::size_t>& order, std::vector<OperandGaps>& gaps,
                     Diagnostics& out) {
  for (const std::size_t i : order) check_operator(graph, i, gaps, out);
}

void check_writers(const OperatorGraph& graph, bool complete, Diagnostics& out) {
  const auto writer = writers(graph);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    const Operand& result = graph.operand(op.out);
    if (*writer[op.out.value] != i) {
      const Operator& first = graph.operators[*writer[op.out.value]];
      out.error(Code::RDU1013, op.where, "operator '{}' writes '{}', which operator '{}' has written", op.name,
                result.name, first.name)
          .note(first.where, "'{}' is here", first.name);
    } else if (result.role == TensorRole::input || result.role == TensorRole::weight ||
               result.role == TensorRole::state) {
      out.error(Code::RDU1013, op.where, "operator '{}' writes '{}', whose role is {}", op.name, result.name,
                name_of(result.role))
          .note(result.where, "'{}' is here", result.name);
    }
  }
  if (!complete) return;
  if (graph.operators.empty()) {
    const std::string where = graph.operands.empty() ? graph.name : graph.operands.front().where;
    out.error(Code::RDU1016, where, "'{}' has no operator", graph.name).suggest("add an [[ops]] table");
    return;
  }
  bool has_output = false;
  for (const Operand& operand : graph.operands) {
    has_output = has_output || operand.role == TensorRole::output;
    const bool written = operand.role == TensorRole::output || operand.role == TensorRole::intermediate;
    if (written && !writer[operand.id.value]) {
      out.error(Code::RDU1014, operand.where, "no operator writes '{}', whose role is {}", operand.name,
                name_of(operand.role))
          .suggest("add the operator, or give the tensor role = \"input\" or \"weight\"");
    }
  }
  if (!has_output) {
    out.error(Code::RDU1016, graph.operators.back().where, "'{}' has no tensor whose role is output", graph.name)
        .suggest("give the last result role = \"output\"");
  }
}

void check_shape(const Operand& operand, const std::string& where, Diagnostics& out) {
  constexpr std::size_t most_axes = 8;
  const auto& shape = operand.shape;
  if (shape.empty() || shape.size() > most_axes) {
    out.error(Code::RDU1008, where, "'{}' has {} axes; a tensor has 1 to {}", operand.name, shape.size(), most_axes);
    return;
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 1) {
      out.error(Code::RDU1008, where, "axis {} of '{}' is {} long; an extent is 1 or more", axis, operand.name,
                shape[axis]);
      return;
    }
  }
  const auto count = element_count(shape);
  if (!count || !checked_multiply(*count, bytes_of(operand.dtype))) {
    out.error(Code::RDU1008, where, "'{}' is {} of {}, whose bytes 64 bits do not count", operand.name,
              shape_text(shape), name_of(operand.dtype));
  }
}

Diagnostics check_graph(const OperatorGraph& given) {
  Diagnostics out;
  for (const Operator& op : given.operators) {
    const auto dangles = [&](OperandId id) { return id.value >= given.operands.size(); };
    if (dangles(op.out) || std::any_of(op.in.begin(), op.in.end(), dangles)) {
      out.error(Code::RDU1010, op.where, "operator '{}' names a tensor beyond the {} that there are", op.name,
                given.operands.size());
    }
  }
  if (out.has_errors()) return out;

  OperatorGraph graph = given;
  std::vector<OperandGaps> gaps(graph.operands.size());
  for (std::size_t i = 0; i < graph.operands.size(); ++i) {
    const Operand& operand = graph.operands[i];
    const std::size_t before = out.error_count();
    check_shape(operand, operand.where, out);
    gaps[i].faulty = out.error_count() != before;
    if (!gaps[i].faulty) check_fill(operand, operand.where, out);
  }
  const std::size_t before = out.error_count();
  const auto order = writing_order(graph, out);
  if (out.error_count() == before && !std::is_sorted(order.begin(), order.end())) {
    const auto late = std::adjacent_find(order.begin(), order.end(), std::greater<>());
    const Operator& first = graph.operators[*late];
    const Operator& second = graph.operators[*std::next(late)];
    out.error(Code::RDU1015, second.where, "operator '{}' stands before '{}', whose result it needs", second.name,
              first.name);
  }
  check_operators(graph, order, gaps, out);
  check_writers(graph, true, out);
  return out;
}

}  // namespace rdusim
