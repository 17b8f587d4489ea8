// What follows for the results of operators, and what their operands and attributes may be.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/workload/operator_traits.h"
#include "compiler/workload/read_workload.h"

namespace rdusim::operator_rules_test {

namespace {

using Shape = std::vector<std::int64_t>;

// A graph of one operator on external operands.
struct One {
  OperatorGraph graph;
  One(OperatorKind kind, const std::vector<Shape>& in, DType dtype, OperatorAttributes attributes = {}) {
    graph.name = "one";
    Operator op;
    op.id = OperatorId{std::size_t{0}};
    op.name = "op";
    op.kind = kind;
    op.attributes = std::move(attributes);
    for (const Shape& shape : in) op.in.push_back(add(TensorRole::input, shape, dtype));
    op.out = add(TensorRole::output, {1}, result_dtypes(kind, dtype).front());
    graph.operators.push_back(op);
  }
  OperandId add(TensorRole role, const Shape& shape, DType dtype) {
    Operand o;
    o.id = OperandId{graph.operands.size()};
    o.name = "t" + std::to_string(graph.operands.size());
    o.role = role;
    o.shape = shape;
    o.dtype = dtype;
    if (role == TensorRole::input) o.fill = ExternalFill{};
    graph.operands.push_back(o);
    return o.id;
  }
  Operand& result() { return graph.operands.back(); }
  std::vector<int> codes(const Shape& out) {
    result().shape = out;
    std::vector<int> list;
    const Diagnostics found = check_graph(graph);
    for (const Diagnostic& d : found.list()) list.push_back(static_cast<int>(d.code));
    return list;
  }
};
using Codes = std::vector<int>;

OperatorAttributes heads(std::uint32_t of_queries, std::uint32_t of_keys, bool causal = false) {
  OperatorAttributes a;
  a.heads = of_queries;
  a.kv_heads = of_keys;
  a.causal = causal;
  return a;
}

}  // namespace

TEST_CASE("every kind has a name of its own, and says what it takes") {
  std::set<std::string_view> names;
  for (const OperatorKind kind : all_operator_kinds) {
    CHECK(!name_of(kind).empty());
    CHECK(names.insert(name_of(kind)).second);
    const OperatorTraits traits = traits_of(kind);
    CHECK(!traits.form.empty());
    CHECK(traits.least_operands <= traits.most_operands);
  }
}

TEST_CASE("a kind has as many operands as it takes") {
  for (const OperatorKind kind : all_operator_kinds) {
    const OperatorTraits traits = traits_of(kind);
    for (const std::uint32_t n : {traits.least_operands - 1, traits.most_operands + 1}) {
      One one(kind, std::vector<Shape>(n, {4, 4}), DType::fp32);
      CAPTURE(name_of(kind));
      CHECK(one.codes({4, 4}) == Codes{1030});
    }
  }
}

TEST_CASE("a kind takes integers where its traits say so, and gives what its traits say") {
  for (const OperatorKind kind : all_operator_kinds) {
    const OperatorTraits traits = traits_of(kind);
    if (traits.most_operands != 1 || takes(kind, Attribute::axes) || takes(kind, Attribute::begin)) continue;
    CAPTURE(name_of(kind));
    for (const DType in : all_dtypes) {
      for (const DType out : all_dtypes) {
        One one(kind, {{3, 5}}, in);
        one.result().dtype = out;
        const bool reduces = kind >= OperatorKind::reduce_sum && kind <= OperatorKind::reduce_min;
        const auto allowed = result_dtypes(kind, in);
        const bool sound =
            (traits.integers || !is_integer(in)) && std::find(allowed.begin(), allowed.end(), out) != allowed.end();
        CHECK((one.codes(reduces ? Shape{3, 1} : Shape{3, 5}) == (sound ? Codes{} : Codes{1012})));
      }
    }
  }
}

TEST_CASE("a matmul's shape follows from rows, columns and stacks") {
  OperatorAttributes transposed;
  transposed.transposed = true;
  CHECK(One(OperatorKind::matmul, {{3, 5}, {5, 7}}, DType::int8).codes({3, 7}).empty());
  CHECK(One(OperatorKind::matmul, {{3, 5}, {7, 5}}, DType::int8, transposed).codes({3, 7}).empty());
  CHECK(One(OperatorKind::matmul, {{3, 5}, {5, 7}}, DType::int8, transposed).codes({3, 7}) == Codes{1009});
  CHECK(One(OperatorKind::matmul, {{2, 6, 3, 5}, {5, 7}}, DType::int8).codes({2, 6, 3, 7}).empty());
  CHECK(One(OperatorKind::matmul, {{2, 6, 3, 5}, {2, 6, 5, 7}}, DType::int8).codes({2, 6, 3, 7}).empty());
  CHECK(One(OperatorKind::matmul, {{2, 6, 3, 5}, {2, 3, 5, 7}}, DType::int8).codes({2, 6, 3, 7}).empty());
  CHECK(One(OperatorKind::matmul, {{2, 6, 3, 5}, {1, 1, 5, 7}}, DType::int8).codes({2, 6, 3, 7}).empty());
  // Matrix (i, j) of the first would want (0, j): not one that serves consecutive ones.
  CHECK(One(OperatorKind::matmul, {{2, 6, 3, 5}, {1, 6, 5, 7}}, DType::int8).codes({2, 6, 3, 7}) == Codes{1009});
  CHECK(One(OperatorKind::matmul, {{2, 6, 3, 5}, {2, 4, 5, 7}}, DType::int8).codes({2, 6, 3, 7}) == Codes{1009});
  CHECK(One(OperatorKind::matmul, {{6, 3, 5}, {2, 6, 5, 7}}, DType::int8).codes({2, 6, 3, 7}) == Codes{1009});
}

TEST_CASE("attention and rotary embeddings hold heads and widths together") {
  const auto attention = [](Shape q, Shape k, OperatorAttributes a) {
    return One(OperatorKind::attention, {q, k, k}, DType::bf16, a).codes(q);
  };
  CHECK(attention({4, 48}, {9, 24}, heads(6, 3)).empty());
  CHECK(attention({2, 4, 48}, {2, 9, 24}, heads(6, 3)).empty());
  CHECK(attention({4, 48}, {9, 24}, heads(6, 2)) == Codes{1009});
  CHECK(attention({4, 48}, {9, 32}, heads(6, 4)) == Codes{1034});
  CHECK(attention({4, 48}, {9, 48}, heads(7, 7)) == Codes{1034});
  CHECK(attention({4, 48}, {4, 48}, heads(6, 6, true)).empty());
  CHECK(attention({4, 48}, {3, 48}, heads(6, 6, true)) == Codes{1036});
  CHECK(attention({2, 4, 48}, {3, 4, 48}, heads(6, 6)) == Codes{1009});
  CHECK(attention({4, 48}, {48}, heads(6, 6)) == Codes{1031});
  CHECK(One(OperatorKind::attention, {{4, 48}, {9, 48}, {8, 48}}, DType::bf16, heads(6, 6)).codes({4, 48}) ==
        Codes{1009});
  const auto rotary = [](Shape x, Shape c, std::uint32_t n) {
    return One(OperatorKind::rotary, {x, c, c}, DType::bf16, heads(n, 0)).codes(x);
  };
  CHECK(rotary({4, 48}, {4, 4}, 6).empty());
  CHECK(rotary({2, 4, 48}, {4, 4}, 6).empty());
  CHECK(rotary({2, 4, 48}, {2, 4, 4}, 6).empty());
  CHECK(rotary({4, 48}, {4, 8}, 6) == Codes{1009});
  CHECK(rotary({4, 45}, {4, 4}, 5) == Codes{1034});
  CHECK(rotary({4, 48}, {4, 4}, 5) == Codes{1034});
}

TEST_CASE("moves say where things go") {
  OperatorAttributes a;
  a.axes = {2, 0, 1};
  CHECK(One(OperatorKind::transpose, {{3, 5, 7}}, DType::int64, a).codes({7, 3, 5}).empty());
  a.axes = {2, 0, 2};
  CHECK(One(OperatorKind::transpose, {{3, 5, 7}}, DType::int64, a).codes({7, 3, 5}) == Codes{1033});
  a.axes = {1};
  CHECK(One(OperatorKind::concat, {{3, 5}, {3, 2}, {3, 1}}, DType::int64, a).codes({3, 8}).empty());
  CHECK(One(OperatorKind::concat, {{3, 5}, {4, 5}}, DType::int64, a).codes({7, 5}) == Codes{1009});
  CHECK(One(OperatorKind::concat, {{3, 5}, {3}}, DType::int64, a).codes({3, 6}) == Codes{1009});
  a.axes = {-1};
  CHECK(One(OperatorKind::concat, {{3, 5}, {3, 2}}, DType::int64, a).codes({3, 7}) == Codes{1033});
  const std::int64_t half = std::int64_t{1} << 62;
  a.axes = {0};
  CHECK(One(OperatorKind::concat, {{half}, {half}}, DType::int8, a).codes({1}) == Codes{1008});
  CHECK(One(OperatorKind::reshape, {{3, 4}}, DType::int8).codes({2, 1, 6}).empty());
  CHECK(One(OperatorKind::reshape, {{3, 4}}, DType::int8).codes({13}) == Codes{1009});
  OperatorAttributes s;
  s.begin = {1, 0};
  s.end = {3, 4};
  CHECK(One(OperatorKind::slice, {{3, 4}}, DType::int8, s).codes({2, 4}).empty());
  CHECK(One(OperatorKind::slice, {{2, 4}}, DType::int8, s).codes({2, 4}) == Codes{1033});
  CHECK(One(OperatorKind::slice, {{3, 4, 5}}, DType::int8, s).codes({2, 4, 5}) == Codes{1033});
  s.begin = {3, 0};
  CHECK(One(OperatorKind::slice, {{3, 4}}, DType::int8, s).codes({1, 4}) == Codes{1033});
}

TEST_CASE("indices that are known lie in their table") {
  const auto with = [](Fill fill) {
    One one(OperatorKind::gather, {{5, 8}, {3}}, DType::int32);
    one.graph.operands[1].fill = std::move(fill);
    return one.codes({3, 8});
  };
  CHECK(with(ExternalFill{}).empty());
  CHECK(with(ZeroFill{}).empty());
  CHECK(with(ConstantFill{4, 4}).empty());
  CHECK(with(ConstantFill{5, 5}) == Codes{1035});
  CHECK(with(ValuesFill{{0, 4, 2}, {}}).empty());
  CHECK(with(ValuesFill{{0, -1, 2}, {}}) == Codes{1035});
  CHECK(with(PatternFill{97, -2}).empty());  // 2, 3, 4
  CHECK(with(PatternFill{97, -3}) == Codes{1035});
  CHECK(with(PatternFill{97, 1}) == Codes{1035});
  CHECK(with(RandomFill{1, 0, 4}).empty());
  CHECK(with(RandomFill{1, 0, 5}) == Codes{1035});
}

TEST_CASE("attributes of another kind and out of range are refused in any graph") {
  OperatorAttributes a;
  a.causal = true;
  CHECK(One(OperatorKind::softmax, {{3, 5}}, DType::fp32, a).codes({3, 5}) == Codes{1032});
  OperatorAttributes b;
  CHECK(One(OperatorKind::rms_norm, {{3, 5}, {5}}, DType::fp32, b).codes({3, 5}) == Codes{1033});
  b.epsilon = 1e-60;  // nothing as fp32
  CHECK(One(OperatorKind::rms_norm, {{3, 5}, {5}}, DType::fp32, b).codes({3, 5}) == Codes{1033});
  b.epsilon = 1e-6;
  CHECK(One(OperatorKind::rms_norm, {{3, 5}, {5}}, DType::fp32, b).codes({3, 5}).empty());
  CHECK(One(OperatorKind::rms_norm, {{3, 5}, {1, 1, 5}}, DType::fp32, b).codes({3, 5}).empty());
  OperatorAttributes c = heads(2, 2);
  c.window = -1;
  CHECK(One(OperatorKind::attention, {{3, 4}, {3, 4}, {3, 4}}, DType::fp32, c).codes({3, 4}) == Codes{1033});
  c.window = 0;
  c.scale = std::nan("");
  CHECK(One(OperatorKind::attention, {{3, 4}, {3, 4}, {3, 4}}, DType::fp32, c).codes({3, 4}) == Codes{1033});
}

TEST_CASE("the reader writes out what an attention leaves open") {
  const auto read = [](const std::string& extra) {
    return parse_workload(R"(name = "a"
[tensors]
q = { role = "input", shape = [5, 64], dtype = "bf16", fill = "external" }
k = { role = "input", shape = [9, 64], dtype = "bf16", fill = "external" }
y = { role = "output" }
[[ops]]
kind = "attention"
in = ["q", "k", "k"]
out = "y"
heads = 4
)" + extra,
                          "w.toml", ".");
  };
  const auto open = read("");
  REQUIRE(open.ok());
  CHECK(open->operators[0].attributes.kv_heads == 4);
  CHECK(open->operators[0].attributes.scale == 0.25);
  const auto given = read("scale = 2\nwindow = 3\ncausal = true\n");
  REQUIRE(given.ok());
  CHECK(given->operators[0].attributes.scale == 2);
  CHECK(given->operators[0].attributes.window == 3);
  CHECK(given->operators[0].attributes.causal);
  CHECK(!read("heads = 0").ok());
  CHECK(!read("scale = \"small\"").ok());
  CHECK(read("window = -1").diagnostics().contains(Code::RDU1033));
}

