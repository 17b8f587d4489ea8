#include "compiler/workload/onnx_reader.h"

#include "compiler/support/file.h"
#include "compiler/workload/onnx_graph.h"
#include "compiler/workload/onnx_model.h"
#include "compiler/workload/read_workload.h"

namespace rdusim {

Result<OperatorGraph> graph_of_onnx(const std::string& bytes, const std::string& where, const std::string& folder,
                                    const std::string& file) {
  const auto model = parse_onnx(bytes, where);
  if (!model) return model.diagnostics();
  OnnxGraph building(*model, where, folder, file);
  for (const OnnxNode& node : model->nodes) add_onnx_node(node, model->opset, building);
  auto graph = building.finish();
  if (!graph) return graph.diagnostics();
  Diagnostics wrong = check_graph(*graph);
  if (wrong.has_errors()) return wrong;
  return graph;
}

Result<OperatorGraph> read_onnx(const std::string& path) {
  const auto bytes = read_file(path, onnx_size_limit);
  if (!bytes) return bytes.diagnostics();
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  return graph_of_onnx(*bytes, path, folder, slash == std::string::npos ? path : path.substr(slash + 1));
}

}  // namespace rdusim
