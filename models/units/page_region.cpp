#include "models/units/page_region.h"

#include <algorithm>
#include <cstring>

#include "compiler/support/units.h"

namespace rdusim {
namespace {

std::uint64_t extent_of(std::int64_t n) {
  return n > 0 ? static_cast<std::uint64_t>(n) : 0;
}

// Where the elements of an image lie: those of the slice, or of the whole operand, in which the slice has an offset.
struct ImageLayout {
  ImageLayout(const Tensor& t, const ElementBytes& image)
      : shape(image.is_view() ? t.whole : t.shape), offset(image.is_view() ? &t.offset : nullptr) {}
  const std::vector<std::int64_t>& shape;
  const std::vector<std::int64_t>* offset;  // null: of zeros
};

// Row `row` of a region (counted over all axes but the last) as a flat element index.
std::uint64_t flat_row(const PageRegion& r, const ImageLayout& image, std::uint64_t row) {
  std::uint64_t flat = 0;
  std::uint64_t stride = 1;
  for (std::uint32_t d = r.axes; d-- > 0;) {
    std::uint64_t at = r.begin[d] + (image.offset != nullptr ? extent_of((*image.offset)[d]) : 0);
    if (d + 1 != r.axes) {
      at += row % r.extent[d];
      row /= r.extent[d];
    }
    flat += at * stride;
    stride *= extent_of(image.shape[d]);
  }
  return flat;
}

}  // namespace

PageRegion page_region(const AccessPattern& pattern, const Tensor& tensor, std::uint32_t native_tile,
                       std::uint32_t instance, std::uint64_t page) {
  PageRegion r;
  const std::size_t axes = tensor.shape.size();
  if (axes == 0 || axes > PageRegion::most_axes || pattern.page_tiles.size() != axes ||
      pattern.extent_tiles.size() != axes || tensor.tiles.size() != axes ||
      pattern.stride.size() != pattern.loops.size() || instance >= pattern.first.size() ||
      pattern.first[instance].size() != axes || (!pattern.grain.empty() && pattern.grain.size() != axes)) {
    return r;
  }
  r.axes = static_cast<std::uint32_t>(axes);
  std::array<std::uint64_t, PageRegion::most_axes> start{};
  for (std::size_t d = 0; d < axes; ++d) start[d] = pattern.first[instance][d];
  for (std::size_t l = pattern.loops.size(); l-- > 0;) {
    const std::uint64_t trips = pattern.loops[l];
    if (trips == 0 || pattern.stride[l].size() != axes) return r;
    const std::uint64_t i = trips == 1 ? 0 : page % trips;
    page /= trips;
    if (i == 0) continue;
    for (std::size_t d = 0; d < axes; ++d) start[d] += i * pattern.stride[l][d];
  }
  const std::uint64_t tile = std::max(native_tile, 1u);
  r.rows = 1;
  for (std::size_t d = 0; d < axes; ++d) {
    const std::uint64_t limit = pattern.extent_tiles[d];
    if (start[d] >= limit || pattern.page_tiles[d] == 0) return r;
    const std::uint64_t end = start[d] + std::min(pattern.page_tiles[d], limit - start[d]);
    const std::uint64_t shape = extent_of(tensor.shape[d]);
    const bool by_tile = pattern.grain.empty();
    const std::uint64_t of = !by_tile                   ? std::max<std::uint64_t>(pattern.grain[d], 1)
                             : axes > 2 && d + 2 < axes ? 1
                                                        : tile;
    if (end > (by_tile ? tensor.tiles[d] : ceil_div(shape, of))) return r;
    r.begin[d] = start[d] * of;
    if (r.begin[d] >= shape) return r;
    r.extent[d] = std::min(end * of, shape) - r.begin[d];
    const bool last = d + 1 == axes;
    const std::uint64_t whole = d < tensor.whole.size() ? extent_of(tensor.whole[d]) : shape;
    const std::uint64_t offset = d < tensor.offset.size() ? extent_of(tensor.offset[d]) : 0;
    if (last) {
      r.col = r.begin[d];
      r.cols = r.extent[d];
      r.whole_col = offset + r.begin[d];
    } else {
      r.row = r.row * shape + r.begin[d];
      r.rows *= r.extent[d];
      r.whole_row = r.whole_row * whole + offset + r.begin[d];
    }
  }
  r.comes = true;
  return r;
}

void copy_from_image(const PageRegion& region, const Tensor& tensor, const ElementBytes& image, std::byte* page) {
  const ImageLayout layout(tensor, image);
  const std::uint64_t size = bytes_of(tensor.dtype);
  const std::uint64_t row_bytes = region.cols * size;
  for (std::uint64_t row = 0; row < region.rows; ++row) {
    const std::uint64_t at = flat_row(region, layout, row) * size;
    if (at > image.size() || image.size() - at < row_bytes) {
      std::memset(page + row * row_bytes, 0, row_bytes);
    } else {
      std::memcpy(page + row * row_bytes, image.data() + at, row_bytes);
    }
  }
}

void copy_to_image(const PageRegion& region, const Tensor& tensor, ElementBytes& image, const std::byte* page,
                   std::uint64_t first, std::uint64_t count) {
  if (image.is_view()) return;
  const ImageLayout layout(tensor, image);
  const std::uint64_t size = bytes_of(tensor.dtype);
  const std::uint64_t end = std::min(first + count, region.elements());
  std::uint64_t done = first;
  while (done < end) {
    const std::uint64_t row = done / region.cols;
    const std::uint64_t col = done % region.cols;
    const std::uint64_t n = std::min(region.cols - col, end - done);
    const std::uint64_t at = (flat_row(region, layout, row) + col) * size;
    if (at <= image.size() && image.size() - at >= n * size)
      std::memcpy(image.data() + at, page + (done - first) * size, n * size);
    done += n;
  }
}

}  // namespace rdusim
