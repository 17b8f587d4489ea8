#include "sim/compare_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <tuple>

#include "compiler/ir/trips.h"
#include "compiler/support/file.h"
#include "compiler/workload/operator_traits.h"
#include "sim/places.h"

namespace rdusim {

std::optional<CheckLevel> check_level(std::string_view name) {
  for (const CheckLevel level : {CheckLevel::exact, CheckLevel::bound, CheckLevel::none})
    if (name_of(level) == name) return level;
  return std::nullopt;
}

std::string_view name_of(CheckLevel level) {
  switch (level) {
    case CheckLevel::exact:
      return "exact";
    case CheckLevel::bound:
      return "bound";
    case CheckLevel::none:
      return "none";
  }
  return "";
}

namespace {

bool same_form(const SummationTree& a, const SummationTree& b) {
  if (a.chunk != b.chunk || a.chunks != b.chunks || a.nodes.size() != b.nodes.size()) return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    SummationNode x = a.nodes[i];
    x.chip = b.nodes[i].chip;
    if (!(x == b.nodes[i])) return false;
  }
  return true;
}

// `scattered`: what chips store are the rows that they keep of pages that have all rows.
std::vector<OutputPage> pages_of(const SpatialProgram& program, OperandId out, bool scattered) {
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>> pages;
  for (const Stage& s : program.stages) {
    const auto* store = std::get_if<Store>(&s.kind);
    bool writes_it = false;
    if (store != nullptr)
      for_each_tensor(*store, [&](TensorId t) { writes_it = writes_it || program.tensor(t).operand == out; });
    if (!writes_it) continue;
    std::uint64_t firings = 1;
    for (std::uint64_t n : store->pattern.loops) firings *= n;
    const PagePlaces places(store->pattern, program.tensor(store->tensor), program.header.native_tile);
    for (std::uint32_t i = 0; i < store->pattern.first.size(); ++i) {
      for (std::uint64_t f = 0; f < firings; ++f) {
        const auto p = places.at(i, f);
        if (!p) continue;
        const std::uint64_t all = matrix_view(program.tensor(store->tensor)).whole_rows;
        pages.emplace(scattered ? 0 : p->row, p->col, scattered ? all : p->rows, p->cols);
      }
    }
  }
  std::vector<OutputPage> list;
  for (const auto& [row, col, rows, cols] : pages) list.push_back({row, col, rows, cols});
  return list;
}

std::uint64_t columns(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? 1 : static_cast<std::uint64_t>(shape.back());
}

// Half a unit in the last place of `t` at `magnitude`, what a rounding to it may add.
double half_ulp(DType t, double magnitude) {
  if (is_integer(t)) return 0.5;
  int digits = 24;
  int least = -126;  // exponent of the least normal number
  switch (t) {
    case DType::bf16:
      digits = 8;
      break;
    case DType::fp8_e4m3:
      digits = 4, least = -6;
      break;
    case DType::fp8_e5m2:
      digits = 3, least = -14;
      break;
    default:
      break;
  }
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return std::ldexp(0.5, std::max(exponent - 1, least) - digits + 1);
}

double greatest_finite(DType t) {
  switch (t) {
    case DType::fp8_e4m3:
      return 448;
    case DType::fp8_e5m2:
      return 57344;
    case DType::bf16:
      return 0x1.fep127;
    case DType::int8:
      return 0x1p7;
    case DType::int32:
      return 0x1p31;
    case DType::int64:
      return 0x1p63;
    default:
      return 0x1.fffffep127;
  }
}

struct Compared {
  double max_abs_error = 0;
  std::uint64_t beyond = 0;
  std::uint64_t worst = 0;
  double worst_value = 0, worst_wide = 0, worst_bound = 0, worst_excess = 0;
};

Compared against_wide(const WideMatrix& wide, DType result, std::span<const std::byte> bytes) {
  Compared c;
  const double greatest = greatest_finite(result);
  for (std::size_t i = 0; i < wide.value.size(); ++i) {
    const double got = element_as_double(result, bytes, i);
    const double want = wide.value[i];
    if (std::isnan(want) && (std::isnan(got) || is_integer(result))) continue;
    // Beyond the type's range a bound says nothing: what saturates is compared to the bit.
    if (!(std::fabs(want) < greatest) && !std::isnan(want)) continue;
    const double error = std::fabs(got - want);
    const double rounding = half_ulp(result, std::max(std::fabs(got), std::fabs(want)));
    const double bound = wide.error[i] + rounding;
    if (!std::isfinite(bound) && !std::isnan(want)) continue;  // fp32 may overflow on the way
    if (std::isnan(error)) {
      if (c.beyond++ == 0) c.worst = i, c.worst_value = got, c.worst_wide = want, c.worst_bound = bound;
      continue;
    }
    c.max_abs_error = std::max(c.max_abs_error, error);
    if (error <= bound) continue;
    ++c.beyond;
    const double excess = bound > 0 ? error / bound : HUGE_VAL;
    if (excess > c.worst_excess)
      c.worst = i, c.worst_value = got, c.worst_wide = want, c.worst_bound = bound, c.worst_excess = excess;
  }
  return c;
}

// RDU7060: whether a gather was given the index of a row that its table has not. What comes after it has no right value.
bool index_beyond(const SpatialProgram& program, const Operator& op, const TensorImages& images, Diagnostics& out) {
  const Operand& table = program.operators->operand(op.in[0]);
  const Operand& indices = program.operators->operand(op.in[1]);
  const auto given = gather(program, storage_of(*program.operators, op.in[1]), images);
  if (!given) return false;
  for (std::size_t i = 0; i * bytes_of(indices.dtype) < given->size(); ++i) {
    const double index = element_as_double(indices.dtype, *given, i);
    if (index >= 0 && index < static_cast<double>(table.shape[0])) continue;
    out.error(Code::RDU7060, indices.name, "index {} of '{}' is {}, and '{}', whose rows '{}' takes, has {}", i,
              indices.name, index, table.name, op.name, table.shape[0]);
    return true;
  }
  return false;
}

// Whether no later append changes the state that `op` gives.
bool last_update(const OperatorGraph& graph, const Operator& op) {
  return std::none_of(graph.operators.begin(), graph.operators.end(), [&](const Operator& other) {
    return other.kind == OperatorKind::append && other.in[0] == op.out;
  });
}

void compare_replicas(const SpatialProgram& program, const TensorImages& images, Comparison& c) {
  for (const Tensor& t : program.tensors) {
    if (t.replicas < 2) continue;
    for (std::uint32_t i = 0; i < t.id.value; ++i) {
      const Tensor& other = program.tensors[i];
      if (other.operand != t.operand || other.offset != t.offset || other.shape != t.shape) continue;
      c.replicas_checked = true;
      const auto& a = images[other.id.value];
      const auto& b = images[t.id.value];
      if (a == b) break;
      const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
      const std::uint64_t element = static_cast<std::uint64_t>(at.first - a.begin()) / bytes_of(t.dtype);
      c.diagnostics.error(
          Code::RDU7017, t.name, "replicas '{}' on chip{} and '{}' on chip{} differ first in element ({}, {})",
          other.name, other.chip.value, t.name, t.chip.value, element / columns(t.shape), element % columns(t.shape));
      break;
    }
  }
}

}  // namespace

