// Where the result of a by-row body lies, and whether the pages that it takes belong together (program.h, Generic).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/page_frames.h"
#include "compiler/ir/partial_sums.h"

namespace rdusim {

// A page that a body takes. `has_rows`, `has_cols`: what its map says that it has of the result.
struct TakenPage {
  const ElementBox* box = nullptr;
  const PageFrame* frame = nullptr;
  bool has_rows = true, has_cols = true;
  std::string name;  // for messages
};

// The block of `frame` that a body over `taken` makes, before rows are joined; or, in words, why they do not belong
// together: what operands do not repeat they have in one place; what they repeat is of one row, or one column, as a
// whole; a page lies in one matrix of its stack; and one of them has the rows of the result in every matrix.
struct RowPlace {
  std::optional<ElementBox> box;
  std::string fault;
};
RowPlace row_place(const std::vector<TakenPage>& taken, const PageFrame& frame);

// The same of a body whose operands are shifted: of one place in every axis but the columns, of which each has as many.
// The first says where the result lies.
RowPlace shifted_place(const std::vector<TakenPage>& taken);

}  // namespace rdusim
