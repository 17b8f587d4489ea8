// Small graphs of one operator with given values, for the reference's tests.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compiler/workload/operator_traits.h"
#include "compiler/workload/read_workload.h"
#include "sim/reference/reference.h"

namespace rdusim::test {

using Shape = std::vector<std::int64_t>;

// A float operand's values, converted to its dtype by a matmul with one (which the other tests hold to its bits).
struct Given {
  Shape shape;
  std::vector<float> values;
};

class OneOperator {
 public:
  OneOperator(OperatorKind kind, OperatorAttributes attributes = {}) {
    graph_.name = "one";
    op_.id = OperatorId(0);
    op_.name = "op";
    op_.kind = kind;
    op_.attributes = std::move(attributes);
  }

  template <class T>
  OneOperator& with(Shape shape, DType dtype, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    op_.in.push_back(add(TensorRole::input, std::move(shape), dtype));
    bytes_.push_back(std::move(bytes));
    return *this;
  }
  // Floats, rounded to `dtype`.
  OneOperator& reals(Shape shape, DType dtype, const std::vector<float>& values) {
    if (dtype == DType::fp32) return with(std::move(shape), dtype, values);  // a sum from +0 would lose -0
    std::vector<std::byte> a(values.size() * sizeof(float)), one(sizeof(float));
    std::memcpy(a.data(), values.data(), a.size());
    const float f = 1;
    std::memcpy(one.data(), &f, sizeof(f));
    const auto rounded =
        evaluate_matmul({static_cast<std::int64_t>(values.size()), 1, 1, DType::fp32, dtype, true, a, one}, {});
    REQUIRE(rounded.ok());
    op_.in.push_back(add(TensorRole::input, std::move(shape), dtype));
    bytes_.push_back(*rounded);
    return *this;
  }

  // The bytes of the result; everything is checked on the way.
  const ElementBytes& run(Shape out, DType dtype, bool saturate = true) {
    op_.out = add(TensorRole::output, std::move(out), dtype);
    bytes_.emplace_back();
    graph_.operators = {op_};
    INFO(check_graph(graph_).to_text());
    REQUIRE(check_graph(graph_).empty());
    const auto done = evaluate(graph_, {}, saturate, bytes_);
    INFO(done.diagnostics().to_text());
    REQUIRE(done.ok());
    return bytes_.back();
  }
  WideMatrix wide() const {
    auto w = evaluate_wide(graph_, OperatorId(0), bytes_);
    REQUIRE(w.ok());
    return std::move(w).value();
  }
  std::vector<double> operand(std::size_t i) const {
    const Operand& o = graph_.operands[i];
    std::vector<double> out(bytes_[i].size() / bytes_of(o.dtype));
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = element_as_double(o.dtype, bytes_[i], e);
    return out;
  }
  std::vector<double> result() const { return operand(bytes_.size() - 1); }
  OperatorGraph& graph() { return graph_; }
  OperandBytes& bytes() { return bytes_; }

 private:
  OperandId add(TensorRole role, Shape shape, DType dtype) {
    Operand o;
    o.id = OperandId(graph_.operands.size());
    o.name = "t" + std::to_string(graph_.operands.size());
    o.role = role;
    o.shape = std::move(shape);
    o.dtype = dtype;
    if (role == TensorRole::input) o.fill = ExternalFill{};
    graph_.operands.push_back(o);
    return o.id;
  }
  OperatorGraph graph_;
  Operator op_;
  OperandBytes bytes_;
};

// Values between low and high that follow no pattern.
inline std::vector<float> spread(std::size_t n, float low, float high, std::uint32_t seed = 1) {
  std::vector<float> out(n);
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (float& v : out) {
    state = state * 1664525u + 1013904223u;
    v = low + (high - low) * static_cast<float>(state >> 8) / 16777216.0f;
  }
  return out;
}

inline std::size_t count_of(const Shape& shape) {
  std::size_t n = 1;
  for (const std::int64_t e : shape) n *= static_cast<std::size_t>(e);
  return n;
}

}  // namespace rdusim::test
