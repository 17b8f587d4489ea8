// WriteCounts against a byte for each element.
#include "sim/write_counts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rdusim::write_counts_test {
namespace {

struct Plain {
  std::uint64_t rows = 0, cols = 0;
  std::vector<std::uint8_t> times;
  std::uint8_t& at(std::uint64_t row, std::uint64_t col) { return times[row * cols + col]; }
  std::optional<WriteCounts::Element> other_than(std::uint8_t n, const WriteCounts::Rect& r) {
    for (std::uint64_t i = r.row; i < r.row + r.rows; ++i)
      for (std::uint64_t j = r.col; j < r.col + r.cols; ++j)
        if (at(i, j) != n) return WriteCounts::Element{i, j, at(i, j)};
    return std::nullopt;
  }
};

bool same(const std::optional<WriteCounts::Element>& a, const std::optional<WriteCounts::Element>& b) {
  return a.has_value() == b.has_value() && (!a || (a->row == b->row && a->col == b->col && a->times == b->times));
}

TEST_CASE("counts held by block are those held by element, whatever is written") {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random); };
  WriteCounts::Pool pool;
  // Blocks are square, flat, narrow; whole and cut off.
  for (const auto& [rows, cols] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {1, 1}, {1, 10000}, {10000, 1}, {64, 64}, {130, 200}, {3, 5000}, {700, 7}, {128, 128}}) {
    CAPTURE(rows);
    CAPTURE(cols);
    WriteCounts counts(rows, cols);
    Plain plain{rows, cols, std::vector<std::uint8_t>(rows * cols)};
    CHECK(counts.elements() == rows * cols);
    for (int i = 0; i < 400; ++i) {
      WriteCounts::Rect r{below(rows), 0, below(cols), 0};
      r.rows = 1 + below(rows - r.row), r.cols = 1 + below(cols - r.col);
      if (below(8) == 0) r = {0, rows, 0, cols};
      const std::uint8_t n = plain.at(r.row, r.col);
      REQUIRE(same(counts.other_than(n, r), plain.other_than(n, r)));
      counts.add(r, pool);
      for (std::uint64_t row = r.row; row < r.row + r.rows; ++row)
        for (std::uint64_t col = r.col; col < r.col + r.cols; ++col) ++plain.at(row, col);
      if (below(20) == 0) {
        const auto from = plain.at(below(rows), below(cols)), to = static_cast<std::uint8_t>(from + below(3));
        counts.replace(from, to);
        std::replace(plain.times.begin(), plain.times.end(), from, to);
      }
      if (below(20) == 0) {
        WriteCounts other(rows, cols);
        other.add({0, 1, 0, 1}, pool);
        other.copy(counts, pool);
        std::swap(other, counts);
      }
    }
    const std::uint8_t n = plain.at(rows - 1, cols - 1);
    CHECK(same(counts.other_than(n), plain.other_than(n, {0, rows, 0, cols})));
    CHECK(counts.count_other_than(n) ==
          plain.times.size() - static_cast<std::uint64_t>(std::count(plain.times.begin(), plain.times.end(), n)));
  }
}

TEST_CASE(
    "a matrix that pages cover whole, in rows or in tiles, needs a byte an element for the pages under way alone") {
  const auto made = [](std::uint64_t rows, std::uint64_t cols, std::uint64_t page_rows, std::uint64_t page_cols) {
    WriteCounts::Pool pool;
    WriteCounts counts(rows, cols);
    for (std::uint64_t col = 0; col < cols; col += page_cols)
      for (std::uint64_t row = 0; row < rows; row += page_rows) counts.add({row, page_rows, col, page_cols}, pool);
    CHECK_FALSE(counts.other_than(1));
    return pool.made();
  };
  CHECK(made(32, 131072, 1, 16384) == 0);
  CHECK(made(32, 131072, 1, 1024) <= 32);
  CHECK(made(4096, 4096, 64, 64) == 0);
  CHECK(made(4096, 4096, 32, 32) <= 128);
}

}  // namespace
}  // namespace rdusim::write_counts_test