TEST_CASE("the nearest kind is suggested for one that there is not") {
  const auto graph = parse_workload(R"(name = "a"
tensors.x = { role = "input", shape = [5, 64], dtype = "bf16", fill = "external" }
tensors.y = { role = "output" }
[[ops]]
kind = "sofmax"
in = ["x"]
out = "y"
)",
                                    "w.toml", ".");
  REQUIRE(!graph.ok());
  CHECK(graph.diagnostics().to_text().find("did you mean 'softmax'?") != std::string::npos);
}

TEST_CASE("point-wise shapes are the greatest of each extent, in either order") {
  CHECK(rc::check("broadcast", [] {
    const auto rank = *rc::gen::inRange<std::size_t>(1, 5);
    const Shape whole = *rc::gen::container<Shape>(rank, rc::gen::inRange<std::int64_t>(1, 6));
    Shape sides[2];
    for (Shape& side : sides) {
      side.assign(whole.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(rank)), whole.end());
      for (std::int64_t& extent : side)
        if (*rc::gen::inRange(0, 3) == 0) extent = 1;
    }
    Shape expected(std::max(sides[0].size(), sides[1].size()), 1);
    for (const Shape& side : sides)
      for (std::size_t i = 1; i <= side.size(); ++i)
        expected[expected.size() - i] = std::max(expected[expected.size() - i], side[side.size() - i]);
    RC_ASSERT(One(OperatorKind::add, {sides[0], sides[1]}, DType::bf16).codes(expected).empty());
    RC_ASSERT(One(OperatorKind::add, {sides[1], sides[0]}, DType::bf16).codes(expected).empty());
    // An extent that is neither 1 nor the other's.
    Shape wrong = sides[0];
    const auto at = *rc::gen::inRange<std::size_t>(0, wrong.size());
    wrong[at] = 7;  // against the given result where the other side is 1 there
    const auto codes = One(OperatorKind::add, {wrong, sides[1]}, DType::bf16).codes(expected);
    RC_ASSERT((codes == Codes{1009}));
  }));
}

