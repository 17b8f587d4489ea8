#include "sim/reference/reference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace rdusim::reference_test {

namespace {

template <class T>
std::vector<std::byte> bytes_from(const std::vector<T>& v) {
  std::vector<std::byte> out(v.size() * sizeof(T));
  std::memcpy(out.data(), v.data(), out.size());
  return out;
}
template <class T>
std::vector<T> elements(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

SummationNode leaf(std::int64_t begin, std::int64_t end) {
  return {true, ChipId(0), begin, end, 0, 0};
}
SummationNode sum(std::uint32_t left, std::uint32_t right) {
  return {false, ChipId(0), 0, 0, left, right};
}

SummationTree tree(std::vector<SummationNode> nodes, std::uint32_t chunk = 0, std::uint32_t chunks = 1) {
  SummationTree t;
  t.chunk = chunk;
  t.chunks = chunks;
  t.nodes = std::move(nodes);
  return t;
}

// Values whose sum depends on the order: (2^24 + 1) + 1 loses both, 2^24 + (1 + 1) keeps them.
struct OrderSensitive {
  std::vector<std::byte> a = bytes_from(std::vector<float>{16777216.0f, 1.0f, 1.0f, 1.0f});
  std::vector<std::byte> b = bytes_from(std::vector<float>{1.0f, 1.0f, 1.0f, 1.0f});
  MatmulProblem problem;
  OrderSensitive() {
    problem.m = problem.n = 1;
    problem.k = 4;
    problem.operand = problem.result = DType::fp32;
    problem.a = a;
    problem.b = b;
  }
  float by(std::vector<SummationTree> trees) {
    const auto r = evaluate_matmul(problem, {OperatorId(0), std::move(trees), {}});
    REQUIRE(r.ok());
    return elements<float>(*r)[0];
  }
};

}  // namespace

TEST_CASE("an integer matmul equals the schoolbook sum, whatever the tree") {
  const std::int64_t m = 5, n = 7, k = 200;
  std::vector<std::int8_t> a(m * k), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(i * 7 % 251 - 125);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int8_t>(i * 11 % 241 - 120);
  const auto ab = bytes_from(a), bb = bytes_from(b);
  MatmulProblem p{m, n, k, DType::int8, DType::int32, true, ab, bb};
  std::vector<std::int32_t> expected(m * n, 0);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t x = 0; x < k; ++x) expected[i * n + j] += a[i * k + x] * b[x * n + j];
  CHECK(elements<std::int32_t>(*evaluate_matmul(p, {})) == expected);
  const auto split = evaluate_matmul(
      p, {OperatorId(0), {tree({leaf(0, 64), leaf(64, 200), sum(1, 0)})}, {{0, 0, 5, 4}, {0, 4, 5, 3}}});
  CHECK(elements<std::int32_t>(*split) == expected);
}

TEST_CASE("a float sum follows its tree") {
  OrderSensitive s;
  CHECK(s.by({}) == 16777216.0f);
  CHECK(s.by({tree({leaf(0, 1), leaf(1, 4), sum(0, 1)})}) == 16777220.0f);  // 2^24 + 3 is halfway, to even
  CHECK(s.by({tree({leaf(0, 2), leaf(2, 4), sum(0, 1)})}) == 16777218.0f);
}

TEST_CASE("a leaf of several lanes adds the sums of products side by side") {
  OrderSensitive s;
  SummationTree lanes = tree({leaf(0, 4)});
  for (const auto& [n, expected] :
       {std::pair{1u, 16777216.0f}, {2u, 16777218.0f}, {4u, 16777218.0f}, {8u, 16777218.0f}}) {
    lanes.lanes = n;
    CHECK(s.by({lanes}) == expected);
  }
  // Three products over four lanes: the two neighbours first, then the third.
  s.a = bytes_from(std::vector<float>{1.0f, 16777216.0f, 1.0f});
  s.b = bytes_from(std::vector<float>{1.0f, 1.0f, 1.0f});
  s.problem.k = 3;
  s.problem.a = s.a, s.problem.b = s.b;
  SummationTree three = tree({leaf(0, 3)});
  three.lanes = 4;
  CHECK(s.by({three}) == 16777216.0f);
}

TEST_CASE("each chunk of a page has its own tree") {
  const std::vector<float> a = {16777216.0f, 1.0f, 1.0f}, b(3 * 5, 1.0f);
  const auto ab = bytes_from(a), bb = bytes_from(b);
  MatmulProblem p{1, 5, 3, DType::fp32, DType::fp32, true, ab, bb};
  const auto pairs = tree({leaf(0, 1), leaf(1, 3), sum(0, 1)}, 1, 2);
  const auto one = tree({leaf(0, 3)}, 0, 2);
  const auto whole = evaluate_matmul(p, {OperatorId(0), {pairs, one}, {}});
  REQUIRE(whole.ok());
  CHECK(elements<float>(*whole) == std::vector<float>{16777216.0f, 16777216.0f, 16777218.0f, 16777218.0f, 16777218.0f});
  const auto pages = evaluate_matmul(p, {OperatorId(0), {one, pairs}, {{0, 3, 1, 2}, {0, 0, 1, 3}}});
  REQUIRE(pages.ok());
  CHECK(elements<float>(*pages) == std::vector<float>{16777216.0f, 16777218.0f, 16777218.0f, 16777216.0f, 16777218.0f});
}

