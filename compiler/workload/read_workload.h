// A workload file (TOML) to an operator graph: shapes worked out, fills checked, files hashed but not held.
#pragma once

#include <string>

#include "compiler/workload/operator_graph.h"

namespace rdusim {

// Reads `path` ("-": standard input; file fills are then relative to the working folder). File fills become FileFill
// with the path relative to `path`'s folder, size, SHA-256, and where the data starts. Everything wrong is reported, in
// order. A path that ends in .onnx is an ONNX model (onnx_reader.h). Errors: RDU1001-RDU1026, RDU1030-RDU1037. Warning:
// RDU1023.
Result<OperatorGraph> read_workload(const std::string& path);

// Of TOML text; `where` names it in messages, `folder` is what file fills are relative to.
Result<OperatorGraph> parse_workload(const std::string& text, const std::string& where, const std::string& folder);

// The rules of an operator graph, whoever made it (a reader, an assembled program). Errors: RDU1008-RDU1016, RDU1022,
// RDU1030-RDU1037.
Diagnostics check_graph(const OperatorGraph& graph);

}  // namespace rdusim