TEST_CASE("a transpose undone gives the shape it began with, and slices joined again too") {
  CHECK(rc::check("moves", [] {
    const auto rank = *rc::gen::inRange<std::size_t>(1, 6);
    const Shape shape = *rc::gen::container<Shape>(rank, rc::gen::inRange<std::int64_t>(1, 9));
    OperatorAttributes forth, back;
    for (std::size_t i = 0; i < rank; ++i) forth.axes.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = rank; i > 1; --i)
      std::swap(forth.axes[i - 1], forth.axes[*rc::gen::inRange<std::size_t>(0, i)]);
    back.axes.resize(rank);
    Shape moved;
    for (std::size_t i = 0; i < rank; ++i) {
      back.axes[static_cast<std::size_t>(forth.axes[i])] = static_cast<std::int64_t>(i);
      moved.push_back(shape[static_cast<std::size_t>(forth.axes[i])]);
    }
    RC_ASSERT(One(OperatorKind::transpose, {shape}, DType::int8, forth).codes(moved).empty());
    RC_ASSERT(One(OperatorKind::transpose, {moved}, DType::int8, back).codes(shape).empty());

    const auto axis = *rc::gen::inRange<std::size_t>(0, rank);
    const auto cut = *rc::gen::inRange<std::int64_t>(0, shape[axis]);
    OperatorAttributes join;
    join.axes = {static_cast<std::int64_t>(axis)};
    std::vector<Shape> parts;
    for (const auto& [from, to] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, shape[axis]}}) {
      if (from == to) continue;
      OperatorAttributes s;
      s.begin.assign(rank, 0);
      s.end = shape;
      s.begin[axis] = from;
      s.end[axis] = to;
      Shape part = shape;
      part[axis] = to - from;
      RC_ASSERT(One(OperatorKind::slice, {shape}, DType::int8, s).codes(part).empty());
      parts.push_back(part);
    }
    RC_ASSERT(One(OperatorKind::concat, parts, DType::int8, join).codes(shape).empty());
  }));
}

}  // namespace rdusim::operator_rules_test
