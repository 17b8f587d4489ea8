// What a stage takes to make a value belongs together: each page comes from who fills that port, is of the same trip,
// and of the block that the value's block asks for; the pages of a row that is joined come in turn, from its first
// column to its last; and a sum that is taken is complete.
//
// RDU7029 page-wrong, RDU7009 contribution-missing. Needs no values. Which of two ports that the same stage fills a
// page came by cannot be told from the page, and does not matter to what it is: the block must be that of one of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/certificate/rows.h"
#include "models/events/events.h"
#include "models/events/provenance.h"
#include "sim/instances.h"
#include "sim/places.h"
#include "sim/violations.h"

namespace rdusim {

class ValueChecker final : public EventSink {
 public:
  ValueChecker(const Instances& instances, Violations& violations);

  // The table that events' numbers refer to; before the first event. It outlives the run.
  void use(const ProvenanceTable& table) { table_ = &table; }

  // Whether the program makes values at all: of another, no event concerns it.
  bool watches() const { return !makers_.empty(); }

  void on(const PartialFolded& e) override;

 private:
  struct Input {
    std::optional<OperandId> operand;  // PageTag::operand of what comes by it, where it is known
    certificate::Whole whole;
    bool has_rows = true, has_cols = true;
  };
  struct Maker {
    std::optional<OperandId> indices;  // of a load by index: what says its rows
    const Generic* generic = nullptr;  // null: makes no values
    std::vector<Input> inputs;
    certificate::Whole whole;  // before rows are joined
    std::uint64_t row_pages = 1;
  };
  struct Row {  // of a stage instance: what its last firing took
    std::uint64_t firing = ~std::uint64_t{0};
    std::uint64_t begin = 0, end = 0;  // joins rows: the columns
    std::uint8_t turned = 0;           // shifted: a bit for each half and angle of a rotary
  };

  bool turns_with(const PartialFolded& e);
  bool fits(const PartialFolded& e, const Maker& maker, const Input& input) const;
  void check_gathered(const PartialFolded& e, OperandId indices);
  void follow_row(const PartialFolded& e, const Maker& maker);
  void check_complete(const PartialFolded& e);
  void wrong(const PartialFolded& e, const std::string& expected);

  const Instances& instances_;
  Violations& violations_;
  const ProvenanceTable* table_ = nullptr;
  std::vector<Maker> makers_;             // by stage
  std::vector<Row> rows_;                 // by stage instance
  std::vector<Contraction> contraction_;  // by operand
  ContractionRanges ranges_;              // scratch
};

}  // namespace rdusim
