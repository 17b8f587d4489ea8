// An operator graph in the making from an ONNX one: values by name, constants, and operators that are checked as they
// are added. For the readers of ONNX only.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/workload/graph_rules.h"
#include "compiler/workload/onnx_model.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

// Errors stick: after the first of a node the rest of it is passed over, and no more is said of what depends on it.
class OnnxGraph {
 public:
  using Shape = std::vector<std::int64_t>;

  // `where` names the model in messages, `folder` is what it and its data lie in, `file` its name there.
  OnnxGraph(const OnnxModel& model, std::string where, std::string folder, std::string file);

  // ---- the node at hand
  void begin(const OnnxNode& node);
  void end();
  bool failed() const { return failed_; }
  template <class... Args>
  void refuse(Code code, fmt::format_string<Args...> format, Args&&... args) {
    if (std::exchange(failed_, true)) return;
    diagnostics_.error(code, place_, format, std::forward<Args>(args)...);
  }

  // ---- values. ONNX's scalars are tensors of one element here; shape() gives them no axes.
  OperandId operand(const std::string& name);              // makes a weight of a constant
  const OnnxTensor* constant(const std::string& name);     // where its values are known and held
  std::optional<Shape> shape_of(const std::string& name);  // of a constant too, without making an operand of it
  Shape shape(OperandId id) const;
  DType dtype(OperandId id) const { return graph_.operand(id).dtype; }
  void bind(const std::string& name, OperandId id);  // a result of the node; "": nobody asks for it
  void bind(const std::string& name, OnnxTensor constant);

  // ---- operators
  // Its result has the first operand's dtype unless `dtype` says otherwise.
  OperandId emit(OperatorKind kind, std::vector<OperandId> in, OperatorAttributes attributes = {},
                 std::optional<DType> dtype = {});
  OperandId reshape(OperandId x, const Shape& shape);
  OperandId transpose(OperandId x, const std::vector<std::int64_t>& axes);
  OperandId slice(OperandId x, std::size_t axis, std::int64_t begin, std::int64_t end);
  OperandId filled(double value, const Shape& shape, DType dtype);  // a weight

  Result<OperatorGraph> finish();

 private:
  OperandId add(Operand operand);
  std::string unique(const std::string& wish);
  OperandId weight_of(const OnnxTensor& tensor);
  std::optional<FileFill> file_fill(const OnnxTensor& tensor, std::uint64_t bytes);
  void output(const OnnxValue& value);
  OperandId append(OperatorKind kind, std::vector<OperandId> in, OperatorAttributes attributes, Shape given,
                   DType dtype);

  const OnnxModel& model_;
  const std::string where_;
  const std::string folder_;
  const std::string file_;
  OperatorGraph graph_;
  std::vector<OperandGaps> gaps_;
  std::map<std::string, OperandId> operands_;    // by name of the value
  std::map<std::string, OnnxTensor> constants_;  // the same
  std::map<std::string, const OnnxValue*> inputs_;
  std::set<std::string> lost_;  // results of nodes that were refused
  std::set<OperandId> scalars_;
  std::set<std::string> names_;                                         // of operands
  std::map<std::string, std::pair<std::uint64_t, std::string>> files_;  // size and SHA-256, by path
  const OnnxNode* node_ = nullptr;
  std::string place_;
  bool failed_ = false;
  Diagnostics diagnostics_;
};

// Adds what a node computes. Errors: RDU1051, RDU1052, by way of refuse().
void add_onnx_node(const OnnxNode& node, std::int64_t opset, OnnxGraph& graph);

}  // namespace rdusim
