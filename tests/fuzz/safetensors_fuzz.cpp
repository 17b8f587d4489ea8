// Any bytes as a safetensors header, before as many bytes of data as its first two bytes say: read or refused, never a
// crash, and what is read lies in the data.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/safetensors_fuzz.cpp
//     compiler/workload/*.cpp compiler/support/*.cpp -lfmt -lcrypto -o safetensors_fuzz && ./safetensors_fuzz CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "compiler/workload/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint64_t data_bytes = data[0] | std::uint64_t{data[1]} << 8U;
  const std::string_view json(reinterpret_cast<const char*>(data + 2), size - 2);
  const auto index = rdusim::parse_safetensors_header(json, data_bytes, "fuzz.safetensors", "here");
  if (!index.ok()) {
    if (!index.diagnostics().contains(rdusim::Code::RDU1019)) std::abort();
    return 0;
  }
  std::uint64_t bytes = 0;
  for (const rdusim::SafetensorsTensor& tensor : index->tensors) {
    if (tensor.begin > tensor.end || tensor.end > data_bytes) std::abort();
    bytes += tensor.end - tensor.begin;
  }
  if (bytes != data_bytes) std::abort();  // no hole, no overlap
  return 0;
}
