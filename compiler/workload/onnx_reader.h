// An ONNX model to an operator graph. Page: onnx.md.
#pragma once

#include <string>

#include "compiler/workload/operator_graph.h"

namespace rdusim {

// Reads `path`. Inputs get external fills (given with --set), constants become weights: short ones hold their values,
// others name their bytes in the model's file or in the file beside it that the model names. Errors: RDU1001, RDU1021,
// RDU1024, RDU1050-RDU1052, and those of check_graph.
Result<OperatorGraph> read_onnx(const std::string& path);

// Of a model's bytes; `where` names it in messages, `folder`/`file` is where its data are read from again.
Result<OperatorGraph> graph_of_onnx(const std::string& bytes, const std::string& where, const std::string& folder,
                                    const std::string& file);

}  // namespace rdusim
