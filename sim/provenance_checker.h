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
  Sum judge(ProvenanceId id);
  std::string text(ProvenanceId id) const;
  const std::vector<Contribution>& set(ProvenanceId id) const;

  const Instances& instances_;
  const MatmulPlaces& matmuls_;
  Violations& violations_;
  const ProvenanceTable* table_ = nullptr;
  std::vector<Contraction> contraction_;            // by operand
  std::vector<Stored> stored_;                      // by operand
  std::vector<std::optional<OperandId>> operands_;  // by buffer: page_operands()
  std::vector<certificate::Whole> wholes_;          // by buffer: page_frames()
  std::vector<Sum> judged_;                         // by provenance id; grows with the table
  ContractionRanges ranges_;                        // scratch
  AdditionCounter additions_;
};

}  // namespace rdusim