TEST_CASE("trees and pages that do not fit are refused") {
  OrderSensitive s;
  const auto code_of = [&](ReductionPlan plan, Code code) {
    const auto r = evaluate_matmul(s.problem, plan);
    return !r.ok() && r.diagnostics().contains(code);
  };
  CHECK(code_of({OperatorId(0), {tree({leaf(0, 3)})}, {}}, Code::RDU3032));
  CHECK(code_of({OperatorId(0), {tree({leaf(0, 2), leaf(1, 4), sum(0, 1)})}, {}}, Code::RDU3032));
  CHECK(code_of({OperatorId(0), {tree({leaf(0, 4), sum(0, 0)})}, {}}, Code::RDU3032));
  CHECK(code_of({OperatorId(0), {tree({leaf(0, 2), leaf(2, 4)})}, {}}, Code::RDU3032));
  CHECK(code_of({OperatorId(0), {tree({leaf(0, 4)}, 0, 2)}, {}}, Code::RDU3032));
  CHECK(code_of({OperatorId(0), {}, {{0, 0, 1, 2}}}, Code::RDU3003));
  CHECK(code_of({OperatorId(0), {}, {{0, 0, 1, 1}, {0, 0, 1, 1}}}, Code::RDU3003));
  CHECK(code_of({OperatorId(0), {}, {{0, 0, 0, 1}}}, Code::RDU3003));
  s.problem.k = 5;
  CHECK(code_of({}, Code::RDU3003));
}

TEST_CASE("results are rounded once to their dtype: nearest even, saturating where asked") {
  const auto one = bytes_from(std::vector<float>{1.0f});
  const auto convert = [&](float value, DType result, bool saturate) {
    const auto a = bytes_from(std::vector<float>{value});
    const auto r = evaluate_matmul({1, 1, 1, DType::fp32, result, saturate, a, one}, {});
    REQUIRE(r.ok());
    return element_as_double(result, *r, 0);
  };
  CHECK(convert(1.00390625f, DType::bf16, true) == 1.0);       // 1 + 2^-8: halfway, to even
  CHECK(convert(1.01171875f, DType::bf16, true) == 1.015625);  // 1 + 3 * 2^-8: halfway, to even
  CHECK(convert(3.4e38f, DType::bf16, true) == std::numeric_limits<double>::infinity());
  CHECK(convert(17.0f, DType::fp8_e4m3, true) == 16.0);
  CHECK(convert(19.0f, DType::fp8_e4m3, true) == 20.0);
  CHECK(convert(1000.0f, DType::fp8_e4m3, true) == 448.0);
  CHECK(std::isnan(convert(1000.0f, DType::fp8_e4m3, false)));
  CHECK(convert(0x1p-10f, DType::fp8_e4m3, true) == 0.0);  // half of the least value, to even
  CHECK(convert(0x1.8p-10f, DType::fp8_e4m3, true) == 0x1p-9);
  CHECK(convert(-70000.0f, DType::fp8_e5m2, true) == -57344.0);
  CHECK(std::isinf(convert(-70000.0f, DType::fp8_e5m2, false)));
}

TEST_CASE("a chain of operators reads what the one before wrote") {
  OperatorGraph g;
  const auto operand = [&](const char* name, std::vector<std::int64_t> shape, DType t) {
    Operand o;
    o.id = OperandId(g.operands.size());
    o.name = name;
    o.shape = std::move(shape);
    o.dtype = t;
    g.operands.push_back(o);
    return o.id;
  };
  const OperandId x = operand("x", {2, 3}, DType::int32), w = operand("w", {3, 2}, DType::int32),
                  y = operand("y", {2, 2}, DType::int32), v = operand("v", {2, 1}, DType::int32),
                  z = operand("z", {2, 1}, DType::int32);
  g.operators = {{OperatorId(0), "first", OperatorKind::matmul, {x, w}, y, {}, ""},
                 {OperatorId(1), "second", OperatorKind::matmul, {y, v}, z, {}, ""}};
  OperandBytes bytes(5);
  bytes[0] = bytes_from(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  bytes[1] = bytes_from(std::vector<std::int32_t>{1, 0, 0, 1, 1, 1});
  bytes[3] = bytes_from(std::vector<std::int32_t>{10, 1});
  REQUIRE(evaluate(g, {}, true, bytes).ok());
  CHECK(elements<std::int32_t>(bytes[2]) == std::vector<std::int32_t>{4, 5, 10, 11});
  CHECK(elements<std::int32_t>(bytes[4]) == std::vector<std::int32_t>{45, 111});
  CHECK(evaluate_wide(g, OperatorId(1), bytes)->integer == std::vector<std::int64_t>{45, 111});
}

TEST_CASE("integers wrap around in their accumulator, and the wide sum does not") {
  const auto a = bytes_from(std::vector<std::int32_t>{2147483647, 1}), b = bytes_from(std::vector<std::int32_t>{1, 1});
  const MatmulProblem p{1, 1, 2, DType::int32, DType::int32, true, a, b};
  CHECK(elements<std::int32_t>(*evaluate_matmul(p, {}))[0] == std::numeric_limits<std::int32_t>::min());
  CHECK(evaluate_matmul_wide(p)->integer[0] == 2147483648);
}

TEST_CASE("the wide sum of floats comes with its error bound") {
  OrderSensitive s;
  const auto wide = evaluate_matmul_wide(s.problem);
  REQUIRE(wide.ok());
  CHECK(wide->value[0] == 16777219.0);
  CHECK(wide->error[0] >= 6 * 0x1p-24 * 16777219.0);  // gamma(4 products, 1 leaf, 1 conversion)
  CHECK(wide->error[0] <= 6.1 * 0x1p-24 * 16777219.0);
}

}  // namespace rdusim::reference_test
