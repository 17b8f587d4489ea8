// Any bytes as an ONNX model: read or refused, never a crash, and what is read keeps the rules of a graph.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/onnx_fuzz.cpp compiler/workload/*.cpp
//     compiler/support/*.cpp -lfmt -lcrypto -lonnx_proto -lprotobuf -o onnx_fuzz && ./onnx_fuzz CORPUS
//     tests/errors/onnx
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/workload/onnx_reader.h"
#include "compiler/workload/read_workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  // A folder that is not there: what files beside a model hold is the other fuzzers' matter.
  const auto graph = rdusim::graph_of_onnx(bytes, "fuzz.onnx", "/nonexistent", "fuzz.onnx");
  if (!graph.ok()) {
    if (graph.diagnostics().error_count() == 0) std::abort();
    return 0;
  }
  if (rdusim::check_graph(*graph).has_errors()) std::abort();
  return 0;
}
