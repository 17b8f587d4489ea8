// Every element of every stored tensor is written exactly once a trip, each replica for itself (a replica is a tensor
// of its own). Rows of a state that no append replaces are kept: nobody may write them.
//
// RDU7013 element-written-twice, RDU7014 element-not-written. Holds a byte for each element that is not kept: how often it
// was written.
#pragma once

#include <cstdint>
#include <optional>
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
  struct RowRange {
    std::uint64_t begin = 0, end = 0;
  };
  // Of a tensor that is stored, the rows of its view that are kept.
  static std::vector<RowRange> kept_rows(const SpatialProgram& program, const Tensor& t, const MatrixView& view);

  struct Writes {
    bool stored = false;
    MatrixView view;
    std::uint64_t trips = 1;
    std::uint64_t written = 0;
    std::vector<RowRange> kept;       // rows of the view, rising, apart
    std::vector<std::uint8_t> times;  // by element of the rows that are not kept, modulo 256
    // Where among those rows one of the view is; nothing of a row that is kept. And back.
    std::optional<std::uint64_t> place_of(std::uint64_t row) const;
    std::uint64_t row_at(std::uint64_t place) const;
  };

  const Instances& instances_;
  Violations& violations_;
  std::vector<Writes> tensors_;  // by tensor
};

}  // namespace rdusim
