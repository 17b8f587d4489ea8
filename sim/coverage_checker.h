// Every element of every stored tensor is written exactly once a trip, each replica for itself (a replica is a tensor
// of its own). Rows of a state that no append replaces count as written: nobody may write them.
//
// RDU7013 element-written-twice, RDU7014 element-not-written. Keeps a byte an element: how often it was written.
#pragma once

#include <cstdint>
#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/places.h"
#include "sim/violations.h"

namespace rdusim {

class CoverageChecker final : public EventSink {
 public:
  CoverageChecker(const Instances& instances, Violations& violations);

  void on(const PageStored& e) override;
  void repeated(const Repetition& r) override;
  void finish(Cycle at);

  // What the checker will keep, before it is made.
  static Bytes bytes_needed(const SpatialProgram& program);
  std::uint64_t elements_written(TensorId t) const { return tensors_[t.value].written; }

 private:
  struct Writes {
    bool stored = false;
    MatrixView view;
    std::uint64_t trips = 1;
    std::uint64_t written = 0;
    std::vector<std::uint8_t> times;  // by element of the slice, modulo 256
  };

  const Instances& instances_;
  Violations& violations_;
  std::vector<Writes> tensors_;  // by tensor
};

}  // namespace rdusim
