#include "compiler/ir/host_results.h"

#include <algorithm>

#include "compiler/ir/trips.h"

namespace rdusim {

bool handed_to_host(const SpatialProgram& program, const Target& target, const Store& store) {
  const Tensor& t = program.tensor(store.tensor);
  if (target.host.result_bytes == 0 || t.role != TensorRole::output || !store.later.empty()) return false;
  Bytes bytes = bytes_of(t.dtype);
  for (const std::int64_t n : t.shape) {
    if (n <= 0 || static_cast<Bytes>(n) > target.host.result_bytes) return false;
    bytes *= static_cast<Bytes>(n);
  }
  if (bytes > target.host.result_bytes) return false;
  return std::none_of(program.stages.begin(), program.stages.end(), [&](const Stage& s) {
    const auto* load = std::get_if<Load>(&s.kind);
    bool reads = false;
    if (load != nullptr) for_each_tensor(*load, [&](TensorId id) { reads = reads || id == store.tensor; });
    return reads;
  });
}

}  // namespace rdusim
