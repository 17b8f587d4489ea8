// Any text as a model's config.json, and as an index of its weights: read or refused, never a crash; what is read keeps
// its limits, so that sizes can be counted, and becomes a graph that keeps the rules, or is refused.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/hf_config_fuzz.cpp
//     compiler/workload/*.cpp compiler/support/*.cpp -lfmt -lcrypto -o hf_config_fuzz && ./hf_config_fuzz CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_graph.h"
#include "compiler/workload/hf_sizes.h"
#include "compiler/workload/read_workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto map = rdusim::parse_weight_map(text, "fuzz"); !map.ok() && !map.diagnostics().has_errors())
    std::abort();
  const auto read = rdusim::parse_hf_config(text, "fuzz");
  if (!read.ok()) {
    if (!read.diagnostics().has_errors()) std::abort();
    return 0;
  }
  rdusim::DecoderRequest request;
  request.layers = 1;
  request.context = 2;
  const auto config = rdusim::asked_of(*read, request);
  if (!config.ok()) return 0;  // of one position
  const rdusim::DecoderSizes sizes = rdusim::decoder_sizes(*config, request);
  if (sizes.all.parameters < sizes.all.parameters_read || sizes.all.parameters_read <= 0) std::abort();
  const auto chips = rdusim::chip_sizes(*config, request, 3, 32);
  if (chips.size() != 3) std::abort();
  rdusim::HfFiles none;
  const auto graph = rdusim::decoder_graph("fuzz", *config, request, none);
  if (graph.ok() && rdusim::check_graph(*graph).has_errors()) std::abort();
  return 0;
}
