// Any bytes as a workload file: read or refused, never a crash, and what is read keeps the rules of a graph.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/workload_fuzz.cpp
//   compiler/workload/*.cpp
//     compiler/support/*.cpp -lfmt -lcrypto -lonnx_proto -lprotobuf -o workload_fuzz && ./workload_fuzz CORPUS examples tests/errors/workloads
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "compiler/workload/fill_reader.h"
#include "compiler/workload/read_workload.h"

namespace {

// One element of each corner of every tensor: reading a slice must not depend on the tensor's size.
void read_corners(const rdusim::Operand& operand) {
  const std::vector<std::int64_t> one(operand.shape.size(), 1);
  std::vector<std::int64_t> first(operand.shape.size(), 0);
  std::vector<std::int64_t> last = operand.shape;
  for (std::int64_t& extent : last) --extent;
  std::byte element[8];
  const std::span<std::byte> out(element, rdusim::bytes_of(operand.dtype));
  for (const auto& corner : {first, last}) {
    const auto result = rdusim::read_fill(operand.fill, operand.dtype, operand.shape, corner, one, ".", out);
    if (!result.ok() && !std::holds_alternative<rdusim::ExternalFill>(operand.fill)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // A folder that is not there: what files hold is the other fuzzers' matter.
  const auto graph = rdusim::parse_workload(text, "fuzz.toml", "/nonexistent");
  if (!graph.ok()) {
    if (graph.diagnostics().error_count() == 0) std::abort();
    return 0;
  }
  if (rdusim::check_graph(*graph).has_errors()) std::abort();
  for (const rdusim::Operand& operand : graph->operands) read_corners(operand);
  return 0;
}
