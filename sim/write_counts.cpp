#include "sim/write_counts.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rdusim {

namespace {

constexpr std::uint32_t block_shift = std::countr_zero(WriteCounts::block_elements);

// Whether all n bytes are `expected`. Looks at all of them, eight at a time.
bool bytes_are(const std::uint8_t* times, std::uint64_t n, std::uint8_t expected) {
  const std::uint64_t eight = 0x0101010101010101u * expected;
  std::uint64_t different = 0;
  std::uint64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, times + i, 8);
    different |= word ^ eight;
  }
  for (; i < n; ++i) different |= static_cast<std::uint64_t>(times[i] ^ expected);
  return different == 0;
}

// The least s with 2^s >= n, at most `most`.
std::uint32_t shift_that_holds(std::uint64_t n, std::uint32_t most) {
  return n <= 1 ? 0 : std::min<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(n - 1)), most);
}

}  // namespace

std::unique_ptr<WriteCounts::Cells> WriteCounts::Pool::take() {
  if (free_.empty()) {
    ++made_;
    return std::make_unique<Cells>();
  }
  auto cells = std::move(free_.back());
  free_.pop_back();
  return cells;
}

WriteCounts::Shape WriteCounts::shape(std::uint64_t rows, std::uint64_t cols, std::uint64_t page_cols) {
  const std::uint32_t square = block_shift / 2;
  const std::uint32_t page = page_cols == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(page_cols)) - 1;
  Shape s;
  s.width = shift_that_holds(cols, std::clamp(page, square, block_shift));
  s.height = shift_that_holds(rows, block_shift - s.width);
  s.width = shift_that_holds(cols, block_shift - s.height);  // of few rows the wider
  return s;
}

void WriteCounts::set_shape(Shape s) {
  height_ = s.height;
  width_ = s.width;
  const std::uint8_t times = blocks_.empty() ? std::uint8_t{0} : blocks_.front().times;
  blocks_across_ = ((cols_ - 1) >> width_) + 1;
  blocks_ = std::vector<Block>(blocks_across_ * (((rows_ - 1) >> height_) + 1));
  for (Block& b : blocks_) b.times = times;
}

WriteCounts::WriteCounts(std::uint64_t rows, std::uint64_t cols) : rows_(rows), cols_(cols) {
  if (elements() != 0) set_shape(shape(rows, cols, 0));
}

std::uint64_t WriteCounts::bytes_of_heads(std::uint64_t rows, std::uint64_t cols) {
  if (rows == 0 || cols == 0) return 0;
  const Shape s = shape(rows, cols, 0);
  return (((cols - 1) >> s.width) + 1) * (((rows - 1) >> s.height) + 1) * sizeof(Block);
}

std::uint64_t WriteCounts::rows_in(std::size_t block) const {
  return std::min<std::uint64_t>(std::uint64_t{1} << height_, rows_ - ((block / blocks_across_) << height_));
}

std::uint64_t WriteCounts::cols_in(std::size_t block) const {
  return std::min<std::uint64_t>(std::uint64_t{1} << width_, cols_ - ((block % blocks_across_) << width_));
}

// f(part) of each, row by row of blocks, until one is false; whether none was.
template <class F>
bool WriteCounts::each_part(const Rect& r, F&& f) const {
  if (r.rows == 0 || r.cols == 0) return true;
  const std::uint64_t down = (r.row + r.rows - 1) >> height_, across = (r.col + r.cols - 1) >> width_;
  for (std::uint64_t i = r.row >> height_; i <= down; ++i) {
    const std::uint64_t top = i << height_;
    const std::uint64_t first_row = std::max(r.row, top),
                        last_row = std::min(r.row + r.rows, top + (std::uint64_t{1} << height_));
    for (std::uint64_t j = r.col >> width_; j <= across; ++j) {
      const std::uint64_t left = j << width_;
      const std::uint64_t first_col = std::max(r.col, left),
                          last_col = std::min(r.col + r.cols, left + (std::uint64_t{1} << width_));
      if (!f(Part{i * blocks_across_ + j, first_row - top, last_row - first_row, first_col - left,
                  last_col - first_col}))
        return false;
    }
  }
  return true;
}

