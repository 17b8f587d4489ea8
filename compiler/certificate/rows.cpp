#include "compiler/certificate/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace rdusim::certificate {

namespace {

std::uint64_t rows_of(const Whole& w) {
  return w[w.size() - 2];
}
std::uint64_t matrices_of(const Whole& w) {
  std::uint64_t n = 1;
  for (std::size_t d = 0; d + 2 < w.size(); ++d) n *= w[d];
  return n;
}
// The matrix that a block lies in; nothing where it lies in several.
std::optional<std::uint64_t> matrix_at(const Box& box, const Whole& w) {
  const std::uint64_t rows = rows_of(w);
  if (rows == 0 || box.rows == 0 || box.row / rows != (box.row + box.rows - 1) / rows) return std::nullopt;
  return box.row / rows;
}

// The matrix of `other` that belongs to matrix `matrix` of `whole`: the same place along the extents that it has.
std::uint64_t same_place(std::uint64_t matrix, const Whole& whole, const Whole& other) {
  std::uint64_t place = 0, stride = 1;
  for (std::size_t n = 3; n <= whole.size(); ++n) {
    const std::uint64_t extent = whole[whole.size() - n];
    const std::uint64_t at = matrix % extent;
    matrix /= extent;
    if (n > other.size()) continue;
    if (other[other.size() - n] == extent) place += at * stride;
    stride *= other[other.size() - n];
  }
  return place;
}

}  // namespace

Whole whole_shape(const Tensor& t, std::uint64_t heads) {
  Whole w;
  if (t.whole.size() == 1) w.push_back(1);
  for (const std::int64_t n : t.whole) w.push_back(static_cast<std::uint64_t>(n));
  if (heads > 1) {
    w.insert(w.end() - 2, heads);
    w.back() /= heads;
  }
  return w;
}

Whole spread_over(Whole whole, const Whole& other) {
  if (whole.size() < other.size()) whole.insert(whole.begin(), other.size() - whole.size(), 1);
  for (std::size_t n = 1; n <= other.size(); ++n)
    whole[whole.size() - n] = std::max(whole[whole.size() - n], other[other.size() - n]);
  return whole;
}

std::string block_of(const std::vector<TakenBlock>& taken, const Whole& whole, Box& made) {
  // The first that has all rows, in every matrix, says where; another says which columns.
  const TakenBlock* rows = nullptr;
  const TakenBlock* cols = nullptr;
  for (const TakenBlock& t : taken) {
    if (t.whole->size() < 2) return "takes a page of no place";
    const auto fits = [](bool has, std::uint64_t extent, std::uint64_t of) { return has ? extent == of : extent == 1; };
    if (!fits(t.has_rows, rows_of(*t.whole), rows_of(whole)) || !fits(t.has_cols, t.whole->back(), whole.back()))
      return fmt::format("takes {} of {} rows x {} columns towards {} x {}, which its map does not say",
                         to_string(t.box), rows_of(*t.whole), t.whole->back(), rows_of(whole), whole.back());
    if (t.has_rows && matrices_of(*t.whole) == matrices_of(whole) && rows == nullptr) rows = &t;
    if (t.has_cols && cols == nullptr) cols = &t;
  }
  if (rows == nullptr || cols == nullptr)
    return "takes no page that has the rows, or none that has the columns, of all";
  made = {rows->box.row, cols->box.col, rows->box.rows, cols->box.cols};
  for (const TakenBlock& t : taken) {
    const auto due = due_for(made, whole, t);
    if (!due) return fmt::format("{} lies in several matrices of a stack", to_string(made));
    if (t.box != *due)
      return fmt::format("takes {} towards {}, which asks for {}", to_string(t.box), to_string(made), to_string(*due));
  }
  return {};
}

std::optional<Box> due_for(const Box& made, const Whole& whole, const TakenBlock& t) {
  Box due{made.row, t.has_cols ? made.col : 0, t.has_rows ? made.rows : 1, t.has_cols ? made.cols : 1};
  if (matrices_of(*t.whole) == matrices_of(whole) && t.has_rows) return due;
  const auto matrix = matrix_at(made, whole);
  if (!matrix) return std::nullopt;
  due.row = same_place(*matrix, whole, *t.whole) * rows_of(*t.whole) + (t.has_rows ? made.row % rows_of(whole) : 0);
  return due;
}

std::string wrong_matrices(const Box& left, const Whole& whole_left, const Box& right, const Whole& whole_right) {
  const auto i = matrix_at(left, whole_left), j = matrix_at(right, whole_right);
  if (!i || !j) return "a page lies in several matrices of a stack";
  const std::uint64_t lefts = matrices_of(whole_left), rights = matrices_of(whole_right);
  if (rights == 0 || lefts % rights != 0) return fmt::format("a stack of {} by one of {}", lefts, rights);
  if (*j != *i / (lefts / rights)) return fmt::format("matrix {} by matrix {}", *i, *j);
  return {};
}

}  // namespace rdusim::certificate
