// How often each element of a matrix was written, modulo 256.
//
// Writers take turns over a tensor in pages, and what they leave behind is the same count all over. So a block of elements
// that have one count is held as that count; only while a block is partly written does it have a byte an element. A matrix
// that a page at a time covers takes little more than its blocks' heads, 16 bytes for 4096 elements. Blocks are square, or as
// wide as the first page that is written: what writes whole rows leaves no block half done that waits for the rows below.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace rdusim {

class WriteCounts {
 public:
  static constexpr std::uint32_t block_elements = 4096;
  using Cells = std::array<std::uint8_t, block_elements>;

  // Cells that no block needs at the moment, for the next that does. Outlives the matrices that share it.
  class Pool {
   public:
    std::unique_ptr<Cells> take();
    void give(std::unique_ptr<Cells> cells) { free_.push_back(std::move(cells)); }
    // How many there are, in use or not.
    std::size_t made() const { return made_; }

   private:
    std::size_t made_ = 0;
    std::vector<std::unique_ptr<Cells>> free_;
  };

  struct Rect {
    std::uint64_t row = 0, rows = 0, col = 0, cols = 0;
  };
  struct Element {
    std::uint64_t row = 0, col = 0;
    std::uint8_t times = 0;
  };

  // Of no element yet.
  WriteCounts() = default;
  // Every count 0.
  WriteCounts(std::uint64_t rows, std::uint64_t cols);

  std::uint64_t elements() const { return rows_ * cols_; }
  // Requires that the rectangle lies in the matrix, here and below. Its first element, row by row, whose count is another.
  std::optional<Element> other_than(std::uint8_t times, const Rect& r) const;
  // The same of the matrix, and how many there are.
  std::optional<Element> other_than(std::uint8_t times) const { return other_than(times, {0, rows_, 0, cols_}); }
  std::uint64_t count_other_than(std::uint8_t times) const;
  // One more for each.
  void add(const Rect& r, Pool& pool);
  // Counts that are `from` become `to`.
  void replace(std::uint8_t from, std::uint8_t to);
  // As another of the same extents has them.
  void copy(const WriteCounts& other, Pool& pool);

  // Bytes of a matrix's heads.
  static std::uint64_t bytes_of_heads(std::uint64_t rows, std::uint64_t cols);

 private:
  struct Block {
    std::unique_ptr<Cells> cells;  // row by row, of the block's full width; null where all counts are `times`
    std::uint32_t added = 0;       // to its elements since it has cells
    std::uint8_t times = 0;
  };
  // A part of a rectangle within one block, in the block's own rows and columns.
  struct Part {
    std::size_t block = 0;
    std::uint64_t row = 0, rows = 0, col = 0, cols = 0;
  };
  struct Shape {
    std::uint32_t height = 0, width = 0;  // as shifts
  };
  // Of blocks for pages that are `page_cols` wide.
  static Shape shape(std::uint64_t rows, std::uint64_t cols, std::uint64_t page_cols);
  void set_shape(Shape shape);
  template <class F>
  bool each_part(const Rect& r, F&& f) const;
  std::uint8_t at(std::uint64_t row, std::uint64_t col) const;
  bool all_are(const Part& p, std::uint8_t times) const;
  // Elements of a block that lie in the matrix.
  std::uint64_t rows_in(std::size_t block) const;
  std::uint64_t cols_in(std::size_t block) const;

  std::uint64_t rows_ = 0, cols_ = 0, blocks_across_ = 0;
  std::uint32_t height_ = 0, width_ = 0;  // of a block, as shifts
  bool written_ = false;                  // which its blocks' shape waits for
  std::vector<Block> blocks_;             // row by row
};

}  // namespace rdusim