std::uint8_t WriteCounts::at(std::uint64_t row, std::uint64_t col) const {
  const Block& b = blocks_[(row >> height_) * blocks_across_ + (col >> width_)];
  if (!b.cells) return b.times;
  const std::uint64_t in_row = row & ((std::uint64_t{1} << height_) - 1),
                      in_col = col & ((std::uint64_t{1} << width_) - 1);
  return (*b.cells)[(in_row << width_) + in_col];
}

bool WriteCounts::all_are(const Part& p, std::uint8_t times) const {
  const Block& b = blocks_[p.block];
  if (!b.cells) return b.times == times;
  for (std::uint64_t row = p.row; row < p.row + p.rows; ++row)
    if (!bytes_are(b.cells->data() + (row << width_) + p.col, p.cols, times)) return false;
  return true;
}

std::optional<WriteCounts::Element> WriteCounts::other_than(std::uint8_t times, const Rect& r) const {
  if (each_part(r, [&](const Part& p) { return all_are(p, times); })) return std::nullopt;
  for (std::uint64_t row = r.row; row < r.row + r.rows; ++row)
    for (std::uint64_t col = r.col; col < r.col + r.cols; ++col)
      if (const std::uint8_t n = at(row, col); n != times) return Element{row, col, n};
  return std::nullopt;
}

std::uint64_t WriteCounts::count_other_than(std::uint8_t times) const {
  std::uint64_t n = 0;
  each_part({0, rows_, 0, cols_}, [&](const Part& p) {
    const Block& b = blocks_[p.block];
    if (!b.cells) {
      n += b.times != times ? p.rows * p.cols : 0;
      return true;
    }
    for (std::uint64_t row = 0; row < p.rows; ++row) {
      const std::uint8_t* cells = b.cells->data() + (row << width_);
      n += p.cols - static_cast<std::uint64_t>(std::count(cells, cells + p.cols, times));
    }
    return true;
  });
  return n;
}

void WriteCounts::add(const Rect& r, Pool& pool) {
  if (r.rows == 0 || r.cols == 0) return;
  if (!written_) {
    // Every block has the same count, and no cells.
    written_ = true;
    if (const Shape s = shape(rows_, cols_, r.cols); s.width != width_ || s.height != height_) set_shape(s);
  }
  each_part(r, [&](const Part& p) {
    Block& b = blocks_[p.block];
    const std::uint64_t rows = rows_in(p.block), cols = cols_in(p.block);
    if (!b.cells && p.rows == rows && p.cols == cols) {
      ++b.times;
      return true;
    }
    if (!b.cells) {
      b.cells = pool.take();
      b.cells->fill(b.times);
      b.added = 0;
    }
    for (std::uint64_t row = p.row; row < p.row + p.rows; ++row) {
      std::uint8_t* cells = b.cells->data() + (row << width_) + p.col;
      std::for_each(cells, cells + p.cols, [](std::uint8_t& t) { ++t; });
    }
    b.added += static_cast<std::uint32_t>(p.rows * p.cols);
    if (b.added < rows * cols) return true;
    // As many writes as it has elements: as a rule one of each.
    b.added = 0;
    if (const std::uint8_t times = b.cells->front(); all_are({p.block, 0, rows, 0, cols}, times)) {
      b.times = times;
      pool.give(std::move(b.cells));
    }
    return true;
  });
}

void WriteCounts::replace(std::uint8_t from, std::uint8_t to) {
  for (Block& b : blocks_) {
    if (b.cells) std::replace(b.cells->begin(), b.cells->end(), from, to);
    if (b.times == from) b.times = to;
  }
}

void WriteCounts::copy(const WriteCounts& other, Pool& pool) {
  if (other.width_ != width_ || other.height_ != height_) {
    for (Block& b : blocks_)
      if (b.cells) pool.give(std::move(b.cells));
    set_shape({other.height_, other.width_});
  }
  written_ = other.written_;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block& b = blocks_[i];
    const Block& o = other.blocks_[i];
    if (b.cells && !o.cells) pool.give(std::move(b.cells));
    if (o.cells) {
      if (!b.cells) b.cells = pool.take();
      *b.cells = *o.cells;
    }
    b.added = o.added;
    b.times = o.times;
  }
}

}  // namespace rdusim
