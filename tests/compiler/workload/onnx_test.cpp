// ONNX models: what nodes become, where constants are read from, and what is refused.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/workload/fill_reader.h"
#include "compiler/workload/onnx_reader.h"
#include "compiler/workload/read_workload.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::onnx_test {

namespace {

// ---- protobuf by hand: fields of (number, wire type), messages by their length

std::string varint(std::uint64_t v) {
  std::string out;
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  return out + static_cast<char>(v);
}
std::string field(std::uint32_t number, std::uint64_t v) {
  return varint(number << 3) + varint(v);
}
std::string field(std::uint32_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string value(const std::string& name, const std::vector<std::uint64_t>& dims, std::uint64_t type = 1) {
  std::string shape;
  for (const auto d : dims) shape += field(1, field(1, d));
  return field(1, name) + field(2, field(1, field(1, type) + field(2, shape)));
}
std::string node(const std::string& kind, const std::vector<std::string>& in, const std::vector<std::string>& out,
                 const std::string& attributes = "") {
  std::string bytes;
  for (const auto& name : in) bytes += field(1, name);
  for (const auto& name : out) bytes += field(2, name);
  return bytes + field(4, kind) + attributes;
}
std::string integer(const std::string& name, std::uint64_t v) {
  return field(5, field(1, name) + field(20, 2) + field(3, v));
}
std::string raw_floats(const std::string& name, const std::vector<std::uint64_t>& dims, const std::vector<float>& v) {
  std::string bytes, raw(v.size() * 4, '\0');
  for (const auto d : dims) bytes += field(1, d);
  std::memcpy(raw.data(), v.data(), raw.size());
  return bytes + field(2, 1) + field(8, name) + field(9, raw);
}
std::string integers(const std::string& name, const std::vector<std::int64_t>& v) {
  std::string raw(v.size() * 8, '\0');
  std::memcpy(raw.data(), v.data(), raw.size());
  return field(1, v.size()) + field(2, 7) + field(8, name) + field(9, raw);
}
std::string model(const std::vector<std::string>& nodes, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::vector<std::string>& initializers = {},
                  std::uint64_t opset = 17) {
  std::string graph;
  for (const auto& n : nodes) graph += field(1, n);
  graph += field(2, std::string("net"));
  for (const auto& t : initializers) graph += field(5, t);
  for (const auto& v : inputs) graph += field(11, v);
  for (const auto& v : outputs) graph += field(12, v);
  return field(1, 8) + field(8, field(2, opset)) + field(7, graph);
}

OperatorGraph read(const std::string& bytes) {
  auto graph = graph_of_onnx(bytes, "m.onnx", ".", "m.onnx");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  return std::move(graph).value();
}
std::vector<OperatorKind> kinds(const OperatorGraph& graph) {
  std::vector<OperatorKind> out;
  for (const Operator& op : graph.operators) out.push_back(op.kind);
  return out;
}
using Kinds = std::vector<OperatorKind>;

}  // namespace

TEST_CASE("a node becomes an operator, an input an external tensor, a constant a weight") {
  const auto graph = read(model({node("MatMul", {"x", "w"}, {"h"}), node("Relu", {"h"}, {"y"})}, {value("x", {2, 3})},
                                {value("y", {2, 4})}, {raw_floats("w", {3, 4}, std::vector<float>(12, 0.5f))}));
  CHECK(graph.name == "net");
  CHECK(kinds(graph) == Kinds{OperatorKind::matmul, OperatorKind::relu});
  REQUIRE(graph.operands.size() == 4);
  CHECK(graph.operands[0].name == "x");
  CHECK(graph.operands[0].fill == Fill{ExternalFill{}});
  CHECK(graph.operands[1].role == TensorRole::weight);
  CHECK(graph.operands[1].fill == Fill{ValuesFill{{}, std::vector<double>(12, 0.5)}});
  CHECK(graph.operands[2].name == "h");
  CHECK(graph.operands[3].role == TensorRole::output);
  CHECK(graph.operands[3].shape == std::vector<std::int64_t>{2, 4});
}

TEST_CASE("what shapes ask for is worked out while reading, and leaves no operator behind") {
  // y = reshape(x, [shape(x)[0], -1]) by way of Shape, as exporters write it
  const auto graph = read(model({node("Reshape", {"x", "to"}, {"y"}), node("Relu", {"x"}, {"unused"})},
                                {value("x", {2, 3, 4})}, {value("y", {2, 12})}, {integers("to", {0, -1})}));
  CHECK(kinds(graph) == Kinds{OperatorKind::reshape});
  CHECK(graph.operands.size() == 2);
  CHECK(graph.operands[1].shape == std::vector<std::int64_t>{2, 12});
}

TEST_CASE("a softmax along another axis is turned there and back, and before version 13 flattens") {
  const auto turned =
      read(model({node("Softmax", {"x"}, {"y"}, integer("axis", 0))}, {value("x", {2, 3})}, {value("y", {2, 3})}));
  CHECK(kinds(turned) == Kinds{OperatorKind::transpose, OperatorKind::softmax, OperatorKind::transpose});
  const auto flat =
      read(model({node("Softmax", {"x"}, {"y"})}, {value("x", {2, 3, 4})}, {value("y", {2, 3, 4})}, {}, 9));
  CHECK(kinds(flat) == Kinds{OperatorKind::reshape, OperatorKind::softmax, OperatorKind::reshape});
  CHECK(flat.operands[1].shape == std::vector<std::int64_t>{2, 12});
}

TEST_CASE("an output that is an input, or asked for twice, is a tensor of its own") {
  const auto graph = read(model({node("Identity", {"x"}, {"y"}), node("Identity", {"x"}, {"z"})}, {value("x", {2, 3})},
                                {value("y", {2, 3}), value("z", {2, 3})}));
  CHECK(kinds(graph) == Kinds{OperatorKind::reshape, OperatorKind::reshape});
  CHECK(graph.operands[1].name == "y");
  CHECK(graph.operands[2].name == "z");
}

TEST_CASE("a large constant is read from the model's file, and one beside it from there") {
  const TemporaryFolder folder;
  std::vector<float> large(100 * 50), beside(50);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i) * 0.25f;
  for (std::size_t i = 0; i < beside.size(); ++i) beside[i] = static_cast<float>(i) - 7;
  const std::string external = field(1, 50) + field(2, 1) + field(8, std::string("b")) +
                               field(13, field(1, std::string("location")) + field(2, std::string("b.bin"))) +
                               field(13, field(1, std::string("offset")) + field(2, std::string("8"))) + field(14, 1);
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder.path() + "/" + name, std::ios::binary) << bytes;
  };
  std::string raw(8 + beside.size() * 4, '\0');
  std::memcpy(raw.data() + 8, beside.data(), beside.size() * 4);
  write("b.bin", raw);
  write("m.onnx", model({node("MatMul", {"x", "w"}, {"h"}), node("Add", {"h", "b"}, {"y"})}, {value("x", {2, 100})},
                        {value("y", {2, 50})}, {raw_floats("w", {100, 50}, large), external}));
  const auto graph = read_workload(folder.path() + "/m.onnx");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  const auto values = [&](const Operand& o) {
    std::vector<float> out(static_cast<std::size_t>(*element_count(o.shape)));
    const std::vector<std::int64_t> zero(o.shape.size(), 0);
    REQUIRE(std::holds_alternative<FileFill>(o.fill));
    const auto done =
        read_fill(o.fill, o.dtype, o.shape, zero, o.shape, folder.path(), std::as_writable_bytes(std::span(out)));
    INFO(done.diagnostics().to_text());
    REQUIRE(done.ok());
    return out;
  };
  CHECK(values(graph->operands[1]) == large);
  CHECK(values(graph->operands[3]) == beside);
}

