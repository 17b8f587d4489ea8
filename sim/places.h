// Where the pages of a program belong: worked out from the access patterns and work items, not from what the machine
// says.
//
// A tensor is seen as a matrix whose rows are all its leading extents together. Coordinates are elements of the whole
// operand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"
#include "models/events/events.h"
#include "models/events/provenance.h"

namespace rdusim {

struct Place {
  std::uint64_t row = 0, col = 0;
  std::uint64_t rows = 0, cols = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
constexpr Place place_of(const PageTag& t) {
  return {t.row, t.col, t.rows, t.cols};
}
std::string to_string(const Place& p);  // "rows [0, 32) x columns [64, 96)"
std::string to_string(const PageTag& t, const SpatialProgram& program);

// A slice as a matrix: its extents, and where it starts in the whole.
struct MatrixView {
  std::uint64_t rows = 1, cols = 1;
  std::uint64_t row = 0, col = 0;
  std::uint64_t whole_rows = 1, whole_cols = 1;
  // Where it has some rows of each matrix of a stack: of how many, of a matrix of the whole, from which on. 0: its rows
  // follow each other.
  std::uint64_t matrix_rows = 0, whole_matrix_rows = 0, first = 0;

  // Where a row of the whole is among the slice's, and back. Nothing where it is not among them.
  std::optional<std::uint64_t> row_of(std::uint64_t whole_row) const;
  std::uint64_t whole_row_of(std::uint64_t own) const;
};
MatrixView matrix_view(const Tensor& t);

// The pages that a pattern names in a tensor, worked out ahead but for the few divisions that a firing takes.
class PagePlaces {
 public:
  PagePlaces() = default;  // of a pattern that fits nothing
  PagePlaces(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile);

  // The page that firing `firing` (whole pages; any trip) of an instance touches; nothing where the pattern does not fit
  // the tensor.
  std::optional<Place> at(std::uint32_t instance, std::uint64_t firing) const;
  // The same, as a place of what pages are blocks of on chip: of a stack of heads where the pattern says so.
  std::optional<Place> on_chip(std::uint32_t instance, std::uint64_t firing) const;

 private:
  static constexpr std::size_t most_axes = 8;
  struct Axis {
    std::uint64_t extent = 0, whole = 0, offset = 0;  // elements, of the tensor
    std::uint64_t step = 0, page = 0, limit = 0;      // elements a step; steps of a page, of what lowering saw
  };
  std::uint64_t firings_ = 0;  // of a trip; 0 where the pattern does not fit
  std::uint64_t instances_ = 0;
  std::uint64_t heads_ = 1;
  std::vector<std::int64_t> whole_;
  std::vector<Axis> axes_;
  std::vector<std::uint64_t> loops_;  // innermost first, of more than one trip: trips, and the stride of each axis
  std::vector<std::uint64_t> first_;  // by instance and axis
};

// What a firing of a matmul instance works on, in the whole's coordinates.
struct MatmulPlace {
  Place out;                             // the output block
  std::uint64_t k_begin = 0, k_end = 0;  // of this firing
};

// The matmul stages of a program with their work items.
class MatmulPlaces {
 public:
  explicit MatmulPlaces(const SpatialProgram& program);

  // Nothing where the program says nothing of that stage's work, or the firing lies outside it.
  std::optional<MatmulPlace> at(const StageAt& s, std::uint64_t firing) const;
  // Of output page `page` of the instance (any trip).
  std::optional<Place> output(const StageAt& s, std::uint64_t page) const;

 private:
  struct Known {
    const WorkAssignment* items = nullptr;  // null where nothing is known
    std::uint64_t k_pages = 0;
    std::uint64_t rows = 0;  // of each matrix of the work's stack
    std::uint64_t block_rows = 0, block_cols = 0, page_depth = 0;
    std::uint64_t n = 0, k = 0;
    std::uint64_t of_a_matrix = 0, blocks_m = 0, blocks_n = 0;
    std::uint64_t slice_pages = 0;  // pages of a contraction slice
    std::uint64_t offset_m = 0, offset_n = 0, offset_k = 0;
  };
  std::optional<MatmulPlace> item(const Known& k, std::uint32_t instance, std::uint64_t round,
                                  std::uint64_t k_page) const;

  std::vector<Known> known_;  // by stage
};

// By buffer: PageTag::operand of the pages in it, wherever they came by: an operand that is loaded, or the values of a
// stage. Nothing for sums and folds.
std::vector<std::optional<OperandId>> page_operands(const SpatialProgram& program);

// The extent of the contraction that makes operand `id`, where an operator or its work says so; by operand id.
struct Contraction {
  std::optional<OperatorId> op;
  std::optional<std::uint64_t> k;
};
std::vector<Contraction> contractions(const SpatialProgram& program);

// Ranges [begin, end) of a contraction.
using ContractionRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
// Puts the ranges of `contributions` in order into `ranges`; how far they follow each other from 0 on, without gap or
// overlap.
std::uint64_t followed_until(std::span<const ContributionRun> contributions, ContractionRanges& ranges);

}  // namespace rdusim
