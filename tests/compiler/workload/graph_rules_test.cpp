#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "compiler/workload/read_workload.h"

namespace rdusim::graph_rules_test {

namespace {

Operand operand(OperatorGraph& graph, const std::string& name, TensorRole role, std::vector<std::int64_t> shape,
                DType dtype) {
  Operand out;
  out.id = OperandId{graph.operands.size()};
  out.name = name;
  out.role = role;
  out.shape = std::move(shape);
  out.dtype = dtype;
  out.where = name;
  graph.operands.push_back(out);
  return out;
}

void matmul(OperatorGraph& graph, std::size_t a, std::size_t b, std::size_t out) {
  Operator op;
  op.id = OperatorId{graph.operators.size()};
  op.name = "matmul" + std::to_string(graph.operators.size());
  op.in = {OperandId{a}, OperandId{b}};
  op.out = OperandId{out};
  op.where = op.name;
  graph.operators.push_back(op);
}

// x(4 x 6) w(6 x 8) -> h(4 x 8); h v(8 x 2) -> y(4 x 2)
OperatorGraph chain() {
  OperatorGraph graph;
  graph.name = "chain";
  operand(graph, "x", TensorRole::input, {4, 6}, DType::int32);
  operand(graph, "w", TensorRole::weight, {6, 8}, DType::int32);
  operand(graph, "h", TensorRole::intermediate, {4, 8}, DType::int32);
  operand(graph, "v", TensorRole::weight, {8, 2}, DType::int32);
  operand(graph, "y", TensorRole::output, {4, 2}, DType::int32);
  matmul(graph, 0, 1, 2);
  matmul(graph, 2, 3, 4);
  return graph;
}

std::vector<int> codes(const OperatorGraph& graph) {
  std::vector<int> out;
  const Diagnostics found = check_graph(graph);
  for (const Diagnostic& d : found.list()) out.push_back(static_cast<int>(d.code));
  return out;
}

using Codes = std::vector<int>;

}  // namespace

TEST_CASE("a sound graph keeps every rule") {
  CHECK(check_graph(chain()).to_text() == "");
}

TEST_CASE("each rule of a graph is broken by one change") {
  OperatorGraph graph = chain();
  SUBCASE("an extent of zero") {
    graph.operands[1].shape = {6, 0};
    CHECK(codes(graph) == Codes{1008});
  }
  SUBCASE("no axes") {
    graph.operands[0].shape = {};
    CHECK(codes(graph) == Codes{1008});
  }
  SUBCASE("bytes that 64 bits do not count") {
    graph.operands[0].shape = {std::int64_t{1} << 31, std::int64_t{1} << 31};
    CHECK(codes(graph) == Codes{1008});
  }
  SUBCASE("multiply-accumulates that 64 bits do not count") {
    graph.operands[0].shape = {1 << 30, 1 << 30};
    graph.operands[1].shape = {1 << 30, 8};
    graph.operands[2].shape = {1 << 30, 8};
    graph.operands[4].shape = {1 << 30, 2};
    CHECK(codes(graph) == Codes{1008});
  }
  SUBCASE("contractions that disagree") {
    graph.operands[1].shape = {5, 8};
    CHECK(codes(graph) == Codes{1009});
  }
  SUBCASE("a result of another shape") {
    graph.operands[4].shape = {2, 4};
    CHECK(codes(graph) == Codes{1009});
  }
  SUBCASE("an operand that is not there") {
    graph.operators[1].in[1] = OperandId{5};
    CHECK(codes(graph) == Codes{1010});
  }
  SUBCASE("a row where a matrix is asked for") {
    graph.operands[3].shape = {8};
    CHECK(codes(graph) == Codes{1031});
  }
  SUBCASE("one operand") {
    graph.operators[1].in = {OperandId{2}};
    CHECK(codes(graph) == Codes{1030});
  }
  SUBCASE("operands of two dtypes") {
    graph.operands[3].dtype = DType::int64;
    CHECK(codes(graph) == Codes{1012});
  }
  SUBCASE("a result of a dtype that the operator does not give") {
    graph.operands[4].dtype = DType::int8;
    CHECK(codes(graph) == Codes{1012});
  }
  SUBCASE("a tensor written twice") {
    matmul(graph, 2, 3, 4);
    CHECK(codes(graph) == Codes{1013});
  }
  SUBCASE("a weight that is written") {
    graph.operands[2].role = TensorRole::weight;
    CHECK(codes(graph) == Codes{1013});
  }
  SUBCASE("an intermediate that nothing writes") {
    operand(graph, "z", TensorRole::intermediate, {4, 2}, DType::int32);
    CHECK(codes(graph) == Codes{1014});
  }
  SUBCASE("an operator that waits for itself") {
    graph.operands[0].role = TensorRole::intermediate;
    graph.operands[1].shape = {6, 6};
    graph.operands[2].shape = {4, 6};
    graph.operators[0].out = OperandId{0};
    graph.operators[1].in = {OperandId{0}, OperandId{3}};
    graph.operands[3].shape = {6, 2};
    graph.operands.erase(graph.operands.begin() + 2);
    for (std::size_t i = 0; i < graph.operands.size(); ++i) graph.operands[i].id = OperandId{i};
    graph.operators[1].in = {OperandId{0}, OperandId{2}};
    graph.operators[1].out = OperandId{3};
    CHECK(codes(graph) == Codes{1015});
  }
  SUBCASE("operators out of order") {
    std::swap(graph.operators[0], graph.operators[1]);
    CHECK(codes(graph) == Codes{1015});
  }
  SUBCASE("no operator") {
    graph.operators.clear();
    CHECK(codes(graph) == Codes{1016});
  }
  SUBCASE("no output") {
    graph.operands[4].role = TensorRole::intermediate;
    CHECK(codes(graph) == Codes{1016});
  }
  SUBCASE("a fill of a tensor that an operator writes") {
    graph.operands[2].fill = ConstantFill{0, 1};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("too few values") {
    graph.operands[0].fill = ValuesFill{{1, 2, 3}, {}};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("values of another kind") {
    graph.operands[0].fill = ValuesFill{{}, std::vector<double>(24, 1.0)};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("a modulus below one") {
    graph.operands[0].fill = PatternFill{0, 0};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("a range that is none") {
    graph.operands[0].fill = RandomFill{1, 2, 1};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("a file without a hash") {
    graph.operands[0].fill = FileFill{"x.npy", "", 1000, "abc", 0};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("a file that ends before the tensor does") {
    graph.operands[0].fill = FileFill{"x.npy", "", 128 + 95, std::string(64, 'a'), 128};
    CHECK(codes(graph) == Codes{1022});
    graph.operands[0].fill = FileFill{"x.npy", "", 128 + 96, std::string(64, 'a'), 128};
    CHECK(codes(graph).empty());
    graph.operands[0].fill = FileFill{"x.npy", "", 128, std::string(64, 'a'), 200};
    CHECK(codes(graph) == Codes{1022});
  }
  SUBCASE("a file of which steps give another number of elements, or go beyond its end") {
    const std::int64_t count = *element_count(graph.operands[0].shape);
    const auto size = static_cast<std::uint64_t>(2 * count - 1) * bytes_of(graph.operands[0].dtype);
    graph.operands[0].fill = FileFill{"x.npy", "", size, std::string(64, 'a'), 0, {count}, {2}};
    CHECK(codes(graph).empty());
    graph.operands[0].fill = FileFill{"x.npy", "", size - 1, std::string(64, 'a'), 0, {count}, {2}};
    CHECK(codes(graph) == Codes{1022});
    graph.operands[0].fill = FileFill{"x.npy", "", size, std::string(64, 'a'), 0, {count - 1}, {2}};
    CHECK(codes(graph) == Codes{1022});
    graph.operands[0].fill = FileFill{"x.npy", "", size, std::string(64, 'a'), 0, {count}, {-1}};
    CHECK(codes(graph) == Codes{1022});
  }
}

TEST_CASE("every cycle is named once, from the operator that stands first") {
  OperatorGraph graph;
  graph.name = "cycles";
  for (const char* name : {"a", "b", "c", "d", "y"}) {
    operand(graph, name, TensorRole::intermediate, {4, 4}, DType::int32);
  }
  graph.operands[4].role = TensorRole::output;
  matmul(graph, 1, 1, 0);  // a = b b
  matmul(graph, 0, 0, 1);  // b = a a
  matmul(graph, 3, 0, 2);  // c = d a
  matmul(graph, 2, 2, 3);  // d = c c
  matmul(graph, 0, 3, 4);  // y = a d: behind both
  const Diagnostics out = check_graph(graph);
  CHECK(codes(graph) == Codes{1015, 1015});
  CHECK(out.list()[0].message == "2 operators wait for each other: 'matmul0' -> 'matmul1' -> 'matmul0'");
}

}  // namespace rdusim::graph_rules_test
