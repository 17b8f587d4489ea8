// Where the pages of a program belong: worked out from the access patterns and work items, not from what the machine
// says.
//
// A tensor is seen as a matrix whose rows are all its leading extents together. Coordinates are elements of the whole
// operand.
#pragma once

#include <cstdint>
#include <optional>
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
};
MatrixView matrix_view(const Tensor& t);

// The page that firing `firing` (whole pages; any trip) of an instance touches; nothing where the pattern does not fit
// the tensor.
std::optional<Place> page_place(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                std::uint32_t instance, std::uint64_t firing);

// The same, as a place of what pages are blocks of on chip: of a stack of heads where the pattern says so.
std::optional<Place> page_on_chip(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                                  std::uint32_t instance, std::uint64_t firing);

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
    const WorkAssignment* items = nullptr;
    const Work* work = nullptr;
    const MatmulTiles* tiles = nullptr;
    std::uint64_t rows = 0;  // of each matrix of the work's stack
  };
  std::optional<MatmulPlace> item(const Known& k, std::uint32_t instance, std::uint64_t round,
                                  std::uint64_t k_page) const;

  std::uint64_t tile_;
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
std::uint64_t followed_until(const std::vector<Contribution>& contributions, ContractionRanges& ranges);

}  // namespace rdusim
