// A node of an ONNX graph on its way into an operator graph, with what most of ONNX's operators ask of it. For the
// onnx_*.cpp only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/workload/onnx_graph.h"

namespace rdusim::onnx_nodes {

using Axes = std::vector<std::int64_t>;

// A node and the graph that it is added to, with what most operators ask.
struct Node {
  const OnnxNode& n;
  std::int64_t opset;
  OnnxGraph& g;

  bool has_in(std::size_t i) const { return i < n.in.size() && !n.in[i].empty(); }
  OperandId in(std::size_t i) const {
    if (has_in(i)) return g.operand(n.in[i]);
    g.refuse(Code::RDU1050, "input {} is missing", i);
    return OperandId{std::size_t{0}};
  }
  void out(OperandId id, std::size_t i = 0) const {
    if (i < n.out.size()) g.bind(n.out[i], id);
  }
  bool wants(std::size_t i) const { return i < n.out.size() && !n.out[i].empty(); }

  const OnnxAttribute* attribute(const char* name) const {
    const auto found = n.attributes.find(name);
    return found == n.attributes.end() ? nullptr : &found->second;
  }
  std::int64_t integer(const char* name, std::int64_t usual) const {
    const auto* a = attribute(name);
    return a != nullptr && a->integer ? *a->integer : usual;
  }
  double real(const char* name, double usual) const {
    const auto* a = attribute(name);
    return a != nullptr && a->real ? double{*a->real} : usual;
  }
  // Of an input whose values are known; nothing where it is left out.
  std::optional<Axes> integers_in(std::size_t i) const {
    if (!has_in(i)) return std::nullopt;
    const OnnxTensor* t = g.constant(n.in[i]);
    if (t == nullptr) {
      g.refuse(Code::RDU1052, "its input '{}' is not constant", n.in[i]);
      return std::nullopt;
    }
    return t->integers;
  }
  // An attribute, or from version `since` on an input.
  std::optional<Axes> integers(const char* name, std::size_t input, std::int64_t since) const {
    if (opset >= since) return integers_in(input);
    const auto* a = attribute(name);
    return a == nullptr ? std::nullopt : std::optional(a->integers);
  }
  // Counted from the end where negative; refused where there is no such axis.
  std::optional<std::size_t> axis(std::int64_t axis, std::size_t rank) const {
    const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (at >= 0 && at < static_cast<std::int64_t>(rank)) return static_cast<std::size_t>(at);
    g.refuse(Code::RDU1050, "there is no axis {} of {}", axis, rank);
    return std::nullopt;
  }
};

inline std::int64_t product(const Axes& shape, std::size_t from, std::size_t to) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from),
                         shape.begin() + static_cast<std::ptrdiff_t>(to), std::int64_t{1}, std::multiplies<>());
}
inline Axes counting(std::size_t n) {
  Axes out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}
inline Axes inverse(const Axes& axes) {
  Axes out(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) out[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  return out;
}

// What an operator is made of, by its name. Semantics: https://github.com/onnx/onnx/blob/main/docs/Operators.md, by the
// model's operator set version where they changed.
using Add = void (*)(const Node&);
using Table = std::map<std::string, Add, std::less<>>;
const Table& point_wise_operators();
const Table& row_operators();   // matmuls, softmax, norms, reductions
const Table& move_operators();  // and constants

}  // namespace rdusim::onnx_nodes
