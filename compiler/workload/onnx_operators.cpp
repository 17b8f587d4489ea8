#include "compiler/workload/onnx_node.h"

namespace rdusim {

void add_onnx_node(const OnnxNode& node, std::int64_t opset, OnnxGraph& graph) {
  graph.begin(node);
  onnx_nodes::Add add = nullptr;
  for (const auto* table :
       {&onnx_nodes::point_wise_operators(), &onnx_nodes::row_operators(), &onnx_nodes::move_operators()}) {
    if (const auto found = table->find(node.kind); found != table->end()) add = found->second;
  }
  if (!node.domain.empty() || add == nullptr) {
    graph.refuse(Code::RDU1051, "there is no operator '{}{}{}'", node.domain, node.domain.empty() ? "" : ":",
                 node.kind);
  } else if (node.out.empty() || node.out[0].empty()) {
    graph.refuse(Code::RDU1050, "it has no output");
  } else if (!graph.failed()) {
    add(onnx_nodes::Node{node, opset, graph});
  }
  graph.end();
}

}  // namespace rdusim
