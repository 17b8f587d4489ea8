#include "sim/reference/reference.h"

#include <algorithm>
#include <utility>

#include "compiler/workload/operator_traits.h"
#include "sim/reference/elements.h"
#include "sim/reference/operators.h"

namespace rdusim {

std::size_t reference::Problem::elements() const {
  return static_cast<std::size_t>(element_count(out().shape).value_or(0));
}

namespace {

using reference::Problem;

std::int64_t matrices_of(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d + 2 < shape.size(); ++d) n *= shape[d];
  return n;
}

MatmulProblem matmul_of(const Problem& p) {
  const auto& a = p.in(0).shape;
  const auto& b = p.in(1).shape;
  MatmulProblem m;
  m.m = matrices_of(a) * a[a.size() - 2];
  m.k = a.back();
  m.n = p.out().shape.back();
  m.operand = p.in(0).dtype;
  m.result = p.out().dtype;
  m.saturate = p.saturate;
  m.a = p.bytes(0);
  m.b = p.bytes(1);
  m.groups = matrices_of(b);
  m.transposed = p.op.attributes.transposed;
  return m;
}

// The operands' bytes are as many as their shapes ask for.
Diagnostics check_bytes(const Problem& p) {
  Diagnostics out;
  for (std::size_t i = 0; i < p.op.in.size(); ++i) {
    const Operand& o = p.in(i);
    const auto count = element_count(o.shape);
    if (count && static_cast<std::uint64_t>(*count) * bytes_of(o.dtype) == p.bytes(i).size()) continue;
    out.error(Code::RDU3003, "operator '" + p.op.name + "'", "'{}' has {} bytes, which are not those of its shape",
              o.name, p.bytes(i).size());
  }
  return out;
}

Result<std::vector<std::byte>> evaluate_one(const Problem& p, const ReductionPlan& plan) {
  if (p.op.kind == OperatorKind::matmul) return evaluate_matmul(matmul_of(p), plan);
  if (p.op.kind == OperatorKind::attention && plan.trees.size() == 1) {
    const auto& k = p.in(1).shape;
    Diagnostics faults;
    reference::check_trees(k[k.size() - 2], plan.trees, faults);
    if (faults.has_errors()) return faults;
    return reference::attention(p, &plan.trees.front());
  }
  if (!plan.trees.empty()) {
    Diagnostics out;
    out.error(Code::RDU3032, "", "a {} is not summed by trees", name_of(p.op.kind));
    return out;
  }
  if (is_move(p.op.kind)) return reference::move(p);
  if (is_row_wise(p.op.kind)) return reference::row_wise(p);
  if (p.op.kind == OperatorKind::rotary) return reference::rotary(p);
  if (p.op.kind == OperatorKind::attention) return reference::attention(p, nullptr);
  return reference::point_wise(p);
}

}  // namespace

Result<bool> evaluate(const OperatorGraph& graph, std::span<const ReductionPlan> plans, bool saturate,
                      OperandBytes& operands) {
  for (const Operator& op : graph.operators) {
    const Problem problem{graph, op, saturate, operands};
    if (Diagnostics d = check_bytes(problem); d.has_errors()) return d;
    const auto planned =
        std::find_if(plans.begin(), plans.end(), [&](const ReductionPlan& p) { return p.op == op.id; });
    auto result = evaluate_one(problem, planned == plans.end() ? ReductionPlan{} : *planned);
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

Result<WideMatrix> evaluate_wide(const OperatorGraph& graph, OperatorId op, const OperandBytes& operands,
                                 std::uint64_t leaves) {
  const Problem p{graph, graph.operators[op.value], true, operands};
  if (Diagnostics d = check_bytes(p); d.has_errors()) return d;
  if (p.op.kind == OperatorKind::matmul) return evaluate_matmul_wide(matmul_of(p), leaves);
  if (is_move(p.op.kind)) {
    const auto moved = reference::move(p);
    if (!moved.ok()) return moved.diagnostics();
    return reference::exactly(p.in(0).dtype, *moved);
  }
  if (is_row_wise(p.op.kind)) return reference::row_wise_wide(p);
  if (p.op.kind == OperatorKind::rotary) return reference::rotary_wide(p);
  if (p.op.kind == OperatorKind::attention) return reference::attention_wide(p);
  return reference::point_wise_wide(p);
}

double element_as_double(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  double value = 0;
  reference::read_elements(dtype, bytes, i, 1, &value);
  return value;
}

}  // namespace rdusim
