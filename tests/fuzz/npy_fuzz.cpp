// Any bytes as the start of an .npy file: read or refused, never a crash, and the data never starts beyond the bytes.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/npy_fuzz.cpp compiler/workload/*.cpp
//     compiler/support/*.cpp -lfmt -lcrypto -o npy_fuzz && ./npy_fuzz CORPUS tests/errors/workloads/data
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "compiler/workload/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header = rdusim::parse_npy_header(std::as_bytes(std::span(data, size)), "fuzz.npy", "here");
  if (header.ok() ? header->data_offset > size : !header.diagnostics().contains(rdusim::Code::RDU1017)) std::abort();
  return 0;
}
