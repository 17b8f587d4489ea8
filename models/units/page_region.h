// Which elements of a tensor a firing of a Load or Store touches: the access pattern of program.h, worked out.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/ir/program.h"
#include "compiler/support/element_bytes.h"

namespace rdusim {

// A rectangle of a tensor's elements, clipped to the tensor. `comes` is false where the pattern's page does not lie in
// the tensor's tile grid (program.h): such a page is never moved. Higher ranks than `most_axes` never come either.
struct PageRegion {
  static constexpr std::size_t most_axes = 8;
  bool comes = false;
  std::uint32_t axes = 0;
  std::array<std::uint64_t, most_axes> begin{};  // in the slice
  std::array<std::uint64_t, most_axes> extent{};
  // As a matrix whose columns are the last axis and whose rows are all the others, row-major.
  std::uint64_t row = 0, col = 0, rows = 0, cols = 0;  // in the slice
  std::uint64_t whole_row = 0, whole_col = 0;          // of the whole operand
  std::uint64_t elements() const { return rows * cols; }
};

// Of page `page` (firing, or for a Store in chunks firing / phases) of a trip. Any numbers may be given.
PageRegion page_region(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                       std::uint32_t instance, std::uint64_t page);

// Copies elements [first, first + count) (row-major order within the region) between a page and a tensor's image (the
// slice's bytes, or to read from a view of the whole operand). What lies outside the image is neither read (the page has
// zeros there) nor written. `page` holds the elements from `first` on.
void copy_from_image(const PageRegion& region, const Tensor& tensor, const ElementBytes& image, std::byte* page);
void copy_to_image(const PageRegion& region, const Tensor& tensor, ElementBytes& image, const std::byte* page,
                   std::uint64_t first, std::uint64_t count);

}  // namespace rdusim
