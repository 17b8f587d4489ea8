#include "compiler/ir/row_places.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {
namespace {

const char* axis_name(std::size_t from_last) {
  return from_last == 1 ? "column" : from_last == 2 ? "row" : "matrix";
}

}  // namespace

RowPlace row_place(const std::vector<TakenPage>& taken, const PageFrame& frame) {
  const std::size_t rank = frame.size();
  ElementBox box(rank, AxisRange{0, 1});
  std::vector<const TakenPage*> placed(rank, nullptr);
  bool everywhere = false;
  for (const TakenPage& page : taken) {
    bool has_all = page.has_rows;
    for (std::size_t n = 1; n <= rank; ++n) {
      const std::size_t d = rank - n;
      const bool there = n <= page.frame->size();
      const std::int64_t extent = there ? (*page.frame)[page.frame->size() - n] : 1;
      const AxisRange range = there ? (*page.box)[page.box->size() - n] : AxisRange{0, 1};
      const bool may_have = n == 1 ? page.has_cols : n == 2 ? page.has_rows : true;
      if (!may_have && extent != 1)
        return {{}, fmt::format("{} serves every {}, and is cut from {} of them", page.name, axis_name(n), extent)};
      if (n <= 2 && may_have && extent != frame[d])
        return {{}, fmt::format("{} has {} {}s, and the result {}", page.name, extent, axis_name(n), frame[d])};
      if (n > 2 && there && range.size() != 1)
        return {{}, fmt::format("{} lies in {} matrices of its stack", page.name, range.size())};
      if (n != 1 && extent != frame[d]) has_all = false;
      if (extent != frame[d]) {
        if (extent != 1)
          return {{}, fmt::format("{} has {} matrices where the result has {}", page.name, extent, frame[d])};
        continue;
      }
      if (!may_have) continue;
      if (placed[d] != nullptr && range != box[d])
        return {{},
                fmt::format("{} has {}s [{},{}), and {} [{},{})", placed[d]->name, axis_name(n), box[d].begin,
                            box[d].end, page.name, range.begin, range.end)};
      placed[d] = &page;
      box[d] = range;
    }
    everywhere = everywhere || has_all;
  }
  if (!everywhere) return {{}, "no page that it takes has the rows of the result in every matrix of the stack"};
  return {std::move(box), {}};
}

RowPlace shifted_place(const std::vector<TakenPage>& taken) {
  if (taken.empty()) return {{}, "it takes no page"};
  const ElementBox& first = *taken.front().box;
  for (const TakenPage& page : taken) {
    const ElementBox& box = *page.box;
    if (box.size() != first.size() || !std::equal(box.begin(), box.end() - 1, first.begin()))
      return {{}, fmt::format("{} and {} have other rows", taken.front().name, page.name)};
    if (box.back().size() != first.back().size())
      return {{},
              fmt::format("{} has {} columns, and {} {}", taken.front().name, first.back().size(), page.name,
                          box.back().size())};
  }
  return {first, {}};
}

}  // namespace rdusim