std::vector<RegionPlan> reduction_plans(const SpatialProgram& program, OperatorId op) {
  const OperandId out = program.operators->operators[op.value].out;
  const OperatorId first = FirstTrip(program).of(op);  // whose trees and works are those of all its trips
  const std::uint64_t cols = columns(program.operators->operand(out).shape);
  std::vector<const SummationTree*> trees;
  for (const SummationTree& t : program.trees) {
    if (t.op == first) trees.push_back(&t);
  }
  RegionPlan whole{{op, {}, {}}, 0, cols};
  if (trees.empty()) return {whole};
  const bool of_chips = std::any_of(trees.begin(), trees.end(), [&](const SummationTree* t) {
    return std::any_of(trees.begin(), trees.end(),
                       [&](const SummationTree* o) { return o != t && o->chunk == t->chunk; });
  });
  if (!of_chips) {
    for (const SummationTree* t : trees) whole.plan.trees.push_back(*t);
    const bool scattered =
        std::any_of(program.collectives.begin(), program.collectives.end(),
                    [&](const Collective& c) { return c.op == first && c.kind == CollectiveKind::reduce_scatter; });
    if (trees.size() > 1) whole.plan.pages = pages_of(program, out, scattered);
    return {whole};
  }
  // One tree a chip, each for the columns that its chip sums.
  if (std::all_of(trees.begin(), trees.end(), [&](const SummationTree* t) { return same_form(*t, *trees.front()); })) {
    whole.plan.trees.push_back(*trees.front());
    return {whole};
  }
  std::vector<RegionPlan> regions;
  for (const SummationTree* t : trees) {
    if (t->nodes.empty()) continue;
    for (const Work& w : program.work) {
      if (w.op != first || w.chip != t->nodes.front().chip) continue;
      RegionPlan r{
          {op, {*t}, {}}, static_cast<std::uint64_t>(w.offset_n), static_cast<std::uint64_t>(w.offset_n + w.n)};
      r.plan.trees.front().chunk = 0, r.plan.trees.front().chunks = 1;
      regions.push_back(std::move(r));
    }
  }
  return regions;
}

