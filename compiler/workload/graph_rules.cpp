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
#include "compiler/workload/read_workload.h"
#include "compiler/workload/shape_text.h"

namespace rdusim {
namespace {

constexpr std::string_view operators_there_are =
    "there is 'matmul', out(m x n) = in0(m x k) in1(k x n), of two operands of rank 2";

// The first operator that writes each operand.
std::vector<std::optional<std::size_t>> writers(const OperatorGraph& graph) {
  std::vector<std::optional<std::size_t>> out(graph.operands.size());
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    auto& writer = out[graph.operators[i].out.value];
    if (!writer) writer = i;
  }
  return out;
}

std::string named(const Operand& o) {
  return fmt::format("'{}' ({})", o.name, shape_text(o.shape));
}

// The dtypes that the result of a sum kept in `accumulator` may be converted to, itself first.
std::span<const DType> result_dtypes(DType operand) {
  static constexpr std::array from_int8 = {DType::int32, DType::int8};
  static constexpr std::array from_int32 = {DType::int32};
  static constexpr std::array from_int64 = {DType::int64};
  static constexpr std::array from_floats = {DType::fp32, DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2};
  switch (operand) {
    case DType::int8:
      return from_int8;
    case DType::int32:
      return from_int32;
    case DType::int64:
      return from_int64;
    default:
      return from_floats;
  }
}

void check_matmul(OperatorGraph& graph, const Operator& op, std::vector<OperandGaps>& gaps, Diagnostics& out) {
  Operand& result = graph.operands[op.out.value];
  OperandGaps& result_gaps = gaps[op.out.value];
  // Until the end says otherwise, nothing follows for the result, and nothing is said of what depends on it.
  const bool shape_open = std::exchange(result_gaps.shape, false);
  const bool dtype_open = std::exchange(result_gaps.dtype, false);
  const bool result_known = !std::exchange(result_gaps.faulty, true);

  if (op.in.size() != 2) {
    out.error(Code::RDU1011, op.where, "operator '{}' is a matmul of {} operands; {}", op.name, op.in.size(),
              operators_there_are);
    return;
  }
  for (const OperandId in : op.in) {
    const OperandGaps& g = gaps[in.value];
    if (g.faulty || g.shape || g.dtype)
      return;  // a gap that is still open: no operator writes it, which is said elsewhere
  }
  const Operand& a = graph.operands[op.in[0].value];
  const Operand& b = graph.operands[op.in[1].value];

  bool sound = true;
  for (const Operand* operand : {&a, &b}) {
    if (operand->shape.size() != 2) {
      sound = false;
      out.error(Code::RDU1011, op.where, "operator '{}' is a matmul of '{}', which has rank {}; {}", op.name,
                operand->name, operand->shape.size(), operators_there_are)
          .note(operand->where, "'{}' is {}", operand->name, shape_text(operand->shape));
    }
  }
  if (a.dtype != b.dtype) {
    out.error(Code::RDU1012, op.where, "operator '{}' multiplies '{}', {}, and '{}', {}; both need one dtype", op.name,
              a.name, name_of(a.dtype), b.name, name_of(b.dtype))
        .note(a.where, "'{}' is {}", a.name, name_of(a.dtype))
        .note(b.where, "'{}' is {}", b.name, name_of(b.dtype));
    sound = false;
  }
  if (a.shape.size() == 2 && b.shape.size() == 2 && a.shape[1] != b.shape[0]) {
    out.error(Code::RDU1009, op.where, "operator '{}' contracts {} columns of '{}' with {} rows of '{}'", op.name,
              a.shape[1], a.name, b.shape[0], b.name)
        .note(a.where, "{}", named(a))
        .note(b.where, "{}", named(b));
    sound = false;
  }
  if (!sound) return;

  const std::vector<std::int64_t> shape = {a.shape[0], b.shape[1]};
  const auto elements = checked_multiply(shape[0], shape[1]);
  if (!elements || !checked_multiply(*elements, a.shape[1])) {
    out.error(Code::RDU1008, op.where,
              "operator '{}' has {} x {} x {} multiply-accumulates, which 64 bits do not count", op.name, shape[0],
              a.shape[1], shape[1]);
    return;
  }
  if (!result_known) return;
  const auto allowed = result_dtypes(a.dtype);
  if (dtype_open) {
    result.dtype = allowed.front();
  } else if (std::find(allowed.begin(), allowed.end(), result.dtype) == allowed.end()) {
    std::vector<std::string_view> names;
    for (const DType t : allowed) names.push_back(name_of(t));
    out.error(Code::RDU1012, op.where, "operator '{}' multiplies {} and gives {}; '{}' is {}", op.name,
              name_of(a.dtype), fmt::join(names, " or "), result.name, name_of(result.dtype))
        .note(result.where, "'{}' is {}", result.name, name_of(result.dtype));
    return;
  }
  if (shape_open) {
    result.shape = shape;
    const std::size_t before = out.error_count();
    check_shape(result, result.where, out);
    if (out.error_count() != before) return;
  } else if (result.shape != shape) {
    out.error(Code::RDU1009, op.where, "operator '{}' gives {}, where '{}' is {}", op.name, shape_text(shape),
              result.name, shape_text(result.shape))
        .note(a.where, "{}", named(a))
        .note(b.where, "{}", named(b))
        .note(result.where, "{}", named(result));
    return;
  }
  result_gaps.faulty = false;
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

void check_operators(OperatorGraph& graph, const std::vector<std::size_t>& order, std::vector<OperandGaps>& gaps,
                     Diagnostics& out) {
  for (const std::size_t i : order) {
    const Operator op = graph.operators[i];  // a copy: its operands are changed
    switch (op.kind) {
      case OperatorKind::matmul:
        check_matmul(graph, op, gaps, out);
        break;
      default:
        out.error(Code::RDU1011, op.where, "operator '{}' is a {}; {}", op.name, name_of(op.kind), operators_there_are);
    }
  }
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
    } else if (result.role == TensorRole::input || result.role == TensorRole::weight) {
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