TEST_CASE("every operator that there is not is named once, and nothing is said of what follows from it") {
  const auto graph = graph_of_onnx(model({node("Acosh", {"x"}, {"h"}), node("Relu", {"h"}, {"i"}),
                                          node("Celu", {"x"}, {"j"}), node("Add", {"i", "j"}, {"y"})},
                                         {value("x", {2, 3})}, {value("y", {2, 3})}),
                                   "m.onnx", ".", "m.onnx");
  REQUIRE(!graph.ok());
  REQUIRE(graph.diagnostics().list().size() == 2);
  CHECK(graph.diagnostics().list()[0].message == "there is no operator 'Acosh'");
  CHECK(graph.diagnostics().list()[1].message == "there is no operator 'Celu'");
}

TEST_CASE("a model of any bytes is read or refused") {
  const std::string good =
      model({node("MatMul", {"x", "w"}, {"h"}), node("Softmax", {"h"}, {"y"}, integer("axis", 1))},
            {value("x", {2, 3})}, {value("y", {2, 4})}, {raw_floats("w", {3, 4}, std::vector<float>(12, 0.5f))});
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(!graph_of_onnx(good.substr(0, n), "m.onnx", ".", "m.onnx").ok());
  CHECK(rc::check("changed bytes of a model", [&] {
    std::string bytes = good;
    const auto changes = *rc::gen::inRange(1, 5);
    for (int i = 0; i < changes; ++i)
      bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = static_cast<char>(*rc::gen::inRange(0, 256));
    const auto graph = graph_of_onnx(bytes, "m.onnx", ".", "m.onnx");
    RC_ASSERT(graph.ok() || graph.diagnostics().has_errors());
    if (graph.ok()) RC_ASSERT(check_graph(*graph).empty());
  }));
}

}  // namespace rdusim::onnx_test