Result<Comparison> compare_outputs(const SpatialProgram& program, const TensorImages& images, OperandBytes whole,
                                   CheckLevel level) {
  Comparison c;
  compare_replicas(program, images, c);
  const auto output = [&](const Operand& o, const ElementBytes& bytes) {
    OutputCheck check{
        o.id, o.name, o.shape, o.dtype, sha256(std::span<const std::byte>(bytes)), CheckLevel::none, std::nullopt};
    c.outputs.push_back(std::move(check));
  };
  if (!program.operators) {
    std::set<std::uint32_t> seen;
    for (const Tensor& t : program.tensors) {
      if (t.role != TensorRole::output || !seen.insert(t.operand.value).second) continue;
      const auto bytes = gather(program, t.operand, images);
      if (bytes) output(Operand{t.operand, t.name, t.role, t.whole, t.dtype, {}, {}}, *bytes);
    }
    return c;
  }

  const OperatorGraph& graph = *program.operators;
  if (level != CheckLevel::none && !program.header.numerics.partials_in_accumulator_type) {
    Diagnostics d;
    d.error(Code::RDU6006, program.header.name,
            "the reference sums partials in the accumulator's type only; use --check none");
    return d;
  }
  for (const Operator& op : graph.operators) {
    const Operand& out = graph.operand(op.out);
    std::optional<ElementBytes> got;
    if (out.role == TensorRole::output) {
      got = gather(program, op.out, images);
      if (got) output(out, *got);
    } else if (op.kind == OperatorKind::append && last_update(graph, op)) {
      // A state, as it is after the run.
      got = gather(program, storage_of(graph, op.out), images);
      if (got) output(out, *got);
    }
    if (op.kind == OperatorKind::gather && index_beyond(program, op, images, c.diagnostics)) return c;
    if (level == CheckLevel::none) continue;

    const bool integer = is_integer(graph.operand(op.in.front()).dtype) || is_move(op.kind);
    const bool by_bits = level == CheckLevel::exact || integer;
    // The reference's own result of every operator is what later ones read, so that an error is told once, where it is
    // made. One that nobody reads, and that a bound is enough for, is not worked out twice.
    const bool read = std::any_of(graph.operators.begin(), graph.operators.end(), [&](const Operator& o) {
      return std::find(o.in.begin(), o.in.end(), op.out) != o.in.end();
    });
    ElementBytes& expected = whole[op.out.value];
    const auto regions = by_bits || read ? reduction_plans(program, op.id) : std::vector<RegionPlan>{};
    for (const RegionPlan& region : regions) {
      OperatorGraph one = graph;
      one.operators = {op};
      one.operators.front().id = OperatorId{std::size_t{0}};
      ReductionPlan plan = region.plan;
      plan.op = OperatorId{std::size_t{0}};
      for (SummationTree& t : plan.trees) t.op = plan.op;
      ElementBytes before = std::exchange(expected, {});
      auto evaluated = evaluate(one, {&plan, 1}, program.header.numerics.saturate, whole);
      if (!evaluated) return evaluated.diagnostics();
      if (before.empty()) continue;
      // Keep the columns of the regions before this one.
      const std::uint64_t cols = columns(out.shape);
      const std::size_t size = bytes_of(out.dtype);
      for (std::size_t row = 0; row * cols * size < expected.size(); ++row) {
        std::memcpy(before.data() + (row * cols + region.col_begin) * size,
                    expected.data() + (row * cols + region.col_begin) * size,
                    (region.col_end - region.col_begin) * size);
      }
      expected = std::move(before);
    }
    if (!got) continue;

    OutputCheck& check = c.outputs.back();
    const std::uint64_t cols = columns(out.shape);
    check.checked = level;
    if (by_bits) {
      check.checked = CheckLevel::exact;
      if (*got != expected) {
        const std::size_t size = bytes_of(out.dtype);
        std::uint64_t differing = 0;
        std::optional<std::uint64_t> first;
        double worst = 0;
        for (std::size_t i = 0; i * size < got->size() && i * size < expected.size(); ++i) {
          if (std::memcmp(got->data() + i * size, expected.data() + i * size, size) == 0) continue;
          const double has = element_as_double(out.dtype, *got, i), right = element_as_double(out.dtype, expected, i);
          if (std::isnan(has) && std::isnan(right)) continue;  // which of its patterns a NaN has is not stated
          ++differing;
          if (!first) first = i;
          worst = std::max(worst, std::fabs(has - right));
        }
        const std::uint64_t at = first.value_or(0);
        if (integer) check.max_abs_error = worst;
        if (differing != 0 || got->size() != expected.size()) {
          c.diagnostics
              .error(Code::RDU7015, out.name,
                     "{} of {} elements of '{}' differ from the reference; the first is ({}, {}): {} where {} is right",
                     differing, expected.size() / size, out.name, at / cols, at % cols,
                     element_as_double(out.dtype, *got, at), element_as_double(out.dtype, expected, at))
              .note(out.name, "the greatest difference is {}", worst);
        }
      } else if (integer) {
        check.max_abs_error = 0;
      }
    }
    if (integer) continue;
    std::uint64_t leaves = 1;
    for (const SummationTree& t : program.trees) leaves = std::max<std::uint64_t>(leaves, t.nodes.size());
    auto wide = evaluate_wide(graph, op.id, whole, leaves);
    if (!wide) return wide.diagnostics();
    const Compared result = against_wide(*wide, out.dtype, *got);
    check.max_abs_error = result.max_abs_error;
    if (result.beyond != 0) {
      c.diagnostics.error(
          Code::RDU7016, out.name,
          "{} of {} elements of '{}' lie outside the error bound; the worst is ({}, {}): {} where {} +- {} is right",
          result.beyond, wide->value.size(), out.name, result.worst / cols, result.worst % cols, result.worst_value,
          result.worst_wide, result.worst_bound);
    }
  }
  return c;
}

}  // namespace rdusim
