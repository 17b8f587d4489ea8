// Every element of every stored tensor is written exactly once a trip, each replica for itself (a replica is a tensor
// of its own). Rows of a state that no append replaces are kept: nobody may write them.
//
// And what a load reads that stores of its section write has been written when it starts to.
//
// RDU7013 element-written-twice, RDU7014 element-not-written, RDU7031 page-read-early. Holds how often each element that is not kept was written.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/certificate/moves.h"
#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/places.h"
#include "sim/violations.h"
#include "sim/write_counts.h"

namespace rdusim {

class CoverageChecker final : public EventSink {
 public:
  CoverageChecker(const Instances& instances, Violations& violations);

  void on(const FiringStarted& e) override;
  void on(const PageStored& e) override;
  void repeated(const Repetition& r) override;
  void finish(Cycle at);

  // What the checker will keep, before it is made: as if an eighth of the elements were in blocks partly written. Measured
  // at most, matmuls and decoders over 1 to 16 chips: 0 to 0.11 of them, and 0.48 of one with 2 M elements.
  static Bytes bytes_needed(const SpatialProgram& program);
  bool reads_what_is_stored() const { return !readers_.empty(); }
  std::uint64_t elements_written(TensorId t) const { return tensors_[t.value].written; }

 private:
  struct RowRange {
    std::uint64_t begin = 0, end = 0;
  };
  // Of a tensor that is stored, the rows of its view that are kept.
  static std::vector<RowRange> kept_rows(const certificate::AppendedRows& appended, const Tensor& t,
                                         const MatrixView& view);

  struct Writes {
    bool stored = false;
    MatrixView view;
    std::uint64_t trips = 1;
    std::uint64_t written = 0;
    std::vector<RowRange> kept;  // rows of the view, rising, apart
    WriteCounts times;           // of the rows that are not kept
    // Where among those rows one of the view is; nothing of a row that is kept. And back.
    std::optional<std::uint64_t> place_of(std::uint64_t row) const;
    std::uint64_t row_at(std::uint64_t place) const;
  };

  // A rectangle of rows that are not kept, in places of `times`, is written once more; `col` and `row` of the view.
  void written(const PageStored& e, Writes& w, std::uint64_t row, const WriteCounts::Rect& at, std::uint8_t expected);

  // A load that waits for stores of its section, from trip `lag` on.
  struct Reader {
    const Load* load = nullptr;
    PagePlaces places;
    std::uint64_t firings = 0, lag = 0;
    std::vector<bool> reads;  // by instance: for itself, or as the first of its set
  };

  const Instances& instances_;
  Violations& violations_;
  std::vector<std::uint32_t> reader_of_;  // by stage: + 1; 0: none
  std::vector<Reader> readers_;
  WriteCounts::Pool pool_;
  std::vector<Writes> tensors_;  // by tensor
};

}  // namespace rdusim
