// What a sum is made of: every contribution to every output exactly once, whatever the values are.
//
//   RDU7012 operands-mixed        a matmul joins pages of one contraction range, of the block and range of its work item
//   RDU7011 contribution-mixed    a fold adds pages of one output block, chunk and trip
//   RDU7010 contribution-doubled  no contraction index is in a sum twice, whichever chips computed it
//   RDU7009 contribution-missing  at the store the contributions tile [0, k) of the operator
//   RDU7009, RDU7010              a firing takes what its body says, each once (addition_counter.h)
//
// Works in timing-only runs: pages carry their contributions by number (models/events/provenance.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/certificate/rows.h"
#include "models/events/events.h"
#include "models/events/provenance.h"
#include "sim/addition_counter.h"
#include "sim/instances.h"
#include "sim/places.h"
#include "sim/violations.h"

namespace rdusim {

class ProvenanceChecker final : public EventSink {
 public:
  ProvenanceChecker(const Instances& instances, const MatmulPlaces& matmuls, Violations& violations);

  // The table that events' numbers refer to; before the first event. It outlives the run.
  void use(const ProvenanceTable& table) {
    table_ = &table;
    additions_.use(table);
  }

  void on(const OperandsJoined& e) override;
  void on(const PartialFolded& e) override;
  void on(const FiringStarted& e) override { additions_.on(e); }
  void on(const PagePushed& e) override { additions_.on(e); }
  void on(const PageStored& e) override;

  struct Stored {
    std::uint64_t pages = 0;
    std::uint64_t complete = 0;  // pages with every contribution once
    std::uint64_t contributions =
        0;  // fewest chips whose contributions a page of this operand held; 0 where no page was stored
  };
  const Stored& stored(OperandId operand) const { return stored_[operand.value]; }

 private:
  enum class Sum : std::uint8_t { unknown, distinct, doubled };
  // What a matmul stage joins, looked up ahead.
  struct Joined {
    const MatmulTiles* tiles = nullptr;  // null: of another kind
    const certificate::Whole* a = nullptr;
    const certificate::Whole* b = nullptr;
    std::uint64_t rows_b = 1;                     // of a matrix of b
    bool flat = false;                            // neither is a stack
    std::optional<OperandId> stream_a, stream_b;  // what pages of the ports are of, where known
    std::optional<OperandId> memory_a, memory_b;  // whose storage the operator's operands have
  };
  Sum judge(ProvenanceId id);
  std::string text(ProvenanceId id) const;
  std::span<const ContributionRun> set(ProvenanceId id) const;

  const Instances& instances_;
  const MatmulPlaces& matmuls_;
  Violations& violations_;
  const ProvenanceTable* table_ = nullptr;
  std::vector<Contraction> contraction_;    // by operand
  std::vector<Stored> stored_;              // by operand
  std::vector<Joined> joined_;              // by stage
  std::vector<certificate::Whole> wholes_;  // by buffer: page_frames()
  std::vector<Sum> judged_;                 // by provenance id; grows with the table
  ContractionRanges ranges_;                // scratch
  AdditionCounter additions_;
};

}  // namespace rdusim
