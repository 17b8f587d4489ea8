// Loads whose rows come by index.
#include <algorithm>
#include <cstring>

#include "models/units/chip.h"
#include "models/values/kernels.h"

namespace rdusim {

// The page that a firing brings says where its indices lie; where there are values, row i is the row of the tensor that
// index i names, and zeros where it names none.
void Chip::gather_rows(StageState& s, const Tensor& table, const PageRegion& region, const View& indices,
                       PageHeader& page, std::byte* values) {
  const StageSpec& sp = spec(s);
  const ElementRange part = chunk_range(std::uint64_t{indices.tag.rows} * indices.tag.cols, indices.tag.chunk,
                                        std::max(indices.tag.chunks, 1u));
  page.tag.trip = indices.tag.trip;
  page.tag.row = indices.tag.col + part.begin;
  tell(PartialFolded{now_, at(s), s.next, PageTag{}, indices.tag, page.tag});
  if (values == nullptr) return;
  const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(table.shape[0], 0));
  const std::uint64_t row_bytes = region.cols * bytes_of(table.dtype);
  PageRegion one = region;
  one.extent[0] = one.rows = 1;
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    const bool there = i < indices.elements && indices.values != nullptr;
    std::int64_t index = 0;
    if (there)
      convert(sp.ports[0].dtype, indices.values + i * bytes_of(sp.ports[0].dtype), DType::int64,
              reinterpret_cast<std::byte*>(&index), 1, false);
    one.begin[0] = static_cast<std::uint64_t>(index);  // a negative one lies beyond all rows
    if (there && one.begin[0] < rows)
      copy_from_image(one, table, images_[table.id.value], values + i * row_bytes);
    else
      std::memset(values + i * row_bytes, 0, row_bytes);
  }
}

}  // namespace rdusim
